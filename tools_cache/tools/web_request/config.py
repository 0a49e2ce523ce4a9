"""HTTP requests are off until their owner wants them; more methods than two must be listed."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from tools_cache.everyday.web_settings import Hosts

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
Methods = Annotated[
    list[Method], Field(min_length=1, description="Methods that requests may have.")
]


class Config(BaseModel):
    enabled: bool = False
    hosts: Hosts = []
    methods: Methods = ["GET", "HEAD"]
