"""The Lua machine of the simulated Frame or Halo: files, prompt, and which program runs.

It runs no Lua: it knows the sentences that hosts type, and our program by its build.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.frame.hardware import FRAME, FrameHardware
from firmware_bridge.codecs.frame.wire import (
    LEAVE,
    MAX_MESSAGE,
    REBOOT,
    REMOVE_ALL,
    REMOVE_MAIN,
    Capture,
    MessageBuffer,
    Sprite,
    unescape,
)
from firmware_bridge.messages import MAX_LINES, TextLine, Tile
from firmware_bridge.own_commands import MotionRead

STILL: Final = MotionRead((0.0, 0.0, 1.0), magnetism=(20.0, 0.0, -40.0))
"""Glasses that lie on a table."""
FIRMWARE: Final = "v24.179.0818"
HALO_FIRMWARE: Final = "0.8.20"
MAX_FILES: Final = 32
MAX_FILE_BYTES: Final = 64 * 1024
OUR_LIMIT: Final = 8192
"""Bytes of a message that our program takes."""
_OPEN: Final = re.compile(r"f=frame\.file\.open\('([^']{1,64})','w'\);print\((.*)\)")
_WRITE: Final = re.compile(r'f:write\("(.*)"\);print\((.*)\)', re.DOTALL)
_CLOSE: Final = re.compile(r"f:close\(\);print\((.*)\)")
_REQUIRE: Final = re.compile(r"require\(['\"]([\w./-]{1,64})['\"]\)")
_PRINT: Final = re.compile(r"print\((.*)\)", re.DOTALL)
_ARGUMENT: Final = re.compile(r"""(?:'(?:\\.|[^'])*'|"(?:\\.|[^"])*"|\([^)]*\)|[^,'"(])+""")
"""Each is printed by itself, with a tab between two."""
_CALLS: Final = re.compile(r"(frame\..*?)(?:;print\(([^;]*)\))?", re.DOTALL)
_TEXT: Final = re.compile(r"""frame\.display\.text\((['"])(.*?)\1, ?(\d{1,3}), ?(\d{1,3})""")
_SHOW: Final = "frame.display.show()"
_CLEAR: Final = "frame.display.clear("
_BUILD: Final = re.compile(r'BUILD = "([0-9a-f]{8})"')


class FrameDialect(Struct, frozen=True):
    """What programs of other hosts do, where their sources differ; ours is always the same. And
    what the firmware of a Halo does: `tap_kinds` says which taps belong together, `counts_sound`
    counts what the speaker played, `microphone` is free, not used by LE Audio.
    """

    tap: int = 0x09
    acknowledgement: bytes = b"\x00"
    """after the first byte; b"" for none"""
    compress_byte: bool = True
    tap_kinds: bool = True
    counts_sound: bool = True
    microphone: bool = True


@dataclass(slots=True)
class LuaProgram:
    """A running program. `build`: its number if it is glassd's, "" if another host's."""

    build: str
    buffer: MessageBuffer = field(init=False)

    def __post_init__(self) -> None:
        self.buffer = MessageBuffer(OUR_LIMIT if self.build else MAX_MESSAGE)


