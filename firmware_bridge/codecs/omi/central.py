"""Omi, OMI Glass and OpenGlass, central role."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Literal

from firmware_bridge.capabilities import Scalar
from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.omi.photo import PhotoJoiner
from firmware_bridge.codecs.omi.sound import FrameJoiner, SampleWidth
from firmware_bridge.codecs.omi.wire import (
    BUTTON,
    HAS_BUTTON,
    HAS_DIM,
    HAS_GAIN,
    HAS_HAPTIC,
    HAS_MOTION,
    MOTION,
    OLDEST_CODEC,
    RELEASED,
    SOUND,
    STOP,
    TAKE_ONE,
    VIBRATION,
    SoundForm,
    gain_of,
)
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ButtonReleased,
    Command,
    Done,
    Event,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    PhotoFailed,
    Ping,
    Reply,
    SetClock,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
)
from firmware_bridge.own_commands import (
    DimLight,
    GetMotion,
    MotionRead,
    SetMicrophoneGain,
    Vibrate,
)
from firmware_bridge.packets import (
    MIN_PACKET,
    SUBSCRIBE,
    UNSUBSCRIBE,
    ChannelPacket,
    channel_of,
    clamp_packet,
)

PHOTO_PAUSE_S: Final = 10.0
"""Longest wait for the next packet of a photo: the glasses send one every 20 ms or faster."""
PHOTO_S: Final = 50.0
"""Longest wait for a photo: another may be on the way, and each takes a few seconds."""
MAX_WAITING: Final = 64
"""Orders that may wait for the radio or for their answer."""
_UNSURE: Final = SOUND[1]
"""Sound whose samples may have 8 bits."""
_TEXT_BYTES: Final = 64
"""Of a name or version."""
_UNUSED: Final = ("manufacturer", "hardware", "dim", "gain", "update", "progress", "diagnostics")
"""Channels whose values are nothing to a wearer."""
_LAST: Final = "codec"
"""The channel that is read last when a connection begins, and again by each ping."""


class OmiCodec:
    """One connection; implements `Codec[bytes]` in the central role. `known`: what such glasses can
    do, before they say more. Used once.
    """

    def __init__(self, known: Mapping[str, Scalar], *, max_packet: int = MIN_PACKET) -> None:
        self._known = dict(known)
        self._max_packet = clamp_packet(max_packet)
        self._number = 0
        self._inbox: deque[Incoming] = deque()
        self._out: deque[tuple[ChannelPacket, int]] = deque()
        """Packets, each with the number of the command that is done with it, or 0."""
        self._asking: deque[tuple[int, bool]] = deque()
        """Numbers of pings, and of greetings (True), that wait for the codec id."""
        self._texts = dict.fromkeys(("model", "firmware", "serial"), "")
        self._form: SoundForm | None = None
        self._battery: BatteryChanged | None = None
        self._charging = False
        self._asks_motion = False
        self._pressed_long = False
        self._stream: int | None = None
        self._frames = FrameJoiner()
        self._width = SampleWidth()
        self._photos = PhotoJoiner()
        self._ordered: int | None = None
        """A photo that was asked for and has not arrived."""
        self._begun = False
        """Whether the one that is being received is that photo."""
        self._photo_due = self._photo_end = 0.0
        self._takes: Final[Mapping[str, Callable[[bytes, float], None]]] = {
            "audio": self._hear,
            "photo": self._see,
            "battery": self._charge,
            "charging": self._plug,
            "button": self._press,
            "motion": self._move,
            "features": self._feature,
            "clock": self._tell_time,
            **dict.fromkeys(_UNUSED, lambda _packet, _now: None),
            _LAST: self._learn_codec,
        }

    def set_max_packet(self, size: int) -> None:
        """Set the packet size (ATT MTU − 3)."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one packet. Raises nothing but `RemoteViolation`."""
        channel = channel_of(packet)
        if channel in self._texts:
            text = bytes(packet[:_TEXT_BYTES]).decode(errors="replace")
            self._texts[channel] = "".join(filter(str.isprintable, text)).strip()
        elif (take := self._takes.get(channel)) is not None:
            take(bytes(packet), now)
        else:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"a packet of channel {channel!r}")

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next message."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _emit(self, event: Event) -> None:
        self._inbox.append(Incoming(event))

    def _answer(self, number: int, reply: Reply) -> None:
        self._inbox.append(Incoming(reply, re=number))

    def _hear(self, packet: bytes, _now: float) -> None:
        if self._stream is None or self._form is None:
            return  # it was still in the air when the microphone went off
        found = self._frames.add(packet, self._max_packet)
        if found is None:
            return
        index, frame = found
        if self._form == _UNSURE:
            frame = self._width.widen(frame)
        if self._form.format is AudioFormat.PCM16 and len(frame) % 2:
            return  # half a sample: bytes are missing, and the others are in the wrong place
        self._emit(MicrophoneChunk(self._stream, index, (frame,)))

    def _see(self, packet: bytes, now: float) -> None:
        begins = self._photos.begins(packet)
        asked = self._ordered if begins and not self._begun else None
        found = self._photos.add(packet, asked or 0)
        if begins:
            self._begun = asked is not None
        self._photo_due = now + PHOTO_PAUSE_S
        if found is None or (isinstance(found, PhotoFailed) and found.photo == 0):
            return
        if found.photo:
            self._ordered, self._begun = None, False
        self._emit(found)

    def _charge(self, packet: bytes, _now: float) -> None:
        level = _at_least(packet, 1, "battery")[0]
        if level > 100:
            raise RemoteViolation(Violation.BAD_MESSAGE, f"battery {level} %")
        self._tell_battery(level)

    def _plug(self, packet: bytes, _now: float) -> None:
        self._charging = _at_least(packet, 1, "charging")[0] != 0
        if self._battery is not None:
            self._tell_battery(self._battery.level)

    def _tell_battery(self, level: int) -> None:
        said = BatteryChanged(level, charging=self._charging)
        if said != self._battery:
            self._battery = said
            self._emit(said)

    def _move(self, packet: bytes, _now: float) -> None:
        """Take one reading; the first packet may be the number of axes instead."""
        if not self._asks_motion or len(packet) < MOTION.size:
            return
        self._asks_motion = False
        whole = MOTION.unpack_from(packet)
        x, y, z, *turns = (a + b / 1e6 for a, b in zip(whole[::2], whole[1::2], strict=True))
        self._emit(MotionRead((x, y, z), (turns[0], turns[1], turns[2])))
        self._say("motion", UNSUBSCRIBE)

    def _press(self, packet: bytes, _now: float) -> None:
        """The second integer, which is always 0, may be missing, and bytes of the first."""
        code = int.from_bytes(_at_least(packet, 1, "button")[:4], "little")
        gesture = BUTTON.get(code)
        if gesture is not None:
            self._pressed_long = gesture is Gesture.BUTTON_LONG
            self._emit(Gestured(gesture))
        elif code == RELEASED and self._pressed_long:  # it ends short presses too
            self._pressed_long = False
            self._emit(ButtonReleased())

    def _feature(self, packet: bytes, _now: float) -> None:
        """Learn what this firmware was built with. Without features, only what all have is sure."""
        features = int.from_bytes(_at_least(packet, 1, "features"), "little")
        if not features & HAS_BUTTON:
            self._known.update(button=False, gestures="")
        dims = bool(features & HAS_DIM)
        self._known.update({"light": dims, "light.brightness": dims})
        self._known["microphone.gain"] = bool(features & HAS_GAIN)
        self._known["haptic"] = bool(features & HAS_HAPTIC)
        if features & HAS_MOTION:
            self._known.update({"imu": True, "imu.accelerometer": True, "imu.gyroscope": True})

    def _tell_time(self, packet: bytes, _now: float) -> None:
        _at_least(packet, 1, "time")
        self._known["clock"] = True

    def _learn_codec(self, packet: bytes, _now: float) -> None:
        """Learn the format of the sound; answer who waited for a sign of life. No value is that of
        the oldest firmware, as in the makers' app.
        """
        if packet or self._form is None:
            self._form = SOUND.get(packet[0] if packet else OLDEST_CODEC)
        self._known["microphone"] = self._form is not None
        if self._form is not None:
            self._known["microphone.codecs"] = self._form.format.value
            self._known["microphone.rate"] = self._form.rate
        while self._asking:
            number, greets = self._asking.popleft()
            self._answer(number, self._info() if greets else Done())

    def _info(self) -> GlassesInfo:
        return GlassesInfo(**self._texts, capabilities=dict(self._known), limits={})

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Queue a command; return its number. Raises `CommandRefused`."""
        if len(self._out) + len(self._asking) >= MAX_WAITING:
            raise CommandRefused("busy", "too many orders wait for the glasses")
        number = self._number + 1
        match message:
            case Hello():
                self._ask(number, greets=True)
            case Ping():
                self._ask(number, greets=False)
            case TakePhoto(photo) if self._known.get("camera") is True and photo:
                self._order(number, photo, now)
            case StartMicrophone():
                self._listen(number, message)
            case StopMicrophone(stream):
                self._stop_listening(number, stream)
            case SetClock() if self._known.get("clock") is True:
                self._say("set_clock", message.utc_s.to_bytes(4, "little"), number)
            case DimLight(level) if self._known.get("light.brightness") is True:
                self._say("dim", bytes([level]), number)
            case SetMicrophoneGain(level) if self._known.get("microphone.gain") is True:
                self._say("gain", bytes([gain_of(level)]), number)
            case Vibrate(length) if self._known.get("haptic") is True:
                self._say("vibrate", bytes([VIBRATION[length]]), number)
            case GetMotion() if self._known.get("imu") is True:
                self._ask_motion(number)
            case _:
                raise CommandRefused("unsupported", type(message).__name__)
        self._number = number
        return number

    def _say(self, channel: str, packet: bytes, number: int = 0) -> None:
        self._out.append((ChannelPacket(packet, channel), number))

    def _ask(self, number: int, *, greets: bool) -> None:
        if greets and self._known.get("camera") is True:
            self._say("control", bytes([STOP]))  # photos that nobody asked for
        self._asking.append((number, greets))
        self._say(_LAST, b"")

    def _order(self, number: int, photo: int, now: float) -> None:
        if self._ordered is not None:
            self._answer(number, Failed("busy", f"photo {self._ordered} is on the way"))
            return
        self._ordered, self._begun = photo, False
        self._photo_due, self._photo_end = now + PHOTO_PAUSE_S, now + PHOTO_S
        self._say("control", bytes([TAKE_ONE]), number)

    def _ask_motion(self, number: int) -> None:
        if self._asks_motion:
            self._answer(number, Done())
        else:
            self._asks_motion = True
            self._say("motion", SUBSCRIBE, number)

    def _listen(self, number: int, command: StartMicrophone) -> None:
        wanted = SoundForm(command.format, command.rate)
        if self._form != wanted:
            speaks = "nothing known" if self._form is None else self._form.format
            detail = f"{command.format} at {command.rate} Hz; the microphone speaks {speaks}"
            self._answer(number, Failed("unsupported", detail))
        elif self._stream is not None:
            self._answer(number, Failed("busy", f"microphone stream {self._stream} is open"))
        else:
            self._stream, self._frames = command.stream, FrameJoiner()
            self._say("audio", SUBSCRIBE, number)

    def _stop_listening(self, number: int, stream: int) -> None:
        if self._stream != stream:
            self._answer(number, Failed("no_stream", f"microphone stream {stream} is not open"))
        else:
            self._stream = None
            self._say("audio", UNSUBSCRIBE, number)

    def packets_to_send(self, now: float) -> list[bytes]:  # noqa: ARG002 - the contract's
        """Return all waiting packets: these glasses have no flow control. What they take without an
        answer of their own is done with that.
        """
        waiting, self._out = list(self._out), deque()
        for _packet, number in waiting:
            if number:
                self._answer(number, Done())
        return [packet for packet, _number in waiting]

    def backlog(self) -> int:
        """Bytes that wait to be sent."""
        return sum(len(packet) for packet, _number in self._out)

    def next_timer(self) -> float | None:
        """The time when a photo is given up."""
        return None if self._ordered is None else min(self._photo_due, self._photo_end)

    def handle_timer(self, now: float) -> None:
        """Give up a photo that does not come."""
        due = self.next_timer()
        if due is None or now < due or self._ordered is None:
            return
        self._emit(PhotoFailed(self._ordered, "the glasses did not send it in time"))
        if self._begun:
            self._photos.give_up()
        self._ordered, self._begun = None, False


def _at_least(packet: bytes, size: int, what: str) -> bytes:
    if len(packet) < size:
        raise RemoteViolation(Violation.TRUNCATED, f"{what} of {len(packet)} bytes; it has {size}")
    return packet
