"""Fits pictures to the current lens, each in a child process of its own with a deadline.

Implements `tools_cache.api.handed.Pictures`; the daemon itself loads no picture library.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from edge.display.bitmap import BadImage, decode
from edge.display.lens import pixels_of
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
        known = self._glasses().capabilities
        if known is not None and known.get("display.bitmap") is not True:
            return ""  # no lens draws it: its description is shown or spoken
        image = _base64_of(image)
        width, height, bpp = pixels_of(known or Capabilities("", {}))
        question = {"do": "fit", "image": image, "width": width, "height": height, "bpp": bpp}
        answer = await self._ask(question)
        if "png" in answer:
            return str(answer["png"])
        if answer.get("absent") == "PIL":
            return await asyncio.to_thread(_as_it_is, image)
        raise _wrong(f"image: {answer['problem']}")

    async def code(self, text: str) -> str:
        """Return a QR code for this lens as base64 PNG; "" if there is none: words suffice."""
        known = self._glasses().capabilities
        if known is None or known.get("display.bitmap") is not True:
            return ""
        try:
            side = min(pixels_of(known)[:2])
            answer = await self._ask({"do": "qr", "text": text, "side": side})
        except ToolFailure as e:
            answer = {"problem": e.error.message}
        if "png" not in answer:
            _log.debug("no QR code: %s", answer.get("problem"))
        return str(answer.get("png", ""))

    async def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        data = json.dumps(question).encode()
        try:
            async with self._turns:
                raw, _ = await subprocess_call.ask(
                    self._code, question=data, limit_s=self._deadline_s
                )
            answer: dict[str, Any] = json.loads(raw)
        except TimeoutError:
            raise _wrong(f"image: it took longer than {self._deadline_s:g} s to read") from None
        except OSError as e:
            text = f"Pictures cannot be read now: {e.strerror}"
            raise ToolFailure(ToolError.of(ErrorCode.TOOL_UNAVAILABLE, text)) from None
        except ValueError:  # it was ended: too much memory, too much time
            raise _wrong("image: it cannot be read") from None
        return answer


def _base64_of(image: str) -> str:
    """Return the base64 of a picture that may be a data URL, without line breaks."""
    if image[:5].lower() == "data:":
        head, comma, image = image.partition(",")
        if not (comma and head.lower().endswith(";base64")):
            raise _wrong("image: this data URL holds no base64", "data:image/png;base64,iVBORw0K…")
        image = unquote(image)
    return "".join(image.split())


def _as_it_is(image: str) -> str:
    """Return a PNG as it came: without the library it is fitted later, more plainly."""
    try:
        decode(image)
    except BadImage as e:
        raise _wrong(f"image: {e}", INSTALL) from None
    return image


def _wrong(message: str, suggestion: str | None = None) -> ToolFailure:
    return ToolFailure(ToolError.of(ErrorCode.INVALID_ARGUMENTS, message, suggestion=suggestion))
