"""Frame and Halo, peripheral role, for the simulator and the tests: prompt, the
buffers of both, and the messages of our program or of another host's.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.frame import blocks, sdk
from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.codecs.frame.hardware import FRAME
from firmware_bridge.codecs.frame.picture import tile_of
from firmware_bridge.codecs.frame.ring import SoundRing
from firmware_bridge.codecs.frame.slots import DATA_S, PROMPT_S, QUEUED_DATA, QUEUED_TEXT, Slot
from firmware_bridge.codecs.frame.told import by_program, by_prompt
from firmware_bridge.codecs.frame.wire import (
    BATTERY,
    BREAK,
    CARRIED_OUT,
    DATA,
    LEAVE,
    RATES,
    REBOOT,
    REFUSED,
    REMOVE_ALL,
    REMOVE_MAIN,
    RESET,
    SPEAKER,
    SPOKEN_RATE,
    Capture,
    From,
    Sprite,
    To,
    motion_bytes,
    read_capture,
    read_place,
    read_sprite,
    read_text,
)
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import (
    MAX_LINES,
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    Command,
    Done,
    EndAudio,
    Event,
    Failed,
    Reply,
    SetBrightness,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
)
from firmware_bridge.packets import MIN_PACKET, ChannelPacket, channel_of, clamp_packet

MAX_WAITING: Final = 1024
"""Packets that may wait for the central."""
STREAM: Final = 1
SCENE: Final = "frame"
MAX_TILES: Final = 256
_CONTROLS: Final = (REBOOT, RESET, REMOVE_MAIN, LEAVE, REMOVE_ALL)


class FramePeripheral:
    """One connection; implements `Codec[bytes]` in the peripheral role. `device` outlives it.

    Messages with an effect become commands with a number: execute them, then `send(Done() or
    Failed(…), re=number)`. `capture` is the last photo asked for. `reboot` is called when a Halo is
    told to reboot.
    """

    def __init__(self, *, max_packet: int = MIN_PACKET, device: FrameDevice | None = None) -> None:
        self.device = device or FrameDevice()
        self.capture = Capture()
        self._max_packet = clamp_packet(max_packet)
        self.reboot: Callable[[], object] = lambda: None
        queued = self.device.hardware is not FRAME
        self._prompts = Slot(PROMPT_S, QUEUED_TEXT if queued else None)
        self._data = Slot(DATA_S, QUEUED_DATA if queued else None)
        self._ring = SoundRing()
        self._out: deque[bytes] = deque()
        self._later: deque[tuple[float, bytes]] = deque()
        self._inbox: deque[Incoming] = deque()
        self._number = 0
        self._recording = False
        self._block: blocks.Block | None = None
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
        channel = channel_of(packet)
        if channel:
            self._channel(channel, packet, now)
        elif packet[0] == DATA:
            self._data.put(packet[1:], now)
        elif not self._control(packet):
            self._prompts.put(packet, now)

    def _channel(self, channel: str, packet: bytes, now: float) -> None:
        """Take sound. Raises `RemoteViolation` for what no Halo has."""
        if channel != SPEAKER:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"a packet for {channel!r}")
        if self._ring.take(len(packet), now):
            self._inbox.append(Incoming(AudioChunk(STREAM, 0, (bytes(packet),))))

    def _control(self, packet: bytes) -> bool:
        """Carry out a control; return whether it was one."""
        halo = self.device.hardware.is_halo
        first = packet[:1]
        if first == BREAK:
            self._stop_recording()
            printed = [self.device.stop() or ""]
        elif halo and first in _CONTROLS:
            printed = self.device.control(first)
        else:
            return False
        if halo:
            self._prompts.clear()
            self._data.clear()
        self._print(*printed)
        if halo and first == REBOOT:
            self.reboot()
        return True

    def handle_timer(self, now: float) -> None:
        """Let the Lua machine take what waits, and send what is due."""
        while self._later and now >= self._later[0][0]:
            self._say(self._later.popleft()[1])
        while not self._is_busy and (text := self._prompts.take(now)) is not None:
            if text[:1] == RESET:
                self._print(*self.device.reset())
            else:
                self._prompt(text.partition(b"\0")[0].decode("utf-8", "replace"))
        while (data := self._data.take(now)) is not None:
            self._receive(data)

    @property
    def _is_busy(self) -> bool:
        return self.device.program is not None or self.device.left

    def next_timer(self) -> float | None:
        """The time when the Lua machine takes what waits, or None."""
        due = [self._later[0][0]] if self._later else []
        due += self._data.due()
        due += [] if self._is_busy else self._prompts.due()
        return min(due, default=None)

    def _prompt(self, text: str) -> None:
        printed = sdk.run(self.device, text)
        self._print(*(self.device.run(text) if printed is None else printed))
        if self.device.wants_show:
            self.device.wants_show = False
            page = self._taken(keep=self.device.hardware.is_halo)
            self._command(page, lambda _reply: None)
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
        if self._ours:
            self._say(CARRIED_OUT)
        elif how := self.device.dialect.acknowledgement:
            self._say(bytes((DATA,)) + how)

    def _refuse(self, why: str) -> None:
        self._print(f"Error in data accumulator: {why}"[: self._max_packet])
        how = self.device.dialect.acknowledgement
        self._say(REFUSED if self._ours or not how else bytes((DATA,)) + how[:-1] + b"\1")

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
                sizes = self.device.hardware.captures.items()
                size = next((s for s, c in sizes if c == self.capture), None)
                self._command(TakePhoto(1, size) if size else TakePhoto(1))
            case _ if self._ours:
                self._own(code, payload)
            case _:  # applications choose their codes: exposure, a value
                self._acknowledge()

    def _own(self, code: int, payload: bytes) -> None:
        """Carry out a message that only our program has."""
        match code:
            case To.HELLO:
                self._hello()
            case To.BATTERY:
                known = self.device.hardware is not FRAME
                charging = bytes((self.device.charging,)) if known else b""
                self._say(bytes((DATA, From.BATTERY, self.device.battery)) + charging)
                self._acknowledge()
            case To.SHOW:
                self._show(payload)
            case To.LISTEN if len(payload) == 1 and payload[0] <= len(RATES):
                rate = payload[0] and RATES[payload[0] - 1]
                if rate and not self.device.dialect.microphone:
                    raise ValueError("Failed to initialize microphone: occupied by LE Audio")
                start = StartMicrophone(STREAM, AudioFormat.PCM16, rate)
                self._command(start if rate else StopMicrophone(STREAM))
            case To.BRIGHTNESS if len(payload) == 1 and payload[0] <= 4:
                self._command(SetBrightness(25 * payload[0]))
            case To.MOTION if not payload:
                self._say(bytes((DATA, From.MOTION)) + motion_bytes(self.device.motion))
                self._acknowledge()
            case To.HEAD_ANGLE if len(payload) == 1 and payload[0] <= 60:
                self.device.head_angle = payload[0]
                self._acknowledge()
            case To.SPEAK if self._is_halo and payload in (b"\0", b"\1"):
                form = AudioFormat.LC3 if payload[0] else AudioFormat.PCM16
                self._ring.open(coded=form is AudioFormat.LC3)
                self._command(StartAudio(STREAM, form, SPOKEN_RATE))
            case To.END_SPEECH if self._is_halo and not payload:
                self._ring.close()
                self._command(EndAudio(STREAM, flush=True), self._spoken)
            case _:
                raise RemoteViolation(Violation.BAD_MESSAGE, f"{code:02X} {payload[:8].hex()}")

    @property
    def _is_halo(self) -> bool:
        return self.device.hardware.is_halo

    def _spoken(self, reply: Reply) -> None:
        """Say what the speaker played, where the firmware counts it."""
        samples = reply.samples or 0 if isinstance(reply, Done) else 0
        counted = samples.to_bytes(4, "big") if self.device.dialect.counts_sound else b""
        self._say(bytes((DATA, From.PLAYED)) + counted)
        self._acknowledge()

    def _text(self, payload: bytes) -> None:
        text = read_text(payload, self.device.hardware.screen)
        if len(self.device.lines) >= MAX_LINES:
            raise ValueError(f"more than {MAX_LINES} lines")
        shown = text.text.replace("\n", " ")
        if self.device.hardware is not FRAME:  # their fonts have no others
            shown = "".join(ch for ch in shown if " " <= ch <= self.device.hardware.last_glyph)
        self.device.lines.append(self.device.line_at(shown, text.x, text.y))
        self.device.letters += len(shown) - shown.count(" ")
        self._drawn()

    def _sprite(self, code: int, payload: bytes, *, compress_byte: bool) -> None:
        if not self._ours and payload[:1] == bytes((blocks.MARK,)):
            self._block = blocks.Block(blocks.read_header(payload))
            self._acknowledge()
            return
        sprite = read_sprite(payload, compress_byte=compress_byte)
        self.device.sprites[code] = sprite
        if self._ours:
            self._acknowledge()
        elif self._block is None:  # an app without coordinates draws it at once
            self._draw([(0, 0, sprite)])
        else:
            self._draw(self._block.add(sprite))

    def _place(self, payload: bytes) -> None:
        place = read_place(payload, self.device.hardware.screen)
        sprite = self.device.sprites.get(place.code)
        if sprite is None:
            raise ValueError(f"no sprite {place.code:02X}")
        if self._ours:
            del self.device.sprites[place.code]
        self._draw([(*self.device.place_at(place.x, place.y), sprite)])

    def _draw(self, drawn: Sequence[tuple[int, int, Sprite]]) -> None:
        """Draw sprites at their places (from 0)."""
        if len(self.device.tiles) + len(drawn) > MAX_TILES:
            raise ValueError("too many sprites")
        self.device.tiles += [tile_of(x, y, sprite) for x, y, sprite in drawn]
        self._drawn()

    def _drawn(self) -> None:
        """Our program shows what is drawn when it is asked to; another host's at once."""
        if self._ours:
            self._acknowledge()
        else:
            self._command(self._taken())

    def _taken(self, page: int = 1, *, keep: bool = False) -> ShowPage:
        """Take the back buffer as a page. `keep`: what follows is drawn over it."""
        lines, tiles = tuple(self.device.lines), tuple(self.device.tiles)
        if not keep:
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
            dropped = self._taken()
            if not self._is_halo:
                self._command(dropped, lambda _reply: None)
        self._command(StopMicrophone(STREAM), lambda _reply: None)
        self._inform()
        self._acknowledge()

    def _inform(self) -> None:
        build = "" if self.device.program is None else self.device.program.build
        head = bytes((DATA, From.INFO, self.device.battery))
        self._say(head + build.encode() + self.device.firmware.encode())

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
            self._battery(message)
        else:
            say = by_prompt if self.device.program is None else by_program
            for delay_s, packet in say(message, self.device, self._max_packet):
                if delay_s:
                    self._later.append((now + delay_s, packet))
                else:
                    self._out.append(packet)
        return 0

    def _battery(self, known: BatteryChanged) -> None:
        """Keep it until it is asked for; Halo also notifies its battery service."""
        self.device.battery, self.device.charging = known.level, known.charging
        if self._is_halo and len(self._out) < MAX_WAITING:
            self._out.append(ChannelPacket(bytes((known.level,)), BATTERY))

    def end_sound(self) -> None:
        """Say that the microphone has stopped, if a program runs that would."""
        if self.device.program is not None:
            self._say(bytes((DATA, From.SOUND_END)))

    def _print(self, *texts: str) -> None:
        """Print texts, which are dropped while the radio is busy."""
        if not self._out:
            for text in filter(None, texts):
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
