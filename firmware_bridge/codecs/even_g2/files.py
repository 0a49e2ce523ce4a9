"""Files of the Even G2: the list of apps, and notifications, as JSON over the file service."""

import json
import struct
import time
from typing import Any, Final

from firmware_bridge.codecs.even_g2.lanes import ANSWER_S, Exchange, Flow
from firmware_bridge.codecs.even_g2.wire import ANSWER, MAX_MESSAGE, Sid
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import MAX_APPS, AllowApps, App, Done, Failed, ShowNotification

NAME: Final = b"user/notify_whitelist.json"
WHITELIST: Final = 0
NOTIFICATION: Final = 1
START: Final = 0
BEGIN: Final = 1
DATA: Final = 1
END: Final = 2
_OK: Final = (0, 1)
_HEAD: Final = struct.Struct("<BIII80s")
_NEEDED: Final = 13
"""Bytes before the name, which hosts pad to 80 bytes."""
_POLYNOMIAL: Final = 0x1EDC6F41
_MASK: Final = 0xFFFFFFFF


def _entry(byte: int) -> int:
    value = byte << 24
    for _ in range(8):
        value = (value << 1 ^ _POLYNOMIAL if value >> 31 else value << 1) & _MASK
    return value


_TABLE: Final = tuple(map(_entry, range(256)))


def checksum(data: bytes) -> int:
    """Return the CRC-32 with the Castagnoli polynomial, most significant bit first, from 0."""
    value = 0
    for byte in data:
        value = (value << 8 ^ _TABLE[value >> 24 ^ byte]) & _MASK
    return value


def send(command: AllowApps | ShowNotification, offset_s: int = 0) -> Flow:
    """Return the flow that sends a file. `offset_s`: by how much the wearer's time is ahead of UTC.
    Raises `CommandRefused` if it is too large.
    """
    if isinstance(command, AllowApps):
        text = _whitelist(command)
    else:
        text = _notification(command, offset_s)
    file = json.dumps(text, ensure_ascii=False, separators=(",", ":")).encode()
    if len(file) > MAX_MESSAGE:
        raise CommandRefused("too_big", f"a file of {len(file)} bytes; at most {MAX_MESSAGE}")
    return _transfer(WHITELIST if isinstance(command, AllowApps) else NOTIFICATION, file)


def _transfer(kind: int, file: bytes) -> Flow:
    head = _HEAD.pack(START, kind, len(file), checksum(file), NAME)
    steps = (
        Exchange(Sid.FILE, raw=head, answer=START, flag=ANSWER),
        Exchange(Sid.FILE, raw=bytes([BEGIN]), flag=ANSWER),
        Exchange(Sid.FILE_DATA, raw=file, answer=DATA, flag=ANSWER, timeout_s=2 * ANSWER_S),
        Exchange(Sid.FILE, raw=bytes([END]), answer=END, flag=ANSWER),
    )
    for step in steps:
        answer = yield step
        if step.answer is None:
            continue
        if answer is None:
            return None
        if answer.result or answer.raw[1:2] not in {bytes([status]) for status in _OK}:
            return Failed("busy", f"the glasses refused the file: {answer.raw.hex()}")
    return Done()


def _whitelist(command: AllowApps) -> dict[str, Any]:
    apps = [{"id": app.id, "name": app.name} for app in command.apps]
    switches = dict.fromkeys(("calendar_enable", "call_enable", "msg_enable"), False)
    listed = {"enable": True, "list": apps}
    return {**switches, "ios_mail_enable": False, "app": listed}


def _notification(command: ShowNotification, offset_s: int) -> dict[str, Any]:
    local = time.gmtime(command.at + offset_s) if command.at else None
    body = {
        "msg_id": command.number or command.at & 0xFFFF,
        "action": 0,
        "app_identifier": command.app.id,
        "title": command.title,
        "subtitle": command.subtitle,
        "message": command.text,
        "time_s": command.at,
        "date": time.strftime("%Y%m%dT%H%M%S", local) if local else "",
        "display_name": command.app.name,
    }
    return {"android_notification": body}


# ------------------------------------------------------------------ the glasses' side


class FileIn:
    """Receives one file at a time; answers what `answer` returns."""

    def __init__(self) -> None:
        self._head: tuple[int, int, int] | None = None
        self._file: bytes | None = None

    def command(self, payload: bytes) -> bytes | None:
        """Process a message of C4; return its answer, None for none. Raises `RemoteViolation`."""
        match payload[:1]:
            case b"\0":
                if len(payload) < _NEEDED:
                    detail = f"a file's head of {len(payload)} bytes; {_NEEDED} are needed"
                    raise RemoteViolation(Violation.TRUNCATED, detail)
                _, kind, size, crc, _ = _HEAD.unpack(payload[: _HEAD.size].ljust(_HEAD.size, b"\0"))
                self._head, self._file = (kind, size, crc), None
                return bytes((START, 0))
            case b"\x02":
                return bytes((END, 0 if self._file is not None else 7))
        return None

    def data(self, file: bytes) -> bytes:
        """Process the file itself; return the answer."""
        if self._head is None or (len(file), checksum(file)) != self._head[1:]:
            return bytes((DATA, 2))
        self._file = file
        return bytes((DATA, 0))

    def take(self) -> AllowApps | ShowNotification | None:
        """Return the command of a whole file, once. Raises `RemoteViolation`."""
        head, file = self._head, self._file
        self._head = self._file = None
        if head is None or file is None:
            return None
        try:
            text = json.loads(file)
            return _read_whitelist(text) if head[0] == WHITELIST else _read_notification(text)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"a file: {error}") from None


def _read_whitelist(text: Any) -> AllowApps:
    listed = text["app"]["list"][: MAX_APPS + 1]
    return AllowApps(tuple(App(str(app["id"]), str(app["name"])) for app in listed))


def _read_notification(text: Any) -> ShowNotification:
    body = text["android_notification"]
    app = App(str(body["app_identifier"]), str(body.get("display_name", "")))
    words = {key: str(body.get(key, "")) for key in ("title", "message", "subtitle")}
    return ShowNotification(
        app, words["title"], words["message"], words["subtitle"], int(body.get("time_s", 0))
    )
