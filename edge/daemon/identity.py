"""The edge id: created once, stored in `edge_id` of the state directory; topics, rights and
certificates depend on it.

If the file is damaged or missing, the old id is restored from the enrolment or from the marker
beside the database where they know it.
"""

import logging
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from edge.cloud.enrolment.credentials import DamagedEnrolment, EnrolmentFiles
from edge.config import validators as rules
from edge.config.validators import BadSettings
from edge.runtime.files import write_atomic
from edge.storage.call_promises import EDGE_ID
from edge.storage.sqlite import marker

log = logging.getLogger(__name__)

ALARM: Final = "edge_id"
MAX_BYTES: Final = 1024


class EdgeIdentity(Struct, frozen=True):
    """`kept` is the id stored in the state directory; "" if the configuration has one."""

    edge_id: str
    kept: str = ""
    alarms: dict[str, str] = field(default_factory=dict)


def find(configured: str, folder: Path) -> EdgeIdentity:
    """Return the configured id, else the stored one; create it at the first start. Blocking. Raises
    OSError, and BadSettings if the file cannot be read and the id is not known elsewhere.
    """
    if configured:
        return EdgeIdentity(configured)
    path = folder / "edge_id"
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES)
    except FileNotFoundError:
        known, source = _known_elsewhere(folder)
        return _restore(path, known, "was missing", source) if known else _create(path)
    except NotADirectoryError:
        raise  # the state directory itself is none, which is said where it is used
    except IsADirectoryError:
        raw = b""
    except OSError as e:
        known, source = _known_elsewhere(folder)
        if known:
            return _with_alarm(
                known,
                f"{path} cannot be read ({e.strerror}); "
                f"{source} it is {known}. Next: check who may read it",
            )
        raise BadSettings(
            f"{path}: cannot be read: {e.strerror}; check who may read it. "
            "Without it this edge would get a new name"
        ) from None
    kept = raw.decode("ascii", "replace").strip()
    return EdgeIdentity(kept, kept) if rules.WORD.fullmatch(kept) else _repair(path)


def _repair(path: Path) -> EdgeIdentity:
    known, source = _known_elsewhere(path.parent)
    aside = _set_aside(path)
    if known:
        return _restore(path, known, f"was damaged and is kept as {aside.name}", source)
    made = _create(path)
    text = (
        f"{path} was damaged and is kept as {aside.name}, "
        f"so this edge has a new name: {made.edge_id}"
    )
    advice = (
        "if topics or rights belong to the old name, "
        'set [edge] id = "OLD NAME", or enrol again: glassd up CODE'
    )
    return _with_alarm(made.edge_id, f"{text}. Next: {advice}")


def _restore(path: Path, known: str, what: str, source: str) -> EdgeIdentity:
    with suppress(OSError):  # its name is known all the same
        _write(path, known)
    return _with_alarm(
        known,
        f"{path} {what}; {source} this edge is {known}, as before. "
        "Next: look for disk errors with dmesg",
    )


def _create(path: Path) -> EdgeIdentity:
    name = f"edge-{uuid.uuid4().hex[:12]}"
    _write(path, name)
    return EdgeIdentity(name, name)


def _with_alarm(name: str, text: str) -> EdgeIdentity:
    log.error("%s", text)
    return EdgeIdentity(name, name, {ALARM: text})


def _known_elsewhere(folder: Path) -> tuple[str, str]:
    """Return (id, who knows it); both "" if nobody does."""
    with suppress(DamagedEnrolment):
        enrolled = EnrolmentFiles(folder).load()
        if enrolled is not None and rules.WORD.fullmatch(enrolled.edge_id):
            return enrolled.edge_id, "by its enrolment"
    found = marker.read(folder / "glassd.db")
    name = found.labels.get(EDGE_ID, "") if found is not None else ""
    return (name, "by the marks of its database") if rules.WORD.fullmatch(name) else ("", "")


def _set_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.bad-{number}")).exists():
        number += 1
    path.rename(aside)
    return aside


def _write(path: Path, name: str) -> None:
    """Write it in one step, so that it is never half written. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(path, f"{name}\n".encode("ascii"), 0o666)
