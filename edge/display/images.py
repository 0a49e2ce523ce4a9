"""Fits pictures to the current lens, each in a child process of its own with a deadline.

Implements `tools_cache.api.handed.Pictures`; the daemon itself loads no picture library.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from edge.display.bitmap import BadImage, decode
from edge.ports import GlassesStatus
from firmware_bridge.capabilities import Capabilities
from tools_cache import subprocess_call
from tools_cache.api.tool import ErrorCode, ToolError, ToolFailure

_log: Final = logging.getLogger(__name__)
DEADLINE_S: Final = 8.0
CODE: Final = "from edge.display.image_worker import main; main()"
INSTALL: Final = "Install the picture library: pip install 'glassd[images]'"


class LensImages:
    """One per daemon; holds nothing between two pictures."""

    def __init__(
        self,
        glasses: Callable[[], GlassesStatus],
        *,
        deadline_s: float = DEADLINE_S,
        code: str = CODE,
    ) -> None:
        self._glasses = glasses
        self._deadline_s = deadline_s
        self._code = code
        self._turns = asyncio.Semaphore(2)

    async def fitted(self, image: str) -> str:
        """See `tools_cache.api.handed.Pictures`."""
        width, height, bpp = _canvas(self._glasses().capabilities)
        told = await self._asked(
            {"do": "fit", "image": image, "width": width, "height": height, "bpp": bpp}
        )
        if "png" in told:
            return str(told["png"])
        if told.get("absent") == "PIL":
            return await asyncio.to_thread(_as_it_is, image)
        raise _wrong(f"image: {told['problem']}")

    async def code(self, text: str) -> str:
        """Return a QR code for this lens as base64 PNG; "" if there is none: words suffice."""
        known = self._glasses().capabilities
        if known is None or known.get("display.bitmap") is not True:
            return ""
        width, height, _ = _canvas(known)
        try:
            told = await self._asked({"do": "qr", "text": text, "side": min(width, height)})
        except ToolFailure as e:
            told = {"problem": e.error.message}
        if "png" not in told:
            _log.debug("no QR code: %s", told.get("problem"))
        return str(told.get("png", ""))

    async def _asked(self, question: Mapping[str, Any]) -> dict[str, Any]:
        try:
            async with self._turns:
                answer, _ = await subprocess_call.ask(
                    self._code, question=json.dumps(question).encode(), limit_s=self._deadline_s
                )
            told: dict[str, Any] = json.loads(answer)
        except TimeoutError:
            raise _wrong(f"image: it took longer than {self._deadline_s:g} s to read") from None
        except OSError as e:
            text = f"Pictures cannot be read now: {e.strerror}"
            raise ToolFailure(ToolError.of(ErrorCode.TOOL_UNAVAILABLE, text)) from None
        except ValueError:  # it was ended: too much memory, too much time
            raise _wrong("image: it cannot be read") from None
        return told


def _canvas(known: Capabilities | None) -> tuple[int, int, int]:
    """Width, height and bits a pixel; what glasses do not say is believed to be small."""
    width = int(known.get("display.width", 0) or 576) if known is not None else 576
    height = int(known.get("display.height", 0) or 136) if known is not None else 136
    bpp = known.get("display.bpp", 1) if known is not None else 1
    return width, height, bpp if bpp in (1, 2, 4) else 1


def _as_it_is(image: str) -> str:
    """Without the library a PNG goes on as it came, and is fitted plainly."""
    try:
        decode(image)
    except BadImage as e:
        raise _wrong(f"image: {e}", INSTALL) from None
    return image


def _wrong(message: str, suggestion: str | None = None) -> ToolFailure:
    return ToolFailure(ToolError.of(ErrorCode.INVALID_ARGUMENTS, message, suggestion=suggestion))
