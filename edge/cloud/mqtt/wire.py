"""MQTT messages as bytes and properties, both ways; docs/mqtt.md describes each of them.

Any bytes give a `WireMessage` or a `WireError`, never another exception.
"""

import json as jsonlib
import math
import uuid
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NoReturn, TypeVar

import msgpack  # type: ignore[import-untyped]  # it ships no types
from msgspec import Struct

from edge.ports import UplinkTooLarge
from tools_cache.api.tool import CallOrigin, DeliveryReport, Json, Mode, ToolCall, ToolResponse
from tools_cache.errors import BadToolName
from tools_cache.names import parse as parse_name

VERSION: Final = 1
MSGPACK: Final = "application/vnd.glassd.v1+msgpack"
JSON: Final = "application/vnd.glassd.v1+json"
MAX_BODY: Final = 256 * 1024
"""Bytes of one body, checked before decoding."""
MAX_DEPTH: Final = 32
"""Levels of nesting; a call or an envelope needs fewer than ten."""
MAX_WORD: Final = 255
"""Characters of an identifier (turn, user, idempotency key)."""
MAX_TTL_S: Final = 7 * 24 * 3600
"""No call lives longer than a week."""
DEFAULT_TTL_S: Final = 40.0
_INT64: Final = range(-(2**63), 2**64)

_E = TypeVar("_E", bound=StrEnum)


class MessageKind(StrEnum):
    """What a message is: user property `k`, or the body's key `k`."""

    CALL = "call"
    ACCEPTED = "accepted"
    PROGRESS = "progress"
    RESULT = "result"
    CANCEL = "cancel"
    DELIVERY = "delivery"
    PRESENCE = "presence"
    CAPABILITIES = "capabilities"
    EVENT = "event"
    REGISTRY = "registry"


WITH_ID: Final = frozenset(
    {
        MessageKind.CALL,
        MessageKind.ACCEPTED,
        MessageKind.PROGRESS,
        MessageKind.RESULT,
        MessageKind.CANCEL,
        MessageKind.DELIVERY,
    }
)
"""Kinds that speak about one call and so carry its id."""


class WireCode(StrEnum):
    """Why a message cannot be taken."""

    UNSUPPORTED_CONTENT = "unsupported_content"
    UNSUPPORTED_VERSION = "unsupported_version"
    TOO_LARGE = "too_large"
    MALFORMED = "malformed"


class WireError(ValueError):
    """A message that cannot be taken: which field, what is wrong with it, what to send instead."""

    def __init__(self, code: WireCode, field: str, problem: str, fix: str) -> None:
        super().__init__(f"{code}: {field}: {problem}; {fix}")
        self.code = code
        self.field = field
        self.problem = problem
        self.fix = fix

    def to_json(self) -> dict[str, str]:
        reason = self.code.value
        return {"reason": reason, "field": self.field, "problem": self.problem, "fix": self.fix}


