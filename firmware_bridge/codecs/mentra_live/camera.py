"""One photo of a Mentra Live: the order, what the glasses say about it, and the file that comes."""

from typing import Final

from firmware_bridge.codecs.mentra_live.files import (
    MOST_ASKED,
    IncomingFile,
    is_too_large,
    kind_of,
)
from firmware_bridge.codecs.mentra_live.layers import Json, number, text
from firmware_bridge.codecs.mentra_live.wire import FilePacket
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import MAX_PHOTO_BYTES, PhotoFailed, PhotoTaken, TakePhoto

READY_S: Final = 45.0
"""Seconds until the file begins: 12.4 s were logged, of which 5 are for coding it (DOC)."""
LONGEST_S: Final = 180.0
"""Seconds for a photo in all, however slowly it comes."""
QUIET_S: Final = 2.0
"""Seconds without a packet after which the missing ones are asked for."""
ROUNDS: Final = 8
"""How often missing packets are asked for without any coming."""
_BUSY: Final = frozenset({"CAMERA_BUSY", "BLE_TRANSFER_BUSY", "UPLOAD_SYSTEM_BUSY"})
_ABOUT_REQUEST: Final = frozenset(
    {
        "ble_photo_ready",
        "photo_status",
        "photo_response",
        "photo_error_response",
        "ble_photo_error",
        "ble_photo_complete",
    }
)
_ABOUT_FILE: Final = frozenset({"file_announce", "transfer_timeout", "transfer_failed"})


class PhotoOrder:
    """One photo, from the order to the file or the reason why there is none. Used once."""

    def __init__(self, number: int, command: TakePhoto, now: float) -> None:
        self.number = number
        self.photo = command.photo
        self._due = now + READY_S
        self._end = now + LONGEST_S
        self._size = command.size
        self._request = f"glassd-{command.photo}-{int(now * 1000)}"
        self._file_name = f"I{int(now * 1000) % 10**9:09d}"
        self._file: IncomingFile | None = None
        self._announced = 0
        self._begun = False
        self._rounds = 0
        self._unanswered = number
        self._say: list[Json] = []

    @property
    def due(self) -> float:
        """When `wait_is_over` must be called."""
        return min(self._due, self._end)

    def message(self) -> Json:
        """Return the order: the photo shall come over Bluetooth, without a detour over Wi-Fi."""
        return {
            "type": "take_photo",
            "requestId": self._request,
            "appId": "glassd",
            "webhookUrl": "",
            "authToken": "",
            "size": self._size.value,
            "compress": "none",
            "flash": True,
            "sound": True,
            "bleImgId": self._file_name,
            "transferMethod": "ble",
        }

    def accept(self) -> int:
        """Return the number of the command if it was not answered yet, else 0."""
        unanswered, self._unanswered = self._unanswered, 0
        return unanswered

    def say(self) -> list[Json]:
        """Return what must be said to the glasses now."""
        said, self._say = self._say, []
        return said

    # -------------------------------------------------------------- news

    def is_news(self, kind: str, message: Json) -> bool:
        """Return whether a message is about this photo."""
        if kind in _ABOUT_REQUEST:
            ours = {self._request, self._file_name}
            return bool({text(message, "requestId"), text(message, "bleImgId")} & ours)
        return kind in _ABOUT_FILE and self.is_mine(text(message, "fileName"))

    @property
    def expected(self) -> int:
        """The number of the first packet that is not there."""
        return 0 if self._file is None else self._file.expected

    def is_mine(self, file_name: str) -> bool:
        return file_name.partition(".")[0] == self._file_name

    def news(self, kind: str, message: Json, now: float) -> PhotoFailed | None:
        """Process such a message; return the failure, if it is one."""
        self._due = max(self._due, now + QUIET_S)
        if kind == "file_announce":
            count = number(message.get("totalPackets"), 1, 0xFFFF) or 0
            if count != self._announced:  # else it is sent again, and what came stays
                self._announced, self._file = count, None
        elif kind == "ble_photo_ready":
            self._begun = True
        if problem := _problem(kind, message):
            return None if self._is_echo(message) else self.fail(problem, now)
        return None

    def _is_echo(self, message: Json) -> bool:
        """Return whether a refusal is about our own order, repeated while the first is followed."""
        return self._begun and text(message, "error_code", text(message, "errorCode")) in _BUSY

    def fail(self, why: str, now: float) -> PhotoFailed:
        """Give the photo up, and let the glasses forget its file."""
        self._finish(now, success=False)
        return PhotoFailed(self.photo, why)

    def _finish(self, now: float, *, success: bool) -> None:
        name = self._file.name if self._file is not None else self._file_name
        told = {"fileName": name, "success": success, "timestamp": int(now * 1000)}
        self._say = [{"type": "transfer_complete", **told}]

    # -------------------------------------------------------------- the file

    def packet(self, packet: FilePacket, now: float) -> PhotoTaken | PhotoFailed | None:
        """Take a packet; return the photo when it is whole. Raises `RemoteViolation`."""
        if is_too_large(packet):
            detail = f"a photo of {packet.file_size} bytes; at most {MAX_PHOTO_BYTES}"
            raise RemoteViolation(Violation.OVERSIZED, detail)
        if self._file is None:
            self._file = IncomingFile(packet.name, packet.file_size, count=self._announced)
        self._begun = True
        if self._file.add(packet):
            self._rounds = 0
        self._due = now + QUIET_S
        if not self._file.missing and self._file.is_sure:
            return self._whole(self._file, now)
        if self._file.is_last(packet.index) and self._file.missing:
            return self._ask(self._file, now)
        return None

    def _ask(self, file: IncomingFile, now: float) -> PhotoFailed | None:
        """Ask for missing packets, unless that was done often without any coming."""
        missing = file.missing
        self._rounds += 1
        if self._rounds > ROUNDS:
            lost = f"{len(missing)} of {file.count} packets of the picture never came"
            return self.fail(lost, now)
        asked = {"fileName": file.name, "missingPackets": missing[:MOST_ASKED]}
        self._say = [{"type": "request_missing_packets", **asked}]
        self._due = now + QUIET_S
        return None

    def _whole(self, file: IncomingFile, now: float) -> PhotoTaken | PhotoFailed:
        picture = file.data()
        if not kind_of(picture):
            return self.fail("what came is neither a JPEG nor an AVIF picture", now)
        self._finish(now, success=True)
        return PhotoTaken(self.photo, picture)

    def wait_is_over(self, now: float) -> PhotoTaken | PhotoFailed | None:
        """Nothing came for a while: ask for what is missing, or give up."""
        if now >= self._end:
            return self.fail(f"the picture did not come within {LONGEST_S:g} s", now)
        if self._file is None:
            return self.fail("the glasses sent no picture", now)
        if not self._file.missing:
            return self._whole(self._file, now)
        return self._ask(self._file, now)


def _problem(kind: str, message: Json) -> str:
    """Return why a photo failed, in the words of the glasses; "" if it did not."""
    failed = kind in {"photo_error_response", "ble_photo_error", "transfer_failed"}
    failed = failed or kind == "transfer_timeout" or message.get("state") == "error"
    failed = failed or (kind != "photo_status" and message.get("success") is False)
    if not failed:
        return ""
    error = message.get("error")
    nested = error if isinstance(error, dict) else {}
    words = (
        text(message, "error_message"),
        text(message, "errorMessage"),
        text(nested, "message"),
        text(message, "error"),
        text(message, "reason"),
        text(message, "error_code"),
        text(message, "errorCode"),
    )
    return next((word for word in words if word), f"the glasses said {kind}")
