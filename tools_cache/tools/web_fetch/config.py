"""Pages of the web are off until their owner wants them."""

from pydantic import BaseModel

from tools_cache.everyday.web_settings import Hosts


class Config(BaseModel):
    enabled: bool = False
    hosts: Hosts = []
