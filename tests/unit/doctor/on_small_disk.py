"""Runs inside `small_disk.sh`: sees the check of free space, runs its printed fix, sees it again; prints all three as JSON."""

import asyncio
import json
import sys
from pathlib import Path

from tests.unit.doctor.house import Sandbox


async def main(folder):
    sandbox = Sandbox(Path(folder))
    sandbox.configure(edge={"id": "edge-doctored", "state_dir": f"{folder}/small"})
    before = await sandbox.sees("space")
    if before.fix:
        await sandbox.cures(before)
    after = await sandbox.sees("space")
    told = [before.mark, before.said, before.fix.text if before.fix else "", after.mark, after.said]
    sys.stdout.write(json.dumps(told))


asyncio.run(main(sys.argv[1]))
