"""Contradictions between the public sources on the Even G1 (listed in wire.py), as data.

Each conflict has the value we send (`STOCK`) and the alternatives; received packets are accepted in
every form.
"""

from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.even_g1.wire import BatteryForm, Dialect, KeyCase, TextStatus
from firmware_bridge.sides import Side


class Conflict(Struct, frozen=True):
    """One contradiction: the alternatives with our choice, and the `others`' dialects."""

    name: str
    reason: str
    others: tuple[Dialect, ...]


_L, _R = Side.LEFT, Side.RIGHT

CONFLICTS: Final = (
    Conflict(
        "heartbeat-field-order",
        "heartbeat 25: MentraOS puts the counter before the zero; "
        "we send the order of the vendor's demo",
        (Dialect(heartbeat_swapped=True),),
    ),
    Conflict(
        "newscreen",
        "text 4E: statuses 30, 31/41 and 71 all show text; we send 71, plain text without a timer",
        (
            Dialect(text_status=(TextStatus.ANSWER, TextStatus.ANSWER_OVER)),
            Dialect(text_status=(TextStatus.SHOWING, TextStatus.SHOWING_OVER)),
        ),
    ),
    Conflict(
        "page-base",
        "text 4E: pages count from 1 in the vendor's demo, from 0 in two hosts; we count from 1",
        (Dialect(page_base=0),),
    ),
    Conflict(
        "text-chunk",
        "text 4E: packets of 191, 180 and 176 bytes of text are accepted; we send the vendor's 191",
        (Dialect(text_chunk=180), Dialect(text_chunk=176)),
    ),
    Conflict(
        "microphone-arm",
        "microphone 0E: three hosts open the right one, one table the left; "
        "we open the right one and accept sound from either",
        (Dialect(microphone=_L),),
    ),
    Conflict(
        "brightness-top",
        "brightness 01: the maximum is 29, 2A or 3F, sent to the right arm or to both; "
        "we send up to 2A, to both",
        (
            Dialect(brightness_top=0x29),
            Dialect(brightness_top=0x3F),
            Dialect(brightness_sides=(_R,)),
        ),
    ),
    Conflict(
        "silent-length",
        "silent mode 03: two bytes in three sources, three in two; we send two",
        (Dialect(silent_long=True),),
    ),
    Conflict(
        "battery-reply",
        "battery 2C: an arm reports its own charge, newer firmware that of both arms; "
        "byte 1 tells which; the request is 2C 01 or 2C 02",
        (
            Dialect(battery_form=BatteryForm.BOTH),
            Dialect(battery_ask=b"\x2c\x02"),
            Dialect(battery_ask=b"\x2c"),
        ),
    ),
    Conflict(
        "crc-reply-length",
        "checksum 16: answered with the checksum and C9, or with C9 alone; both are accepted",
        (Dialect(crc_echoed=False),),
    ),
    Conflict(
        "hour-format",
        "clock 06 01: hour format 01 is 12 h for Fahrplan, 24 h for Gadgetbridge; "
        "we follow the first, as the protocol wiki does",
        (Dialect(twelve_hour=0),),
    ),
    Conflict(
        "picture-polarity",
        "picture 15: newer MentraOS code inverts the pixels; "
        "we send them as the vendor's demo does",
        (Dialect(inverted=True),),
    ),
    Conflict(
        "whitelist-chunk-and-case",
        "whitelist 04: 177 or 176 bytes a packet, a NUL at the end or none, "
        "keys in lower case or with capitals; we send the form of the vendor's demo",
        (
            Dialect(whitelist_chunk=176),
            Dialect(whitelist_ended=True),
            Dialect(whitelist_case=KeyCase.CAPITAL),
        ),
    ),
    Conflict(
        "notification-id-and-keys",
        "notification 4B: the id counts up, or is 0 or 1; type, action and date are optional; "
        "seconds or milliseconds; one arm or both; we send the vendor's keys, in seconds",
        (
            Dialect(notification_numbered=False),
            Dialect(
                notification_numbered=False,
                notification_id=1,
                notification_action=True,
                notification_dated=True,
            ),
            Dialect(notification_type=True, notification_dated=True, notification_sides=(_L, _R)),
            Dialect(notification_ms=True),
        ),
    ),
    Conflict(
        "first-packet",
        "first packet: hosts send F4 01, 4D 01, 4D FB or 6E 74; "
        "we send F4 01 and wait for no answer",
        (Dialect(first=b"\x4d\x01"), Dialect(first=b"\x4d\xfb"), Dialect(first=b"\x6e\x74")),
    ),
    Conflict(
        "debug-off",
        "debug log 23 6C: switched off by C1 or by 31; we send C1",
        (Dialect(debug_off=0x31),),
    ),
    Conflict(
        "double-tap-sub",
        "double tap 26: one source gives both sub-commands 04 and 05; we send 05, as in its list",
        (Dialect(double_tap_sub=0x04),),
    ),
    Conflict(
        "serial-length",
        "serial 34: the answer has 16 bytes in the protocol wiki, and the vendor's demo reads 18; "
        "simulated glasses pad it with zeros, and we read the first 16",
        (Dialect(serial_padded=False),),
    ),
    Conflict(
        "functions-answered",
        "navigation 0A and translation 1C, 0F, 0D, 39 13: that they are answered is assumed; the "
        "one host that has them waits for nothing; glasses may answer them or not",
        (Dialect(functions_answered=False),),
    ),
    Conflict(
        "case-event-length",
        "case F5 0E, 0F: MentraOS reads them from packets of 4 bytes on, others from 3; "
        "simulated glasses send 4, and we read both",
        (Dialect(case_padded=False),),
    ),
)
