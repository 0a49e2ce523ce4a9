"""Certificates made for one test: an authority, servers and clients, with the dates and names the
story needs.

Made by `cryptography`, the library the code under test uses too, but never by that code.
"""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = dt.timedelta(days=1)


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def pem_key(key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@dataclass
class Pair:
    """A certificate and its key, as files."""

    cert: Path
    key: Path
    x509: x509.Certificate

    @property
    def der(self) -> bytes:
        return self.x509.public_bytes(serialization.Encoding.DER)


class Authority:
    """One CA in `folder`; every certificate it signs is written beside it."""

    def __init__(self, folder: Path, common: str = "test CA", *, begins=None) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        begins = begins or now() - 3000 * DAY
        self.x509 = (
            x509.CertificateBuilder()
            .subject_name(name(common))
            .issuer_name(name(common))
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(now() + 3000 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(sign=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False
            )
            .sign(self.key, hashes.SHA256())
        )
        self.file = folder / f"{common.replace(' ', '-')}.pem"
        self.file.write_bytes(self.pem)

    @property
    def pem(self) -> bytes:
        return self.x509.public_bytes(serialization.Encoding.PEM)

    @property
    def der(self) -> bytes:
        return self.x509.public_bytes(serialization.Encoding.DER)

    def sign(
        self,
        common: str,
        *,
        names=("127.0.0.1",),
        begins=None,
        ends=None,
        client: bool = False,
        stem: str = "",
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        builder = (
            x509.CertificateBuilder()
            .subject_name(name(common))
            .issuer_name(self.x509.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins or now() - DAY)
            .not_valid_after(ends or now() + DAY)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
                critical=False,
            )
        )
        if not client:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(n) for n in names]), critical=False
            )
        cert = builder.sign(self.key, hashes.SHA256())
        stem = stem or common
        pair = Pair(self.folder / f"{stem}.crt", self.folder / f"{stem}.key", cert)
        pair.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(pem_key(key))
        return pair

    def revoked(self, *pairs: Pair) -> Path:
        """Give the file of a revocation list that names these."""
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.x509.subject)
        builder = builder.last_update(now() - DAY).next_update(now() + DAY)
        for pair in pairs:
            entry = (
                x509.RevokedCertificateBuilder()
                .serial_number(pair.x509.serial_number)
                .revocation_date(now() - DAY)
            )
            builder = builder.add_revoked_certificate(entry.build())
        path = self.folder / "revoked.pem"
        path.write_bytes(
            builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        return path


def _alternative(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign,
        crl_sign=sign,
        encipher_only=False,
        decipher_only=False,
    )


async def keys_made_here(question):
    """Instead of `enrol_keys`' child: the same answers from this process, which has the library
    anyway; 0.3 s less each.
    """
    from edge.cloud.enrolment.keys import _examine, _make_key

    return _make_key(**question) if "edge_id" in question else _examine(**question)
