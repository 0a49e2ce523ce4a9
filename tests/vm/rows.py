"""A pytest plugin: one JSON line for each story that ended, for the table of `make vm-test`.
Knows pytest, no machine.
"""

import json
import os
from pathlib import Path

import pytest

_spent: dict[str, float] = {}
_outcome: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the row when the story's last part is over: the worst outcome, and the time of all
    parts.
    """
    story = report.nodeid
    _spent[story] = _spent.get(story, 0.0) + report.duration
    if report.outcome != "passed":
        _outcome[story] = report.outcome
    notes = [str(value) for key, value in report.user_properties if key == "note"]
    if report.skipped:
        _reason[story] = str(
            report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        ).removeprefix("Skipped: ")
    if report.when == "teardown":
        notes += [_reason[story]] if story in _reason else []
        row = {
            "story": _sentence(story),
            "outcome": _outcome.get(story, "passed"),
            "seconds": _spent[story],
            "note": "; ".join(notes),
        }
        with Path(os.environ["GLASSD_VM_ROWS"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


_reason: dict[str, str] = {}


def _sentence(nodeid: str) -> str:
    return nodeid.rpartition("::")[2].removeprefix("test_").replace("_", " ")
