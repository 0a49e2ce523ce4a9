"""Golden packets of the Even G1: what goes over the air, byte by byte, each with the row of the
fact sheet it stands on.

It computes nothing: bytes are written out as the sheet has them. § are sections of the sheet, tags
its sources.
"""

from dataclasses import dataclass
from typing import Any, Final

from firmware_bridge.messages import (
    App,
    AudioFormat,
    BatteryChanged,
    ClearPage,
    DoubleTap,
    ExitToDashboard,
    Gesture,
    Gestured,
    Hiding,
    HidingChanged,
    MicrophoneChunk,
    PageClosed,
    Ping,
    SetBrightness,
    SetClock,
    SetDebugLog,
    SetDoubleTap,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    ShowNotification,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TextLine,
    WornChanged,
)
from firmware_bridge.own_commands import DashboardLayout, DashboardPane, DashboardSeen
from firmware_bridge.sides import Side

L, R = Side.LEFT, Side.RIGHT
BOTH = (L, R)
SOURCES: Final = frozenset(
    {"ED", "ED#37", "ED#44", "EG", "GF", "FP", "G1B", "MA", "MI", "LO", "WK", "WK-cap", "GB"}
)
"""The sheet's own tags, §0."""


def b(text: str, *, pad: int = 0) -> bytes:
    return bytes.fromhex(text).ljust(pad, b"\0")


@dataclass(frozen=True)
class Said:
    """A command, the packets it becomes, the arms that get them, and `heard`: what an arm makes
    of them (None: nothing).
    """

    name: str
    row: str
    command: Any
    packets: tuple[bytes, ...]
    sides: tuple[Side, ...] = BOTH
    heard: Any = "the command"


@dataclass(frozen=True)
class Told:
    """A packet of an arm and the events it means. `cut`: the shortest beginning that still means
    them; `tail`: junk may follow.
    """

    name: str
    row: str
    side: Side
    packet: bytes
    events: tuple[Any, ...] = ()
    cut: int | None = None
    tail: bool = True


@dataclass(frozen=True)
class Asked:
    """A question any host may ask, and what an arm answers by itself."""

    name: str
    row: str
    packet: bytes
    answer: bytes


_CHAT: Final = App("com.chat", "Chat")
_NOTE: Final = (
    b'{"ncs_notification":{"msg_id":1,"app_identifier":"com.chat","title":"Ann","subtitle":"","message":"Hi",'
    b'"time_s":1735689600,"display_name":"Chat"}}'
)

