"""The settings of the map tools, shared by their `config.py`, and those of tools with a place."""

from typing import Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from tools_cache.everyday.address_checks import check_address, check_home, check_url


class HomeSettings(BaseModel):
    """Of tools that begin at the place of the device."""

    enabled: bool = True
    latitude: float | None = Field(default=None, description="Of the place of the device.")
    longitude: float | None = Field(default=None, description="Of the place of the device.")
    gpsd: str = Field(default="", description="HOST:PORT of a gpsd that knows the position.")
    units: Literal["metric", "imperial"] = "metric"

    @field_validator("gpsd")
    @classmethod
    def _gpsd(cls, value: str) -> str:
        return check_address(value)

    @model_validator(mode="after")
    def _home(self) -> "HomeSettings":
        check_home(self.latitude, self.longitude)
        return self


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
