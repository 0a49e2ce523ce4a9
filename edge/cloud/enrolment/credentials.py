"""Credentials of enrolment on disk: `enrolled/` in the state directory, for its owner only.

One document (`enrolment.json`) names everything. Key and certificate stand in a file with a name of
its own, so replacing the document, in one step, replaces all: a reader sees the old or the new.
"""

import json
import ssl
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, fields, replace

from edge.core.enrolment import misplaced
from edge.core.words.secret_fields import repr_without
from edge.runtime.files import write_atomic

FOLDER: Final = "enrolled"
DOCUMENT: Final = "enrolment.json"
MAX_DOCUMENT: Final = 256 * 1024
VERSION: Final = 1


class DamagedEnrolment(Exception):
    """What is on disk cannot be used; the text says what to do."""


class Enrolled(Struct, frozen=True, kw_only=True):
    """This edge's place in a cloud. Times are Unix seconds; `identity` names the key's file."""

    edge_id: str
    tenant: str
    host: str
    port: int
    pool: str = ""
    ca_pem: str
    enrol_host: str
    enrol_port: int
    enrol_ca_pem: str
    username: str = ""
    password: str = ""
    cloud_url: str = ""
    cloud_token: str = ""
    identity: str = ""
    begins: float = 0.0
    ends: float = 0.0

    def __repr__(self) -> str:
        return repr_without(self, "password", "cloud_token")

    @property
    def how(self) -> str:
        return "certificate" if self.identity else "password"

    def to_json(self) -> dict[str, Any]:
        """Return what may be shown of it: no secrets."""
        return {
            "edge_id": self.edge_id,
            "tenant": self.tenant,
            "broker": f"{self.host}:{self.port}",
            "credentials": self.how,
            "certificate_ends": self.ends or None,
            "cloud": self.cloud_url or None,
        }


class EnrolmentFiles:
    """`load` and `save`, blocking; small files, each call under a few milliseconds of disk."""

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER

    def load(self) -> Enrolled | None:
        """Return what is kept; None when this edge never enrolled. Raise `DamagedEnrolment`."""
        path = self._folder / DOCUMENT
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_DOCUMENT + 1)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise DamagedEnrolment(
                f"{path} cannot be read: {e.strerror}; "
                "check who may read it, or enrol again: glassd up CODE"
            ) from None
        try:
            return _read(raw)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise DamagedEnrolment(f"{path} is damaged; enrol again: glassd up CODE") from None

    def save(self, enrolled: Enrolled, *, identity_pem: bytes = b"") -> Enrolled:
        """Store it, with key and certificate if new. Raise OSError: then nothing changed."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if identity_pem:
            name = f"identity-{sha256(identity_pem).hexdigest()[:12]}.pem"
            write_atomic(self._folder / name, identity_pem)
            enrolled = replace(enrolled, identity=name)
        document = {"version": VERSION, **asdict(enrolled)}
        write_atomic(self._folder / DOCUMENT, json.dumps(document, indent=1).encode())
        for old in self._folder.glob("identity-*.pem"):
            if old.name != enrolled.identity:
                with suppress(OSError):
                    old.unlink()
        return enrolled

    def context(self, enrolled: Enrolled, *, ca_pem: str) -> ssl.SSLContext:
        """Trust only this authority, show our certificate. Raise OSError, ValueError."""
        context = ssl.create_default_context(cadata=ca_pem)
        if enrolled.identity:
            context.load_cert_chain(self._folder / enrolled.identity)
        return context


def _read(raw: bytes) -> Enrolled:
    document: Any = json.loads(raw)
    if not isinstance(document, dict):
        raise TypeError
    if document.pop("version") != VERSION or len(raw) > MAX_DOCUMENT:
        raise ValueError
    known = {f.name: f.type for f in fields(Enrolled)}
    values = {key: value for key, value in document.items() if key in known}
    enrolled = Enrolled(**values)
    for name, kind in known.items():
        value = getattr(enrolled, name)
        if not isinstance(value, {str: str, int: int, float: int | float}[kind]):
            raise TypeError
    place = {name: values[name] for name in ("tenant", "host", "port")}
    if "/" in enrolled.identity or misplaced(
        **place, pool=enrolled.pool, cloud_url=enrolled.cloud_url
    ):
        raise ValueError
    return enrolled