class BodyTooLarge(WireError, UplinkTooLarge):
    """More bytes than the wire, or the broker, takes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(WireCode.TOO_LARGE, "body", f"has {size} bytes", f"send at most {limit}")
        self.size, self.limit = size, limit


class WireMessage(Struct, frozen=True):
    """One decoded message.

    `id` is the call's UUID text (empty if no call is meant), `json` its form, to be answered
    likewise; `attempt` counts sends from 1, `age_ms` is its age when sent.
    """

    kind: MessageKind
    id: str
    body: Mapping[str, Json]
    json: bool = False
    attempt: int = 1
    age_ms: int = 0


# ------------------------------------------------------------------ bytes ↔ bodies


def encode(
    kind: MessageKind | str, body: Mapping[str, Json], *, json: bool = False
) -> tuple[bytes, str]:
    """Return (payload, content type), with `v` and `k`. Raise WireError: too large or not JSON."""
    whole = {"v": VERSION, "k": str(kind), **body}
    _check_plain(whole)
    payload = _dump_json(whole) if json else msgpack.packb(whole)
    if len(payload) > MAX_BODY:
        raise BodyTooLarge(len(payload), MAX_BODY)
    return payload, JSON if json else MSGPACK


def decode(
    payload: bytes,
    *,
    content_type: str | None,
    user_properties: Iterable[tuple[str, str]] = (),
    correlation: bytes | None = None,
    default_kind: MessageKind | None = None,
) -> WireMessage:
    """Decode a message. `default_kind` is what the topic says when the message does not."""
    if len(payload) > MAX_BODY:
        raise BodyTooLarge(len(payload), MAX_BODY)
    as_json = _is_json(content_type)
    body = _load(payload, as_json)
    if not isinstance(body, dict):
        _malformed("body", "is not a map", "send a map with v, id, …")
    _check_plain(body)
    version = body.get("v")
    if isinstance(version, bool) or version != VERSION:
        problem, fix = f"is {_show(version)}", f"send v: {VERSION}"
        raise WireError(WireCode.UNSUPPORTED_VERSION, "v", problem, fix)
    properties = dict(reversed(list(user_properties)))  # the first of each name
    kind = _kind(properties.get("k", body.get("k")), default_kind)
    return WireMessage(
        kind=kind,
        id=_id(body.get("id", body.get("call_id")), correlation, needed=kind in WITH_ID),
        body=body,
        json=as_json,
        attempt=max(1, _count(properties.get("a"))),
        age_ms=_count(properties.get("age")),
    )


def wants_json(content_type: str | None) -> bool:
    """Tell in which form to answer a message, even one that cannot be decoded."""
    return _bare(content_type).endswith("json")


def id_of(correlation: bytes | None) -> str:
    """Read a call id out of correlation data; empty when there is none."""
    if correlation is None or len(correlation) != 16:
        return ""
    return str(uuid.UUID(bytes=bytes(correlation)))


def correlation_of(call_id: str) -> bytes:
    """Write a call id as correlation data. Raise WireError when it is not a UUID."""
    return uuid.UUID(_uuid(call_id)).bytes


def _dump_json(body: Mapping[str, Json]) -> bytes:
    return jsonlib.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _is_json(content_type: str | None) -> bool:
    bare = _bare(content_type)
    if bare not in (MSGPACK, JSON):
        problem = f"is {_show(content_type)}" if content_type else "is missing"
        fix = f"send {MSGPACK} or {JSON}"
        raise WireError(WireCode.UNSUPPORTED_CONTENT, "content-type", problem, fix)
    return bare == JSON


def _bare(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()


def _load(payload: bytes, as_json: bool) -> Json:  # noqa: FBT001 - one of two forms
    try:
        if as_json:
            return jsonlib.loads(payload)
        # unpackb bounds every string, list and map by the payload's own length; extension types are
        # refused.
        return msgpack.unpackb(payload, raw=False, strict_map_key=True, ext_hook=_no_extension)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        name, why = "JSON" if as_json else "msgpack", str(error)[:80] or type(error).__name__
        _malformed("body", f"is not {name} ({why})", f"send one {name} map")


def _no_extension(code: int, _data: bytes) -> NoReturn:
    raise ValueError(f"extension type {code}")


def _check_plain(root: Json) -> None:
    """Refuse what JSON cannot carry: a body is stored and shown as JSON."""
    stack: list[tuple[str, Json, int]] = [("body", root, 0)]
    while stack:
        path, value, depth = stack.pop()
        if depth > MAX_DEPTH:
            _malformed(path, f"is nested deeper than {MAX_DEPTH}", "send a flatter document")
        if isinstance(value, dict):
            for key, inner in value.items():
                if not isinstance(key, str):
                    _malformed(path, "has a key that is not text", "send text keys")
                _check_text(path, key)
                stack.append((key if path == "body" else f"{path}.{key}"[:120], inner, depth + 1))
        elif isinstance(value, list | tuple):
            stack.extend((path, inner, depth + 1) for inner in value)
        else:
            _check_scalar(path, value)


def _check_scalar(path: str, value: Json) -> None:
    if isinstance(value, str):
        _check_text(path, value)
    elif isinstance(value, float):
        if not math.isfinite(value):
            _malformed(path, "is not a finite number", "send null instead")
    elif isinstance(value, int):
        if value not in _INT64:
            _malformed(path, "is an integer of more than 64 bits", "send it as text")
    elif value is not None:
        problem = f"is {type(value).__name__}, which JSON has no word for"
        _malformed(path, problem, "send base64 text")


def _check_text(path: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        _malformed(path, "holds half a surrogate pair", "send valid Unicode text")


# ------------------------------------------------------------------ fields


def _kind(value: Json, default: MessageKind | None) -> MessageKind:
    if value is None and default is not None:
        return default
    try:
        return MessageKind(value)
    except ValueError:
        problem = "is missing" if value is None else f"is {_show(value)}"
        _malformed("k", problem, f"send one of {', '.join(MessageKind)}")


def _id(value: Json, correlation: bytes | None, *, needed: bool) -> str:
    if correlation is not None and len(correlation) != 16 and needed:
        problem, fix = f"has {len(correlation)} bytes", "send the 16 bytes of the call id"
        _malformed("correlation data", problem, fix)
    from_property = id_of(correlation)
    if value is None:
        if needed and not from_property:
            _malformed("id", "is missing", "send the call's UUID")
        return from_property
    text = _uuid(value)
    if from_property and text != from_property:
        _malformed("id", "differs from the correlation data", "send the same call id in both")
    return text


def _uuid(value: Json) -> str:
    try:
        # UUID() also takes braces, `urn:` and no dashes: one call must have one spelling.
        return str(uuid.UUID(value if isinstance(value, str) and len(value) == 36 else ""))
    except ValueError:
        _malformed("id", f"is {_show(value)}", "send a UUID in its 36-character form")


def _count(text: str | None) -> int:
    """Read a number that only informs; a bad one is no reason to lose a message."""
    good = text is not None and text.isascii() and text.isdigit() and len(text) <= 15
    return int(text) if text is not None and good else 0


def _word(body: Mapping[str, Json], key: str, default: str) -> str:
    value = body.get(key)
    if value is None:
        return default
    if not isinstance(value, str) or len(value) > MAX_WORD or not value.isprintable():
        fix = f"send printable text of at most {MAX_WORD} characters"
        _malformed(key, f"is {_show(value)}", fix)
    return value


def _member(body: Mapping[str, Json], key: str, words: type[_E], default: _E) -> _E:
    value = body.get(key)
    if value is None:
        return default
    try:
        return words(value)
    except ValueError:
        _malformed(key, f"is {_show(value)}", f"send one of {', '.join(words)}")


def text_of(message: WireMessage, key: str, *, most: int = 2000) -> str:
    """Read a short text for people (progress, reason); cut to `most` characters."""
    value = message.body.get(key, "")
    if not isinstance(value, str):
        _malformed(key, f"is {_show(value)}", "send text")
    return value[:most]


# ------------------------------------------------------------------ calls, results, deliveries


def call_to_body(call: ToolCall) -> dict[str, Json]:
    """Return a call's body; `ttl_s` is the time it has left now."""
    body: dict[str, Json] = {
        "call_id": call.call_id,
        "tool": call.tool,
        "args": dict(call.args),
        "origin": call.origin.value,
        "mode": call.mode.value,
        "turn_id": call.turn_id,
        "user_id": call.user_id,
        "ttl_s": max(0.0, round(call.ttl_s, 3)),
    }
    if call.idempotency_key is not None:
        body["idempotency_key"] = call.idempotency_key
    if call.session:
        body["session"] = call.session
    if call.present is not None:
        body["present"] = call.present
    return body


