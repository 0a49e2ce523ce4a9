"""A Mentra Live, peripheral role, for the simulator and the tests: its chip and its application."""

from collections import deque
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from firmware_bridge.codec import NEED_DATA, Incoming, _NeedData
from firmware_bridge.codecs.mentra_live import layers, stream, wire
from firmware_bridge.codecs.mentra_live.answers import answers_to
from firmware_bridge.codecs.mentra_live.conflicts import STOCK, Dialect
from firmware_bridge.codecs.mentra_live.files import packets_of
from firmware_bridge.codecs.mentra_live.fragments import (
    OFFER,
    FragmentJoiner,
    fragments_of,
    shorten,
)
from firmware_bridge.codecs.mentra_live.layers import ChipCommand, Json
from firmware_bridge.codecs.mentra_live.orders import command_of
from firmware_bridge.codecs.mentra_live.reports import message_of
from firmware_bridge.codecs.mentra_live.sound import FRAME, MAX_FRAMES, frames_of, packet_of
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
    HotspotChanged,
    MotionRead,
    StreamChanged,
    SwitchLightOff,
    VideoChanged,
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
ACK_S: Final = 2.0
"""Seconds that a file waits for the phone to say which packet it expects."""
LOW_BATTERY: Final = 10
"""Percent below which the camera refuses (DOC)."""
_SIZES: Final = {
    **dict.fromkeys(("small", "low"), PhotoSize.SMALL),
    **dict.fromkeys(("large", "high", "full", "max"), PhotoSize.LARGE),
}
"""By the words of both ages."""
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
    video_at: float | None = None
    """When the video that is being recorded began."""
    stream: str = ""
    """The address that the camera is streamed to."""
    hotspot: bool = False


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
        # the order of a length is not looked at by older glasses, later ones take both
        self._readers = {name: wire.FrameReader("little", "big") for name in ("", wire.TO_FILES)}
        self._fragments = FragmentJoiner()
        self._joiner = layers.Joiner()
        self._out: deque[bytes] = deque()
        self._file: deque[bytes] = deque()
        """Packets of a file; an empty one: wait for the phone."""
        self._file_at = 0.0
        """When the file goes on."""
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
        reader = self._readers.get(channel_of(packet))
        if reader is None:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"a packet of {channel_of(packet)!r}")
        reader.feed(packet, now, self._frame, lenient=False)

    def _frame(self, frame: wire.Frame, now: float) -> None:
        if isinstance(frame, wire.FilePacket):
            raise wire.refuse("a file for glasses that take none")
        if not isinstance(frame, wire.Fragment):
            self._read(layers.read(frame), now)
        elif self._dialect.frames != "v2":
            return  # builds without such frames are silent
        elif frame.flags & wire.HANDSHAKE:
            self._queue(OFFER.pack())
        elif (whole := self._fragments.add(frame)) is not None:
            self._read(whole, now)

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
        whole = self._joiner.join(message, now)
        if whole is None:
            return
        if whole is not message:
            self._read(whole, now)
            return
        kind = layers.text(message, "type")
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
            case "cs_flts":
                self._file_at = 0.0
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
                self._tell_networks()
            case "request_version":
                self._say_version()
            case "request_battery_state":
                self._tell_battery()
            case "set_ble_mtu":
                mtu = layers.number(message.get("mtu"), 23, 517)
                if mtu is not None and self._dialect.keeps_mtu:
                    self._pack = wire.pack_size(mtu)
            case "take_photo":
                self._take_photo(message)
            case "request_missing_packets":
                self._send_again(message)
            case "transfer_complete" | "ble_photo_transfer_complete":
                self._sent = self._photo = None
                self._file.clear()
            case _:
                self._order(kind, message)

    def _order(self, kind: str, message: Json) -> None:
        """Carry out an order of `orders.py`; the light is answered when it was."""
        name = self._dialect.stream
        command = stream.command_of(kind, message, name) or command_of(kind, message)
        if command is None:
            for answer in answers_to(kind, message, online=bool(self.facts.ssid)):
                self._tell(answer)
            self._about_stream(kind, message)
            return
        number = self._command(command)
        if isinstance(command, BlinkLight | SwitchLightOff):
            self._lights[number] = kind

    def _about_stream(self, kind: str, message: Json) -> None:
        name, is_on = self._dialect.stream, bool(self.facts.stream)
        if kind == f"keep_{name}_alive" and is_on:
            ids = {key: layers.text(message, key) for key in ("streamId", "ackId")}
            self._tell({"type": "keep_alive_ack", **ids})
        elif kind in ("get_stream_status", "get_rtmp_status"):
            state = StreamChanged(is_on, "streaming" if is_on else "stopped")
            self._tell(message_of(state, self._dialect))

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
        elif self.facts.video_at is not None:
            self._refuse_photo(photo, "VIDEO_RECORDING_ACTIVE", "a video is being recorded")
        elif self.facts.battery < LOW_BATTERY:
            self._refuse_photo(photo, "BATTERY_LOW", f"Battery too low ({self.facts.battery}%)")
        elif not photo.image or message.get("transferMethod") not in ("ble", "auto"):
            self._refuse_photo(photo, "UPLOAD_SYSTEM_BUSY", "no way to send it")
        else:
            known = _SIZES.get(layers.text(message, "size"), PhotoSize.MEDIUM)
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
        batched = self._dialect.batched
        for at, packet in enumerate(packets, 1):
            flagged = replace(packet, flags=wire.BATCHED) if batched else packet
            pieces = wire.cut(flagged.pack(), self._notification)
            self._file += [ChannelPacket(piece, wire.FILES) for piece in pieces]
            if batched and at % wire.BATCH == 0:
                self._file.append(b"")

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
            case (
                WifiChanged()
                | WifiFound()
                | GalleryChanged()
                | HotspotChanged()
                | VideoChanged()
                | StreamChanged()
                | MotionRead()
            ):
                self._tell(message_of(message, self._dialect))
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
                self._tell_battery()
            case MicrophoneChunk(index=at, frames=frames) if {*map(len, frames)} == {FRAME}:
                sound = packet_of(at, frames, self._dialect.sound)
                for piece in wire.cut(sound, self._notification):
                    self._queue(ChannelPacket(piece, wire.MICROPHONE))
            case _:
                raise LocalMisuse(f"a Mentra Live never says {type(message).__name__}")
        return 0

    def _tell_networks(self) -> None:
        """Report both networks, as they do once they are ready."""
        wifi = WifiChanged(bool(self.facts.ssid), self.facts.ssid)
        self._tell(message_of(wifi, self._dialect))
        hotspot = {"hotspot_enabled": self.facts.hotspot}
        self._tell({"type": "hotspot_status_update", **hotspot})

    def _tell_battery(self) -> None:
        state = {"percent": self.facts.battery, "charging": self.facts.charging}
        self._tell({"type": "battery_status", **state})

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
        """Frames of sound in one packet."""
        return MAX_FRAMES if self._dialect.cuts_sound else (self._notification - 2) // FRAME

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

    def packets_to_send(self, now: float) -> list[bytes]:
        """Return what waits, and the next packets of a file."""
        packets, self._out = list(self._out), deque()
        while self._file and len(packets) < FILE_BURST and self._file_at <= now:
            piece = self._file.popleft()
            if piece:
                packets.append(piece)
            else:
                self._file_at = now + ACK_S
        return packets

    def backlog(self) -> int:
        """Bytes that wait to be sent; a file is not counted, since sound does not wait for it."""
        return sum(map(len, self._out))

    def next_timer(self) -> float | None:
        """More of a file is sent at once, or after a wait for the phone."""
        return self._file_at if self._file else None

    def handle_timer(self, now: float) -> None:
        """Nothing is due: a central that is silent keeps its connection."""
