"""A photo of the reference profile: it comes in parts, because a message holds 64 KiB."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.reference.values import MAX_PHOTO_PART_BYTES as PART_BYTES
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import MAX_PHOTO_BYTES, PhotoTaken

MAX_PARTS: Final = MAX_PHOTO_BYTES // PART_BYTES


class PhotoPart(Struct, frozen=True):
    """One part of a photo, from 0, of so many `parts`."""

    photo: int
    data: bytes
    part: int = 0
    parts: int = 1
    turned: int = 0


def split(photo: PhotoTaken) -> Iterator[PhotoPart]:
    """Yield the parts of a photo in order."""
    parts = max(1, -(-len(photo.jpeg) // PART_BYTES))
    for part in range(parts):
        data = photo.jpeg[part * PART_BYTES : (part + 1) * PART_BYTES]
        yield PhotoPart(photo.photo, data, part, parts, photo.turned)


class PhotoParts:
    """Joins the parts of one photo at a time; one that began is dropped when another begins."""

    def __init__(self) -> None:
        self._parts: list[PhotoPart] = []

    def add(self, part: PhotoPart) -> PhotoTaken | None:
        """Return the photo with its last part, else None. Raises `RemoteViolation`."""
        if part.part == 0:
            self._parts = []
        expected = self._parts[0] if self._parts else part
        if part.part != len(self._parts) or part.part >= part.parts:
            self._parts = []
            detail = f"part {part.part} of {part.parts} of photo {part.photo} is out of order"
            raise RemoteViolation(Violation.BAD_ORDER, detail)
        if (part.photo, part.parts) != (expected.photo, expected.parts):
            self._parts = []
            raise RemoteViolation(Violation.BAD_ORDER, "parts of two photos are mixed")
        self._parts.append(part)
        if len(self._parts) < part.parts:
            return None
        jpeg, self._parts = b"".join(each.data for each in self._parts), []
        return PhotoTaken(part.photo, jpeg, part.turned)
