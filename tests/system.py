"""What tests want to know of the system: where its programs are, and which processes run.

A test whose program is missing is skipped, and the end of the run counts it.
"""

import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from firmware_bridge import lc3

PACKAGES = {
    "mosquitto": "mosquitto",
    "mosquitto_passwd": "mosquitto",
    "mosquitto_sub": "mosquitto-clients",
    "dbus-daemon": "dbus",
    "dbus-send": "dbus",
    "systemd-analyze": "systemd",
    "dpkg-deb": "dpkg",
    "groff": "groff",
    "openssl": "openssl",
    "curl": "curl",
    "espeak-ng": "espeak-ng",
    "mkfs.ext4": "e2fsprogs",
    "dovecot": "dovecot-imapd",
    "losetup": "mount",
    "liblc3": "liblc3-dev",  # the same name in every Debian, and it brings the library
}
"""Program or library → the Debian package it is in."""


def find(name: str) -> str | None:
    """Where the program is; also where only root's PATH leads. Of the library: its name."""
    if name == "liblc3":
        return None if lc3.why_not() else name
    return shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")


def _missing(names: Iterable[str]) -> str:
    return next(
        (f"needs {name}: apt-get install {PACKAGES[name]}" for name in names if find(name) is None),
        "",
    )


def program(name: str) -> str:
    """Where the program is; skips the test where it is not."""
    if why := _missing([name]):
        pytest.skip(why)
    return find(name) or name


def needs(*names: str) -> pytest.MarkDecorator:
    """Mark for tests that use these programs."""
    return pytest.mark.skipif(bool(_missing(names)), reason=_missing(names))


def counted(reasons: Iterable[str]) -> str:
    """Of the reasons why tests were skipped: how many for which program, and the command that
    helps; "" when for none.
    """
    found = [
        match
        for reason in reasons
        if (match := re.search(r"needs (\S+): apt-get install (\S+)", reason))
    ]
    counts = Counter(match[1] for match in found)
    listed = ", ".join(f"{count} for {name}" for name, count in counts.most_common())
    return (
        f"{listed}: apt-get install {' '.join(sorted({match[2] for match in found}))}"
        if counts
        else ""
    )


def state(pid: int) -> str:
    """One letter: R and S run and sleep, T is stopped, Z and X are no more."""
    try:
        return (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="ascii", errors="replace")
            .rpartition(")")[2]
            .split()[0]
        )
    except OSError:
        return "X"


def runs(pid: int) -> bool:
    """Whether a process still does anything. One that has ended stays in /proc where PID 1 does
    not collect it, as in many containers.
    """
    return state(pid) not in "ZX"
