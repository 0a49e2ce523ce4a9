"""Which search service is asked. Nothing is searched before its owner names one."""

from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, model_validator


class Config(BaseModel):
    enabled: bool = True
    search_url: str = Field(
        max_length=1000,
        pattern=r"^https?://[^\s?#@]+$",
        description="Address of the search service, without its path.",
    )
    search_form: Literal["searxng", "kagi", "brave"] = Field(
        "searxng", description="Which API the service has."
    )
    key_file: str = Field(
        "",
        max_length=1000,
        pattern=r"^(/.*)?$",
        description="File with the key of the service; Kagi and Brave need one.",
    )

    @model_validator(mode="after")
    def _check_key(self) -> "Config":
        if self.search_form != "searxng" and not self.key_file:
            raise ValueError(f"{self.search_form} needs a key: set key_file")
        if self.key_file and self.search_url.startswith("http:") and not self._is_here():
            raise ValueError("a key is sent by https only: change search_url")
        return self

    def _is_here(self) -> bool:
        host = urlsplit(self.search_url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"
