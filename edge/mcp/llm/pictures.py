"""The pictures of an answer, for providers that take pictures as parts of their own: as base64 in
the text they would cost a model a hundred thousand characters, and show it nothing.
"""

from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from edge.mcp.llm.models import Envelope

_KINDS: Final = {"image/png": "iVBORw0KGgo", "image/jpeg": "/9j/", "image/webp": "UklGR"}
"""Media type → how its base64 begins; the types that every provider takes."""
_NO_TEXT: Final = "(left out: not text)"


@dataclass(frozen=True, slots=True)
class ResultPicture:
    media_type: str
    data: str
    """In base64."""

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.data}"


def split(envelope: Envelope) -> tuple[Envelope, tuple[ResultPicture, ...]]:
    """Return the answer without pictures and sound, and its pictures, each once. In the place of a
    picture stands its number.
    """
    pictures: list[ResultPicture] = []
    meta, render = envelope.get("meta"), envelope.get("render")
    changed: dict[str, Any] = {}
    if isinstance(meta, Mapping) and isinstance(meta.get("content"), list):
        blocks = [_block(block, pictures) for block in meta["content"]]
        changed["meta"] = {**meta, "content": blocks}
    if isinstance(render, Mapping):
        # what the wearer saw is a picture for the model too, unless the model itself sent it
        sent_by_model = isinstance(meta, Mapping) and meta.get("route") == "glasses"
        attach = not sent_by_model and not pictures
        changed["render"] = _render(render, pictures, attach=attach)
    return {**envelope, **changed}, tuple(pictures)


def _block(block: Any, pictures: list[ResultPicture]) -> Any:
    if not isinstance(block, Mapping) or block.get("type") not in {"image", "audio"}:
        return block
    image = block["type"] == "image"
    return {**block, "data": _instead(block.get("data"), pictures, attach=image)}


def _render(
    render: Mapping[str, Any], pictures: list[ResultPicture], *, attach: bool
) -> dict[str, Any]:
    parts = dict(render)
    for part, key in (("display", "data"), ("audio", "pcm")):
        found = parts.get(part)
        if isinstance(found, Mapping) and found.get(key):
            shown = attach and part == "display"
            parts[part] = {**found, key: _instead(found[key], pictures, attach=shown)}
    return parts


def _instead(data: Any, pictures: list[ResultPicture], *, attach: bool) -> str:
    """Return what stands in the text instead of data, which is added to the pictures if it is
    one.
    """
    kind = _kind(data)
    picture = ResultPicture(kind, data)
    if kind and attach and picture not in pictures:
        pictures.append(picture)
    return f"(picture {pictures.index(picture) + 1})" if picture in pictures else _NO_TEXT


def _kind(data: Any) -> str:
    """Return the media type of a picture in base64, or "": one damaged picture would make a
    provider refuse the whole conversation.
    """
    kind = next((k for k, begins in _KINDS.items() if str(data).startswith(begins)), "")
    try:
        return kind if isinstance(data, str) and kind and b64decode(data, validate=True) else ""
    except ValueError:
        return ""
