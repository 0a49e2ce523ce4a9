"""Runs `glassd VERB …` in a process that is forked from one which has the verbs loaded.

Each run is a process of its own, with its own streams, environment and exit code; only Python and
the modules are not loaded again. What a verb loads, and that it can be loaded first, is asked in
`test_imports.py`; closed and full streams, and Ctrl-C, in `e2e/test_rough_hands.py`.
"""

import asyncio
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOADED = (
    "call",
    "calls",
    "completion",
    "confirm",
    "events",
    "lens",
    "pairing",
    "registry",
    "servers",
    "status",
    "tools",
    "up",
)
MAX_REQUEST = 1 << 20


async def run(
    words: Sequence[str], env: Mapping[str, str], *, stdin: bytes = b"", limit_s: float
) -> tuple[int, bytes, bytes]:
    """Return exit code, standard output and standard error. Raise TimeoutError."""
    streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
    ended, end = os.pipe()
    try:
        os.write(streams[0], stdin)
        os.lseek(streams[0], 0, os.SEEK_SET)
        request = json.dumps({"words": list(map(str, words)), "env": dict(env)}).encode()
        socket.send_fds(_server(), [request], [*streams, end])
        os.close(end)
        code = await _code(ended, limit_s)
        return code, *(_content(stream) for stream in streams[1:])
    finally:
        for file in (*streams, ended):
            os.close(file)


@functools.cache
def _server() -> socket.socket:
    """Start the process that forks; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.warm", str(theirs.fileno())],
            cwd=ROOT,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop() -> None:
        ours.close()
        process.wait()

    atexit.register(stop)
    return ours


async def _code(ended: int, limit_s: float) -> int:
    """Wait for the two lines about a run: its process id, and its exit code."""
    loop, said = asyncio.get_running_loop(), b""
    more = asyncio.Event()
    os.set_blocking(ended, False)  # the event may be set once more than there is something to read
    loop.add_reader(ended, more.set)
    try:
        async with asyncio.timeout(limit_s):
            while said.count(b"\n") < 2:
                await more.wait()
                more.clear()
                with contextlib.suppress(BlockingIOError):
                    part = os.read(ended, 100)
                    assert part, f"the process that forks has ended: {said!r}"
                    said += part
    except BaseException:
        if said:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(said.split()[0]), signal.SIGKILL)
        raise
    finally:
        loop.remove_reader(ended)
    return int(said.split()[1])


def _content(stream: int) -> bytes:
    return os.pread(stream, os.fstat(stream).st_size, 0)


# ------------------------------------------------------------------ the process that forks


def _serve(requests: socket.socket) -> None:
    """Fork for each request, until nobody can ask any more."""
    from edge import cli

    for module in LOADED:
        importlib.import_module(f"edge.commands.{module}")
    gc.freeze()  # what is never looked at is never copied
    while True:
        request, fds, _, _ = socket.recv_fds(requests, MAX_REQUEST, 4)
        if not request:
            return
        if os.fork() == 0:
            break
        for file in fds:
            os.close(file)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    requests.close()
    *streams, end = fds
    if (pid := os.fork()) != 0:
        _keep(pid, end)
    os.close(end)
    asked = json.loads(request)
    _be_fresh(streams, asked["env"])
    sys.argv = ["glassd", *asked["words"]]
    code = cli.main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # to free every object would copy all memory, and take longer than a new start


def _keep(pid: int, end: int) -> None:
    """Report a run; never returns."""
    os.write(end, f"{pid}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(end, f"{code}\n".encode())
    os._exit(0)


def _be_fresh(streams: list[int], env: Mapping[str, str]) -> None:
    """Make this process what it were if it had just been started."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.stdin, sys.stdout = (os.fdopen(n, m, encoding="utf-8") for n, m in ((0, "r"), (1, "w")))
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
