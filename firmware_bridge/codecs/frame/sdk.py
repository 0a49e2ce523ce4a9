"""What the maker's SDK (frame-sdk 1.2.4) types at the prompt of the simulated Frame.

It stores Lua functions on the glasses and calls them by name; here the calls it makes for files,
text, photos and taps have their effect.
"""

import re
from collections.abc import Callable
from typing import Final

from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.codecs.frame.wire import Capture

QUALITIES: Final = ("VERY_LOW", "LOW", "MEDIUM", "HIGH", "VERY_HIGH")
LONG_DATA: Final = 0x01
LONG_DATA_END: Final = 0x02
_PRINTED: Final = re.compile(r"(.*?);?print\(([^;]*)\)", re.DOTALL)
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
    (re.compile(r"(.*)frame\.imu\.tap_callback\((?:on_tap|nil)\)", re.DOTALL), _taps),
    (re.compile(r"is_awake=.*|frame\.file\.mkdir\(.*\)", re.DOTALL), _nothing),
)
"""Statements, and what each does: it returns an error, or ""."""
