"""Which address book is read. Nothing is read before its owner names one."""

from pydantic import BaseModel, Field


class Config(BaseModel):
    enabled: bool = True
    url: str = Field(
        max_length=1000,
        pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$",
        description="Address of one address book on a CardDAV server.",
    )
    username: str = Field("", max_length=200, description="Name to sign in with.")
    password_file: str = Field("", max_length=1000, description="File with the password.")
    ca_file: str = Field(
        "", max_length=1000, description="Certificates to trust instead of the system's."
    )
