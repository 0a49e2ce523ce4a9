"""This edge's own key: made here, never leaving it; a request for its certificate, and what a certificate says of its life.

The daemon's only importer of `cryptography` (extra `enrol`), at first use. Refuses to know where any of it is kept.
"""

import importlib.util
from dataclasses import dataclass, field

from edge.uplink.faults import said


class BadCertificate(ValueError):
    """The cloud sent what is no certificate for this key; the words say why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A fresh key and the request (PEM) that asks for its certificate."""

    key_pem: bytes = field(repr=False)
    csr_pem: str


@dataclass(frozen=True, slots=True)
class Life:
    """From when to when a certificate is valid, as Unix seconds."""

    begins: float
    ends: float


def can_make_keys() -> bool:
    """Tell whether the extra is installed; without it an edge asks for a password instead."""
    return importlib.util.find_spec("cryptography") is not None


def ask(edge_id: str) -> Asked:
    """Make a P-256 key and the request for its certificate, blocking."""
    from cryptography import x509  # noqa: PLC0415 - 10 MiB, and only whoever enrols or renews needs it
    from cryptography.hazmat.primitives import hashes, serialization as form  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, edge_id)])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return Asked(pem, csr.public_bytes(form.Encoding.PEM).decode())


def life_of(chain_pem: str, key_pem: bytes) -> Life:
    """Check that the first certificate of a chain is this key's, and say when it lives. Raises `BadCertificate`."""
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import serialization as form  # noqa: PLC0415

    try:
        cert = x509.load_pem_x509_certificates(chain_pem.encode())[0]
        ours = form.load_pem_private_key(key_pem, None).public_key()
    except ValueError as e:
        raise BadCertificate(f"it cannot be read: {said(e)}") from None
    raw = form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo
    if cert.public_key().public_bytes(*raw) != ours.public_bytes(*raw):
        raise BadCertificate("it is for another key")
    return Life(cert.not_valid_before_utc.timestamp(), cert.not_valid_after_utc.timestamp())
