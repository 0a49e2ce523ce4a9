"""Feeds the codec of every model with changed packets of a real conversation, in both roles.

Whatever comes, a codec raises `RemoteViolation` or nothing, and it neither hangs nor grows.
"""

import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from firmware_bridge.catalog import supported
from firmware_bridge.codec import NEED_DATA, Codec, Role
from firmware_bridge.errors import BridgeError, LinkLost, RemoteViolation
from firmware_bridge.messages import (
    App,
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    CaseChanged,
    ClearPage,
    Done,
    EndAudio,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    PhotoTaken,
    Ping,
    SetBrightness,
    SetClock,
    ShowNotification,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    Tile,
    VoiceNote,
    VoiceNoteFetched,
    VoiceNotesChanged,
)
from firmware_bridge.models import Model
from firmware_bridge.own_commands import (
    BlinkLight,
    CalendarEntry,
    ClearNotification,
    DashboardLayout,
    DashboardPane,
    DashboardSeen,
    DeleteVoiceNote,
    EndNavigation,
    EndStream,
    FetchVoiceNote,
    GetMotion,
    GetRunningApp,
    GetVideo,
    GetWifi,
    HotspotChanged,
    LightColor,
    MotionRead,
    Navigate,
    RecordVideo,
    SetCalendar,
    SetDashboard,
    SetDisplayPosition,
    SetHeadUpAction,
    SetHotspot,
    SetLanguage,
    SetMap,
    SetNote,
    SetNotificationTime,
    SetWeather,
    ShowRoute,
    ShowTranslation,
    Sky,
    StartTranslation,
    StreamChanged,
    StreamVideo,
    SwitchLightOff,
    Turn,
    Vibrate,
    VideoChanged,
    WifiChanged,
)
from firmware_bridge.packets import ChannelPacket, channel_of
from firmware_bridge.sides import Side, SideNews, SidePacket

MAX_PACKET: Final = 244
STEP_S: Final = 0.02
"""Seconds of the codec's clock between two packets."""
SLOW_S: Final = 1.0
"""Seconds of CPU that one packet may take, however busy the machine is."""
GROWTH_BYTES: Final = 4 << 20
"""Bytes a codec may hold after all packets: its bounds on messages and photos are below that."""
IN_ORDER: Final = 0.8
UNCHANGED: Final = 0.6
"""Shares of packets that follow the conversation, and that are left as they are."""
FRESH_EVERY: Final = 500
"""Packets after which a new codec takes over: a real connection also ends some time."""
PAGE: Final = ShowPage(
    "fuzz",
    lines=(TextLine(0, "Buy milk"), TextLine(1, "Call the dentist")),
    tiles=(Tile(0, 0, 16, 8, 1, bytes(range(16))),),
)
TEXT: Final = ShowPage("fuzz", lines=PAGE.lines)
COMMANDS: Final = (
    Hello("glassd", "1"),
    TEXT,
    PAGE,
    ClearPage(),
    SetBrightness(40),
    StartMicrophone(1, AudioFormat.LC3),
    StartMicrophone(1, AudioFormat.PCM16),
    StartMicrophone(1, AudioFormat.OPUS),
    TakePhoto(1),
    Ping(),
    StopMicrophone(1),
    StartAudio(1, AudioFormat.PCM16),
    AudioChunk(1, 0, (bytes(640),)),
    EndAudio(1, flush=True),
    ShowNotification(App("a", "A"), "title", "text"),
    ClearNotification(),
    SetDisplayPosition(4, 5),
    SetDashboard(DashboardLayout.DUAL, DashboardPane.MAP),
    SetWeather(1_700_000_000, Sky.RAIN, -5),
    SetCalendar((CalendarEntry("Tea", "16:00", "home"), CalendarEntry("Dinner" * 30))),
    SetMap(),
    SetMap(arrow=Tile(1, 2, 32, 32, 1, bytes(128))),
    SetNote(2, "Milk", "2 l"),
    FetchVoiceNote(1),
    Navigate(Turn.LEFT, "High St", "50 m"),
    ShowRoute(Tile(0, 0, 136, 136, 1, b"\x0f\xff" * 68 + bytes(16 * 136))),
    EndNavigation(),
    StartTranslation("en", "fr"),
    ShowTranslation("Hello", "Bonjour"),
    GetRunningApp(),
    DeleteVoiceNote(1),
    SetHeadUpAction(dashboard=True),
    SetNotificationTime(5),
    SetLanguage("de"),
    GetMotion(),
    BlinkLight(LightColor.GREEN),
    SwitchLightOff(),
    SetClock(1_800_000_000),
    Vibrate(),
    GetWifi(),
    RecordVideo(True),
    GetVideo(),
    StreamVideo("rtmp://192.168.4.2/live"),
    EndStream(),
    SetHotspot(True),
    # again: glasses whose program was still being uploaded were shown the last page only
    TEXT,
    PAGE,
)
VALUES: Final = {"codec": b"\x15", "battery": b"\x57", "features": b"\xff" * 4, "clock": bytes(4)}
"""What channels have when they are read; others have a text."""
EVENTS: Final = (
    Gestured(Gesture.TAP),
    BatteryChanged(57),
    MicrophoneChunk(1, 0, (bytes(range(40)),)),
    PhotoTaken(1, bytes(range(256)) * 8),
    CaseChanged(60, charging=True),
    VoiceNotesChanged((VoiceNote(1, 5, 7), VoiceNote(2, 6, 8))),
    VoiceNoteFetched(1, bytes(range(256)) * 4),
    DashboardSeen(DashboardLayout.FULL, DashboardPane.MAP, 0, unread=0, low_power=True),
    Gestured(Gesture.HEAD_UP),
    MotionRead((0.0, 0.5, 9.8125), (1.0, 0.0, 0.0), (20.0, 0.0, -40.0)),
    WifiChanged(True, "Home", "192.168.4.20"),
    HotspotChanged(True, "Own", "secret", "192.168.43.1"),
    VideoChanged(True),
    StreamChanged(True, "streaming"),
)


