"""Fits pictures to the current lens, in a child process with a deadline.

Implements `tools_cache.api.handed.Pictures`; the daemon itself loads no picture library and decodes
no picture.
"""

import base64
import errno
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final
from urllib.parse import unquote

from edge.display.bitmap import MAX_BASE64, BadImage, read_packed
from edge.display.lens import pixels_of
from edge.ports import GlassesStatus
from edge.runtime.resident_worker import ResidentWorker
from firmware_bridge.capabilities import Capabilities
from firmware_bridge.messages import Tile
from tools_cache import subprocess_call
from tools_cache.api.tool import ErrorCode, ToolError, ToolFailure

_log: Final = logging.getLogger(__name__)
DEADLINE_S: Final = 8.0
IDLE_S: Final = 60.0
MAX_ANSWER: Final = 256 * 1024
"""Bytes; a picture of `image_worker.MAX_PNG` bytes takes 174 kB as base64."""
CODE: Final = "from edge.display.image_worker import main; main()"
INSTALL: Final = "Install the picture library: pip install 'glassd[images]'"
MAX_PHOTO_ANSWER: Final = 3 * 1024 * 1024
"""Bytes; a photo of `image_worker.MAX_JPEG` bytes takes 2.8 MB as base64."""


class CannotRead(BadImage):
    """No child process can be started now; the text says why."""


class LensImages:
    """One per daemon. One child fits pictures in turn; it ends when there was none for `idle_s`.

    A QR code gets a child of its own: one that has read the pictures of others, and may have been
    attacked by one, must not draw where a wearer signs in.
    """

    def __init__(
        self,
        glasses: Callable[[], GlassesStatus],
        *,
        deadline_s: float = DEADLINE_S,
        idle_s: float = IDLE_S,
        command: Sequence[str] | None = None,
        code: str = CODE,
    ) -> None:
        self._glasses = glasses
        self._deadline_s = deadline_s
        self._code = code
        # -I: as for the voice
        own = (sys.executable, "-I", "-m", "edge.display.image_worker", str(idle_s))
        self._worker = ResidentWorker(
            "pictures",
            command or own,
            deadline_s=deadline_s,
            start_s=deadline_s,
            max_answer=MAX_ANSWER,
        )

    async def fitted(self, image: str) -> str:
        """See `tools_cache.api.handed.Pictures`."""
        known = self._glasses().capabilities
        if known is not None and known.get("display.bitmap") is not True:
            return ""  # no lens draws it: its description is shown or spoken
        return await _for_tool(self.fit(_base64_of(image), known or Capabilities("", {})))

    async def tile(self, image: str, width: int, height: int) -> Tile:
        """Return a picture with 1 bit a pixel, fitted into the middle of such a part of a lens.
        Raises `ToolFailure`.
        """
        fitted = await _for_tool(self._fit(_base64_of(image), width, height, 1))
        tile = read_packed(fitted, width, height, 1)
        if tile is None:
            raise _wrong("image: it cannot be read", None)
        return tile

    async def fit(self, image: str, capabilities: Capabilities) -> str:
        """Return a PNG or JPEG (base64) as a PNG for `bitmap.read_packed`, of these glasses. Raises
        `BadImage`.
        """
        return await self._fit(image, *pixels_of(capabilities))

    async def _fit(self, image: str, width: int, height: int, bpp: int) -> str:
        if len(image) > MAX_BASE64:
            raise BadImage(f"it has {len(image)} characters as base64; at most {MAX_BASE64}")
        head = json.dumps({"do": "fit", "width": width, "height": height, "bpp": bpp})
        try:
            raw = await self._worker.ask(f"{head}\n{image}".encode(errors="replace"))
            answer = _object(raw)
        except TimeoutError:
            raise BadImage(f"it took longer than {self._deadline_s:g} s to read") from None
        except (EOFError, ValueError):  # it was ended: too much memory, too much time
            raise BadImage("it cannot be read") from None
        except OSError as e:
            if e.errno == errno.EMSGSIZE:
                raise BadImage("it cannot be read") from None
            raise CannotRead(f"Pictures cannot be read now: {e.strerror}") from None
        if "png" not in answer:
            raise BadImage(str(answer.get("problem")), needs_library=answer.get("absent") == "PIL")
        return str(answer["png"])

    async def code(self, text: str) -> str:
        """Return a QR code for this lens as base64 PNG; "" if there is none: words suffice."""
        known = self._glasses().capabilities
        if known is None or known.get("display.bitmap") is not True:
            return ""
        width, height, bpp = pixels_of(known)
        question = {"do": "qr", "text": text, "side": min(width, height), "bpp": bpp}
        try:
            raw, _ = await subprocess_call.ask(
                self._code, question=json.dumps(question).encode(), limit_s=self._deadline_s
            )
            answer = _object(raw)
        except (OSError, ValueError) as e:  # TimeoutError too
            answer = {"problem": str(e) or type(e).__name__}
        if "png" not in answer:
            _log.debug("no QR code: %s", answer.get("problem"))
        return str(answer.get("png", ""))

    async def jpeg(self, avif: bytes) -> bytes:
        """Return an AVIF as JPEG, by a child of its own. Raises `ToolFailure`."""
        question = b'{"do": "jpeg"}\n' + base64.b64encode(avif)
        command = (sys.executable, "-P", "-c", self._code)
        try:
            raw, _ = await subprocess_call.run(
                command,
                question=question,
                limit_s=self._deadline_s,
                max_bytes=MAX_PHOTO_ANSWER,
            )
            answer = _object(raw)
        except TimeoutError:
            answer = {"problem": f"it took longer than {self._deadline_s:g} s to read"}
        except ValueError:  # it was ended: too much memory, too much time
            answer = {"problem": "it cannot be read"}
        except OSError as e:
            why = f"Pictures cannot be read now: {e.strerror}"
            raise ToolFailure(ToolError.of(ErrorCode.TOOL_UNAVAILABLE, why)) from None
        if "jpeg" in answer:
            return base64.b64decode(answer["jpeg"])
        lacking = answer.get("absent") == "PIL"
        why = f"The glasses sent the photo as AVIF, which agents cannot see: {answer['problem']}"
        fix = INSTALL if lacking else None
        raise ToolFailure(ToolError.of(ErrorCode.NOT_ACCEPTED, why, suggestion=fix))

    async def close(self) -> None:
        """End the child; fine when there is none."""
        await self._worker.close()


def _object(raw: bytes) -> dict[str, Any]:
    """Return a JSON object. Raises ValueError."""
    answer = json.loads(raw)
    if not isinstance(answer, dict):
        raise ValueError("no object")
    return answer


def _base64_of(image: str) -> str:
    """Return the base64 of a picture that may be a data URL, without line breaks."""
    if image[:5].lower() == "data:":
        head, comma, image = image.partition(",")
        if not (comma and head.lower().endswith(";base64")):
            raise _wrong("image: this data URL holds no base64", "data:image/png;base64,iVBORw0K…")
        image = unquote(image)
    return "".join(image.split())


async def _for_tool(fitting: Awaitable[str]) -> str:
    """Return what is fitted. Raises `ToolFailure`."""
    try:
        return await fitting
    except CannotRead as e:
        raise ToolFailure(ToolError.of(ErrorCode.TOOL_UNAVAILABLE, str(e))) from None
    except BadImage as e:
        raise _wrong(f"image: {e}", INSTALL if e.needs_library else None) from None


def _wrong(message: str, suggestion: str | None = None) -> ToolFailure:
    return ToolFailure(ToolError.of(ErrorCode.INVALID_ARGUMENTS, message, suggestion=suggestion))
