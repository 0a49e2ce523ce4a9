"""Documents in sections are off until their owner wants them."""

from pydantic import BaseModel


class Config(BaseModel):
    enabled: bool = False
