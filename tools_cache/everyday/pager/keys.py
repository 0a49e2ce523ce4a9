"""Key pairs of pagers (Ed25519), as base64 text. The library is imported at the first use."""

import base64
import binascii
import hashlib

KEY_BYTES = 32
SHOWN_DIGITS = 16


def new_private_key() -> str:
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - see above

    return _text(ed25519.Ed25519PrivateKey.generate().private_bytes_raw())


def public_key(private_key: str) -> str:
    """Return the public half."""
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - see above

    key = ed25519.Ed25519PrivateKey.from_private_bytes(base64.b64decode(private_key))
    return _text(key.public_key().public_bytes_raw())


def sign(private_key: str, data: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - see above

    key = ed25519.Ed25519PrivateKey.from_private_bytes(base64.b64decode(private_key))
    return _text(key.sign(data))


def is_signed(key: str, signature: str, data: bytes) -> bool:
    """Return whether this signature of these bytes was made with the private half of `key`."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    try:
        public = ed25519.Ed25519PublicKey.from_public_bytes(_bytes(key))
        public.verify(_bytes(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint(key: str) -> str:
    """Return the SHA-256 of a public key in hexadecimal digits. Raises ValueError."""
    return hashlib.sha256(_bytes(key)).hexdigest()


def shown_fingerprint(key: str) -> str:
    """Return what people compare: the first 16 digits of the fingerprint, in groups of four."""
    digits = fingerprint(key)[:SHOWN_DIGITS]
    return " ".join(digits[at : at + 4] for at in range(0, SHOWN_DIGITS, 4))


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _bytes(text: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except binascii.Error as e:
        raise ValueError(str(e)) from None
    if _text(raw) != text:
        raise ValueError("is not canonical base64")  # else two texts would be one key
    return raw
