"""Importing vCards is off until its owner wants it."""

from pydantic import BaseModel


class Config(BaseModel):
    enabled: bool = False
