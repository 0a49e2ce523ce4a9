"""This edge's own key, which never leaves the machine, and requests for its certificate.

The only importer of `cryptography` (extra `enrol`), in a short child process: the daemon would keep
its 12 MiB.
"""

import importlib.util
import json
import sys
from typing import Any, Final

from msgspec import Struct

from edge.core.words.secret_fields import repr_without
from tools_cache import subprocess_call

LIMIT_S: Final = 20.0
"""An interpreter's start and one key: 0.2 s on a PC."""
MAX_ANSWER: Final = 64 * 1024
_CHILD: Final = "from edge.cloud.enrolment.keys import main; main()"


class BadCertificate(ValueError):
    """The cloud sent no certificate for this key; the text says why."""


class NoKeys(Exception):
    """No key could be made here; the text says why."""


class SigningRequest(Struct, frozen=True):
    """A fresh key and the request (PEM) that asks for its certificate."""

    key_pem: str
    csr_pem: str

    def __repr__(self) -> str:
        return repr_without(self, "key_pem")


class Life(Struct, frozen=True):
    """From when to when a certificate is valid, as Unix seconds."""

    begins: float
    ends: float


def can_make_keys() -> bool:
    """Tell whether the extra is installed; without it an edge asks for a password instead."""
    return importlib.util.find_spec("cryptography") is not None


async def ask(edge_id: str) -> SigningRequest:
    """Make a P-256 key and the request for its certificate. Raise `NoKeys`."""
    answer = await _child({"edge_id": edge_id})
    return SigningRequest(answer["key_pem"], answer["csr_pem"])


async def life_of(chain_pem: str, key_pem: str) -> Life:
    """Check that a chain begins with this key's certificate. Raise `BadCertificate`, `NoKeys`."""
    answer = await _child({"chain_pem": chain_pem, "key_pem": key_pem})
    if "bad" in answer:
        raise BadCertificate(answer["bad"])
    return Life(answer["begins"], answer["ends"])


async def _child(question: dict[str, str]) -> dict[str, Any]:
    asked = json.dumps(question).encode()
    try:
        answer, code = await subprocess_call.ask(_CHILD, question=asked, limit_s=LIMIT_S)
    except TimeoutError:
        raise NoKeys(f"making a key took more than {LIMIT_S:g} s") from None
    except OSError as e:
        raise NoKeys(f"no process can be started to make a key: {e.strerror}") from None
    if code or not answer:
        raise NoKeys(f"the process that makes keys ended with {code}; is the extra `enrol` whole?")
    found: dict[str, Any] = json.loads(answer)
    return found


# ------------------------------------------------------------------ in the child


def main() -> None:
    """Read one question from stdin, write one answer to stdout."""
    question = json.loads(sys.stdin.buffer.read(2 * MAX_ANSWER))
    answer = _make_key(**question) if "edge_id" in question else _examine(**question)
    json.dump(answer, sys.stdout)


def _make_key(edge_id: str) -> dict[str, str]:
    from cryptography import x509  # noqa: PLC0415 - in the child only
    from cryptography.hazmat.primitives import hashes, serialization as form  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, edge_id)])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return {"key_pem": pem.decode(), "csr_pem": csr.public_bytes(form.Encoding.PEM).decode()}


def _examine(chain_pem: str, key_pem: str) -> dict[str, Any]:
    from cryptography import x509  # noqa: PLC0415 - in the child only
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415

    try:
        cert = x509.load_pem_x509_certificates(chain_pem.encode())[0]
        ours = form.load_pem_private_key(key_pem.encode(), None).public_key()
    except ValueError:
        return {"bad": "it cannot be read"}
    raw = form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo
    if cert.public_key().public_bytes(*raw) != ours.public_bytes(*raw):
        return {"bad": "it is for another key"}
    begins, ends = cert.not_valid_before_utc, cert.not_valid_after_utc
    return {"begins": begins.timestamp(), "ends": ends.timestamp()}
