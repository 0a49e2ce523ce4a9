"""Notifications and the app whitelist of the Even G1: messages ↔ JSON in packets 4B and 04."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from firmware_bridge.codecs.even_g1.wire import STOCK, Dialect, Op, split
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import AllowApps, App, ShowNotification

NOTIFICATION_CHUNK: Final = 176
"""Bytes of JSON in one packet."""
_LONGEST_ID: Final = 31
"""Characters of an app identifier; the limit Gadgetbridge keeps, tested on hardware."""
_SWITCHES: Final = ("calendar_enable", "call_enable", "msg_enable", "ios_mail_enable")
_OUTER: Final = "ncs_notification"


def whitelist(
    message: AllowApps, *, max_packet: int, dialect: Dialect = STOCK
) -> tuple[bytes, ...]:
    """Return `04 total index` + JSON packets; phone services are off, as in the vendor's demo."""
    spell = dialect.whitelist_case.spell
    apps = [{spell("id"): app.id, spell("name"): app.name} for app in message.apps]
    body = {spell(key): False for key in _SWITCHES}
    data = _json({**body, spell("app"): {spell("list"): apps, spell("enable"): True}})
    if dialect.whitelist_ended:
        data += b"\0"
    return _cut(data, (Op.WHITELIST,), min(dialect.whitelist_chunk, max_packet - 3))


def notification(
    message: ShowNotification, number: int, *, max_packet: int, dialect: Dialect = STOCK
) -> tuple[bytes, ...]:
    """Return `4B id total index` + JSON packets; `number` counts notifications from 1."""
    inner: dict[str, Any] = {"msg_id": number}
    if dialect.notification_type:
        inner["type"] = 1
    if dialect.notification_action:
        inner["action"] = 0
    inner |= {
        "app_identifier": message.app.id[:_LONGEST_ID],
        "title": message.title,
        "subtitle": message.subtitle,
        "message": message.text,
        "time_s": message.at * 1000 if dialect.notification_ms else message.at,
    }
    if dialect.notification_dated:
        inner["date"] = datetime.fromtimestamp(message.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    inner["display_name"] = message.app.name
    body = {"type": "Add", _OUTER: inner} if dialect.notification_type else {_OUTER: inner}
    ident = (number - 1) % 255 + 1 if dialect.notification_numbered else dialect.notification_id
    return _cut(_json(body), (Op.NOTIFICATION, ident), min(NOTIFICATION_CHUNK, max_packet - 4))


def _json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _cut(data: bytes, head: tuple[int, ...], room: int) -> tuple[bytes, ...]:
    pieces = split(data, room, "JSON")
    return tuple(bytes((*head, len(pieces), index)) + piece for index, piece in enumerate(pieces))


# ------------------------------------------------------------------ as the glasses read them


def _object(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data.rstrip(b"\0"))
    except (ValueError, RecursionError) as error:
        raise RemoteViolation(Violation.BAD_MESSAGE, f"JSON: {error}") from None
    if not isinstance(body, dict):
        raise RemoteViolation(Violation.BAD_MESSAGE, "JSON: not an object")
    return body


def read_whitelist(data: bytes) -> AllowApps:
    """Accepts either spelling of the keys. Raises `RemoteViolation`."""
    app = _lower(_object(data)).get("app")
    apps: Sequence[Any] = _lower(app).get("list", []) if isinstance(app, dict) else []
    try:
        entries = tuple(_lower(entry) for entry in apps)
        return AllowApps(tuple(App(str(e["id"]), str(e.get("name", ""))) for e in entries))
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise RemoteViolation(Violation.BAD_MESSAGE, f"whitelist: {error!r}") from None


def read_notification(data: bytes) -> ShowNotification:
    """Accept every known host's keys; over 32 bits a time is in ms. Raises `RemoteViolation`."""
    inner = _object(data).get(_OUTER)
    if not isinstance(inner, dict):
        raise RemoteViolation(Violation.BAD_MESSAGE, f"a notification without {_OUTER}")
    at = inner.get("time_s", 0)
    try:
        seconds = int(at) // 1000 if int(at) >= 1 << 32 else int(at)
        return ShowNotification(
            App(str(inner.get("app_identifier", "")), str(inner.get("display_name", ""))),
            str(inner.get("title", "")),
            str(inner.get("message", "")),
            str(inner.get("subtitle", "")),
            seconds,
            _number(inner.get("msg_id")),
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise RemoteViolation(Violation.BAD_MESSAGE, f"notification: {error}") from None


def _number(msg_id: object) -> int:
    known = isinstance(msg_id, int) and not isinstance(msg_id, bool) and 0 <= msg_id < 1 << 32
    return int(msg_id) if known else 0  # type: ignore[call-overload]


def _lower(entry: dict[str, Any]) -> dict[str, Any]:
    return {key.lower(): value for key, value in entry.items()}
