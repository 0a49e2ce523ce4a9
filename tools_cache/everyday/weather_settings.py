"""The settings of the weather tools, shared by their `config.py`."""

from pydantic import Field, field_validator

from tools_cache.everyday.address_checks import check_url
from tools_cache.everyday.home_settings import HomeSettings


class Config(HomeSettings):
    url: str = Field(description="A service with Open-Meteo's API, for example your own.")
    geocoding_url: str = Field(
        default="", description="A service with Open-Meteo's geocoding API, for places by name."
    )
    home: str = Field(default="", max_length=100, description="Name of the place of the device.")

    @field_validator("url")
    @classmethod
    def _url(cls, value: str) -> str:
        return check_url(value)

    @field_validator("geocoding_url")
    @classmethod
    def _geocoding_url(cls, value: str) -> str:
        return check_url(value, empty=True)
