"""A Mosquitto for measurements: it sends at once, and asks nobody who they are."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HOST = "127.0.0.1"
UP_S = 20.0
CONFIG = """\
listener {port} 127.0.0.1
set_tcp_nodelay true
allow_anonymous true
persistence false
max_inflight_messages 256
max_queued_messages 10000
{user}
"""


def why_not() -> str:
    """Return what is missing to run one; "" if nothing is."""
    return "" if _program() else "apt-get install mosquitto"


@contextmanager
def mosquitto(folder: Path) -> Iterator[int]:
    """Run one until the block ends; yields its port."""
    program, port = _program(), free_port()
    assert program, why_not()
    config = folder / "mosquitto.conf"
    config.write_text(CONFIG.format(port=port, user="user root" if os.geteuid() == 0 else ""))
    with (folder / "mosquitto.log").open("wb") as log:
        child = subprocess.Popen([program, "-c", str(config)], stdout=log, stderr=log)
    try:
        _wait_until_it_listens(child, port, folder / "mosquitto.log")
        yield port
    finally:
        child.terminate()
        child.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _wait_until_it_listens(child: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + UP_S
    while child.poll() is None and time.monotonic() < until:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=0.2):
            return
        time.sleep(0.01)
    raise SystemExit(f"mosquitto does not listen: {log.read_text(errors='replace')[-500:]}")


def _program() -> str | None:
    return shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
