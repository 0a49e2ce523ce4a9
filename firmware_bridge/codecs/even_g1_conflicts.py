"""Where the sources about the Even G1 contradict each other (§17 of its fact sheet), as data: what
we say, what else is said.

Refuses to decide by itself: `STOCK` says ours; what we hear is understood in every form, whoever is
right.
"""

from dataclasses import dataclass
from typing import Final

from firmware_bridge.codecs.even_g1_wire import BatteryForm, Dialect, KeyCase, TextStatus
from firmware_bridge.sides import Side


@dataclass(frozen=True, slots=True)
class Conflict:
    """One contradiction. `others`: what speaks as the other sources do; `row`: where the sheet
    has it.
    """

    name: str
    row: str
    reason: str
    others: tuple[Dialect, ...]


_L, _R = Side.LEFT, Side.RIGHT

CONFLICTS: Final = (
    Conflict(
        "heartbeat-field-order",
        "§13 MA",
        "one host puts the counter before the zero; we send the vendor's order, capture ED#44",
        (Dialect(heartbeat_swapped=True),),
    ),
    Conflict(
        "newscreen",
        "§6 newscreen",
        "30, 31/41 and 71 all show text; we send 71, plain text, which no timer follows",
        (
            Dialect(text_status=(TextStatus.ANSWER, TextStatus.ANSWER_OVER)),
            Dialect(text_status=(TextStatus.SHOWING, TextStatus.SHOWING_OVER)),
        ),
    ),
    Conflict(
        "page-base",
        "§6 page, max_page",
        "pages count from 1 in the vendor's demo, from 0 in two hosts; we count from 1",
        (Dialect(page_base=0),),
    ),
    Conflict(
        "text-chunk",
        "§6 payload per packet",
        "191, 180 and 176 bytes of text a packet are all taken; we send the vendor's 191",
        (Dialect(text_chunk=180), Dialect(text_chunk=176)),
    ),
    Conflict(
        "microphone-arm",
        "§5 0E",
        "three hosts open the right microphone, "
        "one table the left; we open the right and hear either",
        (Dialect(microphone=_L),),
    ),
    Conflict(
        "brightness-top",
        "§5 01",
        "the brightest is 29, 2A or 3F, told to the right arm or "
        "to both; we send up to 2A, to both",
        (
            Dialect(brightness_top=0x29),
            Dialect(brightness_top=0x3F),
            Dialect(brightness_sides=(_R,)),
        ),
    ),
    Conflict(
        "silent-length",
        "§5 03",
        "silent mode is two bytes in three sources, three in two; we send two",
        (Dialect(silent_long=True),),
    ),
    Conflict(
        "battery-reply",
        "§11 Reply A, Reply B",
        "an arm tells its own charge, newer firmware both arms'; "
        "told apart by byte 1; 2C 01 or 2C 02 asks",
        (
            Dialect(battery_form=BatteryForm.BOTH),
            Dialect(battery_ask=b"\x2c\x02"),
            Dialect(battery_ask=b"\x2c"),
        ),
    ),
    Conflict(
        "crc-reply-length",
        "§7 step 4",
        "a picture's checksum is answered with itself and C9, or with C9 alone; both are taken",
        (Dialect(crc_echoed=False),),
    ),
    Conflict(
        "hour-format",
        "§9 sub 01",
        "01 is twelve hours for one host and twenty-four for another; "
        "we follow the first, as the table does",
        (Dialect(twelve_hour=0),),
    ),
    Conflict(
        "picture-polarity",
        "§7 step 4",
        "one newer host inverts the pixels; we send the file as the vendor's demo does",
        (Dialect(inverted=True),),
    ),
    Conflict(
        "whitelist-chunk-and-case",
        "§8 whitelist",
        "177 or 176 bytes a packet, a NUL at the end or none, "
        "keys in lower case or with capitals; we send the vendor's",
        (
            Dialect(whitelist_chunk=176),
            Dialect(whitelist_ended=True),
            Dialect(whitelist_case=KeyCase.CAPITAL),
        ),
    ),
    Conflict(
        "notification-id-and-keys",
        "§8 notification",
        "the id runs, or is 0 or 1; type, action and date are there or not; "
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
        "§2",
        "hosts begin with F4 01, 4D 01, 4D FB or 6E 74; we begin with F4 01 and wait for no answer",
        (Dialect(first=b"\x4d\x01"), Dialect(first=b"\x4d\xfb"), Dialect(first=b"\x6e\x74")),
    ),
    Conflict(
        "debug-off",
        "§5 23",
        "debug output is switched off by C1 or by 31; we send C1",
        (Dialect(debug_off=0x31),),
    ),
    Conflict(
        "double-tap-sub",
        "§5 26 sub 04 or 05",
        "one source names both subs for the double tap; we send 05, its list's",
        (Dialect(double_tap_sub=0x04),),
    ),
    Conflict(
        "serial-length",
        "§11 34",
        "the answer to 34 has 16 bytes in the list, and one host reads 18; "
        "simulated glasses pad it with zeros, and we read the first 16",
        (Dialect(serial_padded=False),),
    ),
)
"""In the order of §17; `serial-length` was found later."""
