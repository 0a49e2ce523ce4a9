"""A simulated Mentra Live: no lens; camera, button, touch pad, microphone and speaker."""

import asyncio
import itertools
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from typing import Any, Final

from PIL import Image

from firmware_bridge import lc3
from firmware_bridge.codecs.mentra_live.conflicts import Dialect
from firmware_bridge.codecs.mentra_live.peripheral import (
    LOW_BATTERY,
    STREAM,
    Facts,
    MentraLiveGlasses,
)
from firmware_bridge.codecs.mentra_live.sound import FRAME, FRAME_S
from firmware_bridge.codecs.mentra_live.wire import MTU, SPEAKER
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    CapabilitiesChanged,
    Command,
    Done,
    EndAudio,
    Event,
    Failed,
    HidingChanged,
    MicrophoneChunk,
    PhotoTaken,
    Reply,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    Transcript,
    WornChanged,
)
from firmware_bridge.models import Model
from firmware_bridge.own_commands import (
    BlinkLight,
    EndStream,
    ForgetWifi,
    GalleryChanged,
    GetGallery,
    GetMotion,
    GetVideo,
    GetWifi,
    HotspotChanged,
    JoinWifi,
    KeepPictures,
    LeaveWifi,
    MotionRead,
    RecordVideo,
    Restart,
    ScanWifi,
    SetHotspot,
    StreamChanged,
    StreamVideo,
    SwitchLightOff,
    VideoChanged,
    WifiChanged,
    WifiFound,
    WifiNetwork,
)
from firmware_bridge.packets import channel_of
from firmware_bridge.sides import Side
from firmware_bridge.sim.gatt import GattIdentity, by_name
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.mentra_live.quirks import dialect
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.peripheral import PHOTO_SIZES, PeripheralLink, PeripheralSession
from firmware_bridge.sim.sound import SpeakerError
from firmware_bridge.sim.time import Pace

NETWORKS: Final = {"Workshop": ("correct horse", -48), "Café": ("", -71)}
"""Wi-Fi networks that simulated glasses hear: name → password ("": open), strength in dBm."""
JOIN_S: Final = 3.0
"""Seconds until the glasses say how joining a network ended (DOC)."""
ADDRESS: Final = "192.168.4.20"
HOTSPOT: Final = HotspotChanged(True, "MentraLive_0001", "stay close", "192.168.43.1")
"""The network of their own."""
STILL: Final = MotionRead((0.0, 0.0, 9.8125), (0.0, 0.0, 0.0))
"""What the motion sensor reads: they lie on a table."""
PHOTO_S: Final = 3.0
"""Seconds to take and code a photo; 12 s were logged for a good one in AVIF."""
_SILENT: Final = (Transcript, CapabilitiesChanged, WornChanged, HidingChanged)
"""Events that these glasses do not report."""


def parts(_model: Model, quirks: Sequence[str]) -> ModelParts:
    """Return the parts of one pair of glasses. Raises `QuirkError`."""
    serve = partial(_serve, dialect(quirks), Facts())
    return ModelParts((None,), serve, more_follow, _identity, MTU)


def more_follow(packet: bytes) -> bool:
    """Return whether more follows: speech has many packets, a long frame more than one."""
    return channel_of(packet) == SPEAKER or not packet.endswith(b"$$")


def _identity(model: Model, _side: Side | None) -> GattIdentity:
    address = address_of(model.key)
    name = f"MENTRA_LIVE_BLE_{address[-5:].replace(':', '')}"
    return by_name(name, address, serial="LIVE-0001")


async def _serve(
    variant: Dialect, facts: Facts, glasses: MockGlasses, _side: Side | None, link: PeripheralLink
) -> None:
    """Serve one central until it disconnects; ignore its errors."""
    facts.battery = glasses.battery
    codec = MentraLiveGlasses(max_packet=link.max_packet, dialect=variant, facts=facts)
    session = LiveSession(glasses, link, codec, variant)
    glasses.begin(session)
    try:
        await session.run()
    finally:
        glasses.end()


