"""`python -m tests.chaos`: one storm, and its report. Exit 1 when anything was lost, doubled or
not told as it was.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.chaos import heavy, judge, links, schedule, smallfs
from tests.chaos.storm import Storm


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def report(storm: Storm, seed: int, took_s: float) -> dict[str, Any]:
    found = judge.verdict(storm.folder, storm.notes)
    return {
        "seed": seed,
        "kills": storm.kills,
        "kills_while_running": storm.running_kills,
        "took_s": round(took_s, 1),
        "state": storm.small or "the machine's own file system: disk_full skipped",
        "faults": storm.faults(),
        "ended_by_itself": storm.own_ends,
        "confirmations": storm.confirms,
        **found,
        "records": str(storm.folder),
    }


def printed(found: dict[str, Any]) -> str:
    """The report for people."""
    share = 100 * found["kills_while_running"] / max(1, found["kills"])
    skipped = [kind for kind in schedule.FAULTS if kind not in found["faults"]]
    rows = [
        (
            f"chaos, seed {found['seed']}: {found['kills']} kills, "
            f"{found['kills_while_running']} ({share:.0f} %) while calls were RUNNING; "
            f"{found['took_s']:.0f} s"
        ),
        f"calls    {found['calls']}: "
        + ", ".join(f"{k} {n}" for k, n in found["calls_by_kind"].items()),
        (
            f"         accepted {found['accepted']}, broken off by a kill "
            f"{found['broken_off']}, refused {found['refused']}"
        ),
        "answers  " + ", ".join(f"{k} {n}" for k, n in found["answers_by_code"].items()),
        "faults   " + (", ".join(f"{k} {n}" for k, n in found["faults"].items()) or "none"),
        *([f"NOT MET  {', '.join(skipped)}"] if skipped else []),
        (
            f"effects  {found['effects']}; pages drawn {found['drawn']} of "
            f"{found['scenes']} scenes; sounds heard {found['heard']}"
        ),
        (
            f"state    {found['state']}; could not start for want of "
            f"space {found['ended_by_itself']} times"
        ),
        *(
            f"  {o['verdict'].upper()} {o['id']}: {o['rule']}: {o['why']} [{o['where']}]"
            for o in found["offences"][:40]
        ),
        (
            f"lost {found['lost']}, doubled {found['doubled']}, "
            f"untold {found['untold']}   records: {found['records']}"
        ),
    ]
    return "\n".join(rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description="Kill the daemon again and again, and judge."
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--calls", type=int, default=5100)
    parser.add_argument(
        "--out",
        type=Path,
        help="where records and report.json go (default: a new temporary directory)",
    )
    parser.add_argument(
        "--only", help="comma-separated kinds of faults (default: all; none: no faults but kills)"
    )
    parser.add_argument(
        "--judge",
        type=Path,
        metavar="RECORDS",
        help="no storm: judge the records of an earlier one again",
    )
    parser.add_argument(
        "--links",
        type=int,
        default=0,
        metavar="N",
        help="afterwards N random faults of the link to the glasses",
    )
    parser.add_argument(
        "--heavy",
        type=int,
        default=0,
        metavar="N",
        help="afterwards N kills under heavy load, on a broker with stock settings",
    )
    words = parser.parse_args()
    if words.judge:
        found = judge.verdict(
            words.judge, words.judge / "state-at-the-end" / "packages" / "notes.db"
        )
        say(json.dumps(found, indent=1))
        return 1 if found["lost"] or found["doubled"] or found["untold"] else 0
    if why := smallfs.enter():
        say(f"SKIPPED: disk_full: {why}")
    folder = words.out or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    only = (
        schedule.FAULTS
        if words.only is None
        else tuple(k for k in schedule.FAULTS if k in words.only.split(","))
    )
    began = time.monotonic()
    say(f"seed {words.seed}, records in {folder}")
    whole = True

    def tell(text: str) -> None:
        say(f"  {time.monotonic() - began:6.0f} s  {text}")

    if words.kills:
        storm = Storm(folder, say=tell)
        storm.run(schedule.plan(words.seed, words.kills, words.calls, faults=only))
        found = report(storm, words.seed, time.monotonic() - began)
        (folder / "report.json").write_text(json.dumps(found, indent=1) + "\n")
        say(printed(found))
        whole = not (found["lost"] or found["doubled"] or found["untold"])
    if words.heavy:
        result = heavy.run(folder / "heavy", words.seed, words.heavy, say=tell)
        say(heavy.printed(result))
        whole = whole and result.whole
    if words.links:
        whole = links.run(words.seed, words.links).recovered == words.links and whole
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
