"""Frame, Halo and Monocle, central role: our program on the glasses is found or uploaded, then
messages become its messages, one packet at a time.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.frame.gestures import CODES, Gestures
from firmware_bridge.codecs.frame.hardware import FRAME, FrameHardware
from firmware_bridge.codecs.frame.jobs import Job, JobQueue
from firmware_bridge.codecs.frame.page import page_job
from firmware_bridge.codecs.frame.photo import PhotoIn
from firmware_bridge.codecs.frame.program import Program, program
from firmware_bridge.codecs.frame.prompts import LuaPrompt, RawPrompt
from firmware_bridge.codecs.frame.speaker import Speaker
from firmware_bridge.codecs.frame.startup import Startup
from firmware_bridge.codecs.frame.wire import (
    BATTERY,
    CARRIED_OUT,
    DATA,
    PRINTED,
    RATES,
    REFUSED,
    UNUSED,
    From,
    To,
    capture_bytes,
    light_bytes,
    read_motion,
    swapped,
)
from firmware_bridge.errors import CommandRefused, LinkLost, LostReason, RemoteViolation, Violation
from firmware_bridge.messages import (
    MAX_CHUNK_BYTES,
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Command,
    Done,
    EndAudio,
    Event,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    Ping,
    Reply,
    SetBrightness,
    SetHeadUpAngle,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    UpdatePage,
)
from firmware_bridge.own_commands import BlinkLight, GetMotion, SwitchLightOff
from firmware_bridge.packets import MIN_PACKET, channel_of, clamp_packet
from firmware_bridge.whole_page import whole_page

BATTERY_EVERY_S: Final = 60.0
MAX_PRINTED: Final = 200


class FrameCodec:
    """One connection; implements `Codec[bytes]` in the central role. Used once.

    Commands wait until the program runs. `width` measures text on the lens. Packets of Halo are
    `ChannelPacket`s where they are not for its program.
    """

    def __init__(
        self,
        *,
        width: Callable[[str], float],
        max_packet: int = MIN_PACKET,
        app: Program | None = None,
        hardware: FrameHardware = FRAME,
    ) -> None:
        self._hardware = hardware
        self._width = width
        self._max_packet = clamp_packet(max_packet)
        prompt = RawPrompt() if hardware.is_monocle else LuaPrompt()
        self.startup = Startup(app or program(hardware.key), prompt)
        self._begun = False
        self._greeting = 0
        self._late_answer = False
        """Whether the next acknowledgement is that of the question which nobody had answered."""
        self._jobs = JobQueue(self._ended)
        self._inbox: deque[Incoming] = deque()
        self._number = 0
        self._page: ShowPage | None = None
        self._pages = 0
        self._problem = ""
        self._dead = ""
        self._battery: BatteryChanged | None = None
        self._battery_at: float | None = None
        self._gestures = Gestures()
        self._photo: PhotoIn | None = None
        self._stream: int | None = None
        self._chunks = 0
        self._half_sample = b""
        self._speaker = Speaker()

    def set_max_packet(self, size: int) -> None:
        """Set the packet size (ATT MTU − 3)."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one packet. Raises nothing but `RemoteViolation`."""
        if not packet:
            raise RemoteViolation(Violation.TRUNCATED, "an empty packet")
        channel = channel_of(packet)
        if channel and channel != PRINTED:
            self._channel(channel, packet)
        elif channel or packet[0] != DATA:
            for text in self.startup.prompt.read(packet):
                self._printed(text[:MAX_PRINTED], now)
        elif packet in (CARRIED_OUT, REFUSED):
            self._acknowledged(now, refused=packet == REFUSED)
        elif len(packet) < 2:
            raise RemoteViolation(Violation.TRUNCATED, "a data packet without a code")
        else:
            self._data(packet[1], packet[2:], now)

    def _channel(self, channel: str, packet: bytes) -> None:
        if channel != BATTERY:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"a packet of {channel!r}")
        charging = self._battery is not None and self._battery.charging
        self._tell_battery(_percent(packet), charging=charging)

    def _printed(self, text: str, now: float) -> None:
        if not text.strip():
            return  # Halo ends the line of an error with a packet of its own
        if not self.startup.running:
            self.startup.printed(text, now, self._max_packet)
        elif self.startup.prompt.is_error(text):
            self._dead = f"the program on the glasses ended: {text}"
        else:
            self._problem = text

    def _acknowledged(self, now: float, *, refused: bool) -> None:
        if self._late_answer:
            self._late_answer = False
        elif self.startup.running:
            self._jobs.acknowledged((self._problem or "no reason given") if refused else None)
            self._problem = ""
        else:
            self.startup.acknowledged()
            self._started(now)

    def _data(self, code: int, data: bytes, now: float) -> None:
        if code == From.INFO:
            self._informed(data, now)
        elif not self.startup.running:
            return  # of another program, which ends soon
        elif code in (From.SOUND, From.SOUND_END):
            self._sound(code, data)
        elif code in (From.PHOTO, From.PHOTO_END):
            self._photo_part(code, data, now)
        elif code in CODES:
            self._gestured(self._gestures.receive(code, data, now))
        elif code == From.BATTERY:
            self._battery_level(data)
        elif code == From.MOTION:
            self._jobs.answered(From.MOTION, data)
            self._tell(read_motion(data))
        elif code in (From.SHOWN, From.PLAYED):
            self._jobs.answered(From(code), data)
        elif code not in UNUSED:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"data {code:02X}")

    def _informed(self, data: bytes, now: float) -> None:
        if not data:
            raise RemoteViolation(Violation.TRUNCATED, "a program that says nothing about itself")
        if self.startup.running:
            self._late_answer = self.startup.takes_late_answer()
            return
        self.startup.informed(data, now)
        self._started(now)

    def _started(self, now: float) -> None:
        """Begin to work if the program runs now."""
        if self.startup.running:
            self._battery_at = now + BATTERY_EVERY_S
            self._tell_battery(self.startup.battery)
            self._greet()

    def _greet(self) -> None:
        if self._greeting and self.startup.running:
            known = GlassesInfo(self._hardware.name, self.startup.firmware, "", {}, {})
            self._inbox.append(Incoming(known, re=self._greeting))
            self._greeting = 0

    def _sound(self, code: int, data: bytes) -> None:
        if self._stream is None or code == From.SOUND_END:
            return  # what was still to come after the end, or the end
        if len(data) > MAX_CHUNK_BYTES - 1:
            raise RemoteViolation(Violation.OVERSIZED, f"{len(data)} bytes of sound")
        pcm = self._half_sample + data
        even = len(pcm) // 2 * 2
        self._half_sample, pcm = pcm[even:], pcm[:even]
        if self._hardware.is_monocle:
            pcm = swapped(pcm)
        if even:
            self._tell(MicrophoneChunk(self._stream, self._chunks, (pcm,)))
            self._chunks += 1

    def _photo_part(self, code: int, data: bytes, now: float) -> None:
        photo = self._photo
        if photo is None:
            return  # given up
        if code == From.PHOTO:
            result: Event | None = photo.add(data, now)
        else:
            result = photo.end(data, self._problem)
        if result is not None:
            self._photo, self._problem = None, ""
            self._tell(result)

    def _gestured(self, gesture: Gesture | None) -> None:
        if gesture is not None:
            self._tell(Gestured(gesture))

    def _battery_level(self, data: bytes) -> None:
        level = _percent(data)
        self._jobs.answered(From.BATTERY, data)
        self._tell_battery(level, charging=data[1:2] == b"\1")

    def _tell_battery(self, level: int, *, charging: bool = False) -> None:
        known = BatteryChanged(level, charging)
        if known != self._battery:
            self._battery = known
            self._tell(known)

    def _tell(self, event: Event) -> None:
        self._inbox.append(Incoming(event))

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next answer or event."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Start a command. Raises `CommandRefused` if impossible, `LocalMisuse` if too many."""
        if isinstance(message, AudioChunk):
            self._speaker.feed(message)
            return 0
        if not isinstance(message, Command):
            raise CommandRefused("unsupported", f"a central never says {type(message).__name__}")
        if isinstance(message, Hello):
            self._number += 1
            self._greeting = self._number
            self._greet()
            return self._number
        if isinstance(message, EndAudio) and not message.flush and self._hardware.is_halo:
            self._speaker.check_end(message)
            self._number += 1
            self._speaker.end(self._number)
            return self._number
        job = self._job(message)
        job.number, job.command = self._number + 1, message
        self._jobs.add(job)
        self._number += 1
        self._remember(message, now)
        return job.number

    def _job(self, command: Command) -> Job:
        """Return the messages of a command. Raises `CommandRefused`."""
        match command:
            case ShowPage():
                return self._show(command)
            case UpdatePage():
                return self._show(whole_page(self._page, command))
            case ClearPage():
                return self._show(ShowPage("", lines=()))
            case Ping():
                return _one(To.BATTERY, answer=From.BATTERY)
            case StartMicrophone(_, AudioFormat.PCM16, rate) if rate in RATES:
                self._check_stream(command)
                return _one(To.LISTEN, bytes((RATES.index(rate) + 1,)))
            case StartMicrophone():
                raise CommandRefused("unsupported", "the microphone speaks pcm16, 8 or 16 kHz")
            case StopMicrophone():
                self._check_stream(command)
                return _one(To.LISTEN, b"\0")
            case TakePhoto(size=size):
                if self._photo is not None:
                    raise CommandRefused("busy", f"photo {self._photo.number} is being taken")
                return _one(To.CAPTURE, capture_bytes(self._hardware.captures[size]))
            case GetMotion() if not self._hardware.is_monocle:
                return _one(To.MOTION, answer=From.MOTION)
            case BlinkLight() | SwitchLightOff() if self._hardware.is_monocle:
                return _one(To.LIGHT, light_bytes(command))
            case SetBrightness(level=int(level)):
                return _one(To.BRIGHTNESS, bytes(((level + 12) // 25,)))
            case SetHeadUpAngle(degrees) if not self._hardware.is_monocle:
                return _one(To.HEAD_ANGLE, bytes((degrees,)))
            case StartAudio() if self._hardware.is_halo:
                return _one(To.SPEAK, self._speaker.open(command))
            case EndAudio() if self._hardware.is_halo:
                self._speaker.check_end(command)
                return _end_of_speech()
        name = type(command).__name__
        raise CommandRefused("unsupported", f"{self._hardware.name} has no {name}")

    def _show(self, page: ShowPage) -> Job:
        self._pages = (self._pages + 1) % 65536
        return page_job(page, self._pages, self._width, self._hardware)

    def _check_stream(self, command: StartMicrophone | StopMicrophone) -> None:
        if isinstance(command, StartMicrophone) and self._stream is not None:
            raise CommandRefused("busy", f"microphone stream {self._stream} is open")
        if isinstance(command, StopMicrophone) and self._stream != command.stream:
            raise CommandRefused("no_stream", f"microphone stream {command.stream} is not open")

    def _remember(self, command: Command, now: float) -> None:
        match command:
            case ShowPage():
                self._page = command
            case UpdatePage():
                self._page = whole_page(self._page, command)
            case ClearPage():
                self._page = None
            case StartMicrophone(stream):
                self._stream, self._chunks, self._half_sample = stream, 0, b""
            case StopMicrophone():
                self._stream = None
            case TakePhoto(photo):
                self._photo = PhotoIn(photo, now, turned=self._hardware.turned)
            case EndAudio():
                self._speaker.close()

    def _ended(self, job: Job, reply: Reply) -> None:
        """Pass on the reply; forget what the glasses did not begin or show."""
        if isinstance(job.command, StartAudio) and job.command.stream == self._speaker.stream:
            (self._speaker.close if isinstance(reply, Failed) else self._speaker.opened)()
        if isinstance(reply, Failed):
            match job.command:
                case ShowPage() | UpdatePage():
                    self._page = None  # the next change sends the whole page
                case TakePhoto():
                    self._photo = None
                case StartMicrophone():
                    self._stream = None
        if job.number:
            self._inbox.append(Incoming(reply, re=job.number))

    def packets_to_send(self, now: float) -> list[bytes]:
        """Return the packets to send now: one, unless the program is being stopped."""
        if not self._begun:
            self._begun = True
            self.startup.begin(now, self._max_packet)
        if not self.startup.running:
            return self.startup.emit()
        return self._jobs.emit(now, self._max_packet) + self._speaker.emit(now, self._max_packet)

    def backlog(self) -> int:
        """Bytes not yet sent, or sent and not yet acknowledged."""
        return self._jobs.backlog() + self._speaker.size

    # -------------------------------------------------------------- time

    def next_timer(self) -> float | None:
        """The time when `handle_timer` must be called, or None."""
        due = [self.startup.due(), self._jobs.due(), self._battery_at]
        due += [self._gestures.due(), self._speaker.due(self._max_packet)]
        due.append(self._photo.due if self._photo is not None else None)
        due.append(0.0 if self._dead else None)
        return min((moment for moment in due if moment is not None), default=None)

    def handle_timer(self, now: float) -> None:
        """Do what is due. Raises `LinkLost` if the program does not answer, start, or go on."""
        if self._dead:
            raise LinkLost(LostReason.PROTOCOL, self._dead)
        self.startup.timer(now, self._max_packet)
        self._jobs.timer(now)
        self._gestured(self._gestures.count(now))
        if self._speaker.is_played(now):
            self._end_speech()
        if self._photo is not None and now >= self._photo.due:
            photo, self._photo = self._photo, None
            self._tell(photo.failed("the glasses sent nothing of it for long"))
        if self._battery_at is not None and now >= self._battery_at:
            self._battery_at = now + BATTERY_EVERY_S
            if not self._jobs.full:
                self._jobs.add(_one(To.BATTERY, answer=From.BATTERY))

    def _end_speech(self) -> None:
        """Close the speaker and ask what it played."""
        number = self._speaker.ending
        self._speaker.close()
        if self._jobs.full:
            busy = Failed("busy", "too many commands are under way to close the speaker")
            self._inbox.append(Incoming(busy, re=number))
        else:
            job = _end_of_speech()
            job.number = number
            self._jobs.add(job)


def _one(code: To, payload: bytes = b"", *, answer: From | None = None) -> Job:
    return Job(deque([(code, payload)]), answer=answer, judge=_answered if answer else None)


def _end_of_speech() -> Job:
    return Job(deque([(To.END_SPEECH, b"")]), answer=From.PLAYED, judge=_played)


def _played(answer: bytes | None) -> Reply:
    """Return how many samples were played, where the glasses count them."""
    if answer is None:
        return Failed("interrupted", "the glasses do not say what they played")
    return Done(samples=int.from_bytes(answer[:4], "big")) if len(answer) >= 4 else Done()


def _percent(data: bytes) -> int:
    if not data or data[0] > 100:
        raise RemoteViolation(Violation.BAD_MESSAGE, f"battery {data.hex()}")
    return data[0]


def _answered(answer: bytes | None) -> Reply:
    return Done() if answer is not None else Failed("interrupted", "the glasses said nothing")
