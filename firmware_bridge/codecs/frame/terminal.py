"""MicroPython of the simulated Monocle: its prompt in both modes, files, and which program runs.

It runs no Python: it knows the statements that hosts type, and our program by its build.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from firmware_bridge.codecs.frame.device import MAX_FILE_BYTES, FrameDevice, LuaProgram
from firmware_bridge.codecs.frame.hardware import MONOCLE, FrameHardware
from firmware_bridge.messages import MAX_LINES, Gesture

FIRMWARE: Final = "v23.248.0754"
BANNER: Final = "raw REPL; CTRL-B to exit\r\n>"
FRIENDLY: Final = (
    f"MicroPython {FIRMWARE} on 2023-09-05; Monocle with nRF52832\r\n"
    'Type "help()" for more information.\r\n>>> '
)
MAX_TYPED: Final = 16 * 1024
"""Bytes of a statement; the real heap has little more."""
RAW, FRIENDLY_MODE, BREAK, END, SAFE = 0x01, 0x02, 0x03, 0x04, 0x1C
_MODULES: Final = frozenset(
    "bluetooth camera device display gc led microphone os sys time touch".split()
)
_BUILD: Final = re.compile(r'^BUILD = b"([0-9a-f]{8})"$', re.MULTILINE)
_PADS: Final = {"touch.A": Gesture.TAP, "touch.B": Gesture.BUTTON}

Value = object


class Trouble(Exception):
    """An exception of the simulated MicroPython: its name and text."""


@dataclass
class MonocleDevice(FrameDevice):
    """What outlives a connection. `touches`: what a pad prints, as a host wants it."""

    hardware: FrameHardware = MONOCLE
    touches: dict[Gesture, str] = field(default_factory=dict)
    brightness: int | None = None
    """Set by a statement, not yet carried out."""
    raw: bool = False
    started: bool = False
    """Whether a program was started, and this is not reported yet."""
    typed: bytearray = field(default_factory=bytearray)
    _file: str | None = None

    @property
    def firmware(self) -> str:
        return FIRMWARE

    # -------------------------------------------------------------- what is typed

    def take(self, data: bytes) -> Iterator[str]:
        """Take what a host types; yield what is answered."""
        for byte in data:
            if byte == BREAK:
                yield from self._break()
            elif self.program is not None:
                continue  # nobody reads it before the program ends
            elif byte == RAW:
                self.raw = True
                self.typed.clear()
                yield BANNER
            elif byte == FRIENDLY_MODE and self.raw:
                self.raw = False
                yield "\r\n" + FRIENDLY
            elif byte == SAFE and not self.typed:
                yield from self.reboot(main=False)
            elif byte == END and not self.typed:
                yield from self.reboot(main=True)
            elif byte == (END if self.raw else 0x0D):
                yield from self._enter()
            elif len(self.typed) < MAX_TYPED and (self.raw or byte != 0x0A):
                self.typed.append(byte)
                yield "" if self.raw else chr(byte)

    def _break(self) -> Iterator[str]:
        self.typed.clear()
        if self.program is None:
            yield "" if self.raw else "\r\n>>> "
            return
        self.program = None
        yield self._ended('  File "<stdin>", line 1, in <module>\r\nKeyboardInterrupt: ')

    def _ended(self, problem: str) -> str:
        text = f"Traceback (most recent call last):\r\n{problem}\r\n" if problem else ""
        return f"\x04{text}\x04>" if self.raw else f"{text}>>> "

    def reboot(self, *, main: bool) -> Iterator[str]:
        """Restart, with main.py unless in safe mode."""
        self.reset()
        self.program, self._file, self.raw = None, None, False
        self.typed.clear()
        self.touches.clear()
        if main and "main.py" in self.files:
            self._begin("main.py")
        else:
            yield FRIENDLY

    def _enter(self) -> Iterator[str]:
        """Run what was typed."""
        code, self.typed = bytes(self.typed), bytearray()
        yield "OK" if self.raw else "\r\n"
        problem = ""
        try:
            tree = ast.parse(code.replace(b"\r\n", b"\n").decode("utf-8", "replace"))
            for statement in tree.body:
                yield from self._run(statement)
        except Trouble as trouble:
            problem = f'  File "<stdin>", line 1, in <module>\r\n{trouble}'
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            problem = '  File "<stdin>", line 1\r\nSyntaxError: invalid syntax'
        if self.program is None:
            yield self._ended(problem)

    # -------------------------------------------------------------- statements

    def _run(self, statement: ast.stmt) -> Iterator[str]:
        """Run one statement; yield what it prints. Raises `Trouble`."""
        match statement:
            case ast.Import(names=names):
                for name in names:
                    self._import(name.name)
            case ast.Assign(targets=[ast.Name()], value=value):
                self._value(value)
            case ast.Expr(value=ast.Call(func=ast.Name("print"), args=values)):
                yield " ".join(str(self._value(each)) for each in values) + "\r\n"
            case ast.Expr(value=value):
                self._value(value)
            case _:
                raise Trouble("RuntimeError: the simulated prompt has no such statement")

    def _import(self, name: str) -> None:
        if name in _MODULES:
            return
        if f"{name}.py" not in self.files:
            raise Trouble(f"ImportError: no module named '{name}'")
        source = self.files[f"{name}.py"]
        try:
            ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise Trouble("SyntaxError: invalid syntax") from None
        if not _BUILD.search(source):
            self._begin(f"{name}.py")  # the program of somebody else

    def _begin(self, file: str) -> None:
        build = _BUILD.search(self.files[file])
        self.program = LuaProgram(build[1] if build else "")
        self.started = True

    def _value(self, node: ast.expr) -> Value:
        """Return the value of an expression. Raises `Trouble`."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self._value(each) for each in items]
            case ast.Lambda(body=ast.Call(func=ast.Name("print"), args=[ast.Constant(str(text))])):
                return text
            case ast.Call(func=func, args=values):
                known = _CALLS.get(ast.unparse(func))
                if known is not None:
                    return known(self, [self._value(each) for each in values])
                if match := re.fullmatch(r"(\w+)\.run", ast.unparse(func)):
                    self._start(match[1])
                    return None
            case ast.Attribute():
                return self.firmware if ast.unparse(node) == "device.VERSION" else ast.unparse(node)
        raise Trouble(f"NameError: name '{ast.unparse(node)[:40]}' isn't defined")

    def _start(self, module: str) -> None:
        source = self.files.get(f"{module}.py", "")
        if "\ndef run():\n" not in source or not source.endswith("time.sleep_ms(POLL_MS)\n"):
            raise Trouble("AttributeError: 'module' object has no attribute 'run'")  # in part
        self._begin(f"{module}.py")

    def open(self, values: list[Value]) -> None:
        match values:
            case [str(name), "w" | "wb"] if 0 < len(name) <= 64:
                problem = self.begin_file(name)
                if problem:
                    raise Trouble("OSError: 28")
                self._file = name
            case _:
                raise Trouble("OSError: [Errno 2] ENOENT")

    def write_file(self, values: list[Value]) -> None:
        match values:
            case [bytes(data)] if self._file is not None:
                more = data.decode("utf-8", "replace")
            case [str(more)] if self._file is not None:
                pass
            case _:
                raise Trouble("NameError: name 'f' isn't defined")
        if len(self.files[self._file]) + len(more) > MAX_FILE_BYTES:
            raise Trouble("OSError: 28")
        self.files[self._file] += more

    def close(self, _values: list[Value]) -> None:
        self._file = None

    def show(self, values: list[Value]) -> None:
        """Replace what is on the lens."""
        self.clear()
        for value in values[0] if len(values) == 1 and _is_list(values[0]) else values:  # type: ignore[attr-defined]
            match value:
                case [str(text), int(x), int(y), *_] if len(self.lines) < MAX_LINES:
                    self.lines.append(self.line_at(text, x + 1, y + 1))
                case _:
                    raise Trouble("TypeError: object isn't printable")
        self.wants_show = True

    def blank(self, _values: list[Value]) -> None:
        self.show([])

    def callback(self, values: list[Value]) -> None:
        match values:
            case [str(pad), str(text)] if pad in _PADS:
                self.touches[_PADS[pad]] = text
            case [str(pad), None] if pad in _PADS:
                self.touches.pop(_PADS[pad], None)
            case _:
                raise Trouble("ValueError: must be touch.A, touch.B, touch.BOTH, touch.EITHER")

    def set_brightness(self, values: list[Value]) -> None:
        match values:
            case [int(level)] if 0 <= level <= 4:
                self.brightness = level
            case _:
                raise Trouble("ValueError: brightness must be 0 to 4")


def _is_list(value: Value) -> bool:
    return isinstance(value, list) and not (value and isinstance(value[0], str))


def _text(_device: MonocleDevice, values: list[Value]) -> Value:
    return values


def _nothing(_device: MonocleDevice, _values: list[Value]) -> Value:
    return None


_CALLS: Final[dict[str, Callable[[MonocleDevice, list[Value]], Value]]] = {
    "open": MonocleDevice.open,
    "f.write": MonocleDevice.write_file,
    "f.close": MonocleDevice.close,
    "display.Text": _text,
    "display.show": MonocleDevice.show,
    "display.clear": MonocleDevice.blank,
    "display.brightness": MonocleDevice.set_brightness,
    "touch.callback": MonocleDevice.callback,
    "device.battery_level": lambda device, _: device.battery,
    "device.is_charging": lambda device, _: device.charging,
    "gc.collect": _nothing,
    "sys.modules.pop": _nothing,
}
"""Functions that have an effect here."""
