"""Enrolment: one-time codes, the credentials issued for them, and their storage.

Stored as one small document with secrets as hashes. A certificate is valid until it expires or its
edge is revoked; then broker and renewal refuse it.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from edge.runtime.files import write_atomic

if TYPE_CHECKING:
    from edge.devcloud.enrolment.pki import Authority

CODE_S: Final = 30 * 60.0
"""How long a code is valid."""
AGAIN_S: Final = 5 * 60.0
"""How long a lost answer is repeated for the same request id."""
LIFE: Final = timedelta(days=90)
MAX_CODES: Final = 1000
MAX_EDGES: Final = 1000
ROUNDS: Final = 20_000
"""Of PBKDF2, as Mosquitto stores it; few, because the password has 192 random bits."""
DOCUMENT: Final = "desk.json"


class EnrolmentRefused(Exception):
    """No credentials are issued: error code, message and HTTP status."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(slots=True)
class Issued:
    """One code, by the hash of its secret."""

    expires: float
    edge_id: str = ""
    """Good for this edge only; "" for any that is new here."""
    used_by: str = ""
    used_at: float = 0.0
    request: str = ""


@dataclass(slots=True)
class EnrolledEdge:
    """One edge: hashes of its bearer token and, in Mosquitto's form, of its password."""

    token: str
    password: str = ""
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Credentials:
    """What one edge receives."""

    certificate: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


class EnrolmentService:
    """`issue` → a secret; `redeem` → credentials, once; `renew` → the next certificate.

    Blocking, a few milliseconds each.
    """

    def __init__(
        self,
        folder: Path,
        authority: "Authority",
        *,
        wall: Callable[[], float],
        life: timedelta = LIFE,
    ) -> None:
        self._file = folder / DOCUMENT
        self._authority = authority
        self._wall = wall
        self._life = life
        self._codes: dict[str, Issued] = {}
        self._members: dict[str, EnrolledEdge] = {}
        if self._file.exists():
            self._load()

    # -------------------------------------------------------------- codes

    def issue(self, *, life_s: float = CODE_S, edge_id: str = "") -> bytes:
        """Create a secret that works once within `life_s`; with `edge_id` for that edge only, even
        if it is already enrolled.
        """
        now = self._wall()
        self._codes = {k: code for k, code in self._codes.items() if code.expires > now - CODE_S}
        while len(self._codes) >= MAX_CODES:
            self._codes.pop(next(iter(self._codes)))
        secret = secrets.token_bytes(16)
        self._codes[_hash(secret)] = Issued(now + life_s, edge_id)
        self._save()
        return secret

    def redeem(
        self, secret: bytes, edge_id: str, *, request_id: str, csr_pem: str | None, proof: str = ""
    ) -> Credentials:
        """Redeem a code. An enrolled edge must prove its identity with its token.

        Raises `EnrolmentRefused`, and `BadRequest` for a certificate request that cannot be signed.
        """
        code = self._codes.get(_hash(secret))
        now = self._wall()
        if code is None:
            raise EnrolmentRefused(404, "CODE_UNKNOWN", "There is no such code")
        if code.used_by and not self._again(code, edge_id, request_id, now):
            raise EnrolmentRefused(410, "CODE_USED", "This code was used already; each works once")
        if not code.used_by and now > code.expires:
            raise EnrolmentRefused(410, "CODE_EXPIRED", "This code has expired")
        again = bool(code.used_by)
        member = self._members.get(edge_id)
        owner = member if not again and code.edge_id != edge_id else None
        if owner and (owner.revoked or not _same(owner.token, proof)):
            problem = "An edge of this id is enrolled already; it needs a code made for it"
            raise EnrolmentRefused(409, "EDGE_TAKEN", problem)
        if again and member and member.revoked:
            raise EnrolmentRefused(403, "EDGE_REVOKED", "This edge was revoked")
        if code.edge_id not in ("", edge_id):
            raise EnrolmentRefused(403, "CODE_OF_ANOTHER", "This code was made for another edge")
        if member is None and len(self._members) >= MAX_EDGES:
            raise EnrolmentRefused(503, "FULL", f"This small cloud keeps {MAX_EDGES} edges")
        token, password = secrets.token_urlsafe(24), "" if csr_pem else secrets.token_urlsafe(24)
        certificate = self._authority.edge(edge_id, csr_pem, life=self._life) if csr_pem else ""
        code.used_by, code.used_at, code.request = edge_id, now, _hash(request_id.encode())
        self._members[edge_id] = EnrolledEdge(
            _hash(token.encode()), _mosquitto_hash(password) if password else ""
        )
        self._save()
        return Credentials(certificate, "" if csr_pem else edge_id, password, token)

    def _again(self, code: Issued, edge_id: str, request_id: str, now: float) -> bool:
        """Return whether it repeats a request whose answer was lost: its sender knows the id."""
        same = hmac.compare_digest(code.request, _hash(request_id.encode()))
        return same and code.used_by == edge_id and now - code.used_at < AGAIN_S

    def renew(self, certificate_der: bytes, csr_pem: str) -> str:
        """Sign the next certificate for an edge with a valid one. Raises `EnrolmentRefused`,
        `BadRequest`.
        """
        edge_id = self._authority.verified_name(certificate_der)
        member = self._members.get(edge_id or "")
        if edge_id is None or member is None:
            raise EnrolmentRefused(403, "EDGE_UNKNOWN", "Unknown client certificate")
        if member.revoked:
            raise EnrolmentRefused(403, "EDGE_REVOKED", "This edge was revoked")
        return self._authority.edge(edge_id, csr_pem, life=self._life)

    # -------------------------------------------------------------- edges

    def knows_token(self, token: str) -> bool:
        """Return whether a bearer token belongs to an edge. Thread-safe: another thread may be
        adding an edge.
        """
        return any(_same(m.token, token) for m in tuple(self._members.values()) if not m.revoked)

    def revoke(self, edge_id: str) -> bool:
        """Revoke an edge's credentials; False if there is no such edge."""
        member = self._members.get(edge_id)
        if member is None:
            return False
        member.revoked = True
        self._save()
        return True

    def passwords(self) -> str:
        """Return the content of Mosquitto's password file."""
        return "".join(
            f"{name}:{m.password}\n"
            for name, m in self._members.items()
            if m.password and not m.revoked
        )

    def edges(self) -> list[str]:
        """Return the ids of edges that may connect."""
        return [name for name, member in self._members.items() if not member.revoked]

    # -------------------------------------------------------------- disk

    def _save(self) -> None:
        document = {
            "codes": {key: asdict(code) for key, code in self._codes.items()},
            "edges": {name: asdict(member) for name, member in self._members.items()},
        }
        write_atomic(self._file, json.dumps(document).encode())

    def _load(self) -> None:
        try:
            document = json.loads(self._file.read_bytes())
            self._codes = {key: Issued(**code) for key, code in document["codes"].items()}
            self._members = {k: EnrolledEdge(**member) for k, member in document["edges"].items()}
        except (ValueError, TypeError, KeyError):
            fix = "move it away to start over (every edge must enrol again)"
            raise OSError(f"{self._file} is damaged; {fix}") from None


def _hash(secret: bytes) -> str:
    """Plain SHA-256: these secrets have at least 128 random bits, so a slow hash gains nothing."""
    return hashlib.sha256(secret).hexdigest()


def _same(kept: str, token: str) -> bool:
    return hmac.compare_digest(kept, _hash(token.encode()))


def _mosquitto_hash(password: str) -> str:
    salt = secrets.token_bytes(12)
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ROUNDS)
    return f"$7${ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"
