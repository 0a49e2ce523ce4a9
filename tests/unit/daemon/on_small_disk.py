"""Runs inside a mount namespace of its own: a daemon whose state is on a small file system that
fills up or fails.

Prints as JSON what callers, `status` and `glassd doctor` say before, meanwhile and after.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from edge.config.load import formed
from edge.daemon.app import Daemon
from tools_cache.api.tool import CallOrigin, ToolCall

DEADLINE_S = 60.0


def mount(state, kind):
    state.mkdir()
    if kind == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", str(state)], check=True)
        return
    image = state.with_name("image")
    with image.open("wb") as file:
        file.truncate(48 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop,errors=remount-ro", str(image), str(state)], check=True)


def fill(state):
    with (state / "filler").open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 512):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                pass


def abort(state):
    """What ext4 does by itself when its disk fails: it becomes read-only under open files."""
    subprocess.run(["mount", "-o", "remount,abort", str(state)], check=True)


async def note(daemon, text):
    call = ToolCall(
        call_id=f"c-{text}", tool="notes:add", args={"text": text}, origin=CallOrigin.CLI
    )
    return (await daemon.calls.call(call)).to_json()


async def until(true):
    async with asyncio.timeout(DEADLINE_S):
        while not true():
            await asyncio.sleep(0.05)


async def story(state, harm, heal):
    settings = formed(
        {
            "edge": {"state_dir": str(state), "id": "edge-small"},
            "control": {"socket": str(state.parent / "c.sock"), "group": ""},
            "glasses": {"radio": "inproc"},
        }
    )
    told = {}
    async with AsyncExitStack() as stack:
        daemon = Daemon(settings, {})
        await daemon.open(stack)
        running = asyncio.ensure_future(daemon.run())
        try:
            told["before"] = await note(daemon, "before")
            harm(state)
            told["refused"] = [await note(daemon, f"refused-{n}") for n in range(40)][-1]
            status = daemon.status()
            told["alarms"], told["next"] = status["alarms"], status["next_action"]
            if heal is not None:
                heal(state)
                await until(lambda: "storage" not in daemon.status()["alarms"])
                told["after"] = await note(daemon, "after")
        finally:
            running.cancel()
            await asyncio.wait([running])
    return told


async def main(folder, way):
    state = folder / "state"
    mount(state, "tmpfs" if way == "full" else "ext4")
    harm, heal = (
        (fill, lambda place: (place / "filler").unlink()) if way == "full" else (abort, None)
    )
    sys.stdout.write(json.dumps(await story(state, harm, heal)))


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