@dataclass
class FrameDevice:
    """What outlives a connection: files, the running program, the back buffer, battery."""

    dialect: FrameDialect = field(default_factory=FrameDialect)
    hardware: FrameHardware = FRAME
    battery: int = 87
    charging: bool = False
    head_angle: int = 25
    motion: MotionRead = STILL
    """What the motion sensor reads."""
    left: bool = False
    """Whether a Halo has left Lua: nothing runs before it is rebooted."""
    files: dict[str, str] = field(default_factory=dict)
    program: LuaProgram | None = None
    uploads: int = 0
    """Files written so far."""
    lines: list[TextLine] = field(default_factory=list)
    tiles: list[Tile] = field(default_factory=list)
    letters: int = 0
    sprites: dict[int, Sprite] = field(default_factory=dict)
    wants_show: bool = False
    """Whether a text at the prompt has shown what was drawn."""
    functions: set[str] = field(default_factory=set)
    """Lua functions that the maker's SDK has stored."""
    stores_data: bool = False
    """Whether data goes into the file that is open, as the maker's SDK writes files."""
    photo: Capture | None = None
    """A photo that the maker's SDK has asked for at the prompt."""
    records: tuple[int, int] | None = None
    """Rate in Hz and bits of the sound that a function of the maker's SDK sends until a break."""
    taps: bool = False
    """Whether taps are reported as the maker's SDK wants them."""
    _writing: str | None = None

    @property
    def dirty(self) -> bool:
        """Whether something is drawn and not shown."""
        return bool(self.lines or self.tiles)

    def clear(self) -> None:
        """Empty the back buffer."""
        self.lines, self.tiles, self.letters = [], [], 0

    def stop(self) -> str | None:
        """Break the running program; return what is printed then."""
        if self.program is None:
            return None
        self.program = None
        if self.hardware.is_halo:
            return '[string "require"]:1: error executing module: interrupted'
        return '[string "require"]:1: break signal'

    @property
    def firmware(self) -> str:
        return HALO_FIRMWARE if self.hardware.is_halo else FIRMWARE

    def control(self, byte: bytes) -> list[str]:
        """Carry out a control of Halo, other than a break; return what is printed."""
        if byte == REMOVE_MAIN:
            self.files.pop("main.lua", None)
        elif byte == REMOVE_ALL:
            self.files.clear()
            return []
        elif byte == REBOOT:
            self.left = False
        self.program = None
        if byte == LEAVE:
            self.left = True
        return [] if self.left else self.reset()

    def reset(self) -> list[str]:
        """Reset the Lua machine, unless a program runs; return what is printed."""
        if self.program is not None:
            return []
        self._writing, self.photo = None, None
        self.stores_data = self.taps = False
        self.functions.clear()
        self.clear()
        self.sprites.clear()
        return self._require("main") if "main.lua" in self.files else []

    def run(self, text: str) -> list[str]:
        """Run a text as the prompt does; return what is printed."""
        if found := _OPEN.fullmatch(text):
            return self._open(found[1], found[2])
        if found := _WRITE.fullmatch(text):
            return self._write(unescape(found[1]), found[2])
        if found := _CLOSE.fullmatch(text):
            self.end_file()
            return [self.value(found[1])]
        if found := _REQUIRE.fullmatch(text):
            return self._require(found[1])
        if found := _PRINT.fullmatch(text):
            values = [self.value(each) for each in _ARGUMENT.findall(found[1])]
            return [piece for value in values for piece in ("\t", value)][1:]
        if found := _CALLS.fullmatch(text):
            return self._call(found[1], found[2])
        return [self.error(text, "syntax error")]

    def _call(self, calls: str, printed: str | None) -> list[str]:
        """Call functions of the firmware: only text, `clear` and `show` have an effect here."""
        if _CLEAR in calls:
            self.clear()
        for _, text, x, y in _TEXT.findall(calls):
            if len(self.lines) < MAX_LINES:
                self.lines.append(self.line_at(unescape(text), int(x), int(y)))
        at_once = self.hardware.is_halo and "frame.display." in calls
        self.wants_show = _SHOW in calls or at_once
        return [] if printed is None else [self.value(printed)]

    def line_at(self, text: str, x: int, y: int) -> TextLine:
        """Return a text that was drawn at a place (from 1) as a line of the page."""
        left, top = self.place_at(x, y)
        return TextLine(top // self.hardware.line_height, text, left)

    def place_at(self, x: int, y: int) -> tuple[int, int]:
        """Return a place on the screen (from 1) as one of the page (from 0)."""
        return max(0, x - 1 - self.hardware.left), max(0, y - 1 - self.hardware.top)

    def _open(self, name: str, printed: str) -> list[str]:
        return [self.begin_file(name) or self.value(printed)]

    def begin_file(self, name: str) -> str:
        """Open a file for writing; return an error, or ""."""
        if len(self.files) >= MAX_FILES and name not in self.files:
            return self.error("frame.file.open", "no space left")
        self._writing, self.files[name] = name, ""
        self.uploads += 1
        return ""

    def end_file(self) -> None:
        self._writing = None

    def _write(self, text: str, printed: str) -> list[str]:
        return [self.write(text) or self.value(printed)]

    def write(self, text: str) -> str:
        """Write to the open file; return an error, or ""."""
        if self._writing is None:
            return self.error("f:write", "attempt to index a nil value (global 'f')")
        if self._writing not in self.files:  # a control byte removed it meanwhile
            return self.error("f:write", "no such file")
        if len(self.files[self._writing]) + len(text) > MAX_FILE_BYTES:
            return self.error("f:write", "no space left")
        self.files[self._writing] += text
        return ""

    def _require(self, module: str) -> list[str]:
        source = self.files.get(f"{module}.lua")
        if source is None:
            missing = f"module '{module}' not found"
            if self.hardware.is_halo:
                missing = f"cannot open file: {module}.lua"
            return [self.error(f"require('{module}')", missing)]
        build = _BUILD.search(source)
        if build and not source.endswith("end\n"):
            return [self.error(module, "'end' expected near <eof>")]  # stored in part
        self.program = LuaProgram(build[1] if build else "")
        return []

    def value(self, expression: str) -> str:
        """Return what printing an expression prints."""
        match expression.strip():
            case "frame.FIRMWARE_VERSION":
                return self.firmware
            case "frame.HARDWARE_VERSION":
                return "halo" if self.hardware.is_halo else "Frame"
            case "frame.battery_level()":
                return f"{float(self.battery)}"
            case quoted if len(quoted) > 1 and quoted[0] == quoted[-1] and quoted[0] in "'\"":
                return unescape(quoted[1:-1]).replace("\\x02", "\x02")
            case number if number.isdecimal():
                return number
        return "nil"

    @staticmethod
    def error(where: str, what: str) -> str:
        """Return an error as Lua prints it."""
        return f'[string "{where[:40]}"]:1: {what}'
