"""Golden packets of the Even G1's own functions: display position, dashboard, notes, translation,
navigation, and what is asked of it rarely. Written out from the fact sheet, as those in
g1_golden.py.
"""

from typing import Final

from firmware_bridge.messages import (
    BatteryChanged,
    ButtonReleased,
    CaseChanged,
    Hiding,
    HidingChanged,
    PageState,
    RunningAppChanged,
    ShowPage,
    TextLine,
    Tile,
    VoiceNote,
    VoiceNotesChanged,
    WornChanged,
)
from firmware_bridge.own_commands import (
    CalendarEntry,
    ClearNotification,
    DashboardLayout,
    DashboardPane,
    DashboardSeen,
    EndNavigation,
    GetRunningApp,
    Navigate,
    Restart,
    SetCalendar,
    SetDashboard,
    SetDisplayPosition,
    SetHeadUpAction,
    SetLanguage,
    SetMap,
    SetNote,
    SetNotificationTime,
    SetWeather,
    Sky,
    Turn,
)
from tests.codecs.g1_golden import Asked, L, R, Said, Told, b

_HI: Final = (TextLine(0, "Hi"),)
_ARROW: Final = bytes(range(128))
_FIRMWARE: Final = (
    b"net build time: 2024-12-28 20:21:57, app build time 2024-12-28 20:20:45, "
    b"ver 1.4.5, JBD DeviceID 4010"
)

