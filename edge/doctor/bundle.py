"""Writes the bundle: one tar.gz on this machine with the results, the daemon's status and its
latest log lines.

Nothing is sent anywhere, and every text goes through `Redact`, so that no secret is in it.
"""

import io
import json
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from edge.config.load import MAX_FILE, find
from edge.config.model import MAX_SECRET, credential
from edge.config.validators import BadSettings
from edge.doctor.access import SECRETS
from edge.doctor.machine import UNIT, ExaminedMachine
from edge.doctor.redact import Redact
from edge.doctor.subprocesses import in_thread
from edge.observability.audit import KEYS
from edge.runtime.files import write_atomic
from firmware_bridge.deadlines import timeout

MAX_LINES: Final = 500
"""Of the journal, and of the audit log."""
TAIL_BYTES: Final = 512 * 1024
ASK_S: Final = 4.0
_SECRET_ENV: Final = ("PASSWORD", "TOKEN", "SECRET", "KEY", "CREDENTIAL")


async def write(path: Path, patient: ExaminedMachine, report: Mapping[str, Any]) -> None:
    """Write the bundle, mode 0600; what was there is replaced once all of it is on disk. Raises
    OSError.
    """
    redact = await in_thread(lambda: _redactor(patient))
    members = {
        "report.json": _json(redact.value(report)),
        "status.json": _json(redact.value(patient.status or {})),
        "config.toml": await in_thread(lambda: _config(patient, redact)),
        "versions.json": _json(_versions(patient)),
        "audit.jsonl": await in_thread(lambda: _audit(patient, redact)),
        "journal.txt": await _journal(patient, redact),
        "unit.txt": redact(
            "\n".join(f"{k}={v}" for k, v in patient.unit.properties.items() if k != "Environment")
            if patient.unit
            else ""
        ),
    }
    await in_thread(lambda: _packed(path, members, patient.machine.clock.wall()))


# ------------------------------------------------------------------ what must not be in it


def _redactor(patient: ExaminedMachine) -> Redact:
    """Return the redactor, with every secret that we can read."""
    redact = Redact()
    for text in _secrets(patient):
        redact.hide(text)
    for name, value in patient.machine.env.items():
        if any(word in name.upper() for word in _SECRET_ENV):
            redact.hide(value)
    return redact


def _secrets(patient: ExaminedMachine) -> list[str]:
    settings = patient.settings
    found = []
    for section, key, name in SECRETS:
        with suppress(OSError):
            path = credential(
                getattr(getattr(settings, section), key) if settings else "", name, patient.env
            )
            if path is not None:
                found.append(_head(path, MAX_SECRET).decode("utf-8", "replace"))
    if patient.enrolled is not None:
        found += [patient.enrolled.password, patient.enrolled.cloud_token]
    return found


# ------------------------------------------------------------------ what is in it


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _config(patient: ExaminedMachine, redact: Redact) -> str:
    try:
        source = find(patient.config, patient.env)
        return redact.config(_head(source, MAX_FILE)) if source else "# there is none\n"
    except (OSError, BadSettings) as e:
        return f"# {redact(str(e))}\n"


def _versions(patient: ExaminedMachine) -> dict[str, Any]:
    m = patient.machine
    packages = {
        d.metadata["Name"]: d.version for d in metadata.distributions() if d.metadata["Name"]
    }
    return {
        "glassd": m.version,
        "python": ".".join(map(str, m.python)),
        "system": m.system,
        "kernel": m.release,
        "machine": m.processor,
        "os-release": m.read("/etc/os-release"),
        "packages": dict(sorted(packages.items())),
    }


def _audit(patient: ExaminedMachine, redact: Redact) -> str:
    """The last calls, by the keys of the audit log alone: arguments have none of them. Keys of
    calls may be anybody's words.
    """
    if patient.settings is None:
        return ""
    lines = []
    with suppress(OSError):
        for raw in _tail(patient.state_dir / "audit" / "calls.jsonl").splitlines()[-MAX_LINES:]:
            with suppress(ValueError):
                record = json.loads(raw)
                lines.append(
                    json.dumps(redact.value({k: record.get(k) for k in KEYS}), ensure_ascii=False)
                )
    return "\n".join(lines) + "\n"


async def _journal(patient: ExaminedMachine, redact: Redact) -> str:
    """What the daemon said last, without DEBUG, whose lines may hold arguments of calls."""
    user = ("--user",) if patient.unit and patient.unit.manager != "systemctl" else ()
    argv = (
        "journalctl",
        *user,
        "-u",
        UNIT,
        "-p",
        "info",
        "-n",
        str(MAX_LINES),
        "-o",
        "short-iso",
        "--no-hostname",
        "--no-pager",
    )
    with suppress(TimeoutError):
        async with timeout(ASK_S):
            return redact((await patient.machine.ask(*argv)).out)
    return "the journal did not answer in time\n"


def _head(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most)


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        return file.read(TAIL_BYTES).decode("utf-8", "replace")


def _packed(path: Path, members: Mapping[str, str], now: float) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in members.items():
            content = text.encode()
            head = tarfile.TarInfo(f"glassd-doctor/{name}")
            head.size, head.mtime, head.mode = len(content), max(0, int(now)), 0o600
            tar.addfile(head, io.BytesIO(content))
    write_atomic(path, packed.getvalue())
