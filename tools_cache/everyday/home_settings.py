"""The settings of tools that begin at the place of the device."""

from typing import Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from tools_cache.everyday.address_checks import check_address, check_home


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
