"""Translates commands for an Even G1 into ordered packets for its arms."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from firmware_bridge.codecs.even_g1 import notifications as notes, picture, text
from firmware_bridge.codecs.even_g1.own_encoder import OwnEncoder
from firmware_bridge.codecs.even_g1.requests import (
    RESULT_AT,
    SETTING_AT,
    both,
    echoes,
    optional,
    step,
)
from firmware_bridge.codecs.even_g1.scheduler import (
    LaneKind,
    Order,
    PairRequest,
    Step,
    StepResult,
    verdict,
)
from firmware_bridge.codecs.even_g1.wire import (
    ACCEPTED,
    DOUBLE_TAP_ACTIONS,
    RATE,
    STOCK,
    Dialect,
    Op,
    TextStatus,
    brightness,
    dashboard_time,
    debug,
    double_tap,
    heartbeat,
    silent,
)
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    AllowApps,
    AudioFormat,
    ClearPage,
    Command,
    ExitToDashboard,
    Hello,
    OwnCommand,
    PageState,
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
)
from firmware_bridge.sides import Side

PICTURE_GAP_S: Final = 0.008
"""Seconds between the packets of a picture, which are not answered."""
PICTURE_END_S: Final = 3.0
PICTURE_END_TRIES: Final = 10
PICTURE_REST_S: Final = 1.0
BEAT_S: Final = 1.5
BEAT_TRIES: Final = 2
EXIT_S: Final = 1.5
MICROPHONE_REST_S: Final = 1.0
NOTE_S: Final = 1.0
_STATUS: Final = {
    PageState.TURNED: (TextStatus.TURNED,),
    PageState.NETWORK_ERROR: (TextStatus.NETWORK_ERROR,),
}
"""Status of pages that are not plain."""


class CommandEncoder:
    """Creates requests. `width` measures text in the lens's own font, for columns."""

    def __init__(
        self, *, max_packet: int, width: Callable[[str], float], dialect: Dialect = STOCK
    ) -> None:
        self.max_packet = max_packet
        self._width = width
        self._dialect = dialect
        self.microphone_arm = dialect.microphone
        """The arm whose microphone is switched."""
        self._texts = 0
        self._beats = 0
        self._notes = 0
        self._settings = 0
        self.own = OwnEncoder(dialect)

    def of(self, command: Command) -> PairRequest:
        """Translate a command. Raises `CommandRefused` for one these glasses do not have."""
        dialect = self._dialect
        match command:
            case Hello():
                return self._hello()
            case Ping():
                return self.beat()
            case ShowPage():
                return self.page(command)
            case ClearPage() | ExitToDashboard():
                return both(Step(bytes((Op.EXIT,)), Op.EXIT, timeout_s=EXIT_S), kind=LaneKind.LENS)
            case SetBrightness(level, auto):
                steps = (step(brightness(level, dialect, auto=auto)),)
                return PairRequest(dict.fromkeys(dialect.brightness_sides, steps), Order.TOGETHER)
            case SetSilentMode(on):
                return both(step(silent(dialect, on=on)))
            case SetWearDetection(on):
                return both(step(bytes((Op.WEAR, on))))
            case SetHeadUpAngle(degrees):
                return both(step(bytes((Op.HEAD_UP_ANGLE, degrees, 1))))
            case SetClock(local_s, twelve_hour):
                self._settings += 1
                packet = dashboard_time(self._settings, local_s, dialect, twelve_hour=twelve_hour)
                return both(step(packet, echoes(packet, RESULT_AT, 0)))
            case SetDoubleTap(action):
                self._settings += 1
                packet = double_tap(DOUBLE_TAP_ACTIONS[action], self._settings, dialect)
                return both(step(packet, echoes(packet, SETTING_AT)))
            case SetDebugLog(on):
                return both(optional(debug(dialect, on=on)))
            case AllowApps():
                packets = notes.whitelist(command, max_packet=self.max_packet, dialect=dialect)
                return PairRequest({Side.LEFT: tuple(map(step, packets))})
            case ShowNotification():
                return self._note(command)
            case StartMicrophone(format=AudioFormat.LC3, rate=rate) if rate == RATE:
                return self.microphone(on=True)
            case StopMicrophone():
                return self.microphone(on=False)
            case OwnCommand():
                return self.own.of(command, self.max_packet)
        raise CommandRefused(
            "unsupported", f"an Even G1 does not support {type(command).__name__} in this form"
        )

    def page(self, page: ShowPage) -> PairRequest:
        """Show text if the page has any, otherwise its picture: the lens takes one or the other."""
        if page.tiles and not page.lines:
            return self._picture(page)
        words, steps = text.lay_out(page.lines, self._width), []
        for status in _STATUS.get(page.state, self._dialect.text_status):
            packets = text.cut(
                words,
                self._texts,
                page=page.page,
                pages=page.pages,
                status=status,
                max_packet=self.max_packet,
                dialect=self._dialect,
            )
            self._texts += 1
            steps += [step(packet) for packet in packets]
        return both(*steps, kind=LaneKind.LENS)

    def _picture(self, page: ShowPage) -> PairRequest:
        """Send to both arms independently; everything else goes left, then right."""
        file = picture.bmp(page.tiles, self._dialect)
        crc = picture.checksum(file)
        data = picture.cut(file, max_packet=self.max_packet)
        end = Step(picture.END, Op.PICTURE_END, PICTURE_END_S, PICTURE_END_TRIES, PICTURE_REST_S)
        check = Step(
            bytes((Op.PICTURE_CRC,)) + crc,
            Op.PICTURE_CRC,
            judge=lambda answer: crc_verdict(answer, crc),
            restart=True,
        )
        steps = (*(Step(packet, rest_s=PICTURE_GAP_S) for packet in data), end, check)
        return PairRequest(dict.fromkeys(Side, steps), Order.TOGETHER, LaneKind.LENS)

    def _note(self, message: ShowNotification) -> PairRequest:
        if not message.number:
            self._notes += 1
        self.own.newest = message.number or self._notes
        packets = notes.notification(
            message, self.own.newest, max_packet=self.max_packet, dialect=self._dialect
        )
        steps = tuple(step(packet, timeout_s=NOTE_S) for packet in packets)
        return PairRequest(dict.fromkeys(self._dialect.notification_sides, steps))

    def _hello(self) -> PairRequest:
        """Query firmware and serial number from either arm; not all firmware answers these."""
        steps = (
            replace(optional(bytes((Op.SYSTEM, 0x74))), answer=Op.FIRMWARE),
            replace(optional(bytes((Op.SERIAL,))), optional=False),
        )
        return PairRequest(dict.fromkeys(Side, steps), Order.EITHER)

    def microphone(self, *, on: bool, arm: Side | None = None) -> PairRequest:
        """Switch one arm's microphone; tried again a second after a refusal, as in the demo."""
        step = Step(bytes((Op.MICROPHONE, on)), Op.MICROPHONE, rest_s=MICROPHONE_REST_S)
        return PairRequest({arm or self.microphone_arm: (step,)})

    def beat(self, *sides: Side) -> PairRequest:
        """Send a heartbeat to these sides, or to both."""
        packet = heartbeat(self._beats, self._dialect)
        step = Step(packet, Op.HEARTBEAT, BEAT_S, BEAT_TRIES, judge=_beat_verdict)
        self._beats += 1
        return PairRequest(dict.fromkeys(sides or Side, (step,)), Order.TOGETHER)

    def greeting(self, side: Side) -> PairRequest:
        """Greet an arm that (re)connected, which needs no answer, and query its state."""
        steps = (
            Step(self._dialect.first, rest_s=PICTURE_GAP_S),
            self._battery(),
            optional(bytes((Op.SILENT_GET,))),
        )
        light = (optional(bytes((Op.BRIGHTNESS_GET,))),) if side is Side.RIGHT else ()
        return PairRequest({side: (*steps, *light)})

    def batteries(self) -> PairRequest:
        return PairRequest(dict.fromkeys(Side, (self._battery(),)), Order.TOGETHER)

    def _battery(self) -> Step:
        return optional(self._dialect.battery_ask)


def crc_verdict(answer: bytes, crc: bytes) -> StepResult:
    """Accept `16 crc C9`, the short `16 C9`, and any 4 bytes or fewer, as the vendor's demo."""
    if answer[1:5] == crc and len(answer) > 5:
        return StepResult.TAKEN if answer[5] == ACCEPTED else StepResult.REFUSED
    judged = verdict(answer)
    if judged is StepResult.OTHER:
        return StepResult.TAKEN if len(answer) <= 4 else StepResult.REFUSED
    return judged


def _beat_verdict(answer: bytes) -> StepResult:
    """Accept any heartbeat answer, whatever the order of its fields and the number in it."""
    return StepResult.TAKEN if len(answer) > 1 else StepResult.OTHER