SAID: Final = (
    Said(
        "text",
        "§6 header: seq total index newscreen pos page max; 71 plain text (ED)",
        ShowPage("s", lines=(TextLine(0, "Hi"),)),
        (b("4E 00 01 00 71 00 00 01 01") + b"Hi\n",),
        heard=ShowPage("g1", lines=(TextLine(0, "Hi"),)),
    ),
    Said(
        "text-second-of-three",
        "§6 page, max_page: pages count from 1 (ED)",
        ShowPage("s", 2, 3, (TextLine(0, "Hi"),)),
        (b("4E 00 01 00 71 00 00 02 03") + b"Hi\n",),
        heard=ShowPage("g1", 2, 3, (TextLine(0, "Hi"),)),
    ),
    Said(
        "text-lower-rows",
        "§6 ED page building: each line ends with LF, empty LFs above it (ED)",
        ShowPage("s", lines=(TextLine(2, "Hi"), TextLine(4, "you"))),
        (b("4E 00 01 00 71 00 00 01 01") + b"\n\nHi\n\nyou\n",),
        heard=ShowPage("g1", lines=(TextLine(2, "Hi"), TextLine(4, "you"))),
    ),
    Said(
        "text-two-packets",
        "§6 payload per packet: 191 bytes, cut by bytes; "
        "a character may be split (ED, vector g1-text-evendemo-utf8split)",
        ShowPage("s", lines=(TextLine(0, "x" * 190 + "é"),)),
        (
            b("4E 00 02 00 71 00 00 01 01") + b"x" * 190 + b"\xc3",
            b("4E 00 02 01 71 00 00 01 01") + b"\xa9\n",
        ),
        heard=ShowPage("g1", lines=(TextLine(0, "x" * 190 + "é"),)),
    ),
    Said("exit", "§5 18: leave feature, both arms (ED)", ClearPage(), (b("18"),)),
    Said(
        "dashboard-exit",
        "§5 18: go to dashboard (ED)",
        ExitToDashboard(),
        (b("18"),),
        heard=ClearPage(),
    ),
    Said(
        "brightness-half",
        "§5 01: 0..2Ah (WK, GB)",
        SetBrightness(50),
        (b("01 15 00"),),
        heard=SetBrightness(50),
    ),
    Said("brightness-full", "§5 01: 0..2Ah (WK, GB)", SetBrightness(100), (b("01 2A 00"),)),
    Said("brightness-auto", "§5 01: auto 0/1 (WK)", SetBrightness(0, auto=True), (b("01 00 01"),)),
    Said("silent-on", "§5 03: 03 0C silent on (WK)", SetSilentMode(on=True), (b("03 0C"),)),
    Said("silent-off", "§5 03: 03 0A off (WK)", SetSilentMode(on=False), (b("03 0A"),)),
    Said(
        "wear-on", "§5 27 01: wear detection (EG, MA, WK)", SetWearDetection(on=True), (b("27 01"),)
    ),
    Said(
        "wear-off",
        "§5 27 00: wear detection (EG, MA, WK)",
        SetWearDetection(on=False),
        (b("27 00"),),
    ),
    Said("angle", "§5 0B angle 01, 0..3Ch (EG)", SetHeadUpAngle(30), (b("0B 1E 01"),)),
    Said("angle-steepest", "§5 0B angle 01, 0..3Ch (EG)", SetHeadUpAngle(60), (b("0B 3C 01"),)),
    Said(
        "microphone-on",
        "§5 0E 01, right arm (ED, MA, FP)",
        StartMicrophone(0, AudioFormat.LC3),
        (b("0E 01"),),
        (R,),
    ),
    Said(
        "heartbeat",
        "§13 capture 25 06 00 00 04 00 (ED#44)",
        Ping(),
        (b("25 06 00 00 04 00"),),
        heard=None,
    ),
    Said(
        "clock",
        "§9 sub 01: u32 LE seconds, u64 LE milliseconds, icon, "
        "temperature, unit, hours; 15h bytes in all (FP, GB)",
        SetClock(0x67748580, twelve_hour=True),
        (b("06 15 00 01 01 80 85 74 67 00 7C 29 1F 94 01 00 00 00 00 00 01"),),
    ),
    Said(
        "double-tap",
        "§5 26 06 00 seq sub action, 04 dashboard (WK)",
        SetDoubleTap(DoubleTap.DASHBOARD),
        (b("26 06 00 01 05 04"),),
    ),
    Said("debug-on", "§5 23 6C 00 (WK)", SetDebugLog(on=True), (b("23 6C 00"),), heard=None),
    Said("debug-off", "§5 23 6C C1 (WK)", SetDebugLog(on=False), (b("23 6C C1"),), heard=None),
    Said(
        "notification",
        "§8 notification: 4B id total index + JSON, id runs from 1, left arm (ED)",
        ShowNotification(_CHAT, "Ann", "Hi", at=1735689600),
        (b("4B 01 01 00") + _NOTE,),
        (L,),
        ShowNotification(_CHAT, "Ann", "Hi", at=1735689600, number=1),
    ),
)

STOPPED: Final = Said(
    "microphone-off", "§5 0E 00 (ED, MA, FP)", StopMicrophone(0), (b("0E 00"),), (R,)
)
"""Said only after `microphone-on`."""

_FRAMES: Final = tuple(bytes((at,)) * 20 for at in range(10))

