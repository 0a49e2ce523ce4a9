"""The first thing in the guest: says that the boot is complete, waits to be woken, then runs the
agent from the host's disk.

Knows nothing of the stories, because the frozen machine holds this program's text for as long as
the image is kept. What the agent needs of the standard library is loaded here, before the freeze,
so that a woken machine answers at once.
"""

import http.client  # noqa: F401
import json
import os
import pathlib
import runpy
import selectors  # noqa: F401
import socket  # noqa: F401
import subprocess
import threading  # noqa: F401
import time

PORT = "/dev/virtio-ports/glassd.ctl"
PAYLOAD = "/payload"


def main() -> None:
    """Be frozen between the two lines of this conversation."""
    while not pathlib.Path(PORT).exists():
        time.sleep(0.1)
    door = os.open(PORT, os.O_RDWR)
    subprocess.run(
        ["systemctl", "is-system-running", "--wait"],
        check=False,
        stdout=subprocess.DEVNULL,
        timeout=120,
    )
    os.write(door, b'{"booted": true}\n')
    woken = b""
    while not woken.endswith(b"\n"):
        woken += os.read(door, 4096)  # nothing while no host is connected
        time.sleep(0.02)
    time.clock_settime(time.CLOCK_REALTIME, json.loads(woken)["now"])
    pathlib.Path(PAYLOAD).mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "ro,noatime", "/dev/vdb", PAYLOAD], check=True)
    runpy.run_path(f"{PAYLOAD}/agent.py", init_globals={"DOOR": door}, run_name="__main__")


main()
