"""Wyoming servers for tests: real ones, as processes. `serve` runs in the process."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@contextmanager
def wyoming_process(module: str, *args: str) -> Iterator[str]:
    """Run a module that calls `serve`, and return the address of its server."""
    command = [sys.executable, "-m", module, *args]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


async def serve(server: Callable[..., Any], path: str = "") -> None:
    """Serve at this socket, or at a free port of this machine, and print the address."""

    def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(server(reader, writer).run()))

    tasks: set[asyncio.Future[None]] = set()
    if path:
        listener = await asyncio.start_unix_server(handler, path)
        address = f"unix://{path}"
    else:
        listener = await asyncio.start_server(handler, "127.0.0.1", 0)
        address = f"tcp://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    await listener.serve_forever()
