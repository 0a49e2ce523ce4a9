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


async def write(path: Path, examined: ExaminedMachine, report: Mapping[str, Any]) -> None:
    """Write the bundle, mode 0600; what was there is replaced once all of it is on disk. Raise
    OSError.
    """
    redact = await in_thread(lambda: _redactor(examined))
    members = {
        "report.json": _json(redact.value(report)),
        "status.json": _json(redact.value(examined.status or {})),
        "config.toml": await in_thread(lambda: _config(examined, redact)),
        "versions.json": _json(_versions(examined)),
        "audit.jsonl": await in_thread(lambda: _audit(examined, redact)),
        "journal.txt": await _journal(examined, redact),
        "unit.txt": redact("\n".join(_unit(examined))),
    }
    await in_thread(lambda: _pack(path, members, examined.machine.clock.wall()))


# ------------------------------------------------------------------ what must not be in it


def _redactor(examined: ExaminedMachine) -> Redact:
    """Return the redactor of every secret that can be read."""
    redact = Redact()
    for text in _secrets(examined):
        redact.hide(text)
    for name, value in examined.machine.env.items():
        if any(word in name.upper() for word in _SECRET_ENV):
            redact.hide(value)
    return redact


def _secrets(examined: ExaminedMachine) -> list[str]:
    settings = examined.settings
    found = []
    for section, key, name in SECRETS:
        with suppress(OSError):
            configured = getattr(getattr(settings, section), key) if settings else ""
            path = credential(configured, name, examined.env)
            if path is not None:
                found.append(_head(path, MAX_SECRET).decode("utf-8", "replace"))
    if examined.enrolled is not None:
        found += [examined.enrolled.password, examined.enrolled.cloud_token]
    return found


# ------------------------------------------------------------------ what is in it


def _unit(examined: ExaminedMachine) -> list[str]:
    properties = examined.unit.properties if examined.unit else {}
    return [f"{name}={value}" for name, value in properties.items() if name != "Environment"]


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _config(examined: ExaminedMachine, redact: Redact) -> str:
    try:
        source = find(examined.config, examined.env)
        return redact.config(_head(source, MAX_FILE)) if source else "# there is none\n"
    except (OSError, BadSettings) as e:
        return f"# {redact(str(e))}\n"


def _versions(examined: ExaminedMachine) -> dict[str, Any]:
    m = examined.machine
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


def _audit(examined: ExaminedMachine, redact: Redact) -> str:
    """Return the last calls, with the keys of the audit log only: none holds an argument."""
    if examined.settings is None:
        return ""
    lines = []
    with suppress(OSError):
        for raw in _tail(examined.state_dir / "audit" / "calls.jsonl").splitlines()[-MAX_LINES:]:
            with suppress(ValueError):
                record = json.loads(raw)
                record = redact.value({key: record.get(key) for key in KEYS})
                lines.append(json.dumps(record, ensure_ascii=False))
    return "\n".join(lines) + "\n"


async def _journal(examined: ExaminedMachine, redact: Redact) -> str:
    """Return the latest log lines, without DEBUG, which may hold arguments of calls."""
    user = ("--user",) if examined.unit and examined.unit.manager != "systemctl" else ()
    options = f"-u {UNIT} -p info -n {MAX_LINES} -o short-iso --no-hostname --no-pager"
    argv = ("journalctl", *user, *options.split())
    with suppress(TimeoutError):
        async with timeout(ASK_S):
            return redact((await examined.machine.ask(*argv)).out)
    return "the journal did not answer in time\n"


def _head(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        return file.read(most)


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        return file.read(TAIL_BYTES).decode("utf-8", "replace")


def _pack(path: Path, members: Mapping[str, str], now: float) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in members.items():
            content = text.encode()
            head = tarfile.TarInfo(f"glassd-doctor/{name}")
            head.size, head.mtime, head.mode = len(content), max(0, int(now)), 0o600
            tar.addfile(head, io.BytesIO(content))
    write_atomic(path, packed.getvalue())
