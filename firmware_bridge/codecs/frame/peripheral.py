"""Brilliant Labs Frame, peripheral role, for the simulator and the tests: prompt, single-slot
buffers, and the messages of our program or of another host's.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.frame import sdk
from firmware_bridge.codecs.frame.device import FIRMWARE, FrameDevice
from firmware_bridge.codecs.frame.photo import CAPTURES
from firmware_bridge.codecs.frame.picture import tile_of
from firmware_bridge.codecs.frame.wire import (
    BAD_PHOTO,
    BREAK,
    CARRIED_OUT,
    DATA,
    LINE_HEIGHT,
    RATES,
    REFUSED,
    RESET,
    Capture,
    From,
    To,
    read_capture,
    read_place,
    read_sprite,
    read_text,
)
from firmware_bridge.errors import LocalMisuse, RemoteViolation, Violation
from firmware_bridge.messages import (
    MAX_LINES,
    AudioFormat,
    BatteryChanged,
    Command,
    Done,
    Event,
    Failed,
    Gesture,
    Gestured,
    MicrophoneChunk,
    PhotoFailed,
    PhotoTaken,
    Reply,
    SetBrightness,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
)
from firmware_bridge.packets import MIN_PACKET, clamp_packet

MAX_WAITING: Final = 1024
"""Packets that may wait for the central."""
PROMPT_S: Final = 0.010
"""Seconds until the prompt takes a text: it looks every 10 ms."""
DATA_S: Final = 0.001
SECOND_TAP_S: Final = 0.12
STREAM: Final = 1
SCENE: Final = "frame"
MAX_TILES: Final = 256


class FramePeripheral:
    """One connection; implements `Codec[bytes]` in the peripheral role. `device` outlives it.

    Messages with an effect become commands with a number: execute them, then `send(Done() or
    Failed(…), re=number)`. `capture` is the last photo asked for.
    """

    def __init__(self, *, max_packet: int = MIN_PACKET, device: FrameDevice | None = None) -> None:
        self.device = device or FrameDevice()
        self.capture = Capture()
        self._max_packet = clamp_packet(max_packet)
        self._slots: dict[str, tuple[float, bytes]] = {}
        """The two buffers of one packet each: for the prompt, and for the program."""
        self._out: deque[bytes] = deque()
        self._later: deque[tuple[float, bytes]] = deque()
        self._inbox: deque[Incoming] = deque()
        self._number = 0
        self._recording = False
        self._waiting: dict[int, Callable[[Reply], None]] = {}

    def set_max_packet(self, size: int) -> None:
        """Set the size of one notification in bytes."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one packet: the Lua machine takes it a little later, and refuses it itself.
        Raises `RemoteViolation` for an empty one.
        """
        self.handle_timer(now)
        if not packet:
            raise RemoteViolation(Violation.TRUNCATED, "an empty packet")
        if packet == BREAK:
            self._stop_recording()
            self._print(self.device.stop())
        elif packet == RESET:
            for line in self.device.reset():
                self._print(line)
        elif packet[0] != DATA:
            self._slots["prompt"] = now + PROMPT_S, packet
        else:
            self._slots["program"] = now + DATA_S, packet[1:]

    def handle_timer(self, now: float) -> None:
        """Let the Lua machine take what waits, and send what is due."""
        while self._later and now >= self._later[0][0]:
            self._say(self._later.popleft()[1])
        due, text = self._slots.get("prompt", (now + 1, b""))
        if now >= due and self.device.program is None:
            del self._slots["prompt"]
            self._prompt(text.partition(b"\0")[0].decode("utf-8", "replace"))
        due, data = self._slots.get("program", (now + 1, b""))
        if now >= due:
            del self._slots["program"]
            self._receive(data)

    def next_timer(self) -> float | None:
        """The time when the Lua machine takes what waits, or None."""
        due = [self._later[0][0]] if self._later else []
        due += [
            due_at
            for name, (due_at, _) in self._slots.items()
            if name == "program" or self.device.program is None
        ]
        return min(due, default=None)

    def _prompt(self, text: str) -> None:
        printed = sdk.run(self.device, text)
        for line in self.device.run(text) if printed is None else printed:
            self._print(line)
        if self.device.wants_show:
            self.device.wants_show = False
            self._command(self._taken(), lambda _reply: None)
        if self.device.photo is not None:
            self.capture, self.device.photo = self.device.photo, None
            self._command(TakePhoto(1), lambda _reply: None)
        if self.device.records is not None and not self._recording:
            self._recording = True
            start = StartMicrophone(STREAM, AudioFormat.PCM16, self.device.records[0])
            self._command(start, lambda _reply: None)
        program = self.device.program
        if program is not None:
            if program.build:
                self._inform()
            else:
                self._print("running")

    def _stop_recording(self) -> None:
        """End the function that sends sound; nothing is said about it."""
        if self._recording:
            self._recording, self.device.records = False, None
            self._command(StopMicrophone(STREAM), lambda _reply: None)

    def _receive(self, data: bytes) -> None:
        program = self.device.program
        if program is None:
            if self.device.stores_data:
                self._print(self.device.write(data.decode("utf-8", "replace")))
            return
        try:
            whole = program.buffer.add(data)
            if whole is None:
                self._acknowledge()
            else:
                self._message(*whole)
        except (RemoteViolation, ValueError) as error:
            self._refuse(str(error))

    def _acknowledge(self) -> None:
        if self.device.dialect.acknowledges or self._ours:
            self._say(CARRIED_OUT)

    def _refuse(self, why: str) -> None:
        self._print(f"Error in data accumulator: {why}"[: self._max_packet])
        self._say(REFUSED)

    @property
    def _ours(self) -> bool:
        return self.device.program is not None and bool(self.device.program.build)

    # -------------------------------------------------------------- messages

    def _message(self, code: int, payload: bytes) -> None:
        """Carry out one message. Raises `RemoteViolation` or ValueError."""
        match code:
            case To.TEXT:
                self._text(payload)
            case To.SPRITE:
                form = self._ours or self.device.dialect.compress_byte
                self._sprite(code, payload, compress_byte=form)
            case To.PLACE:
                self._place(payload)
            case To.CAPTURE:
                self.capture = read_capture(payload)
                size = next((s for s, c in CAPTURES.items() if c == self.capture), None)
                self._command(TakePhoto(1, size) if size else TakePhoto(1))
            case _ if self._ours:
                self._own(code, payload)
            case _:
                raise RemoteViolation(Violation.UNKNOWN_FRAME, f"no message {code:02X}")

    def _own(self, code: int, payload: bytes) -> None:
        """Carry out a message that only our program has."""
        match code:
            case To.HELLO:
                self._hello()
            case To.BATTERY:
                self._say(bytes((DATA, From.BATTERY, self.device.battery)))
                self._acknowledge()
            case To.SHOW:
                self._show(payload)
            case To.LISTEN if len(payload) == 1 and payload[0] <= len(RATES):
                rate = payload[0] and RATES[payload[0] - 1]
                start = StartMicrophone(STREAM, AudioFormat.PCM16, rate)
                self._command(start if rate else StopMicrophone(STREAM))
            case To.BRIGHTNESS if len(payload) == 1 and payload[0] <= 4:
                self._command(SetBrightness(25 * payload[0]))
            case _:
                raise RemoteViolation(Violation.BAD_MESSAGE, f"{code:02X} {payload[:8].hex()}")

    def _text(self, payload: bytes) -> None:
        text = read_text(payload)
        if len(self.device.lines) >= MAX_LINES:
            raise ValueError(f"more than {MAX_LINES} lines")
        row = (text.y - 1) // LINE_HEIGHT
        line = TextLine(row, text.text.replace("\n", " "), text.x - 1)
        self.device.lines.append(line)
        self.device.letters += len(text.text) - text.text.count(" ")
        self._drawn()

    def _sprite(self, code: int, payload: bytes, *, compress_byte: bool) -> None:
        self.device.sprites[code] = read_sprite(payload, compress_byte=compress_byte)
        if self._ours:
            self._acknowledge()
        else:  # an app without coordinates draws it at once
            self._draw(code, 0, 0)

    def _place(self, payload: bytes) -> None:
        place = read_place(payload)
        self._draw(place.code, place.x - 1, place.y - 1)

    def _draw(self, code: int, x: int, y: int) -> None:
        sprite = self.device.sprites.pop(code, None)
        if sprite is None or len(self.device.tiles) >= MAX_TILES:
            raise ValueError(f"no sprite {code:02X}, or too many")
        self.device.tiles.append(tile_of(x, y, sprite))
        self._drawn()

    def _drawn(self) -> None:
        """Our program shows what is drawn when it is asked to; another host's at once."""
        if self._ours:
            self._acknowledge()
        else:
            self._command(self._taken())

    def _taken(self, page: int = 1) -> ShowPage:
        """Take the back buffer as a page."""
        lines, tiles = tuple(self.device.lines), tuple(self.device.tiles)
        self.device.clear()
        return ShowPage(SCENE, max(1, page), max(1, page), lines, tiles)

    def _show(self, payload: bytes) -> None:
        if len(payload) != 2:
            raise RemoteViolation(Violation.TRUNCATED, "a page without its number")
        counts = (self.device.letters, len(self.device.tiles))
        said = payload + b"".join((count & 0xFFFF).to_bytes(2, "big") for count in counts)
        page = self._taken()

        def answer(reply: Reply) -> None:
            if isinstance(reply, Done):
                self._say(bytes((DATA, From.SHOWN)) + said)
                self._acknowledge()
            else:
                self._refuse(f"{reply}")

        self._command(page, answer)

    def _hello(self) -> None:
        if self.device.program is not None:
            self.device.program.buffer.clear()
        self.device.sprites.clear()
        if self.device.dirty:
            self._command(self._taken(), lambda _reply: None)
        self._command(StopMicrophone(STREAM), lambda _reply: None)
        self._inform()
        self._acknowledge()

    def _inform(self) -> None:
        build = "" if self.device.program is None else self.device.program.build
        head = bytes((DATA, From.INFO, self.device.battery))
        self._say(head + build.encode() + FIRMWARE.encode())

    def _command(self, command: Command, answer: Callable[[Reply], None] | None = None) -> None:
        self._number += 1
        self._waiting[self._number] = answer or self._answer
        while len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        self._inbox.append(Incoming(command, number=self._number))

    def _answer(self, reply: Reply) -> None:
        if isinstance(reply, Failed):
            self._refuse(reply.detail or reply.code)
        else:
            self._acknowledge()

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next command."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:
        """Queue an answer or event. Raises `LocalMisuse` for messages these glasses do not have."""
        if re is not None:
            answer = self._waiting.pop(re, None)
            if answer is not None and isinstance(message, Done | Failed):
                answer(message)
            return 0
        if isinstance(message, BatteryChanged):
            self.device.battery = message.level  # said when it is asked for
        elif self.device.program is not None:
            self._event(message, now)
        else:
            self._prompt_event(message, now)
        return 0

    def _prompt_event(self, message: Command | Event | Reply, now: float) -> None:
        """Say what functions of the maker's SDK say while no program runs."""
        match message:
            case PhotoTaken(jpeg=jpeg):
                room = self._max_packet - 2
                parts = [jpeg[at : at + room] for at in range(0, len(jpeg), room)]
                self._out += [bytes((DATA, sdk.LONG_DATA)) + part for part in parts]
                self._out.append(bytes((DATA, sdk.LONG_DATA_END)) + str(len(parts)).encode())
            case MicrophoneChunk(frames=frames) if self.device.records is not None:
                sound = b"".join(frames)
                eight_bits = self.device.records[1] == 8
                room = (self._max_packet - 5) // 2 * 2
                self._pieces(From.SOUND, sound[1::2] if eight_bits else sound, room)
            case Gestured(gesture) if self.device.taps:
                self._tap(From.SDK_TAP, gesture, now)

    def _event(self, message: Command | Event | Reply, now: float) -> None:
        match message:
            case Gestured(Gesture.TAP | Gesture.DOUBLE_TAP as gesture):
                code = From.TAP if self._ours else self.device.dialect.tap
                self._tap(code, gesture, now)
            case MicrophoneChunk(frames=frames):
                self._pieces(From.SOUND, b"".join(frames), (self._max_packet - 2) // 2 * 2)
            case PhotoTaken(jpeg=jpeg):
                self._pieces(From.PHOTO, jpeg, self._max_packet - 2)
                self._end_photo(len(jpeg))
            case PhotoFailed(detail=why):
                self._print(f"Error in photo: {why}"[: self._max_packet])
                self._end_photo(BAD_PHOTO)
            case _:
                raise LocalMisuse(f"a Frame never says {type(message).__name__}")

    def _tap(self, code: int, gesture: Gesture, now: float) -> None:
        """Say one tap, or two."""
        tap = bytes((DATA, code))
        self._say(tap)
        if gesture is Gesture.DOUBLE_TAP:
            self._later.append((now + SECOND_TAP_S, tap))

    def end_sound(self) -> None:
        """Say that the microphone has stopped, if a program runs that would."""
        if self.device.program is not None:
            self._say(bytes((DATA, From.SOUND_END)))

    def _pieces(self, code: From, data: bytes, room: int) -> None:
        for at in range(0, len(data), room):
            self._out.append(bytes((DATA, code)) + data[at : at + room])

    def _end_photo(self, size: int) -> None:
        self._out.append(
            bytes((DATA, From.PHOTO_END)) + (size.to_bytes(4, "big") if self._ours else b"")
        )

    def _print(self, text: str | None) -> None:
        """Print a text, which is dropped while the radio is busy."""
        if text and not self._out:
            self._say(text.encode()[: self._max_packet])

    def _say(self, packet: bytes) -> None:
        if len(self._out) < MAX_WAITING:
            self._out.append(packet[: self._max_packet])

    def packets_to_send(self, now: float) -> list[bytes]:  # noqa: ARG002 - the contract's
        """Return all waiting packets: the program waits while the radio is busy."""
        packets, self._out = list(self._out), deque()
        return packets

    def backlog(self) -> int:
        """Bytes that wait to be sent."""
        return sum(map(len, self._out))
