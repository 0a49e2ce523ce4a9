"""Settings of context:* and continuum:*. Imported only where settings are read."""

from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field, field_validator


class Config(BaseModel):
    """`enabled` follows `[history] enabled`."""

    enabled: bool = False
    timezone: str = Field(
        "", description="Time zone of days, such as Europe/Berlin; empty: that of [wearer]."
    )

    @field_validator("timezone")
    @classmethod
    def _known(cls, value: str) -> str:
        try:
            return ZoneInfo(value).key if value else value
        except (KeyError, ValueError, OSError):
            raise ValueError(
                f"{value!r} is not a known time zone; give an IANA name such as Europe/Berlin"
            ) from None
