"""What the maker's SDK (frame-sdk 1.2.4) types at the prompt of the simulated Frame.

It stores Lua functions on the glasses and calls them by name; here the calls it makes for files,
text, rectangles, photos, taps and the microphone have their effect.
"""

import re
from collections.abc import Callable
from typing import Final

from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.codecs.frame.picture import tile_of
from firmware_bridge.codecs.frame.wire import HEIGHT, WIDTH, Capture, Sprite

QUALITIES: Final = ("VERY_LOW", "LOW", "MEDIUM", "HIGH", "VERY_HIGH")
_PRINTED: Final = re.compile(r"(.*?);?print\(([^;]*)\)", re.DOTALL)
_RECTANGLE: Final = (
    r"frame\.display\.bitmap\((\d{1,3}),(\d{1,3}),(\d{1,3}),2,(\d{1,2}),"
    r'(?:string\.rep\("\\xFF",(\d{1,5})\)|"\\xFF")\)'
)
MAX_TILES: Final = 256
_DARK: Final = 15
"""Palette offset of a rectangle that erases: it ends at the first colour, as in its `clear`."""
_DEFINED: Final = re.compile(r"function (\w+)\(")


def run(device: FrameDevice, text: str) -> list[str] | None:
    """Run a text; return what is printed, or None if it is none of the SDK's."""
    if found := re.fullmatch(r"print\((\w+) ~= nil\)", text):
        return ["true" if found[1] in device.functions else "false"]
    if found := re.fullmatch(
        r'r=frame\.file\.open\("/?(.+)","read"\);print\("o"\);r:close\(\)', text
    ):
        return ["o" if found[1] in device.files else device.error("open", "cannot open file")]
    if found := re.fullmatch(r"prntLng\((?:tostring\()?(.*?)\)?\)", text):
        return [device.value(found[1])]
    calls, printed = text, None
    if found := _PRINTED.fullmatch(text):
        calls, printed = found[1], found[2]
    for pattern, effect in _EFFECTS:
        if found := pattern.fullmatch(calls):
            problem = effect(device, found)
            if problem:
                return [problem]
            return [] if printed is None else [device.value(printed)]
    return None


def _open(device: FrameDevice, found: re.Match[str]) -> str:
    return device.begin_file(found[1])


def _receive(device: FrameDevice, found: re.Match[str]) -> str:
    device.stores_data = found[1] != "nil"
    return ""


def _close(device: FrameDevice, _found: re.Match[str]) -> str:
    device.end_file()
    return ""


def _remove(device: FrameDevice, found: re.Match[str]) -> str:
    removed = device.files.pop(found[1], None)
    return "" if removed is not None else device.error("remove", "cannot remove file")


def _require(device: FrameDevice, found: re.Match[str]) -> str:
    source = device.files.get(f"{found[1]}.lua")
    if source is None:
        return device.error("require", f"module '{found[1]}' not found")
    device.functions |= set(_DEFINED.findall(source))
    return ""


def _photo(device: FrameDevice, found: re.Match[str]) -> str:
    if found[1] not in QUALITIES or not 100 <= int(found[2]) <= 720:
        return device.error("cameraCaptureAndSend", "bad argument")
    device.photo = Capture(QUALITIES.index(found[1]), int(found[2]), int(found[3]))
    return ""


def _rectangles(device: FrameDevice, found: re.Match[str]) -> str:
    """Draw what it fills with one colour; each is lit fully."""
    for x, y, width, offset, count in re.findall(_RECTANGLE, found[0]):
        left, top, size = int(x) - 1, int(y) - 1, int(width)
        rows = 8 * int(count or 1) // size if size else 0
        fits = left >= 0 and top >= 0 and 0 < size <= WIDTH and 0 < rows <= HEIGHT
        if not fits or len(device.tiles) >= MAX_TILES:
            return device.error("bitmap", "bad argument")
        palette = bytes(3) + (bytes(3) if int(offset) == _DARK else b"\xff" * 3)
        pixels = b"\xff" * -(-size * rows // 8)
        device.tiles.append(tile_of(left, top, Sprite(size, rows, 1, palette, pixels)))
    return ""


def _show(device: FrameDevice, _found: re.Match[str]) -> str:
    device.wants_show = True
    return ""


def _record(device: FrameDevice, found: re.Match[str]) -> str:
    device.records = int(found[1]), int(found[2])
    return ""


def _taps(device: FrameDevice, found: re.Match[str]) -> str:
    device.taps = "\\x04" in found[1]
    return ""


def _nothing(_device: FrameDevice, _found: re.Match[str]) -> str:
    return ""


_EFFECTS: Final[tuple[tuple[re.Pattern[str], Callable[..., str]], ...]] = (
    (re.compile(r'w=frame\.file\.open\("/?([^"]+)","write"\)'), _open),
    (
        re.compile(r"frame\.bluetooth\.receive_callback\((nil|\(function\(d\)w:write\(d\)end\))\)"),
        _receive,
    ),
    (re.compile(r"w:close\(\)"), _close),
    (re.compile(r'frame\.file\.remove\("/?([^"]+)"\)'), _remove),
    (re.compile(r'require\("(lib-[^"]+)"\)'), _require),
    (
        re.compile(r"cameraCaptureAndSend\('(\w+)',[\d.nil]+,'\w+',(\d{1,4}),(-?\d{1,3})\)"),
        _photo,
    ),
    (re.compile(f"(?:{_RECTANGLE})+"), _rectangles),
    (re.compile(r"frame\.display\.show\(\)"), _show),
    (re.compile(r"microphoneRecordAndSend\((8000|16000),(8|16),nil\)"), _record),
    (re.compile(r"(.*)frame\.imu\.tap_callback\((?:on_tap|nil)\)", re.DOTALL), _taps),
    (re.compile(r"is_awake=.*|frame\.file\.mkdir\(.*\)", re.DOTALL), _nothing),
)
"""Statements, and what each does: it returns an error, or ""."""
