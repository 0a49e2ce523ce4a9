"""Working times are off until their owner wants them."""

from pydantic import BaseModel, Field

from tools_cache.everyday.time_zone_settings import TimeZoneName


class Config(BaseModel):
    enabled: bool = False
    timezone: TimeZoneName = Field(
        "", description="Time zone of a day, such as Europe/Berlin; empty: that of [wearer]."
    )
