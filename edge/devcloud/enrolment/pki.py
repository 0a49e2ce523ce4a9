"""The cloud's certificate authority: created once in its state directory; signs servers and edges.
Imported only with TLS, because it needs `cryptography`.
"""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization as form
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from edge.runtime.files import write_atomic

CA_DAYS: Final = 3650
SERVER_DAYS: Final = 825
"""Days; the longest lifetime that common clients accept."""
SKEW: Final = timedelta(minutes=5)
"""Backdating of certificates, because clocks differ."""
MAX_CSR: Final = 8 * 1024


class BadRequest(ValueError):
    """A certificate request that cannot be signed; the message says why."""


class Authority:
    """One CA. Blocking, a few milliseconds per signature."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self.file = folder / "ca.pem"
        self._key, self._cert = self._load() if self.file.exists() else self._make()

    @property
    def pem(self) -> str:
        return self._cert.public_bytes(Encoding.PEM).decode()

    @property
    def fingerprint(self) -> bytes:
        return sha256(self._cert.public_bytes(Encoding.DER)).digest()

    # -------------------------------------------------------------- signing

    def server(self, names: Sequence[str]) -> tuple[Path, Path]:
        """Sign a server certificate for these names and addresses; return the files of certificate
        and key.
        """
        key = _new_key()
        life, subject = timedelta(days=SERVER_DAYS), _name("glassd devcloud")
        builder = self._builder(subject, key.public_key(), life, server=True)
        alternatives = [_alternative(name) for name in dict.fromkeys(names)]
        extension = x509.SubjectAlternativeName(alternatives)
        return self._write("server", builder.add_extension(extension, critical=False), key)

    def worker(self, name: str) -> tuple[Path, Path]:
        """Sign a client certificate for the cloud's own connection to its broker."""
        key, life = _new_key(), timedelta(days=SERVER_DAYS)
        return self._write("worker", self._builder(_name(name), key.public_key(), life), key)

    def edge(self, edge_id: str, csr_pem: str, *, life: timedelta) -> str:
        """Sign an edge's request under `edge_id`; the name in the request is ignored.

        Raises `BadRequest`.
        """
        try:
            csr = x509.load_pem_x509_csr(csr_pem.encode())
            sound = len(csr_pem) <= MAX_CSR and csr.is_signature_valid
        except Exception as e:  # noqa: BLE001 - the library has many errors for bytes it does not like
            raise BadRequest(f"csr: cannot be read ({type(e).__name__})") from None
        public = csr.public_key()
        if not sound or not isinstance(public, ec.EllipticCurvePublicKey) or public.key_size < 256:
            raise BadRequest("csr: must be signed by its own key, on a curve of 256 bits or more")
        certificate = self._sign(self._builder(_name(edge_id), public, life))
        return certificate.public_bytes(Encoding.PEM).decode()

    def verified_name(self, der: bytes) -> str | None:
        """Return the edge of a client certificate; None if this authority did not sign it. (TLS
        verified chain and dates.)
        """
        cert = x509.load_der_x509_certificate(der)
        try:
            cert.verify_directly_issued_by(self._cert)
        except Exception:  # noqa: BLE001 - a signature that is not ours has many names
            return None
        names = cert.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(names[0].value) if names else None

    # -------------------------------------------------------------- making

    def _builder(
        self, subject: x509.Name, public: Any, life: timedelta, *, server: bool = False
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        usage = ExtendedKeyUsageOID.SERVER_AUTH if server else ExtendedKeyUsageOID.CLIENT_AUTH
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._cert.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - min(SKEW, life))
            .not_valid_after(now + life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, stem: str, builder: x509.CertificateBuilder, key: Any) -> tuple[Path, Path]:
        cert_file, key_file = self._folder / f"{stem}.pem", self._folder / f"{stem}.key"
        write_atomic(key_file, _key_pem(key))
        write_atomic(cert_file, self._sign(builder).public_bytes(Encoding.PEM), 0o666)
        return cert_file, key_file

    def _make(self) -> tuple[Any, x509.Certificate]:
        key, name, now = _new_key(), _name("glassd devcloud CA"), datetime.now(UTC)
        cert = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=CA_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(sign=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        write_atomic(self._folder / "ca.key", _key_pem(key))
        write_atomic(self.file, cert.public_bytes(Encoding.PEM), 0o666)
        return key, cert

    def _load(self) -> tuple[Any, x509.Certificate]:
        try:
            key: Any = load_pem_private_key((self._folder / "ca.key").read_bytes(), None)
            return key, x509.load_pem_x509_certificate(self.file.read_bytes())
        except ValueError:
            problem = "the authority there cannot be read; move it away to begin with a new one"
            raise OSError(f"{self._folder}: {problem}") from None


def _new_key() -> Any:
    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: Any) -> bytes:
    pem: bytes = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return pem


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


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
