"""Runs inside a mount namespace of its own: mounts small file systems, fills each in another way, sees the check of free
space, runs its printed fix, sees it again; prints all of it as JSON.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from tests.unit.doctor.house import Sandbox

MIB5 = bytes(5 << 20)


def mount(place, *options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(place)], check=True)
    place.chmod(0o700)
    for option in options:
        subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)


def aside(place):
    mount(place)
    (place / "glassd.db.bad-1").write_bytes(MIB5)


def journal(place):
    mount(place)
    (place / "journal").mkdir()
    (place / "journal" / "system.journal").write_bytes(MIB5)


async def seen(folder, way):
    folder.mkdir()
    sandbox = Sandbox(folder)
    small = folder / "small"
    small.mkdir()
    {"aside": aside, "journal": journal, "readonly": lambda p: mount(p, "ro"), "inodes": lambda p: mount(p, "nr_inodes=50")}[way](small)
    sandbox.configure(edge={"id": "edge-doctored", "state_dir": str(small)})
    before = await sandbox.sees("space")
    await sandbox.cures(before)
    after = await sandbox.sees("space")
    return [before.mark, before.said, before.fix.text, after.mark, after.said]


async def main(folder):
    told = {way: await seen(folder / way, way) for way in ("aside", "journal", "readonly", "inodes")}
    sys.stdout.write(json.dumps(told))


asyncio.run(main(Path(sys.argv[1])))