OWN_SAID: Final = (
    Said(
        "text-turned",
        "§6 newscreen: 51, AI manual (ED)",
        ShowPage("s", lines=_HI, state=PageState.TURNED),
        (b("4E 00 01 00 51 00 00 01 01") + b"Hi\n",),
        heard=ShowPage("g1", lines=_HI, state=PageState.TURNED),
    ),
    Said(
        "text-network-error",
        "§6 newscreen: 61, network error (ED)",
        ShowPage("s", lines=_HI, state=PageState.NETWORK_ERROR),
        (b("4E 00 01 00 61 00 00 01 01") + b"Hi\n",),
        heard=ShowPage("g1", lines=_HI, state=PageState.NETWORK_ERROR),
    ),
    Said(
        "position-shown",
        "§5 26 08 00 seq 02 preview height depth (MA, WK)",
        SetDisplayPosition(8, 9, preview=True),
        (b("26 08 00 01 02 01 08 09"),),
    ),
    Said(
        "head-up-opens-nothing",
        "§5 08 06 00 seq 03/04 action: 04 = both, 02 nothing (WK)",
        SetHeadUpAction(dashboard=False),
        (b("08 06 00 01 04 02"),),
    ),
    Said(
        "head-up-opens-dashboard",
        "§5 08 06 00 seq 03/04 action: 00 dashboard (WK)",
        SetHeadUpAction(dashboard=True),
        (b("08 06 00 01 04 00"),),
    ),
    Said(
        "language",
        "§5 3D 06 00 seq 01 lang, 06 de (WK, GB)",
        SetLanguage("de"),
        (b("3D 06 00 01 01 06"),),
    ),
    Said(
        "notification-time",
        "§5 4F enable seconds (WK, WK-cap)",
        SetNotificationTime(9),
        (b("4F 01 09"),),
    ),
    Said(
        "notifications-never",
        "§5 4F enable seconds (WK, WK-cap)",
        SetNotificationTime(0),
        (b("4F 00 00"),),
    ),
    Said("restart", "§5 23 72 restart, no reply (WK, GB)", Restart(), (b("23 72"),)),
    Said(
        "running-app",
        "§5 39 05 00 seq 01 (WK-cap)",
        GetRunningApp(),
        (b("39 05 00 01 01"),),
        heard=None,
    ),
    Said(
        "clear-notification",
        "§5 4C, sample 4C 00 00 00 1B (WK)",
        ClearNotification(0x1B),
        (b("4C 00 00 00 1B"),),
        (L,),
    ),
    Said(
        "dashboard-full-notes",
        "§9 sub 06: 06 07 00 08 06 00 00, full, notes (FP, WK)",
        SetDashboard(DashboardLayout.FULL, DashboardPane.NOTES),
        (b("06 07 00 01 06 00 00"),),
    ),
    Said(
        "dashboard-dual-map",
        "§9 sub 06: mode 1 dual, pane 4 map (WK)",
        SetDashboard(DashboardLayout.DUAL, DashboardPane.MAP),
        (b("06 07 00 01 06 01 04"),),
    ),
    Said(
        "dashboard-minimal-empty",
        "§9 sub 06: mode 2 minimal, pane 5 empty (WK)",
        SetDashboard(DashboardLayout.MINIMAL, DashboardPane.EMPTY),
        (b("06 07 00 01 06 02 05"),),
    ),
    Said(
        "weather",
        "§9 sub 01: icon 10 sunny, signed Celsius, 01 F, hours (FP, WK)",
        SetWeather(0x67748580, Sky.SUNNY, -5, fahrenheit=True),
        (b("06 15 00 01 01 80 85 74 67 00 7C 29 1F 94 01 00 00 10 FB 01 00"),),
    ),
    Said(
        "calendar",
        "§9 sub 03: 01 03 03 n, then 01 len title 02 len time 03 len place (GB, WK)",
        SetCalendar((CalendarEntry("Lunch", "12:30", "Café"), CalendarEntry("Tea"))),
        (
            b("06 2B 00 01 03 01 00 01 00 01 03 03 02 01 05")
            + b"Lunch\x02\x0512:30\x03\x05Caf\xc3\xa9"
            + b"\x01\x03Tea\x02\x00\x03\x00",
        ),
    ),
    Said(
        "map-loading",
        "§9 sub 07: 00 04 kind 00 loading, 12 bytes in all (WK-cap)",
        SetMap(),
        (b("06 0C 00 01 07 01 00 01 00 00 04 00"),),
    ),
    Said(
        "map-arrow",
        "§9 sub 07: kind 03, x u16 LE, y u16 LE, 128 bytes of 32x32 (WK-cap)",
        SetMap(arrow=Tile(0x0102, 0x0304, 32, 32, 1, _ARROW)),
        (b("06 90 00 01 07 01 00 01 00 00 04 03 02 01 04 03") + _ARROW,),
    ),
    Said(
        "note",
        "§10 add: 1E len 00 v 03 01 00 01 00 n 01 tlen title xlen 00 text, "
        "len is 14 and both texts (EG, FP)",
        SetNote(2, "Milk", "2 l"),
        (b("1E 15 00 01 03 01 00 01 00 02 01 04") + b"Milk\x03\x002 l",),
    ),
    Said(
        "note-removed",
        "§10 delete: 1E 10 00 seq 03 01 00 01 00 n 00 01 00 01 00 00 (EG, FP, WK-cap)",
        SetNote(1),
        (b("1E 10 00 01 03 01 00 01 00 01 00 01 00 01 00 00"),),
    ),
    Said(
        "navigation",
        "§12 start, and directions: turn, x, y, 00, five texts that end with NUL (FP)",
        Navigate(Turn.RIGHT, "High St", "50 m", "5 min", "400 m", "4 km/h"),
        (
            b("0A 06 00 01 00 01"),
            b("0A 2A 00 02 01 03 00 00 00 00") + b"5 min\x00400 m\0High St\x0050 m\x004 km/h\0",
        ),
    ),
    Said(
        "navigation-over",
        "§12 end: 0A 06 00 seq 05 01 (FP)",
        EndNavigation(),
        (b("0A 06 00 01 05 01"),),
    ),
)

