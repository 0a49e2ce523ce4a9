"""Types of the settings in `[tool.kasa]`; imported by their `config.py` alone."""

from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tools_cache.everyday.kasa_devices import is_at_home

MAX_HOSTS: Final = 64
MAX_SCENES: Final = 50
MAX_SCENE_DEVICES: Final = 50


def _check_host(host: str) -> str:
    """Return the address. Raise ValueError unless it is in a home network or this machine's."""
    if not is_at_home(host):
        raise ValueError(
            "must be an IPv4 address at home (private, link-local or loopback), like 192.168.1.20"
        )
    return host


class SceneDevice(BaseModel):
    """What one device does in a scene."""

    model_config = ConfigDict(extra="forbid", strict=True)

    device: str = Field(min_length=1, max_length=80)
    on: bool = True
    brightness: int | None = Field(default=None, ge=0, le=100)


class Scene(BaseModel):
    """A scene: its name, and the devices in it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1, max_length=60)
    devices: list[SceneDevice] = Field(min_length=1, max_length=MAX_SCENE_DEVICES)


def _check_scenes(scenes: list[Scene]) -> list[Scene]:
    """Return the scenes. Raise ValueError if two have one name."""
    names = [" ".join(scene.name.casefold().split()) for scene in scenes]
    if len(set(names)) < len(names):
        raise ValueError("two scenes have the same name; give each its own")
    return scenes


Hosts = Annotated[list[Annotated[str, AfterValidator(_check_host)]], Field(max_length=MAX_HOSTS)]
Scenes = Annotated[list[Scene], Field(max_length=MAX_SCENES), AfterValidator(_check_scenes)]
ShortText = Annotated[str, Field(max_length=1000)]
