"""Stored calls without what was asked and answered: what stays of a call that is forgotten."""

import json
from collections.abc import Mapping
from typing import Any, Final

from edge.core.call_summary import hide

FORGETS: Final = frozenset({"continuum:forget"})
"""Tools whose own arguments are emptied with their answer: they name what is to be forgotten."""
EMPTIED: Final = "forgotten"
"""Key of a stored request that was emptied."""
HIDDEN_ARGS: Final = "hidden"
"""Key of a stored request: the names of its arguments that are secrets."""
ASKED: Final = ("args", "input")
"""Keys of a stored request that say what was asked."""
MEDIA: Final = ('"type":"image"', '"type":"audio"')
"""What a stored answer has in its text if there is a picture or a sound in it."""
_GONE_WORDS: Final = {
    "image": "The picture is not kept any longer",
    "audio": "The sound is not kept any longer",
}
_GONE: Final = "What this call answered was forgotten at the wearer's request"
_META: Final = (
    "callId",
    "tool",
    "toolVersion",
    "route",
    "registryVersion",
    "timestamp",
    "duration",
)
_ERROR: Final = ("type", "code", "retryable", "partialSideEffects", "idempotencyRequired")


def emptied_request(text: str) -> str:
    """Return a stored request without what was asked."""
    request: dict[str, Any] = json.loads(text)
    kept = {name: value for name, value in request.items() if name not in ASKED}
    return _dump({**kept, "args": {}, EMPTIED: True})


def without_secrets(text: str) -> str:
    """Return a stored request with nothing of the arguments that it names as secret."""
    if f'"{HIDDEN_ARGS}"' not in text:
        return text
    request: dict[str, Any] = json.loads(text)
    names = request.get(HIDDEN_ARGS)
    return _dump({**request, "args": hide(request["args"], names)}) if names else text


def emptied_response(text: str) -> str:
    """Return a stored answer without what was answered; whether it went well, and whether it may
    be repeated, stays. An answer to the cloud keeps its id.
    """
    answer: dict[str, Any] = json.loads(text)
    kept: dict[str, Any] = {key: answer[key] for key in ("id", "ok") if key in answer}
    error = answer.get("error")
    if isinstance(error, Mapping):
        flags = {key: error[key] for key in _ERROR if key in error}
        kept["error"] = {**flags, "message": _GONE}
    else:
        kept["data"] = {EMPTIED: True, "text": _GONE}
    meta = answer.get("meta") or {}
    return _dump({**kept, "meta": {key: meta[key] for key in _META if key in meta}})


def has_media(text: str) -> bool:
    """Return whether a stored answer has a picture or a sound in its content."""
    return any(each in text for each in MEDIA)


def without_media(text: str) -> str:
    """Return a stored answer that says that its pictures and sounds are gone."""
    answer: dict[str, Any] = json.loads(text)
    meta = answer.get("meta") or {}
    content = meta.get("content")
    if not isinstance(content, list):
        return text
    return _dump({**answer, "meta": {**meta, "content": [_without_media(c) for c in content]}})


def _without_media(block: Any) -> Any:
    gone = _GONE_WORDS.get(str(block.get("type"))) if isinstance(block, Mapping) else None
    return block if gone is None else {"type": "text", "text": gone}


def _dump(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
