"""The picture of `glasses:show_image` as a file: `glassd call` reads it and sends what is in it."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from edge.runtime.errors import UserError

MAX_SENT: Final = 150_000
"""Bytes of a picture that the tool takes; a larger one is made smaller first."""
MAX_FILE: Final = 16 * 1024 * 1024
SMALLER: Final = {"do": "fit", "width": 1024, "height": 768, "bpp": 8}
"""More pixels than any lens has; the daemon fits it to the lens in use."""
LIMIT_S: Final = 30.0
_CODE: Final = "from edge.display.image_worker import main; main()"
_ENDINGS: Final = (".png", ".jpg", ".jpeg")


def with_picture(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with the picture in place of its path. Raise `UserError`."""
    image = args.get("image")
    if not isinstance(image, str) or not _is_path(image):
        return dict(args)
    return {**args, "image": _read(image)}


def _is_path(image: str) -> bool:
    """Return whether this is a path: the name of a file, or something like it that is none."""
    try:
        return image.lower().endswith(_ENDINGS) or Path(image).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):  # a name too long, or with a NUL
        return False


def _read(path: str) -> str:
    """Return the picture as base64."""
    try:
        with Path(path).expanduser().open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except (OSError, RuntimeError) as e:
        why = getattr(e, "strerror", None) or str(e)
        raise UserError("USAGE", f"image: cannot read {path}: {why}", "check the path") from None
    if len(raw) > MAX_FILE:
        size = MAX_FILE // (1024 * 1024)
        raise UserError("USAGE", f"image: {path} is larger than {size} MiB", "make it smaller")
    text = base64.b64encode(raw).decode()
    return text if len(raw) <= MAX_SENT else _smaller(path, text)


def _smaller(path: str, image: str) -> str:
    import asyncio  # noqa: PLC0415 - only for a large picture

    from tools_cache import subprocess_call  # noqa: PLC0415 - as above

    question = f"{json.dumps(SMALLER)}\n{image}".encode()
    try:
        raw, _ = asyncio.run(subprocess_call.ask(_CODE, question=question, limit_s=LIMIT_S))
        answer = json.loads(raw)
    except (TimeoutError, OSError, ValueError):
        answer = {"problem": "it cannot be read"}
    if "png" in answer:
        return str(answer["png"])
    fix = f"send one of at most {MAX_SENT // 1000} kB"
    raise UserError("USAGE", f"image: {path} cannot be made smaller: {answer['problem']}", fix)
