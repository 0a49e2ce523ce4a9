"""The settings of the weather tools, shared by their `config.py`."""

from typing import Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from tools_cache.everyday.address_checks import check_address, check_home, check_url


class Config(BaseModel):
    enabled: bool = True
    url: str = Field(description="A service with Open-Meteo's API, for example your own.")
    geocoding_url: str = Field(
        default="", description="A service with Open-Meteo's geocoding API, for places by name."
    )
    home: str = Field(default="", max_length=100, description="Name of the place of the device.")
    latitude: float | None = Field(default=None, description="Of the place of the device.")
    longitude: float | None = Field(default=None, description="Of the place of the device.")
    gpsd: str = Field(default="", description="HOST:PORT of a gpsd that knows the position.")
    units: Literal["metric", "imperial"] = "metric"

    @field_validator("url")
    @classmethod
    def _url(cls, value: str) -> str:
        return check_url(value)

    @field_validator("geocoding_url")
    @classmethod
    def _geocoding_url(cls, value: str) -> str:
        return check_url(value, empty=True)

    @field_validator("gpsd")
    @classmethod
    def _gpsd(cls, value: str) -> str:
        return check_address(value)

    @model_validator(mode="after")
    def _home(self) -> "Config":
        check_home(self.latitude, self.longitude)
        return self