OWN_TOLD: Final = (
    Told(
        "case-battery",
        "§15 0F 00..64h: the case's (WK)",
        L,
        b("F5 0F 64"),
        (CaseChanged(100),),
        3,
    ),
    Told(
        "case-charging",
        "§15 0E 0/1: the case is charging (WK)",
        R,
        b("F5 0E 01"),
        (CaseChanged(charging=True),),
        3,
    ),
    Told(
        "right-long-press-over",
        "§15 12: right long press released (WK)",
        R,
        b("F5 12"),
        (ButtonReleased(R),),
        2,
    ),
    Told(
        "voice-notes",
        "§10 21 len 00 seq 01 count + index, u32 LE time, u32 LE CRC: the sample of a comment (FP)",
        R,
        b(
            "21 2A 00 07 01 04 01 9A A1 7A 67 77 0A 84 BB 02 23 A2 7A 67 A9 73 5A A5"
            "03 18 A3 7A 67 F1 8F 9E 2C 04 7A A3 7A 67 DE EF 2A 85"
        ),
        (
            VoiceNotesChanged(
                (
                    VoiceNote(1, 0x677AA19A, 0xBB840A77),
                    VoiceNote(2, 0x677AA223, 0xA55A73A9),
                    VoiceNote(3, 0x677AA318, 0x2C9E8FF1),
                    VoiceNote(4, 0x677AA37A, 0x852AEFDE),
                )
            ),
        ),
    ),
    Told(
        "running-app",
        "§5 39 05 00 seq 01 value (WK-cap)",
        L,
        b("39 05 00 09 01 00"),
        (RunningAppChanged(0),),
        6,
    ),
    Told(
        "looked-up-right-tap",
        "§9 22 08 00 00 02 mode pane page: a right tap while looking up (WK)",
        R,
        b("22 08 00 00 02 01 03 00"),
        (DashboardSeen(DashboardLayout.DUAL, DashboardPane.CALENDAR),),
        7,
    ),
    Told(
        "dashboard-of-another-kind",
        "§9 22: sub-commands and panes that no source names mean nothing (WK)",
        L,
        b("22 08 00 00 02 00 06 00"),
    ),
    Told(
        "voice-notes-of-another-kind",
        "§10 21: sub 01 is the list (FP)",
        R,
        b("21 06 00 07 02 01 01 9A A1 7A 67 77 0A 84 BB"),
    ),
    Told(
        "state-not-worn",
        "§5 2B: 07 not worn (WK)",
        L,
        b("2B 69 0A 07", pad=20),
        (HidingChanged(Hiding.SILENT, hidden=False), WornChanged(worn=False)),
        4,
    ),
    Told(
        "state-case-open",
        "§5 2B: 08 case open (WK)",
        L,
        b("2B 69 0A 08", pad=20),
        (HidingChanged(Hiding.SILENT, hidden=False), WornChanged(worn=False)),
        4,
    ),
    Told(
        "state-case-powered",
        "§5 2B: 0B case closed and powered (WK)",
        L,
        b("2B 69 0A 0B", pad=20),
        (HidingChanged(Hiding.SILENT, hidden=False), WornChanged(worn=False)),
        4,
    ),
    Told(
        "battery-both-whole",
        "§11 Reply B: 2C 'A'/'B' left right 00 00 00 and both versions (WK, GB)",
        R,
        b("2C 42 64 00 00 00 00 01 06 05 01 06 04"),
        (BatteryChanged(100, side=L), BatteryChanged(0, side=R)),
        4,
    ),
)

