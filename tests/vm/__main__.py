"""`make vm-test`: the link's and the unit's stories on real BlueZ, kernel and systemd; prints a
table, one row a story.

    python -m tests.vm [--suite bookworm] [--suite trixie] [--quick] [STORY …]

Knows how to run them and what to say where no virtual machine can be had; the stories are
tests/link/.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.vm import image
from tests.vm.image import REPO, NoMachine

LOSSES = {True: "20", False: "100"}
"""Quick → how many links are cut at random moments."""
QUICK = {
    "trixie": (
        "not wrong_code and not never_paired and not scan_tells and "
        "not refuse_to_pair and not own_session"
    ),
    "bookworm": "bluetoothd_that_dies or typed_here or cost_no_more",
}
"""Suite → which stories a quick run tells of it: not those that bumble tells as well in `make
test`; of Debian 12 those where its kernel and BlueZ are known to differ.
"""
STUCK_S = 3600.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make vm-test", description=__doc__)
    parser.add_argument(
        "--suite",
        action="append",
        choices=sorted(image.PYTHONS),
        help="Debian release, may be given twice; both when absent",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="20 link losses instead of 100; without --suite, only what bumble cannot tell",
    )
    parser.add_argument("stories", nargs="*", help="only stories whose name has one of these words")
    args = parser.parse_args()
    results = []
    for suite in args.suite or reversed(image.PYTHONS):
        short = args.quick and not args.suite and not args.stories
        results.append(
            _suite(
                suite,
                quick=args.quick,
                stories=QUICK[suite] if short else " or ".join(args.stories),
            )
        )
    return max(results)


def _suite(suite: str, *, quick: bool, stories: str) -> int:
    began = time.monotonic()
    try:
        made = image.image(suite)
        image.payload(made)
    except NoMachine as why:
        return _none(suite, why)
    print(
        f"{suite}: guest and installation there after {time.monotonic() - began:.0f} s", flush=True
    )
    return _run(
        suite, {"GLASSD_LINK_RADIO": f"bluez-{suite}", "GLASSD_LINK_LOSSES": LOSSES[quick]}, stories
    )


def _none(suite: str, why: NoMachine) -> int:
    """Say loudly that there is no machine. Only what lies in the nature of this computer may
    pass, and only in CI.
    """
    allowed = why.by_nature and os.environ.get("CI") == "true"
    print(
        f"{'!' * 72}\nNO VIRTUAL MACHINE ({suite}): "
        f"{why}\nNone of the stories on BlueZ and systemd was run.\n{'!' * 72}",
        flush=True,
    )
    if allowed:
        print(f"SKIPPED, allowed in CI: make vm-test on {suite}: {why}")
    return 0 if allowed else 1


def _run(suite: str, environment: dict[str, str], stories: str) -> int:
    with tempfile.TemporaryDirectory(prefix="glassd-vm-") as folder:
        rows, log = Path(folder) / "rows", Path(folder) / "log"
        rows.touch()
        words = ["-k", stories] if stories else []
        argv = [
            sys.executable,
            "-m",
            "tests.second_chance",
            "tests/link",
            "-p",
            "tests.vm.rows",
            "-q",
            "--tb=short",
            *words,
        ]
        with log.open("wb") as out:
            process = subprocess.Popen(
                argv,
                cwd=REPO,
                stdout=out,
                stderr=out,
                env={**os.environ, **environment, "GLASSD_VM_ROWS": str(rows)},
            )
        try:
            seen = _follow(process, rows)
        finally:
            process.kill()
            process.wait()
        return _sum_up(suite, process.returncode, seen, log)


def _follow(process: "subprocess.Popen[bytes]", rows: Path) -> list[dict[str, object]]:
    """Print each row as it comes; gives them all."""
    seen: list[dict[str, object]] = []
    end = time.monotonic() + STUCK_S
    with rows.open(encoding="utf-8") as file:
        while time.monotonic() < end:
            over = process.poll() is not None
            for line in file:
                row = json.loads(line)
                seen.append(row)
                print(
                    "  {outcome:7} {seconds:6.1f} s  {story}{note}".format(
                        **{**row, "note": f"  ({row['note']})" if row["note"] else ""}
                    ),
                    flush=True,
                )
            if over:
                return seen
            time.sleep(0.2)
    raise SystemExit(f"the stories did not end within {STUCK_S:g} s")


def _sum_up(suite: str, code: int, seen: list[dict[str, object]], log: Path) -> int:
    passed = sum(row["outcome"] == "passed" for row in seen)
    total = sum(float(str(row["seconds"])) for row in seen)
    print(f"{suite}: {passed} of {len(seen)} stories passed, {total:.0f} s", flush=True)
    if code != 0 or passed < len(seen):  # what failed and passed alone is told too
        print(log.read_text(encoding="utf-8", errors="replace")[-20000:])
    return 1 if code != 0 or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
