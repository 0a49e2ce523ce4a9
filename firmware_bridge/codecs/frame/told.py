"""What happens at simulated glasses as packets, which a running program sends, or the prompt."""

from collections.abc import Iterator
from typing import Final

from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.codecs.frame.wire import BAD_PHOTO, DATA, From, swapped
from firmware_bridge.errors import LocalMisuse
from firmware_bridge.messages import (
    Command,
    Event,
    Gesture,
    Gestured,
    MicrophoneChunk,
    PhotoFailed,
    PhotoTaken,
    Reply,
)

SECOND_TAP_S: Final = 0.12
_HEAD: Final = {Gesture.HEAD_UP: 1, Gesture.HEAD_DOWN: 0}
_CLICK: Final = {Gesture.BUTTON: 1, Gesture.BUTTON_LONG: 3}
_TAPS: Final = {Gesture.TAP: 1, Gesture.DOUBLE_TAP: 2}


def by_program(
    message: Command | Event | Reply, device: FrameDevice, max_packet: int
) -> Iterator[tuple[float, bytes]]:
    """Yield each packet of a running program, and in how many seconds it is sent. Raises
    `LocalMisuse` for what these glasses do not have.
    """
    ours = device.program is not None and bool(device.program.build)
    halo, monocle = device.hardware.is_halo, device.hardware.is_monocle
    match message:
        case Gestured(gesture) if gesture in _TAPS:
            code = From.TAP if ours else device.dialect.tap
            kinds = halo and device.dialect.tap_kinds
            yield from _taps(code, _TAPS[gesture], kinds=kinds)
        case Gestured(gesture) if gesture in _HEAD and ours and not monocle:
            yield 0.0, bytes((DATA, From.HEAD, _HEAD[gesture]))
        case Gestured(gesture) if gesture in _CLICK and (
            halo or (monocle and gesture is Gesture.BUTTON)
        ):
            yield 0.0, bytes((DATA, From.CLICK, _CLICK[gesture]))
        case MicrophoneChunk(frames=frames):
            sound = b"".join(frames)
            sound = swapped(sound) if monocle else sound
            yield from _pieces(From.SOUND, sound, (max_packet - 2) // 2 * 2)
        case PhotoTaken(jpeg=jpeg):
            yield from _pieces(From.PHOTO, jpeg, max_packet - 2)
            yield 0.0, end_of_photo(len(jpeg), ours=ours)
        case PhotoFailed(detail=why):
            yield 0.0, f"Error in photo: {why}".encode()[:max_packet]
            yield 0.0, end_of_photo(BAD_PHOTO, ours=ours)
        case _:
            name = device.hardware.name
            raise LocalMisuse(f"a {name} never says {type(message).__name__}")


def by_prompt(
    message: Command | Event | Reply, device: FrameDevice, max_packet: int
) -> Iterator[tuple[float, bytes]]:
    """Yield what functions of the maker's SDK send while no program runs."""
    match message:
        case PhotoTaken(jpeg=jpeg):
            room = max_packet - 2
            count = -(-len(jpeg) // room)
            yield from _pieces(From.LONG_DATA, jpeg, room)
            yield 0.0, bytes((DATA, From.LONG_DATA_END)) + str(count).encode()
        case MicrophoneChunk(frames=frames) if device.records is not None:
            sound = b"".join(frames)
            eight_bits = device.records[1] == 8
            room = (max_packet - 5) // 2 * 2
            yield from _pieces(From.SOUND, sound[1::2] if eight_bits else sound, room)
        case Gestured(gesture) if device.taps and gesture in _TAPS:
            yield from _taps(From.SDK_TAP, _TAPS[gesture], kinds=False)


def _taps(code: int, count: int, *, kinds: bool) -> Iterator[tuple[float, bytes]]:
    """Yield one packet that says how many taps there were, or one for each."""
    if kinds:
        yield 0.0, bytes((DATA, code, count))
        return
    for index in range(count):
        yield index * SECOND_TAP_S, bytes((DATA, code))


def _pieces(code: int, data: bytes, room: int) -> Iterator[tuple[float, bytes]]:
    for at in range(0, len(data), room):
        yield 0.0, bytes((DATA, code)) + data[at : at + room]


def end_of_photo(size: int, *, ours: bool) -> bytes:
    """Return the end of a photo: our program says its length in it."""
    return bytes((DATA, From.PHOTO_END)) + (size.to_bytes(4, "big") if ours else b"")