OWN_ASKED: Final = (
    Asked("silent-three-bytes", "§5 03: EG and MI append 00", b("03 0C 00"), b("03 C9", pad=20)),
    Asked(
        "heartbeat-counting-on",
        "§13 25 06 00 s 04 s+1 (LO)",
        b("25 06 00 07 04 08"),
        b("25 06 00 07 04 08"),
    ),
    Asked(
        "head-up-action",
        "§5 08 06 00 seq 03/04 action (WK)",
        b("08 06 00 01 03 02"),
        b("08 C9", pad=20),
    ),
    Asked(
        "calibrate-start",
        "§5 10 07 00 seq 02 01 00; 10 06 00 seq sub C9 padded to 20 (WK-cap)",
        b("10 07 00 05 02 01 00"),
        b("10 06 00 05 02 C9", pad=20),
    ),
    Asked("languages", "§12 1C 00 from to (FP)", b("1C 00 02 09"), b("1C C9", pad=20)),
    Asked(
        "translation-set-up",
        "§12 39 05 00 00 13 (FP); answered in the form of §5 39 (WK-cap)",
        b("39 05 00 00 13"),
        b("39 05 00 00 13 00"),
    ),
    Asked(
        "translation-opening",
        "§12 the opening screen has 00 in place of 20 and no text (FP)",
        b("0F 01 01 00 00 00 00 0D"),
        b("0F C9", pad=20),
    ),
    Asked(
        "translated",
        "§12 0D sync 01 00 00 00 20 0D text (FP)",
        b("0D 02 01 00 00 00 20 0D 48 69"),
        b("0D C9", pad=20),
    ),
    Asked(
        "position-shown",
        "§5 26 08 00 seq 02 preview height depth; reply 26 06 00 seq sub C9 (WK)",
        b("26 08 00 05 02 01 04 05"),
        b("26 06 00 05 02 C9"),
    ),
    Asked(
        "position-never-shown",
        "§5 26 sub 02: without the first the values are refused (WK, GB)",
        b("26 08 00 05 02 00 04 05"),
        b("26 06 00 05 02 CA"),
    ),
    Asked(
        "position-old",
        "§5 26 07 00 01 02 state pos, older form (EG)",
        b("26 07 00 01 02 01 04"),
        b("26 06 00 01 02 C9"),
    ),
    Asked("position-get", "§5 3B C9 height depth (WK)", b("3B"), b("3B C9 04 05", pad=20)),
    Asked(
        "notification-time-get",
        "§5 3C C9 enabled seconds (WK)",
        b("3C"),
        b("3C C9 01 05", pad=20),
    ),
    Asked(
        "language",
        "§5 3D 06 00 seq 01 lang (WK, GB)",
        b("3D 06 00 01 01 02"),
        b("3D C9", pad=20),
    ),
    Asked(
        "clear-notification",
        "§5 4C 00 00 00 1B (WK)",
        b("4C 00 00 00 1B"),
        b("4C C9", pad=20),
    ),
    Asked(
        "clear-screen", "§5 F5 18 00 00 00, doubtful (EG)", b("F5 18 00 00 00"), b("F5 C9", pad=20)
    ),
    Asked("usage", "§5 3E C9 + JSON (WK)", b("3E"), b("3E C9 7B 7D", pad=20)),
    Asked(
        "status-get",
        "§5 22 status get, see §9: unread, low power, mode, pane, page (WK)",
        b("22"),
        b("22 0A 00 00 01 00 00 00 00 00"),
    ),
    Asked(
        "status-get-numbered",
        "§5 22 status get; §9 22 0A 00 seq 01 (WK)",
        b("22 05 00 09 01"),
        b("22 0A 00 09 01 00 00 00 00 00"),
    ),
    Asked("clear-any-notification", "§5 4C, without an id (FP)", b("4C"), b("4C C9", pad=20)),
    Asked(
        "long-press",
        "§5 26 06 00 seq 07 0/1; reply 26 06 00 seq sub C9 (WK)",
        b("26 06 00 07 07 00"),
        b("26 06 00 07 07 C9"),
    ),
    Asked(
        "microphone-looking-up",
        "§5 26 06 00 seq 08 1/0 (WK)",
        b("26 06 00 07 08 01"),
        b("26 06 00 07 08 C9"),
    ),
    Asked(
        "double-tap-other-sub",
        "§5 26 06 00 seq sub action, sub 04 in the packet table (WK)",
        b("26 06 00 07 04 05"),
        b("26 06 00 07 04 C9"),
    ),
    Asked(
        "weather-of-another-sky",
        "§9 sub 01: icons go to 10, others are taken too (FP, WK)",
        b("06 15 00 07 01 80 85 74 67 00 7C 29 1F 94 01 00 00 11 05 00 01"),
        b("06 15 00 07 01 01 00 01 00 00"),
    ),
    Asked(
        "translate-another-language",
        "§12 1C 00 from to: languages beyond those of the sheet (FP)",
        b("1C 00 02 0B"),
        b("1C C9", pad=20),
    ),
    Asked(
        "navigation-arrived",
        "§12 WK adds sub 06 arrived (WK)",
        b("0A 06 00 05 06 01"),
        b("0A C9", pad=20),
    ),
    Asked(
        "navigation-second-picture",
        "§12 0A len 00 seq 03 cnt 00 idx 00 00 + data of 488x136 (FP)",
        b("0A 0C 00 05 03 01 00 01 00 00 FF 00"),
        b("0A C9", pad=20),
    ),
    Asked("erase", "§5 17 erase update image; never carried out (WK)", b("17"), b("17 CA", pad=20)),
    Asked("unpair", "§5 47 unpair; never carried out (WK)", b("47"), b("47 CA", pad=20)),
    Asked("debug-off", "§5 23 6C 31 (GB)", b("23 6C 31"), b("23 C9", pad=20)),
    Asked("firmware", "§11 23 74: bare ASCII without opcode (WK, MA)", b("23 74"), _FIRMWARE),
    Asked("firmware-mentra", "§11 6E 74 (MA)", b("6E 74"), _FIRMWARE),
    Asked(
        "lens-serial",
        "§11 33 gives 33 33 + ASCII (WK)",
        b("33"),
        b("33 33") + b"S100LAAL103842\0\0",
    ),
    *(
        Asked(
            f"dashboard-{mode}",
            f"§9 literal 06 07 00 {number} 06 0{mode} 00 (FP); reply (WK-cap)",
            b(f"06 07 00 {number} 06 0{mode} 00"),
            b(f"06 07 00 {number} 06 01 00 01 00 00"),
        )
        for mode, number in enumerate(("08", "1E", "31"))
    ),
    Asked(
        "weather-longer",
        "§9 sub 01: 22 bytes with one more 00 (WK)",
        b("06 16 00 07 01 80 85 74 67 00 7C 29 1F 94 01 00 00 10 05 00 01 00"),
        b("06 16 00 07 01 01 00 01 00 00"),
    ),
    Asked(
        "calendar-one",
        "§9 sub 03: fixed 06 len 00 6D 03 01 00 01 00 00 00 03 01 + one event (FP)",
        b("06 16 00 6D 03 01 00 01 00 00 00 03 01 01 03 54 65 61 02 00 03 00"),
        b("06 16 00 6D 03 01 00 01 00 00"),
    ),
    Asked(
        "map-loading",
        "§9 sub 07: kind 00 loading, 12 bytes in all (WK-cap)",
        b("06 0C 00 02 07 01 00 01 00 00 04 00"),
        b("06 0C 00 02 07 01 00 01 00 00"),
    ),
    Asked(
        "stock",
        "§9 sub 04 starts 00 01 02 01 01 01 08 GME.X (WK-cap)",
        b("06 15 00 03 04 01 00 01 00 00 01 02 01 01 01 08 47 4D 45 2E 58"),
        b("06 15 00 03 04 01 00 01 00 00"),
    ),
    Asked(
        "news",
        "§9 sub 05 starts 00 02 02 01 01 01 08 (WK-cap)",
        b("06 12 00 03 05 01 00 02 00 00 02 02 01 01 01 08 48 69"),
        b("06 12 00 03 05 01 00 02 00 00"),
    ),
    Asked(
        "note-removed-by-the-vendor",
        "§10 delete, with the vendor's sequence 29 (WK-cap)",
        b("1E 10 00 29 03 01 00 01 00 01 00 01 00 01 00 00"),
        b("1E 10 00 29 03 01 00 01 00 00"),
    ),
    Asked(
        "navigation-start",
        "§12 0A 06 00 seq 00 01 (FP)",
        b("0A 06 00 00 00 01"),
        b("0A C9", pad=20),
    ),
    Asked(
        "navigation-poll",
        "§12 0A 06 00 seq 04 n (FP)",
        b("0A 06 00 05 04 01"),
        b("0A C9", pad=20),
    ),
    Asked(
        "navigation-over", "§12 0A 06 00 seq 05 01 (FP)", b("0A 06 00 06 05 01"), b("0A C9", pad=20)
    ),
    Asked("teleprompter", "§5 09: payloads unknown (WK)", b("09 01"), b("09 C9", pad=20)),
)
OWN_EVERYTHING: Final = (*OWN_SAID, *OWN_TOLD, *OWN_ASKED)
