"""What a tool that shows pictures is handed. Words only: no code runs here, no picture is read."""

from typing import Protocol

from tools_cache.tool import ToolContext


class Pictures(Protocol):
    """Makes pictures ready for the lens in use."""

    async def fitted(self, image: str) -> str:
        """Give a PNG or JPEG (base64) as a PNG (base64) of this lens's size and shades. Raises
        `ToolFailure`, with what is wrong with it.
        """


class PictureContext(ToolContext, Protocol):
    """What a handler of such a tool is handed."""

    @property
    def pictures(self) -> Pictures: ...