_SEEN: Final = HidingChanged(Hiding.SILENT, hidden=False)

TOLD: Final = (
    Told(
        "battery-one",
        "§11 Reply A, captured: byte 2 is percent (G1B)",
        L,
        b("2C 66 5E 00 E6 A0 19 00 00 00 01 05 00", pad=20),
        (BatteryChanged(0x5E, side=L),),
        3,
    ),
    Told(
        "battery-one-right",
        "§11 Reply A: of the arm that answers (G1B, MA, LO)",
        R,
        b("2C 66 5E", pad=20),
        (BatteryChanged(0x5E, side=R),),
        3,
    ),
    Told(
        "battery-both",
        "§11 Reply B: 2C A left right … (WK, GB)",
        L,
        b("2C 41 32 33 00 00 00 01 06 00 01 06 00"),
        (BatteryChanged(50, side=L), BatteryChanged(51, side=R)),
        4,
    ),
    Told(
        "battery-both-square",
        "§11 Reply B: B is the square frame (WK, GB)",
        R,
        b("2C 42 32 33"),
        (BatteryChanged(50, side=L), BatteryChanged(51, side=R)),
        4,
    ),
    Told(
        "double-tap",
        "§15 00 (ED, WK, GB)",
        L,
        b("F5 00", pad=20),
        (Gestured(Gesture.DOUBLE_TAP, L), PageClosed()),
        2,
    ),
    Told("tap-left", "§15 01 (ED, WK, GB)", L, b("F5 01"), (Gestured(Gesture.TAP, L),), 2),
    Told("tap-right", "§15 01 (ED, WK, GB)", R, b("F5 01"), (Gestured(Gesture.TAP, R),), 2),
    Told(
        "head-up",
        "§15 02 (ED, WK, GB)",
        R,
        b("F5 02"),
        (HidingChanged(Hiding.LOOKED_UP, hidden=True), Gestured(Gesture.HEAD_UP)),
        2,
    ),
    Told(
        "head-down",
        "§15 03 (ED, WK, GB)",
        R,
        b("F5 03"),
        (HidingChanged(Hiding.LOOKED_UP, hidden=False), Gestured(Gesture.HEAD_DOWN)),
        2,
    ),
    Told(
        "silent-on",
        "§15 04: triple tap (ED, WK, GB)",
        L,
        b("F5 04"),
        (HidingChanged(Hiding.SILENT, hidden=True),),
        2,
    ),
    Told(
        "silent-off",
        "§15 05: triple tap (ED, WK, GB)",
        L,
        b("F5 05"),
        (HidingChanged(Hiding.SILENT, hidden=False),),
        2,
    ),
    Told("worn", "§15 06 (ED, WK, GB)", R, b("F5 06"), (WornChanged(worn=True),), 2),
    Told("not-worn", "§15 07 (ED, WK, GB)", R, b("F5 07"), (WornChanged(worn=False),), 2),
    Told("in-case-open", "§15 08 (ED, WK, GB)", L, b("F5 08"), (WornChanged(worn=False),), 2),
    Told("in-case-closed", "§15 0B (WK)", L, b("F5 0B"), (WornChanged(worn=False),), 2),
    Told(
        "battery-event",
        "§15 0A 00..64h: this arm's battery (WK)",
        R,
        b("F5 0A 64"),
        (BatteryChanged(100, side=R),),
        3,
    ),
    Told(
        "charging-unknown",
        "§15 09: this arm charging, before its charge is known (WK)",
        L,
        b("F5 09 01"),
    ),
    Told("paired", "§15 11: BLE pairing done, uncertain (WK)", L, b("F5 11")),
    Told(
        "long-press",
        "§15 17: left long press (ED)",
        L,
        b("F5 17"),
        (Gestured(Gesture.BUTTON_LONG, L),),
        2,
    ),
    Told("long-press-over", "§15 18: release (ED)", L, b("F5 18")),
    Told(
        "dashboard-opened",
        "§15 1E: by double tap (WK)",
        R,
        b("F5 1E"),
        (HidingChanged(Hiding.DASHBOARD, hidden=True),),
        2,
    ),
    Told(
        "dashboard-closed",
        "§15 1F: by double tap (WK)",
        R,
        b("F5 1F"),
        (HidingChanged(Hiding.DASHBOARD, hidden=False),),
        2,
    ),
    Told(
        "double-tap-bound",
        "§15 20: bound to translate or transcribe (WK)",
        R,
        b("F5 20"),
        (Gestured(Gesture.DOUBLE_TAP, R), PageClosed()),
        2,
    ),
    Told(
        "state-worn",
        "§5 2B 69 0C/0A state: 06 worn (WK)",
        L,
        b("2B 69 0A 06", pad=20),
        (_SEEN, WornChanged(worn=True)),
        4,
    ),
    Told(
        "state-in-case",
        "§5 2B: 0A case closed (WK)",
        L,
        b("2B 69 0A 0A", pad=20),
        (_SEEN, WornChanged(worn=False)),
        4,
    ),
    Told(
        "state-silent",
        "§5 2B 69 0C: silent (WK)",
        L,
        b("2B 69 0C 06", pad=20),
        (HidingChanged(Hiding.SILENT, hidden=True), WornChanged(worn=True)),
        4,
    ),
    Told(
        "brightness-none",
        "§5 29 65 level auto (WK)",
        R,
        b("29 65 00 00", pad=20),
        (HidingChanged(Hiding.DARK, hidden=True),),
        4,
    ),
    Told(
        "brightness-automatic",
        "§5 29 65 level auto (WK)",
        R,
        b("29 65 00 01", pad=20),
        (HidingChanged(Hiding.DARK, hidden=False),),
        4,
    ),
    Told(
        "looked-up",
        "§9 capture 22 0A 00 00 01 00 01 00 04 00: unread 0, low power, full, map (WK-cap)",
        L,
        b("22 0A 00 00 01 00 01 00 04 00"),
        (DashboardSeen(DashboardLayout.FULL, DashboardPane.MAP, 0, unread=0, low_power=True),),
        9,
    ),
    Told("log-line", "§15 F4 + NUL-ended ASCII (WK)", L, b("F4") + b"log line\0"),
    Told(
        "calibrated",
        "§5 10: another such packet when the wearer confirms (WK-cap)",
        L,
        b("10 06 00 04 01 C9", pad=20),
    ),
)