class LiveSession(PeripheralSession):
    """One central's connection."""

    def __init__(
        self,
        glasses: MockGlasses,
        link: PeripheralLink,
        codec: MentraLiveGlasses,
        variant: Dialect,
    ) -> None:
        super().__init__(glasses, link, codec)
        self._live = codec
        self._facts = codec.facts
        self._variant = variant
        self._decoder: lc3.Decoder | None = None

    def tell(self, event: Event) -> bool:
        """Queue an event, if these glasses report such."""
        return not isinstance(event, _SILENT) and super().tell(event)

    # -------------------------------------------------------------- Wi-Fi, light, gallery

    def _other(self, command: Command | Event | Reply) -> Reply:
        match command:
            case GetWifi():
                self.tell(self._wifi())
            case ScanWifi():
                found = [WifiNetwork(ssid, dbm, not key) for ssid, (key, dbm) in NETWORKS.items()]
                self.tell(WifiFound(tuple(found[:1]), False))
                self.tell(WifiFound(tuple(found[1:]), True))
            case JoinWifi():
                self._spawn(self._join(command))
            case LeaveWifi():
                self._leave()
            case ForgetWifi(ssid):
                if ssid == self._facts.ssid:
                    self._leave()
            case GetGallery():
                self.tell(self._gallery())
            case KeepPictures(on):
                self._glasses.tell({"event": "setting", "keep_pictures": on})
            case RecordVideo() | GetVideo():
                self.tell(self._video(command))
            case StreamVideo() | EndStream():
                self.tell(self._stream(command))
            case SetHotspot(on):
                self._facts.hotspot = on
                self.tell(HOTSPOT if on else HotspotChanged(False))
                self._glasses.tell({"event": "hotspot", "on": on})
            case GetMotion():
                self.tell(STILL)
            case Restart():
                self._glasses.tell({"event": "restart"})
                self._link.hang_up()
            case BlinkLight(color, times=times, level=level):
                light = {"color": color.value, "times": times, "level": level}
                self._glasses.tell({"event": "light", **light})
            case SwitchLightOff():
                self._glasses.tell({"event": "light", "color": None})
            case _:
                return super()._other(command)
        return Done()

    def _wifi(self) -> WifiChanged:
        ssid = self._facts.ssid
        return WifiChanged(bool(ssid), ssid, ADDRESS if ssid else "")

    async def _join(self, command: JoinWifi) -> None:
        """Join a network that is there, with its password; else stay where they are."""
        await self._glasses.time.rest(JOIN_S)
        if command.ssid in NETWORKS and NETWORKS[command.ssid][0] == command.password:
            self._facts.ssid = command.ssid
        elif self._facts.ssid != command.ssid:
            self._facts.ssid = ""
        self._report_wifi()

    def _leave(self) -> None:
        self._facts.ssid = ""
        self._report_wifi()

    def _report_wifi(self) -> None:
        self.tell(self._wifi())
        self._glasses.tell({"event": "wifi", "ssid": self._facts.ssid})

    # -------------------------------------------------------------- video

    def _gallery(self) -> GalleryChanged:
        """Count nothing while the camera is busy, as they do."""
        facts = self._facts
        busy = "video" if facts.video_at is not None else "stream" if facts.stream else ""
        return (
            GalleryChanged(0, 0, 0, busy)
            if busy
            else GalleryChanged(facts.photos, facts.videos, 4096)
        )

    def _video(self, command: RecordVideo | GetVideo) -> VideoChanged:
        facts, now = self._facts, asyncio.get_running_loop().time()
        since = None if facts.video_at is None else now - facts.video_at
        if isinstance(command, GetVideo):
            return VideoChanged(since is not None, since or 0.0)
        if command.on and since is None:
            if facts.battery < LOW_BATTERY:
                return VideoChanged(False, problem="battery_low")
            facts.video_at = now
        elif not command.on and since is not None:
            facts.video_at, facts.videos = None, facts.videos + 1
        self._glasses.tell({"event": "video", "recording": command.on})
        return VideoChanged(command.on)

    def _stream(self, command: StreamVideo | EndStream) -> StreamChanged:
        facts = self._facts
        if isinstance(command, StreamVideo):
            if not facts.ssid:
                return StreamChanged(False, "error", "no Wi-Fi connection")
            facts.stream = command.url
        elif not facts.stream:
            return StreamChanged(False, "error", "not_streaming")
        else:
            facts.stream = ""
        self._glasses.tell({"event": "stream", "to": facts.stream})
        return StreamChanged(bool(facts.stream), "streaming" if facts.stream else "stopped")

    # -------------------------------------------------------------- camera

    def _photograph(self, number: int | None, order: TakePhoto) -> None:
        self._reply(number, Done())
        self._spawn(self._send_photo(order))

    async def _send_photo(self, command: TakePhoto) -> None:
        await self._glasses.time.rest(PHOTO_S)
        picture = self._glasses.camera.take(*PHOTO_SIZES[command.size])
        if self._variant.picture == "avif":
            picture = await asyncio.to_thread(_as_avif, picture)
        self._glasses.tell({"event": "photo", "bytes": len(picture), "size": command.size.value})
        self.tell(PhotoTaken(command.photo, picture))

    # -------------------------------------------------------------- speaker

    def _sound(self, number: int | None, command: StartAudio | AudioChunk | EndAudio) -> None:
        """Play LC3 sound. The glasses answer nothing, also not that they could not play it."""
        speaker = self._glasses.speaker
        try:
            match command:
                case StartAudio():
                    self._decoder = lc3.Decoder(FRAME)
                    speaker.start(STREAM, AudioFormat.PCM16, lc3.RATE)
                case AudioChunk(frames=frames) if self._decoder is not None:
                    speaker.feed(STREAM, [self._decoder.decode(frame) for frame in frames])
                case EndAudio() if self._decoder is not None:
                    self._decoder = None
                    self._played(number, speaker.flush(STREAM))
        except (SpeakerError, lc3.Lc3Missing) as error:
            self._glasses.tell({"event": "speaker", "problem": str(error), "seconds": 0.0})

    # -------------------------------------------------------------- microphone

    def _listen(self, number: int | None, command: StartMicrophone | StopMicrophone) -> None:
        """Switch the microphone; one that is on already goes on."""
        failed: Failed | None = None
        if isinstance(command, StopMicrophone):
            if self._listening is not None:
                self._listening[1].cancel()
                self._listening = None
        elif why := lc3.why_not():
            failed = Failed("unsupported", why)
        elif self._listening is None:
            self._listening = STREAM, self._spawn(self._hear(STREAM))
        self._reply(number, failed or Done())
        event: dict[str, Any] = {"event": "microphone", "open": self._listening is not None}
        self._glasses.tell(event | ({"problem": failed.detail} if failed else {}))

    async def _hear(self, stream: int) -> None:
        count = self._live.frames_per_packet
        encoder, pace = lc3.Encoder(FRAME), Pace(self._glasses.time, FRAME_S * count)
        with self._glasses.microphone.recording() as read:
            for index in itertools.count():
                await pace.wait()
                pcm = read(count * lc3.FRAME_SAMPLES)
                starts = range(0, len(pcm), lc3.FRAME_BYTES)
                frames = (encoder.encode(pcm[at : at + lc3.FRAME_BYTES]) for at in starts)
                await self._send_sound(MicrophoneChunk(stream, index, tuple(frames)))


def _as_avif(jpeg: bytes) -> bytes:
    coded = BytesIO()
    with Image.open(BytesIO(jpeg)) as picture:
        picture.save(coded, "AVIF", quality=60)
    return coded.getvalue()