@dataclass(frozen=True)
class Target:
    """One codec that is fed: a model in a role, of two-sided glasses one side as peripheral."""

    model: Model
    role: Role
    side: Side | None = None

    @property
    def name(self) -> str:
        return "-".join(filter(None, (self.model.key, self.role, self.side)))

    def make(self) -> Codec[Any]:
        more = {} if self.side is None else {"side": self.side}
        return self.model.codec(MAX_PACKET, role=self.role, **more)


@dataclass
class Findings:
    """What was seen of one target."""

    packets: int = 0
    violations: int = 0
    messages: int = 0
    slowest_s: float = 0.0
    held_bytes: int = 0
    problems: list[str] = field(default_factory=list)


def targets() -> list[Target]:
    """Return every codec: models that share one are tried once."""
    seen: set[Any] = set()
    found = []
    for model in supported():
        if model.codec in seen:
            continue
        seen.add(model.codec)
        found.append(Target(model, Role.CENTRAL))
        sides: tuple[Side | None, ...] = tuple(Side) if model.arms else (None,)
        found += [Target(model, Role.PERIPHERAL, side) for side in sides]
    return found


def feed(target: Target, packets: int, seed: int) -> Findings:
    """Feed so many changed packets, and return what was seen."""
    rng = random.Random(f"{seed} {target.name}")
    seeds = conversation(target)
    found = Findings()
    now = 0.0
    codec = _opened(target, now)
    following = 0
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(packets):
            if number % FRESH_EVERY == 0:
                codec, now, following = _opened(target, 0.0), 0.0, 0
            now += STEP_S
            # mostly in order, so that a codec gets far enough to have something to lose
            in_order = rng.random() < IN_ORDER
            origin = seeds[following % len(seeds)] if in_order else rng.choice(seeds)
            following += in_order
            packet = _changed(rng, origin, seeds, target)
            if not _take(codec, packet, now, found):
                codec, now, following = _opened(target, 0.0), 0.0, 0
            if len(found.problems) > 4:
                break
        found.held_bytes = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    if found.held_bytes > GROWTH_BYTES:
        found.problems.append(f"{found.held_bytes} bytes are held after {found.packets} packets")
    return found


def _take(codec: Codec[Any], packet: Any, now: float, found: Findings) -> bool:
    """Give one packet; return False when the codec ended its connection."""
    found.packets += 1
    began = time.process_time()
    try:
        with suppress(RemoteViolation):
            found.violations += 1
            codec.receive_packet(packet, now)
            found.violations -= 1
        while codec.next_event() is not NEED_DATA:
            found.messages += 1
        codec.packets_to_send(now)
        due = codec.next_timer()
        if due is not None and due <= now:
            codec.handle_timer(now)
    except LinkLost:
        return False
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        found.problems.append(f"{type(error).__name__}: {error} after {_bytes(packet).hex()}")
        return False
    took = time.process_time() - began
    found.slowest_s = max(found.slowest_s, took)
    if took > SLOW_S:
        found.problems.append(f"{took:.2f} s for {_bytes(packet).hex()}")
    return True


# ------------------------------------------------------------------ packets


def conversation(target: Target) -> list[Any]:
    """Return packets that its peer really sends: commands, or the answers to them and events."""
    model, sides = target.model, _sides(target.model)
    central = _opened(Target(model, Role.CENTRAL), 0.0)
    arms = {side: _opened(Target(model, Role.PERIPHERAL, side), 0.0) for side in sides}
    to_arms: list[Any] = []
    to_central: list[Any] = []
    for round_number, command in enumerate((*COMMANDS, *EVENTS)):
        now = round_number * 3.0
        if isinstance(command, COMMAND_KINDS):
            with suppress(BridgeError, ValueError):
                central.send(command, now)
        else:
            for arm in arms.values():
                with suppress(BridgeError, ValueError):
                    arm.send(command, now)
        for step in range(20):
            _exchange(model, central, arms, now + step * STEP_S, to_arms, to_central)
    return (to_central if target.role is Role.CENTRAL else to_arms) or [b"\x00"]


