"""A photo on its way from the glasses."""

from typing import Final

from firmware_bridge.codecs.frame.wire import BAD_PHOTO
from firmware_bridge.messages import MAX_PHOTO_BYTES, PhotoFailed, PhotoTaken

QUIET_S: Final = 15.0
"""Seconds without a part of an expected photo; the exposure alone takes about one."""
_JPEG: Final = b"\xff\xd8"


class PhotoIn:
    """One photo that was asked for. Used once."""

    def __init__(self, number: int, now: float, *, turned: int) -> None:
        self.number = number
        self._turned = turned
        self.due = now + QUIET_S
        """When it is given up."""
        self._jpeg = bytearray()

    def add(self, part: bytes, now: float) -> PhotoFailed | None:
        """Take a part; return the failure if the photo is too large."""
        self._jpeg += part
        self.due = now + QUIET_S
        if len(self._jpeg) <= MAX_PHOTO_BYTES:
            return None
        return self.failed(f"it has more than {MAX_PHOTO_BYTES} bytes")

    def end(self, data: bytes, problem: str) -> PhotoTaken | PhotoFailed:
        """Return the photo. `data`: its length, as our program says it; other programs say none.
        `problem`: what the glasses said before.
        """
        size = len(self._jpeg)
        told = int.from_bytes(data[:4], "big") if len(data) >= 4 else size
        if told == BAD_PHOTO:
            return self.failed(problem or "the camera took none")
        if told != size:
            return self.failed(f"{size} of its {told} bytes arrived")
        if not self._jpeg.startswith(_JPEG):
            return self.failed("what arrived is no JPEG")
        return PhotoTaken(self.number, bytes(self._jpeg), self._turned)

    def failed(self, why: str) -> PhotoFailed:
        return PhotoFailed(self.number, why)
