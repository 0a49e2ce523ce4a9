"""The settings of the `email` tools, in `[tool.email]`."""

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, Field

MAX_SENDERS: Final = 50
_DOMAIN: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}")
_LOCAL: Final = re.compile(r"[a-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")


def _check_sender(text: str) -> str:
    """Return it in small letters. Raise ValueError unless it is an address or a domain."""
    small = text.lower()
    local, at, domain = small.rpartition("@")
    if len(small) > 254 or not _DOMAIN.fullmatch(domain) or (at and not _LOCAL.fullmatch(local)):
        raise ValueError(
            "must be an address like anna@example.com or a domain like bank.example, in ASCII"
        )
    return small


Senders = Annotated[
    list[Annotated[str, AfterValidator(_check_sender)]], Field(max_length=MAX_SENDERS)
]


class Config(BaseModel):
    enabled: bool = True
    imap_host: str = Field(description="Name of the server that mail is read from.")
    smtp_host: str = Field(description="Name of the server that mail is sent by.")
    username: str = Field(description="Name to sign in with, at both.")
    address: str = Field(description="The e-mail address that mail is from.")
    password_file: str = Field("", description="File with the password.")
    token_file: str = Field(
        "", description="File with an OAuth 2 access token, instead of a password."
    )
    imap_port: int = Field(993, ge=1, le=65535)
    smtp_port: int = Field(465, ge=1, le=65535)
    smtp_security: Literal["tls", "starttls"] = Field(
        "tls", description="TLS from the start (port 465), or after a greeting (587)."
    )
    ca_file: str = Field("", description="Certificates to trust instead of the system's.")
    notify_from: Senders = Field(
        [], description="Addresses and domains whose new mail is announced; empty: none."
    )
