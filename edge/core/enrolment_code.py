"""The enrolment code: one text, pasted or scanned, with which an edge gets its credentials.

Version 1: `GLASSD1-` and groups of eight characters, seven of the message and a check character, so
that a typing mistake is found in its group. Crockford's base32: no case, no I, L, O, U; all
characters are in QR's alphanumeric mode. The message, before base32:

    port of broker (2 bytes) · port of enrolment (2) · broker host · enrolment host · tenant ·
    secret (each one length byte and its ASCII; an empty enrolment host is the broker's) · SHA-256
    of the CA's DER (32) · first 4 bytes of the SHA-256 of all before
"""

import hashlib
import re
from typing import Final

from msgspec import Struct

from edge.core.words.secret_fields import repr_without

PREFIX: Final = "GLASSD1-"
MAX_TEXT: Final = 1500
"""Characters read; a code with two names of maximum length has 1,030."""
MAX_HOST: Final = 253
SECRET_BYTES: Final = (16, 32)
"""Random bytes, at least and at most."""
FINGERPRINT_BYTES: Final = 32

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUE: Final = {c: i for i, c in enumerate(_ALPHABET)} | {"O": 0, "I": 1, "L": 1}
_DATA: Final = 7
"""Message characters of a full group."""
_SUM_BYTES: Final = 4
HOST: Final = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|[0-9A-Fa-f:.]{2,45}"
)
TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class BadCode(ValueError):
    """This text is not a valid enrolment code. The message says where, and never repeats the text:
    it contains a secret.
    """

    def __init__(self, problem: str, fix: str = "paste the whole code again, or scan it") -> None:
        super().__init__(problem)
        self.fix = fix


class Offer(Struct, frozen=True, kw_only=True):
    """The content of a code. `secret` works once; `ca_sha256` is over the CA certificate's DER."""

    broker_host: str
    broker_port: int
    enrol_host: str
    enrol_port: int
    tenant: str
    ca_sha256: bytes
    secret: bytes

    def __repr__(self) -> str:
        return repr_without(self, "secret")

    def __post_init__(self) -> None:
        for name, host in (("broker_host", self.broker_host), ("enrol_host", self.enrol_host)):
            if not HOST.fullmatch(host):
                raise ValueError(
                    f"{name}: must be a host name or address, at most {MAX_HOST} characters"
                )
        for name, port in (("broker_port", self.broker_port), ("enrol_port", self.enrol_port)):
            if not 0 < port < 65536:
                raise ValueError(f"{name}: must be 1 to 65535")
        if not TENANT.fullmatch(self.tenant):
            raise ValueError("tenant: may hold letters, digits and . _ - only, at most 63")
        if len(self.ca_sha256) != FINGERPRINT_BYTES:
            raise ValueError(f"ca_sha256: must have {FINGERPRINT_BYTES} bytes")
        if not SECRET_BYTES[0] <= len(self.secret) <= SECRET_BYTES[1]:
            raise ValueError(f"secret: must have {SECRET_BYTES[0]} to {SECRET_BYTES[1]} bytes")


def encode(offer: Offer) -> str:
    """Return the code."""
    enrol_host = "" if offer.enrol_host == offer.broker_host else offer.enrol_host
    words = (offer.broker_host.encode(), enrol_host.encode(), offer.tenant.encode(), offer.secret)
    body = offer.broker_port.to_bytes(2) + offer.enrol_port.to_bytes(2)
    body += b"".join(bytes([len(word)]) + word for word in words) + offer.ca_sha256
    symbols = _to_symbols(body + _sum(body))
    groups = [symbols[i : i + _DATA] for i in range(0, len(symbols), _DATA)]
    return PREFIX + "-".join(
        "".join(_ALPHABET[s] for s in (*group, _check(group, number)))
        for number, group in enumerate(groups, 1)
    )


def decode(text: str) -> Offer:
    """Read a code: case, spaces, line ends and lost hyphens do not matter. Raises `BadCode`."""
    if len(text) > MAX_TEXT:
        raise BadCode(f"this is not an enrolment code: it has more than {MAX_TEXT} characters")
    plain = re.sub(r"[\s-]", "", text.upper())
    mark = PREFIX.rstrip("-")
    if not plain.startswith(mark):
        newer = re.match(r"GLASSD([2-9])", plain)
        if newer:
            raise BadCode(
                f"this enrolment code is of version {newer[1]}, which this glassd cannot read",
                "update glassd",
            )
        raise BadCode(f"this is not an enrolment code: one begins with {PREFIX}")
    body = _from_symbols(_message(plain[len(mark) :]))
    if len(body) <= _SUM_BYTES or _sum(body[:-_SUM_BYTES]) != body[-_SUM_BYTES:]:
        raise BadCode("the enrolment code is not complete: a part of it is missing")
    return _parsed(body[:-_SUM_BYTES])


# ------------------------------------------------------------------ characters


def _message(characters: str) -> list[int]:
    """Check each group; return the message's symbols."""
    message: list[int] = []
    for number, at in enumerate(range(0, len(characters), _DATA + 1), 1):
        symbols = [_VALUE.get(c, -1) for c in characters[at : at + _DATA + 1]]
        if min(symbols) < 0 or _check(symbols[:-1], number) != symbols[-1]:
            if at + _DATA + 1 > len(characters):
                raise BadCode(
                    f"the enrolment code is not complete: it ends within character group {number}"
                )
            raise BadCode(
                f"character group {number} is mistyped (groups of eight, counted after {PREFIX})",
                "compare that group with the code",
            )
        message += symbols[:-1]
    return message


def _check(symbols: list[int], number: int) -> int:
    """Return a check symbol over GF(32): a single wrong character, two swapped neighbours and
    swapped groups change it.
    """
    total = number % 32
    for symbol in symbols:
        total = _doubled(total) ^ symbol
    return _doubled(total)


def _doubled(symbol: int) -> int:
    """Multiply by x modulo x⁵ + x² + 1."""
    return (symbol << 1) ^ (0x25 if symbol & 16 else 0)


def _to_symbols(body: bytes) -> list[int]:
    count = -(-len(body) * 8 // 5)
    number = int.from_bytes(body) << (count * 5 - len(body) * 8)
    return [number >> 5 * i & 31 for i in reversed(range(count))]


def _from_symbols(symbols: list[int]) -> bytes:
    number = 0
    for symbol in symbols:
        number = number << 5 | symbol
    size, rest = divmod(len(symbols) * 5, 8)
    return (number >> rest).to_bytes(size)


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:_SUM_BYTES]


# ------------------------------------------------------------------ fields


def _parsed(body: bytes) -> Offer:
    """Read the fields of a message whose checksum is right. Raises `BadCode`."""
    at, words = 4, []
    for _ in range(4):
        size = body[at] if at < len(body) else 0
        words.append(body[at + 1 : at + 1 + size])
        at += 1 + size
    try:
        broker, enrol, tenant = (word.decode("ascii") for word in words[:3])
        return Offer(
            broker_host=broker,
            broker_port=int.from_bytes(body[0:2]),
            enrol_host=enrol or broker,
            enrol_port=int.from_bytes(body[2:4]),
            tenant=tenant,
            secret=words[3],
            ca_sha256=body[at:],
        )
    except ValueError as e:
        problem = "text that is not ASCII" if isinstance(e, UnicodeDecodeError) else str(e)
        raise BadCode(
            f"the enrolment code has an invalid field: {problem}", "ask for another code"
        ) from None
