"""Stamps an artifact with its commit and time; these two lines are not part of its version.

The time is the commit's (or SOURCE_DATE_EPOCH), so that building twice gives the same bytes.
Outside a repository both are null.
"""

import json
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

_LIMIT_S: Final = 10
_LINE: Final = re.compile(r'^  "(gitCommit|buildTimestamp)": (?:null|"[^"\n]*"),$', re.MULTILINE)


class BuildInfo(NamedTuple):
    """A short commit hash and an ISO time; None if unknown."""

    commit: str | None
    time: str | None


def stamp(folder: Path, env: Mapping[str, str]) -> BuildInfo:
    """Return the stamp of the git repository with `folder`; unknown without git. Never raises."""
    plain = {key: value for key, value in env.items() if not key.startswith("GIT_")}
    command = ["git", "-C", str(folder), "log", "-1", "--format=%h %ct"]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_LIMIT_S, env=plain
        ).stdout
        commit, _, seconds = said.strip().partition(" ")
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        commit, seconds = "", ""
    return BuildInfo(commit or None, _iso(env.get("SOURCE_DATE_EPOCH") or seconds))


def stamped(text: str, made: BuildInfo) -> str:
    """Write a stamp into an artifact's text."""
    said = {"gitCommit": made.commit, "buildTimestamp": made.time}
    return _LINE.sub(
        lambda line: f'  "{line.group(1)}": {json.dumps(said[line.group(1)])},', text, count=2
    )


def unstamped(text: str) -> str:
    """Remove the stamp, for comparing."""
    return stamped(text, BuildInfo(None, None))


def _iso(seconds: str) -> str | None:
    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None