SOUND: Final = Told(
    "sound",
    "§14 F1 seq + 200 bytes, 10 frames of 20 (ED)",
    R,
    b("F1 00") + b"".join(_FRAMES),
    (MicrophoneChunk(0, 0, _FRAMES),),
    tail=False,
)
"""Told only while the microphone is open."""

ASKED: Final = (
    Asked("exit", "§3 18 C9 + 18 zeros (G1B, WK-cap)", b("18"), b("18 C9", pad=20)),
    Asked("notifications", "§3 4F C9 + 18 zeros (WK-cap)", b("4F 01 05"), b("4F C9", pad=20)),
    Asked(
        "calibrate",
        "§3 10 06 00 04 01 C9 + 14 zeros (WK-cap)",
        b("10 05 00 04 01"),
        b("10 06 00 04 01 C9", pad=20),
    ),
    Asked("heartbeat", "§13 echo the 6 bytes (ED)", b("25 06 00 07 04 07"), b("25 06 00 07 04 07")),
    Asked(
        "heartbeat-other-order",
        "§13 25 06 s 00 04 s (MA)",
        b("25 06 07 00 04 07"),
        b("25 06 07 00 04 07"),
    ),
    Asked("heartbeat-short", "§13 25 s, later builds (MI)", b("25 07"), b("25 07")),
    Asked(
        "battery",
        "§11 Reply A (G1B)",
        b("2C 01"),
        b("2C 66 57 00 E6 A0 19 00 00 00 01 05 00", pad=20),
    ),
    Asked(
        "battery-ios",
        "§11 2C 02, iOS style (MI)",
        b("2C 02"),
        b("2C 66 57 00 E6 A0 19 00 00 00 01 05 00", pad=20),
    ),
    Asked(
        "battery-bare",
        "§11 bare 2C (G1B)",
        b("2C"),
        b("2C 66 57 00 E6 A0 19 00 00 00 01 05 00", pad=20),
    ),
    Asked(
        "serial",
        "§11 34: 34 34 + 14 ASCII; ED reads bytes 2 to 17",
        b("34"),
        b("34 34") + b"S100LAAL103842" + b("00 00"),
    ),
    Asked(
        "running-app",
        "§5 39 05 00 seq 01 value, 6 bytes, not padded (WK-cap)",
        b("39 05 00 09 01"),
        b("39 05 00 09 01 00"),
    ),
    Asked(
        "echo",
        "§5 50 06 00 00 01 01 echoed (WK-cap, FP)",
        b("50 06 00 00 01 01"),
        b("50 06 00 00 01 01"),
    ),
    Asked("state", "§5 2B 69 0A state, 06 worn (WK)", b("2B"), b("2B 69 0A 06", pad=20)),
    Asked("brightness-get", "§5 29 65 level auto (WK)", b("29"), b("29 65 15 00", pad=20)),
    Asked("angle-get", "§5 32 C9 angle (WK)", b("32"), b("32 C9 1E", pad=20)),
    Asked("wear-get", "§5 3A C9 0/1 (WK)", b("3A"), b("3A C9 01", pad=20)),
    Asked("channel", "§5 35 C9 ch (WK)", b("35"), b("35 C9 2F", pad=20)),
    Asked("pending", "§5 36 C9 n (WK)", b("36"), b("36 C9 00", pad=20)),
    Asked(
        "uptime",
        "§5 37 + 4 bytes, sample 49 1A 00 00 (WK)",
        b("37"),
        b("37 49 1A 00 00 00", pad=20),
    ),
    Asked(
        "settings", "§5 26 06 00 seq sub C9 (WK)", b("26 06 00 03 07 01"), b("26 06 00 03 07 C9")
    ),
    Asked(
        "note",
        "§10 reply 1E len 00 seq 03 01 00 01 00 00, 10 bytes (WK-cap)",
        b("1E 10 00 E0 03 01 00 01 00 01 00 01 00 01 00 00"),
        b("1E 10 00 E0 03 01 00 01 00 00"),
    ),
    Asked(
        "clock",
        "§9 reply not padded, 00 is success (WK-cap)",
        b("06 15 00 01 01 80 85 74 67 00 7C 29 1F 94 01 00 00 00 00 00 01"),
        b("06 15 00 01 01 01 00 01 00 00"),
    ),
    Asked("first-android", "§2 F4 01 (ED)", b("F4 01"), b("F4 C9", pad=20)),
    Asked("first-ios", "§2 4D 01 (ED)", b("4D 01"), b("4D C9", pad=20)),
    Asked("first-mtu", "§2 4D FB, generic reply (WK, MA)", b("4D FB"), b("4D C9", pad=20)),
    Asked(
        "text-packet",
        "§16 4: answer 4E packets with C9 (ED)",
        b("4E 00 02 00 71 00 00 01 01 48"),
        b("4E C9", pad=20),
    ),
    Asked("picture-end", "§7 step 2: 20 C9 (ED)", b("20 0D 0E"), b("20 C9", pad=20)),
    Asked(
        "whitelist-goes-on",
        "§8 intermediate packets are answered CB (GB)",
        b("04 02 00 7B"),
        b("04 CB", pad=20),
    ),
    Asked("unknown", "§3 CA refused (ED)", b("7F 01"), b("7F CA", pad=20)),
)
EVERYTHING: Final = (*SAID, STOPPED, *TOLD, SOUND, *ASKED)
