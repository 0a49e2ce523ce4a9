"""Short-lived certificates: an authority, and servers that are good, have another name, or have
expired.
"""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = timedelta(days=1)


def _name(text):
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _build(subject, issuer, key, signer, *, begins, ends, extensions):
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
    )
    made = (
        made.serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )
    for extension, critical in extensions:
        made = made.add_extension(extension, critical)
    return made.sign(signer, hashes.SHA256())


class Authority:
    """`ca` is its file; `server(names)` creates a key and a certificate for a server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        usage = x509.KeyUsage(
            False, False, False, False, False, True, True, False, False
        )  # signs certificates and lists
        ours = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        made = _build(
            _name("ca"),
            _name("ca"),
            self._key,
            self._key,
            begins=now - 30 * DAY,
            ends=now + 30 * DAY,
            extensions=[(x509.BasicConstraints(True, None), True), (usage, True), (ours, False)],
        )
        self.ca.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def server(self, *names: str, begins: int = -20, ends: int = 300) -> tuple[Path, Path]:
        """Return (certificate, key) for names, valid from `begins` to `ends`, in days from now."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        alt = [x509.IPAddress(ip_address(n)) if n[0].isdigit() else x509.DNSName(n) for n in names]
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = _build(
            _name(names[0]),
            _name("ca"),
            key,
            self._key,
            begins=now + begins * DAY,
            ends=now + ends * DAY,
            extensions=[(x509.SubjectAlternativeName(alt), False), (issuer, False)],
        )
        certificate, private = self.folder / "server.pem", self.folder / "server.key"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, private
