"""Runs inside a mount namespace of its own: mounts small file systems, fills each in another
way, runs the check of free space, applies the printed fix, checks again; prints all of it as
JSON.
"""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

from edge.doctor.models import FixKind
from tests.unit.doctor.house import Sandbox

MIB5 = bytes(5 << 20)


def mount(place, *options):
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(place)], check=True)
    place.chmod(0o700)
    for option in options:
        subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)


def aside(sandbox):
    state = sandbox.folder / "small"
    mount(state)
    (state / "glassd.db.bad-1").write_bytes(MIB5)
    return state


def journal(sandbox):
    """One file system for the journal and the state, as on most machines."""
    mount(sandbox.root / "var")
    (sandbox.root / "var/log/journal").mkdir(parents=True)
    (sandbox.root / "var/log/journal/system.journal").write_bytes(MIB5)
    (sandbox.root / "var/lib/glassd").mkdir(parents=True, mode=0o700)
    return sandbox.root / "var/lib/glassd"


def own(sandbox):
    """A file system for the state alone: no journal elsewhere would free space on it."""
    (sandbox.root / "var/log/journal").mkdir(parents=True)
    state = sandbox.folder / "small"
    mount(state)
    (state / "holiday.mp4").write_bytes(MIB5)
    return state


def readonly(sandbox):
    mount(sandbox.folder / "small", "ro")
    return sandbox.folder / "small"


def inodes(sandbox):
    state = sandbox.folder / "small"
    mount(state, "nr_inodes=300")
    (state / "many").mkdir()
    for n in range(250):
        (state / "many" / str(n)).touch()
    return state


async def do(sandbox, finding, state):
    """Apply the fix: run the command, or look where an instruction says and delete most of it."""
    if finding.fix.kind is FixKind.RUN:
        return await sandbox.cures(finding)
    told = [line.split("\t")[1] for line in (await sandbox.does(finding)).splitlines()]
    most = next(path for path in reversed(told) if Path(path) != state)
    return shutil.rmtree(most) if Path(most).is_dir() else Path(most).unlink()


async def seen(folder, way):
    folder.mkdir()
    sandbox = Sandbox(folder)
    state = way(sandbox)
    sandbox.configure(edge={"id": "edge-doctored", "state_dir": str(state)})
    before = await sandbox.sees("space")
    await do(sandbox, before, state)
    after = await sandbox.sees("space")
    return [before.mark, before.said, before.fix.text, after.mark, after.said]


async def main(folder):
    sys.stdout.write(
        json.dumps(
            {
                way.__name__: await seen(folder / way.__name__, way)
                for way in (aside, journal, own, readonly, inodes)
            }
        )
    )


asyncio.run(main(Path(sys.argv[1])))
