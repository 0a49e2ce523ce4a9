"""A Mentra Live, peripheral role, for the simulator and the tests: its chip and its application."""

from collections import deque
from typing import Any, Final, Literal

from msgspec import Struct

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.mentra_live import layers, wire
from firmware_bridge.codecs.mentra_live.conflicts import STOCK, Dialect
from firmware_bridge.codecs.mentra_live.files import packets_of
from firmware_bridge.codecs.mentra_live.fragments import fragments_of, shorten
from firmware_bridge.codecs.mentra_live.layers import ChipCommand, Json
from firmware_bridge.codecs.mentra_live.served import command_of, report
from firmware_bridge.codecs.mentra_live.sound import FRAME, frames_of, packet_of
from firmware_bridge.errors import LocalMisuse, RemoteViolation, Violation
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    Command,
    Done,
    EndAudio,
    Event,
    Failed,
    Gesture,
    Gestured,
    MicrophoneChunk,
    PhotoFailed,
    PhotoSize,
    PhotoTaken,
    Reply,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
)
from firmware_bridge.own_commands import (
    BlinkLight,
    GalleryChanged,
    SwitchLightOff,
    WifiChanged,
    WifiFound,
)
from firmware_bridge.packets import MIN_PACKET, ChannelPacket, channel_of, clamp_packet

STREAM: Final = 0
"""The glasses know one microphone and one speaker, and give them no number."""
MAX_WAITING: Final = 1024
"""Packets that may wait for a central that does not read."""
FILE_BURST: Final = 16
"""File packets between two looks at what else must be said."""
DOUBLE_S: Final = 10.0
"""Seconds in which a message with the same `mId` is acknowledged and not carried out (DOC)."""
LOW_BATTERY: Final = 10
"""Percent below which the camera refuses (DOC)."""
_TOUCHES: Final = {Gesture.TAP: 0, Gesture.DOUBLE_TAP: 1}
_PRESSES: Final = {Gesture.BUTTON: "short", Gesture.BUTTON_LONG: "long"}


class Facts(Struct):
    """What the glasses know of themselves."""

    battery: int = 87
    charging: bool = False
    ready: bool = True
    version: str = "1.0.0"
    serial: str = "SIM-LIVE-0001"
    ssid: str = ""
    """The Wi-Fi network that they are in; "": none."""
    photos: int = 3
    videos: int = 1


class _Photo(Struct, frozen=True):
    request: str
    image: str