def body_to_call(message: WireMessage) -> ToolCall:
    """Read a call. Raise WireError naming the field."""
    body = message.body
    tool = body.get("tool")
    try:
        name = parse_name(tool if isinstance(tool, str) else "")
    except BadToolName:
        _malformed("tool", f"is {_show(tool)}", "send packageName:toolName")
    args = body.get("args", {})
    if not isinstance(args, dict):
        _malformed("args", f"is {_show(args)}", "send a map")
    return ToolCall(
        call_id=message.id,
        tool=str(name),
        args=args,
        origin=_member(body, "origin", CallOrigin, CallOrigin.CLOUD),
        mode=_member(body, "mode", Mode, Mode.TEXT),
        turn_id=_word(body, "turn_id", ""),
        user_id=_word(body, "user_id", "local"),
        ttl_s=_ttl_s(body.get("ttl_s", DEFAULT_TTL_S)),
        idempotency_key=_word(body, "idempotency_key", "") or None,
        session=_word(body, "session", ""),
        present=_yes_or_no(body, "present"),
    )


def _yes_or_no(body: Mapping[str, Json], key: str) -> bool | None:
    value = body.get(key)
    if not isinstance(value, bool | None):
        _malformed(key, f"is {_show(value)}", "send true or false, or leave it out")
    return value


def _ttl_s(value: Json) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not 0 <= value <= MAX_TTL_S:
        _malformed("ttl_s", f"is {_show(value)}", f"send seconds, 0 to {MAX_TTL_S}")
    return float(value)


def result_body(call_id: str, response: ToolResponse) -> dict[str, Json]:
    """Write a result: the envelope itself, and whose it is."""
    return {"id": call_id, **response.to_json()}


def response_of(message: WireMessage) -> ToolResponse:
    """Read the envelope out of a `result`. Raise WireError naming the field."""
    try:
        return ToolResponse.from_json(message.body)
    except ValueError as error:
        field, _, problem = str(error).partition(": ")
        fix = "send {ok: true, data} or {ok: false, error}"
        _malformed(field, problem or "is not an envelope", fix)


def delivery_body(call_id: str, report: DeliveryReport, *, age_s: float) -> dict[str, Json]:
    """Return a delivery report's body; `age` is ms since the result. The outbox adds its wait."""
    body: dict[str, Json] = {
        "id": call_id,
        "delivery": report.state.value,
        "age": max(0, round(age_s * 1000)),
    }
    more = {"reason": report.reason, "downgrade": report.downgrade}
    return body | {key: text for key, text in more.items() if text}


def edge_of(topic: str) -> str:
    """Name the edge a topic belongs to (trustworthy by the ACL). Raise WireError."""
    levels = topic.split("/")
    good = len(levels) >= 6 and levels[:2] == ["glassd", "v1"] and levels[3] == "e"
    if not good or not levels[4]:
        _malformed("topic", f"is {_show(topic)}", "publish under glassd/v1/{tenant}/e/{edge_id}/")
    return levels[4]


# ------------------------------------------------------------------ complaints


def _malformed(field: str, problem: str, fix: str) -> NoReturn:
    raise WireError(WireCode.MALFORMED, field, problem, fix)


def _show(value: Any) -> str:
    """Name a value in a message for people: short, printable."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
