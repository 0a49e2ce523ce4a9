"""The settings of the `pager` tools, in `[tool.pager]`."""

from pydantic import BaseModel, Field


class Config(BaseModel):
    enabled: bool = False
    expiry_h: int = Field(24, ge=1, le=168, description="Hours that a message lives.")
    max_chars: int = Field(300, ge=50, le=300, description="Most characters of a message.")
    distill: bool = Field(True, description="Condense a longer text; false cuts it at a word.")
    distill_with: str = Field(
        "",
        pattern=r"^$|^[^:\s]+:[^:\s]+$",
        max_length=255,
        description="Tool that condenses: takes {text, max_chars} and answers with a text.",
    )
    relay: str = Field(
        "com.glassd.pager:relay",
        pattern=r"^[^:\s]+:[^:\s]+$",
        max_length=255,
        description="Tool of the cloud that carries messages (docs/pager.md).",
    )
