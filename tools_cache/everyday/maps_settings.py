"""The settings of the map tools, shared by their `config.py`."""

from typing import Literal

from pydantic import Field, field_validator

from tools_cache.everyday.address_checks import check_url
from tools_cache.everyday.home_settings import HomeSettings


class Config(HomeSettings):
    search_url: str = Field(description="A service with Nominatim's API, which finds places.")
    route_url: str = Field(
        description="A service that finds ways; {by} in it stands for foot, bike or car."
    )
    route_form: Literal["osrm", "valhalla"] = "osrm"
    language: str = Field(default="en", pattern="^[a-z]{2,3}(-[A-Za-z]{2,4})?$")

    @field_validator("search_url")
    @classmethod
    def _search_url(cls, value: str) -> str:
        return check_url(value)

    @field_validator("route_url")
    @classmethod
    def _route_url(cls, value: str) -> str:
        check_url(value.replace("{by}", "foot"))
        return value.rstrip("/")