class MentraLiveGlasses:
    """One connection; implements `Codec[bytes]` in the peripheral role.

    Photos, microphone and speaker become commands; all else is answered here from `facts`.
    """

    def __init__(
        self,
        *,
        max_packet: int = MIN_PACKET,
        dialect: Dialect = STOCK,
        facts: Facts | None = None,
    ) -> None:
        self.facts = facts or Facts()
        self._dialect = dialect
        self._max_packet = clamp_packet(max_packet)
        self._reader = wire.FrameReader("little")
        self._joiner = layers.Joiner()
        self._out: deque[bytes] = deque()
        self._file: deque[bytes] = deque()
        self._inbox: deque[Incoming] = deque()
        self._seen: deque[tuple[int, float]] = deque(maxlen=64)
        self._number = 0
        self._photo: tuple[int, _Photo] | None = None
        self._sent: tuple[str, list[wire.FilePacket]] | None = None
        self._pack = wire.FILE_PACK
        self._heard = 0
        """Sound packets for the speaker."""
        self._lights: dict[int | None, str] = {}
        """Orders for the light that are being carried out: number → type."""
        self._numbered = 0

    def set_max_packet(self, size: int) -> None:
        """Set the size of one notification in bytes."""
        self._max_packet = clamp_packet(size)

    # -------------------------------------------------------------- in

    def receive_packet(self, packet: bytes, now: float) -> None:
        """Process one write. Raises nothing but `RemoteViolation`."""
        if channel_of(packet) == wire.SPEAKER:
            self._hear(packet)
            return
        violation: RemoteViolation | None = None
        for frame in self._reader.add(packet, now):
            try:
                if isinstance(frame, wire.FilePacket):
                    raise wire.refuse("a file for glasses that take none")
                if isinstance(frame, wire.Fragment):
                    raise wire.refuse("a fragment for glasses that offered none")
                self._read(layers.read(frame), now)
            except RemoteViolation as bad:
                violation = bad
        skipped, self._reader.skipped = self._reader.skipped, 0
        if violation is not None:
            raise violation
        if skipped:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"{skipped} bytes outside any frame")

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next command."""
        return self._inbox.popleft() if self._inbox else NEED_DATA

    def _command(self, command: Command) -> int:
        self._number += 1
        self._inbox.append(Incoming(command, number=self._number))
        return self._number

    def _hear(self, packet: bytes) -> None:
        _, frames = frames_of(packet)
        self._inbox.append(Incoming(AudioChunk(STREAM, self._heard, frames)))
        self._heard += 1

    def _read(self, message: Json | ChipCommand, now: float) -> None:
        if isinstance(message, ChipCommand):
            self._chip(message)
            return
        mid = layers.number(message.get("mId"), 1, 2**63 - 1)
        if mid is not None and self._acknowledges:
            self._tell({"type": "msg_ack", "mId": mid})
        kind = layers.text(message, "type")
        if kind == "chunked_msg":
            whole = self._joiner.add(message, now)
            if whole is not None and layers.text(whole, "type") != "chunked_msg":
                self._read({**whole, "mId": whole.get("mId")}, now)
            return
        if mid is not None:
            if any(old == mid and now - at < DOUBLE_S for old, at in self._seen):
                return
            self._seen.append((mid, now))
        self._application(kind, message)

    @property
    def _acknowledges(self) -> bool:
        return self._dialect.build >= 5

    def _chip(self, command: ChipCommand) -> None:
        on = command.body.get("enable") is True
        match command.name:
            case "cs_hrt" if self._dialect.chip_ready:
                state = {"ready": int(self.facts.ready), "charg": int(self.facts.charging)}
                self._say(layers.chip("sr_hrt", {"pt": self.facts.battery, **state}))
            case "cs_batv":
                millivolts = 4150 if self.facts.charging else 3400 + 5 * self.facts.battery
                self._say(layers.chip("sr_batv", {"vt": millivolts, "pt": self.facts.battery}))
            case "enable_custom_audio_tx":
                started = StartMicrophone(STREAM, AudioFormat.LC3)
                self._command(started if on else StopMicrophone(STREAM))
            case "enable_custom_audio_rx":
                self._heard = 0
                self._command(StartAudio(STREAM, AudioFormat.LC3) if on else EndAudio(STREAM))

    def _application(self, kind: str, message: Json) -> None:
        if not self.facts.ready:
            return
        match kind:
            case "phone_ready":
                self._tell({"type": "glasses_ready", "timestamp": 0})
            case "ping":
                self._tell({"type": "pong"})
            case "request_version":
                self._say_version()
            case "set_ble_mtu":
                mtu = layers.number(message.get("mtu"), 23, 517)
                if mtu is not None and self._dialect.keeps_mtu:
                    self._pack = wire.pack_size(mtu)
            case "take_photo":
                self._take_photo(message)
            case "request_missing_packets":
                self._send_again(message)
            case "transfer_complete":
                self._sent = self._photo = None
                self._file.clear()
            case _:
                self._order(kind, message)

    def _order(self, kind: str, message: Json) -> None:
        """Carry out an order of `orders.py`; the light is answered when it was."""
        command = command_of(kind, message)
        if command is None:
            return
        number = self._command(command)
        if isinstance(command, BlinkLight | SwitchLightOff):
            self._lights[number] = kind

    def _say_version(self) -> None:
        about = {
            "app_version": self.facts.version,
            "build_number": str(self._dialect.build),
            "device_model": self._dialect.device,
            "android_version": "11",
        }
        self._tell({"type": "version_info_1", **about})
        self._tell({"type": "version_info_3", "serial_number": self.facts.serial})

    # -------------------------------------------------------------- photos

    def _take_photo(self, message: Json) -> None:
        photo = _Photo(layers.text(message, "requestId"), layers.text(message, "bleImgId"))
        if self._photo is not None:
            self._refuse_photo(photo, "CAMERA_BUSY", "a photo is being taken")
        elif self.facts.battery < LOW_BATTERY:
            self._refuse_photo(photo, "BATTERY_LOW", f"Battery too low ({self.facts.battery}%)")
        elif not photo.image or message.get("transferMethod") not in ("ble", "auto"):
            self._refuse_photo(photo, "UPLOAD_SYSTEM_BUSY", "no way to send it")
        else:
            size = layers.text(message, "size")
            known = PhotoSize(size) if size in set(PhotoSize) else PhotoSize.MEDIUM
            self._photo = (self._command(TakePhoto(self._number + 1, known)), photo)

    def _refuse_photo(self, photo: _Photo, code: str, why: str) -> None:
        about = {"requestId": photo.request, "error_code": code, "error_message": why}
        self._tell({"type": "photo_error_response", **about})

    def _send_photo(self, taken: PhotoTaken) -> None:
        if self._photo is None or self._photo[0] != taken.photo:
            raise LocalMisuse(f"photo {taken.photo} was not asked for")
        photo = self._photo[1]
        name = f"{photo.image}.{'avif' if self._dialect.picture == 'avif' else 'jpg'}"
        about = {"requestId": photo.request, "bleImgId": photo.image}
        self._tell({"type": "ble_photo_ready", **about, "compressionDurationMs": 447})
        packets = packets_of(name, taken.jpeg, self._pack, inflated=self._dialect.inflated)
        self._sent = (name, packets)
        self._send_file(packets)

    def _send_file(self, packets: list[wire.FilePacket]) -> None:
        assert self._sent is not None
        name, whole = self._sent
        if self._dialect.announces and len(packets) == len(whole):
            size = whole[0].file_size
            sizes = {"fileName": name, "totalPackets": len(whole), "fileSize": size}
            self._tell({"type": "file_announce", **sizes})
        for packet in packets:
            pieces = wire.cut(packet.pack(), self._notification)
            self._file += [ChannelPacket(piece, wire.FILES) for piece in pieces]

    def _send_again(self, message: Json) -> None:
        asked = message.get("missingPackets")
        if self._sent is None or not isinstance(asked, list):
            return
        name, whole = self._sent
        if layers.text(message, "fileName") != name:
            return
        wanted = {layers.number(each, 0, len(whole) - 1) for each in asked}
        packets = [each for each in whole if each.index in wanted]
        self._send_file(packets if self._dialect.selective else whole)

    # -------------------------------------------------------------- out

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:  # noqa: ARG002 - the contract's
        """Queue an answer or event. Raises `LocalMisuse` for messages these glasses do not have."""
        match message:
            case Failed(detail=why) if self._photo is not None and re == self._photo[0]:
                photo, self._photo = self._photo[1], None
                self._refuse_photo(photo, "CAMERA_CAPTURE_FAILED", why)
            case Done() | Failed() if re in self._lights:
                self._answer_light(self._lights.pop(re), message)
            case Done() | Failed():
                return 0
            case WifiChanged() | WifiFound() | GalleryChanged():
                self._tell(report(message, self._dialect))
            case PhotoTaken():
                self._send_photo(message)
            case PhotoFailed(detail=why) if self._photo is not None:
                photo, self._photo = self._photo[1], None
                self._refuse_photo(photo, "CAMERA_CAPTURE_FAILED", why)
            case Gestured(gesture) if gesture in _TOUCHES:
                self._say(layers.chip("sr_tpevt", {"type": _TOUCHES[gesture]}))
            case Gestured(gesture) if gesture in _PRESSES:
                press = {"buttonId": "camera", "pressType": _PRESSES[gesture]}
                self._tell({"type": "button_press", **press})
            case BatteryChanged(level, charging):
                self.facts.battery, self.facts.charging = level, charging
                self._tell({"type": "battery_status", "percent": level, "charging": charging})
            case MicrophoneChunk(index=at, frames=frames) if {*map(len, frames)} == {FRAME}:
                sound = packet_of(at, frames, self._dialect.sound)
                self._queue(ChannelPacket(sound, wire.MICROPHONE))
            case _:
                raise LocalMisuse(f"a Mentra Live never says {type(message).__name__}")
        return 0

    def _answer_light(self, kind: str, answer: Done | Failed) -> None:
        if not self._dialect.answers_light:
            return
        if isinstance(answer, Failed):
            self._tell({"type": "rgb_led_control_error", "error": answer.detail})
        else:
            self._tell({"type": f"{kind}_response", "success": True})

    @property
    def _notification(self) -> int:
        return min(self._max_packet, wire.MAX_NOTIFICATION)

    @property
    def frames_per_packet(self) -> int:
        """Frames of sound that fit one notification."""
        return (self._notification - 2) // FRAME

    def _tell(self, message: dict[str, Any]) -> None:
        if self._dialect.frames != "v2":
            self._say(layers.wrap_answer(message))
            return
        self._numbered = self._numbered % 0xFFFF + 1
        for part in fragments_of(layers.encode(shorten(message)).encode(), self._numbered):
            for packet in wire.cut(part.pack(), self._notification):
                self._queue(packet)

    def _say(self, payload: bytes) -> None:
        for packet in wire.cut(wire.json_frame(payload, self._dialect.order), self._notification):
            self._queue(packet)

    def _queue(self, packet: bytes) -> None:
        if len(self._out) < MAX_WAITING:
            self._out.append(packet)

    def packets_to_send(self, now: float) -> list[bytes]:  # noqa: ARG002 - the contract's
        """Return what waits, and the next packets of a file."""
        packets, self._out = list(self._out), deque()
        while self._file and len(packets) < FILE_BURST:
            packets.append(self._file.popleft())
        return packets

    def backlog(self) -> int:
        """Bytes that wait to be sent; a file is not counted, since sound does not wait for it."""
        return sum(map(len, self._out))

    def next_timer(self) -> float | None:
        """More of a file is sent at once."""
        return 0.0 if self._file else None

    def handle_timer(self, now: float) -> None:
        """Nothing is due: a central that is silent keeps its connection."""
