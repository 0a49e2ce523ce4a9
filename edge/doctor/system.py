"""Checks of the system: the operating system, the libraries for the configured radio, the
configuration.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from edge.config import load as configuration
from edge.config.validators import BadSettings
from edge.display.typesetting.fonts import CJK, EMOJI, SYSTEM, family, find_fonts, scripts
from edge.doctor.machine import CheckGroup
from edge.doctor.models import (
    Finding,
    Fix,
    do,
    edit,
    fail,
    ok,
    quoted,
    run,
    skip,
    warn,
)

OLDEST_PYTHON: Final = (3, 11, 0)
OLDEST_KERNEL: Final = (5, 10)
"""Debian 11's: the oldest whose Bluetooth and io we have reason to trust."""
LIBRARIES: Final = (
    "aiomqtt",
    "h11",
    "httpx",
    "jsonschema_rs",
    "msgpack",
    "pydantic",
    "rfc8785",
    "uvloop",
)
DRAWING: Final = ("uharfbuzz", "unicode_segmentation_rs")
_OF_RADIO: Final[Mapping[str, tuple[str, ...]]] = {
    "bluez": ("bleak", "dbus_fast"),
    "usb": ("bleak", "bumble", "usb1"),
    "tcp": ("bleak", "bumble"),
    "inproc": ("bleak", "bumble"),
}


class SystemChecks(CheckGroup):
    """Whether glassd can run on this machine."""

    async def os(self) -> Finding:
        m = self._machine
        python = ".".join(map(str, m.python))
        facts = f"{self._name()}, {m.system} {m.release} {m.processor}, Python {python}"
        if m.system != "Linux":
            return fail(
                f"{facts}: glassd needs Linux",
                do("install glassd on a 64-bit Linux, for example Raspberry Pi OS (64-bit)"),
            )
        if m.bits != 64:
            return fail(
                f"{facts}: the userland has {m.bits} bits, glassd needs 64",
                do("install a 64-bit system: Raspberry Pi OS (64-bit), Debian arm64 or amd64"),
            )
        if m.python < OLDEST_PYTHON:
            return fail(
                f"{facts}: glassd needs Python 3.11 or newer",
                m.as_root("apt-get install -y python3.11 python3.11-venv"),
            )
        if _numbers(m.release) < OLDEST_KERNEL:
            return fail(
                f"{facts}: the kernel is older than 5.10",
                m.as_root("apt-get update", "apt-get full-upgrade -y", "reboot"),
            )
        return ok(facts)

    def _name(self) -> str:
        """Return the name of the distribution."""
        for line in (self._machine.read("/etc/os-release") or "").splitlines():
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip('"')
        return "unknown distribution"

    async def libraries(self) -> Finding:
        settings = self._examined.settings
        radio = settings.glasses.radio.partition(":")[0] if settings else "bluez"
        missing = [name for name in (*LIBRARIES, *_OF_RADIO[radio]) if not self._machine.has(name)]
        if missing:
            extra = "glassd[sim]" if {"bumble", "usb1"} & set(missing) else "glassd"
            python = quoted(self._machine.interpreter)
            return fail(
                f"not installed: {', '.join(missing)}",
                run(f"{python} -m pip install --upgrade {quoted(extra)}"),
            )
        return ok(f"all there for the radio {radio}")

    async def fonts(self) -> Finding:
        """Look for what draws the scripts that the glasses' own font lacks."""
        m, settings = self._machine, self._examined.settings
        found = find_fonts(
            [*(settings.display.fonts if settings else ()), *m.wheels, str(m.path(SYSTEM))]
        )
        families, names = set(map(family, found)), scripts(found)
        missing = [name for name in DRAWING if not m.has(name)]
        missing += [
            said
            for said, there in (
                ("fonts for other scripts", names),
                ("a font for Chinese, Japanese and Korean", CJK in families),
                ("a font for emoji", EMOJI in families),
            )
            if not there
        ]
        if missing:
            return warn(
                "not every script can be drawn on the lens; not installed: " + ", ".join(missing),
                run(f"{quoted(m.interpreter)} -m pip install --upgrade 'glassd[scripts]'"),
            )
        return ok(f"{len(names)} scripts, Chinese, Japanese, Korean, emoji")

    async def config(self) -> Finding:
        examined = self._examined
        try:
            examined.settings = configuration.load(examined.config, examined.env)
        except BadSettings as e:
            return self._bad(str(e))
        except PermissionError as e:
            return self._not_allowed(f"look at {e.filename}")
        if examined.settings.source is None:
            return ok("there is none; every key has its default")
        if examined.settings.tool.wrong:
            name, why = next(iter(examined.settings.tool.wrong.items()))
            return warn(
                f"{name} is off: {why}",
                do(f"correct {examined.settings.source}, then: systemctl reload glassd"),
            )
        return ok(f"{examined.settings.source} is read without a complaint")

    def _bad(self, text: str) -> Finding:
        """Return the finding for a bad configuration, with the fix of the first problem. The text
        has one problem a line: `FILE: KEY: problem; fix`.
        """
        if "permission denied" in text.lower() and (
            "cannot be looked at" in text or not self._is_daemon()
        ):
            fix = self._machine.as_root("glassd doctor")
            return skip(f"{text} (the daemon may be allowed)", fix)
        first = text.splitlines()[0]
        file = str(self._examined.config or first.partition(": ")[0])
        if ": version: missing" in first:
            return fail(text, self._write(f"sed -i '1i version = 1' {quoted(file)}", Path(file)))
        change = _rename(first) or first.rpartition("; ")[2]
        if not Path(file).exists():
            return fail(text, do(change))
        return fail(text, edit(file, change if "; " in first else "correct the line it names"))

    def _is_daemon(self) -> bool:
        """Return whether this user can read all that the daemon can: root, or its own user."""
        return self._machine.me.is_root or self._machine.me.uid == self._examined.serves.uid

    def _write(self, command: str, file: Path) -> Fix:
        mine = self._machine.me.is_root or file.stat().st_uid == self._machine.me.uid
        return run(command) if mine else self._machine.as_root(command)


def _rename(problem: str) -> str:
    """Return the change for a misspelt key, `[uplink] write host instead of hots`; "" for any other
    problem.
    """
    found = re.search(r": (\w+)\.(\w+): unknown key; did you mean \1\.(\w+)\?$", problem)
    return f"[{found[1]}] write {found[3]} instead of {found[2]}" if found else ""


def _numbers(release: str) -> tuple[int, int]:
    """6.1.0-35-amd64 → (6, 1); a number that cannot be read counts as new."""
    parts = release.replace("-", ".").split(".")
    major, minor = (int(p) if p.isdecimal() else 99 for p in (*parts, "99", "99")[:2])
    return major, minor
