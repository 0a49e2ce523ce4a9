"""Checks of the system: the operating system, the libraries for the configured radio, the
configuration.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from edge.config import load as configuration
from edge.config.validators import BadSettings
from edge.doctor.machine import ExaminedMachine
from edge.doctor.models import (
    Check,
    Finding,
    Fix,
    Kind,
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
_OF_RADIO: Final[Mapping[str, tuple[str, ...]]] = {
    "bluez": ("bleak", "dbus_fast"),
    "usb": ("bleak", "bumble", "usb1"),
    "tcp": ("bleak", "bumble"),
    "inproc": ("bleak", "bumble"),
}


class SystemChecks:
    """The checks of this layer."""

    def __init__(self, patient: ExaminedMachine) -> None:
        self._patient = patient
        self._machine = patient.machine

    def checks(self) -> tuple[Check, ...]:
        return (
            Check(id="os", layer="system", title="operating system", examine=self._os),
            Check(
                id="libraries",
                layer="system",
                title="libraries",
                examine=self._libraries,
                after=("config",),
            ),
            Check(
                id="config",
                layer="system",
                title="configuration",
                examine=self._config,
                after=("unit",),
            ),
        )

    async def _os(self) -> Finding:
        m = self._machine
        python = ".".join(map(str, m.python))
        said = f"{self._name()}, {m.system} {m.release} {m.processor}, Python {python}"
        if m.system != "Linux":
            return fail(
                f"{said}: glassd needs Linux",
                do("install glassd on a 64-bit Linux, for example Raspberry Pi OS (64-bit)"),
            )
        if m.bits != 64:
            return fail(
                f"{said}: the userland has {m.bits} bits, glassd needs 64",
                do("install a 64-bit system: Raspberry Pi OS (64-bit), Debian arm64 or amd64"),
            )
        if m.python < OLDEST_PYTHON:
            return fail(
                f"{said}: glassd needs Python 3.11 or newer",
                m.as_root("apt-get install -y python3.11 python3.11-venv"),
            )
        if _numbers(m.release) < OLDEST_KERNEL:
            return fail(
                f"{said}: the kernel is older than 5.10",
                m.as_root("apt-get update", "apt-get full-upgrade -y", "reboot"),
            )
        return ok(said)

    def _name(self) -> str:
        """The distribution's own name for itself."""
        for line in (self._machine.read("/etc/os-release") or "").splitlines():
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip('"')
        return "unknown distribution"

    async def _libraries(self) -> Finding:
        settings = self._patient.settings
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

    async def _config(self) -> Finding:
        patient = self._patient
        try:
            patient.settings = configuration.load(patient.config, patient.env)
        except BadSettings as e:
            return self._bad(str(e))
        except PermissionError as e:
            return skip(
                f"you may not look at {e.filename}", patient.machine.as_root("glassd doctor")
            )
        if patient.settings.source is None:
            return ok("there is none; every key has its default")
        if patient.settings.tool.wrong:
            name, why = next(iter(patient.settings.tool.wrong.items()))
            return warn(
                f"{name} is off: {why}",
                do(f"correct {patient.settings.source}, then: systemctl reload glassd"),
            )
        return ok(f"{patient.settings.source} is read without a complaint")

    def _bad(self, told: str) -> Finding:
        """One problem a line, `FILE: KEY: problem; fix`; the fix of the first is the thing to
        do now.
        """
        patient = self._patient
        if "permission denied" in told.lower() and (
            "cannot be looked at" in told or not self._may_read()
        ):
            return skip(
                f"{told} (the daemon may be allowed)", patient.machine.as_root("glassd doctor")
            )
        first = told.splitlines()[0]
        file = str(patient.config or first.partition(": ")[0])
        if ": version: missing" in first:
            return fail(told, self._writing(f"sed -i '1i version = 1' {quoted(file)}", Path(file)))
        _, _, change = first.rpartition("; ")
        change = _rename(first) or change
        return fail(
            told,
            edit(file, change if "; " in first else "correct the line it names")
            if Path(file).exists()
            else do(change),
        )

    def _may_read(self) -> bool:
        """Whether what we cannot read the daemon could not either: we are root, or the user it
        runs as.
        """
        return self._machine.me.is_root or self._machine.me.uid == self._patient.serves.uid

    def _writing(self, command: str, file: Path) -> Fix:
        mine = self._machine.me.is_root or file.stat().st_uid == self._machine.me.uid
        return Fix(Kind.RUN, command) if mine else self._machine.as_root(command)


def _rename(problem: str) -> str:
    """A key that is nearly right: `[uplink] write host instead of hots`; "" for all other
    problems.
    """
    found = re.search(r": (\w+)\.(\w+): unknown key; did you mean \1\.(\w+)\?$", problem)
    return f"[{found[1]}] write {found[3]} instead of {found[2]}" if found else ""


def _numbers(release: str) -> tuple[int, int]:
    """6.1.0-35-amd64 → (6, 1); what cannot be read counts as new."""
    parts = release.replace("-", ".").split(".")
    major, minor = (int(p) if p.isdecimal() else 99 for p in (*parts, "99", "99")[:2])
    return major, minor
