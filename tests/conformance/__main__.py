"""`make conformance`: the official suite against our MCP server and through our MCP client, then
the Inspector as an agent.

Exit 0: all that both revisions require, and nothing that only seemed to pass. Where npm is missing
it says so loudly and ends with 0, with CI=true with 1.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.conformance import in_turn, stage
from tests.conformance.node import ROOT, Missing, Node
from tests.conformance.verdict import SCENARIOS, Leg, Verdict, judge, required

LEGS: Final = tuple(Leg(*pair) for pair in SCENARIOS)
LEG_S: Final = 400.0
"""A minute alone on two cores; nobody waits longer than this."""
CHECKS: Final = ("tests/conformance/checks_inspector.py", "tests/conformance/checks_readme.py")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--leg",
        action="append",
        choices=[str(leg) for leg in LEGS],
        help="this leg alone; may be given again",
    )
    options.add_argument(
        "--out",
        type=Path,
        default=ROOT / "conformance-out",
        help="what the suite wrote, for whoever asks why",
    )
    chosen = options.parse_args()
    try:
        node = Node.ready()
    except Missing as why:
        print(f"\n*** CONFORMANCE NOT CHECKED: {why}\n", file=sys.stderr)
        return 1 if os.environ.get("CI") == "true" else 0
    shutil.rmtree(chosen.out, ignore_errors=True)
    began = time.monotonic()
    verdicts = asyncio.run(
        _all([leg for leg in LEGS if not chosen.leg or str(leg) in chosen.leg], node, chosen.out)
    )
    for verdict in verdicts:
        print(
            f"{verdict.leg!s:<18} {verdict.scenarios:3} scenarios {verdict.checks:4} "
            f"checks  {'FAILED' if verdict.problems else 'passed'}"
        )
        for problem in verdict.problems:
            print(f"    {problem[:400]}")
    failed = any(verdict.problems for verdict in verdicts) or bool(not chosen.leg and _checked())
    print(f"{time.monotonic() - began:.0f} s; what the suite saw is in {chosen.out}")
    return int(failed)


def _checked() -> int:
    """The Inspector's turn: tests that `make test` does not run, since each costs a Node and a
    Python start.
    """
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CHECKS],
        cwd=ROOT,
        check=False,
    ).returncode


async def _all(legs: Sequence[Leg], node: Node, out: Path) -> list[Verdict]:
    """The server's legs one after the other, the client's beside them: they share nothing."""
    servers, clients = ([leg for leg in legs if leg.side == side] for side in ("server", "client"))
    both = await asyncio.gather(
        asyncio.to_thread(_servers, servers, node, out),
        asyncio.to_thread(_clients, clients, node, out),
    )
    return [verdict for verdicts in both for verdict in verdicts]


def _servers(legs: Sequence[Leg], node: Node, out: Path) -> list[Verdict]:
    if not legs:
        return []
    with (
        tempfile.TemporaryDirectory(prefix="glassd-conf-") as folder,
        stage.daemon(Path(folder)) as control,
        stage.served(Path(folder), control) as url,
    ):
        return [_run(leg, node, out, ["server", "--url", url]) for leg in legs]


def _clients(legs: Sequence[Leg], node: Node, out: Path) -> list[Verdict]:
    command = f"{sys.executable} -m tests.conformance.in_turn"
    with tempfile.TemporaryDirectory(prefix="glassd-conf-") as slots:
        words = ["client", "--command", command, "--timeout", str(round(LEG_S * 1000))]
        return [_run(leg, node, out, words, {in_turn.SLOTS: slots}) for leg in legs]


def _run(
    leg: Leg, node: Node, out: Path, words: list[str], env: Mapping[str, str] = MappingProxyType({})
) -> Verdict:
    """Run a leg; once more when it failed, since the suite gives some answers half a second
    whatever else the machine does.
    """
    verdict = _once(leg, node, out / str(leg).replace(" ", "-"), words, env)
    if not verdict.problems:
        return verdict
    print(f"{leg}: once more, after {'; '.join(verdict.problems)[:400]}", flush=True)
    return _once(leg, node, out / f"{leg}-again".replace(" ", "-"), words, env)


def _once(leg: Leg, node: Node, folder: Path, words: list[str], env: Mapping[str, str]) -> Verdict:
    names = required(leg, node.requirements(leg.revision))
    folder.mkdir(parents=True)
    with (folder / "suite.txt").open("wb") as said:
        suite = node.conformance(*words, "--requirements", leg.revision, "-o", str(folder))
        try:
            code = subprocess.run(
                suite,
                cwd=ROOT,
                stdout=said,
                stderr=said,
                timeout=LEG_S,
                check=False,
                env={**os.environ, "PYTHONPATH": str(ROOT), **env},
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
    return judge(leg, names, folder, code=code)


if __name__ == "__main__":
    sys.exit(main())
