"""Photos of the reference profile: cut into parts, and joined only when whole and in order."""

import pytest

from firmware_bridge.codec import NEED_DATA, Role
from firmware_bridge.codecs.reference.codec import ReferenceCodec
from firmware_bridge.codecs.reference.photos import MAX_PARTS, PART_BYTES, PhotoParts, split
from firmware_bridge.errors import LocalMisuse, RemoteViolation, Violation
from firmware_bridge.messages import MAX_PHOTO_BYTES, PhotoTaken

PHOTO = PhotoTaken(7, bytes(range(256)) * 300, 90)


@pytest.mark.parametrize("size", [0, 1, PART_BYTES, PART_BYTES + 1, MAX_PHOTO_BYTES])
def test_a_photo_of_any_size_is_joined_as_it_was(size):
    photo = PhotoTaken(1, bytes(size))
    parts = list(split(photo))
    assert len(parts) <= MAX_PARTS
    assert all(len(part.data) <= PART_BYTES for part in parts)
    join = PhotoParts()
    assert [join.add(part) for part in parts] == [None] * (len(parts) - 1) + [photo]


def test_a_missing_part_ends_the_photo():
    first, _second, third = split(PHOTO)
    join = PhotoParts()
    assert join.add(first) is None
    with pytest.raises(RemoteViolation) as refused:
        join.add(third)
    assert refused.value.reason is Violation.BAD_ORDER
    with pytest.raises(RemoteViolation):
        join.add(third)


def test_another_photo_may_begin_before_the_first_is_whole():
    join = PhotoParts()
    join.add(next(iter(split(PHOTO))))
    other = PhotoTaken(8, b"other")
    assert [join.add(part) for part in split(other)] == [other]


def test_parts_of_two_photos_are_not_mixed():
    join = PhotoParts()
    join.add(next(iter(split(PHOTO))))
    _, second, *_ = split(PhotoTaken(8, PHOTO.jpeg))
    with pytest.raises(RemoteViolation, match="mixed"):
        join.add(second)


def test_a_photo_crosses_the_codecs():
    central, glasses = (ReferenceCodec(role, max_packet=244) for role in Role)
    glasses.send(PHOTO, 0.0)
    for _ in range(2000):
        for packet in glasses.packets_to_send(0.0):
            central.receive_packet(packet, 0.0)
        event = central.next_event()
        if event is not NEED_DATA:
            break
        for packet in central.packets_to_send(0.0):
            glasses.receive_packet(packet, 0.0)
    assert event.message == PHOTO


def test_a_central_sends_no_photo():
    with pytest.raises(LocalMisuse):
        ReferenceCodec(Role.CENTRAL).send(PHOTO, 0.0)