COMMAND_KINDS: Final = tuple({type(command) for command in COMMANDS})


def _exchange(
    model: Model,
    central: Codec[Any],
    arms: dict[Side | None, Codec[Any]],
    now: float,
    to_arms: list[Any],
    to_central: list[Any],
) -> None:
    with suppress(BridgeError):
        central.handle_timer(now)
    for packet in central.packets_to_send(now):
        if isinstance(packet, SideNews):
            continue
        if (value := _value(model, channel_of(_bytes(packet)))) is not None:
            to_central.append(value)
            central.receive_packet(value, now)
            continue
        side, data = (
            (packet.side, packet.data) if isinstance(packet, SidePacket) else (None, packet)
        )
        to_arms.append(data)
        with suppress(BridgeError):
            arms[side].receive_packet(data, now)
    for side, arm in arms.items():
        due = arm.next_timer()
        if due is not None and due <= now:
            with suppress(BridgeError):
                arm.handle_timer(now)
        _answer(arm, now)
        for data in arm.packets_to_send(now):
            packet = data if side is None else SidePacket(side, data)
            to_central.append(packet)
            with suppress(BridgeError):
                central.receive_packet(packet, now)
    while central.next_event() is not NEED_DATA:
        pass


def _value(model: Model, name: str) -> ChannelPacket | None:
    """Return the value of a channel, if a packet to it reads it: glasses' codecs never see that."""
    for channel in model.gatt.channels:
        if channel.name == name and not (channel.write or channel.on_request):
            return ChannelPacket(VALUES.get(name, b"a text"), name)
    return None


def _answer(arm: Codec[Any], now: float) -> None:
    """Answer what an arm was asked, as simulated glasses do."""
    while (incoming := arm.next_event()) is not NEED_DATA:
        reply: Any = Done(drawn=1)
        if isinstance(incoming.message, Hello):
            reply = GlassesInfo("fuzz", "1.0", "S1", {"display": True}, {"window": 32})
        with suppress(BridgeError):
            arm.send(reply, now, re=incoming.number)


def _opened(target: Target, now: float) -> Codec[Any]:
    codec = target.make()
    if target.role is Role.CENTRAL:
        for side in _sides(target.model):
            if side is not None:
                codec.receive_packet(SideNews(side, up=True), now)
        for channel in target.model.gatt.channels:
            if channel.first:
                codec.receive_packet(_value(target.model, channel.name), now)
        microphones = (StartMicrophone(1, form) for form in (AudioFormat.LC3, AudioFormat.OPUS))
        for command in (COMMANDS[0], *microphones, TakePhoto(1)):
            with suppress(BridgeError, ValueError):
                codec.send(command, now)
    return codec


def _sides(model: Model) -> tuple[Side | None, ...]:
    return tuple(Side) if model.arms else (None,)


def _bytes(packet: Any) -> bytes:
    return (
        packet.data
        if isinstance(packet, SidePacket)
        else b""
        if isinstance(packet, SideNews)
        else packet
    )


def _changed(rng: random.Random, origin: Any, seeds: list[Any], target: Target) -> Any:
    """Return a packet with some change, or none; now and then pure noise."""
    data = _bytes(origin)
    change = _same if rng.random() < UNCHANGED else rng.choice(_CHANGES)
    changed = bytes(change(rng, data, _bytes(rng.choice(seeds))))[:512]
    names = [channel.name for channel in target.model.gatt.channels]
    channel = channel_of(data)
    if names and rng.random() < 0.05:
        channel = rng.choice(["", *names])
    result: Any = ChannelPacket(changed, channel) if channel else changed
    if isinstance(origin, SidePacket):
        return SidePacket(origin.side if rng.random() < 0.9 else origin.side.other, result)
    return result


Change = Callable[[random.Random, bytes, bytes], bytes]


def _flip(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))
            )
    return bytes(changed)


def _cut(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def _join(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def _noise(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    return data[: rng.randint(0, 4)] + rng.randbytes(rng.randint(0, MAX_PACKET))


def _grown(rng: random.Random, data: bytes, _other: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.randint(1, 8)) + data[at:]


def _same(_rng: random.Random, data: bytes, _other: bytes) -> bytes:
    return data


_CHANGES: Final[tuple[Change, ...]] = (_flip, _flip, _cut, _join, _noise, _grown)


def all_findings(packets: int, seed: int, *, only: str = "") -> Iterator[tuple[Target, Findings]]:
    """Feed every codec, or those of models whose key begins with `only`."""
    for target in targets():
        if target.model.key.startswith(only):
            yield target, feed(target, packets, seed)
