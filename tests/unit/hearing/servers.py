"""Wyoming servers of speech recognition for tests: real ones, as processes."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SERVER = Path(__file__).parent / "engines/wyoming_server.py"


@contextmanager
def server(how: str, path: Path | None = None) -> Iterator[str]:
    """Run a server that answers this way, and return its address."""
    command = [sys.executable, str(_SERVER), how, *([str(path)] if path else [])]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
