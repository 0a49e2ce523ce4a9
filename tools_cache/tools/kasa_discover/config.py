"""Kasa devices are off until their owner wants them."""

from pydantic import BaseModel

from tools_cache.everyday.kasa_settings import Hosts, Scenes, ShortText


class Config(BaseModel):
    enabled: bool = False
    hosts: Hosts = []
    username: ShortText = ""
    password_file: ShortText = ""
    scenes: Scenes = []
