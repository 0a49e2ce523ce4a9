"""The settings of the `email` tools, in `[tool.email]`."""

from typing import Literal

from pydantic import BaseModel, Field


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
