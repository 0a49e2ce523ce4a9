"""Translates what only an Even G1 shows and does by itself into requests to its arms."""

from collections.abc import Callable, Iterator
from itertools import count

from firmware_bridge.codecs.even_g1 import dashboard, navigation, quick_notes, translation
from firmware_bridge.codecs.even_g1.requests import (
    PIECE_GAP_S,
    RESULT_AT,
    SETTING_AT,
    assumed,
    both,
    echoes,
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
    HEAD_UP_BOTH,
    HEAD_UP_DASHBOARD,
    HEAD_UP_NOTHING,
    REFUSED,
    RESTART,
    STOCK,
    Dialect,
    Op,
    position,
)
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import OwnCommand
from firmware_bridge.own_commands import (
    ClearNotification,
    DeleteVoiceNote,
    EndNavigation,
    FetchVoiceNote,
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
    ShowRoute,
    ShowTranslation,
    StartTranslation,
)
from firmware_bridge.sides import Side


class OwnEncoder:
    """Creates requests. `newest`: number of the last notification."""

    def __init__(self, dialect: Dialect = STOCK) -> None:
        self.newest = 0
        self._dialect = dialect
        self._numbers: dict[int, Iterator[int]] = {}
        self._navigates = False

    def _of_op(self, op: int) -> Iterator[int]:
        """Return the numbers of the packets of one opcode, from 1."""
        return self._numbers.setdefault(op, count(1))

    def of(self, command: OwnCommand, max_packet: int) -> PairRequest:
        """Translate a command. Raises `CommandRefused` for one these glasses do not have."""
        for kinds, make in (
            (_DASHBOARD, self._dashboard),
            (_NAVIGATION, self._navigation),
            (_TRANSLATION, self._translation),
        ):
            if isinstance(command, kinds):
                return make(command, max_packet)
        match command:
            case SetDisplayPosition():
                return self.place(command, preview=True)
            case Restart():
                return both(Step(RESTART))
            case GetRunningApp():
                number = next(self._of_op(Op.RUNNING_APP)) & 0xFF
                packet = bytes((Op.RUNNING_APP, 5, 0, number, 1))
                return both(step(packet, echoes(packet)))
            case SetHeadUpAction() | SetLanguage() | SetNotificationTime():
                return self._preference(command)
            case ClearNotification():
                return self._clear(command.number or self.newest)
            case SetNote():
                number = next(self._of_op(Op.NOTE))
                packet = quick_notes.written(command, number, max_packet)
                return both(step(packet, echoes(packet, RESULT_AT, 0)))
            case FetchVoiceNote():
                packet = quick_notes.fetch(command, next(self._of_op(Op.NOTE)))
                judge = (
                    echoes(packet) if isinstance(command, DeleteVoiceNote) else _sound_of(packet)
                )
                return PairRequest({Side.RIGHT: (step(packet, judge),)})
        raise CommandRefused("unsupported", f"an Even G1 does not support {type(command).__name__}")

    def _preference(self, command: OwnCommand) -> PairRequest:
        match command:
            case SetHeadUpAction(dashboard):
                action = HEAD_UP_DASHBOARD if dashboard else HEAD_UP_NOTHING
                number = next(self._of_op(Op.HEAD_UP_ACTION)) & 0xFF
                packet = bytes((Op.HEAD_UP_ACTION, 6, 0, number, HEAD_UP_BOTH, action))
            case SetLanguage(language):
                code = translation.code_of(language)
                number = next(self._of_op(Op.LANGUAGE)) & 0xFF
                packet = bytes((Op.LANGUAGE, 6, 0, number, 1, code))
            case _:
                assert isinstance(command, SetNotificationTime)
                packet = bytes((Op.NOTIFICATIONS_SET, command.seconds > 0, command.seconds))
        return both(step(packet))

    def place(self, command: SetDisplayPosition, *, preview: bool) -> PairRequest:
        """Show the position; without `preview`, keep the one that is shown."""
        packet = position(
            next(self._of_op(Op.SETTINGS)), command.height, command.depth, preview=preview
        )
        return both(step(packet, echoes(packet, SETTING_AT)))

    def left_navigation(self) -> None:
        """Something else is on the lens: the next turn begins navigation again."""
        self._navigates = False

    def _clear(self, number: int) -> PairRequest:
        if not number:
            raise CommandRefused("no_scene", "no notification was shown over this connection")
        packet = bytes((Op.NOTIFICATION_CLEAR,)) + number.to_bytes(4, "big")
        return PairRequest(dict.fromkeys(self._dialect.notification_sides, (step(packet),)))

    def _dashboard(self, command: OwnCommand, max_packet: int) -> PairRequest:
        numbers = self._of_op(Op.DASHBOARD)
        match command:
            case SetWeather():
                packets: tuple[bytes, ...] = (
                    dashboard.weather(command, next(numbers), self._dialect),
                )
            case SetDashboard():
                packets = (dashboard.panes(command, next(numbers)),)
            case SetCalendar():
                packets = dashboard.calendar(command, numbers, max_packet)
            case _:
                assert isinstance(command, SetMap)
                packets = dashboard.map_of(command, numbers, max_packet)
        return both(*(step(packet, echoes(packet, RESULT_AT, 0)) for packet in packets))

    def _navigation(self, command: OwnCommand, max_packet: int) -> PairRequest:
        numbers = self._of_op(Op.NAVIGATION)
        packets: list[bytes] = []
        if isinstance(command, EndNavigation):
            self._navigates = False
            packets = [navigation.end(next(numbers))]
        elif not self._navigates:
            packets = [navigation.start(next(numbers))]
        steps = [assumed(packet) for packet in packets]
        match command:
            case Navigate():
                turn = navigation.directions(command, next(numbers), max_packet)
                steps.append(assumed(turn))
            case ShowRoute():
                *pieces, last = navigation.route(command, numbers, max_packet)
                steps += [Step(piece, rest_s=PIECE_GAP_S) for piece in pieces]
                steps.append(assumed(last))
        self._navigates = not isinstance(command, EndNavigation)
        return both(*steps, kind=LaneKind.LENS)

    def _translation(self, command: OwnCommand, max_packet: int) -> PairRequest:
        numbers = self._of_op(Op.TRANSLATED)
        if isinstance(command, ShowTranslation):
            packets = translation.lines(command, numbers, max_packet)
            return both(*map(assumed, packets), kind=LaneKind.LENS)
        assert isinstance(command, StartTranslation)
        self._navigates = False
        chosen = translation.languages(command)
        screen = [assumed(chosen), *map(assumed, translation.opening(numbers))]
        begin = assumed(translation.SET_UP, echoes(translation.SET_UP))
        right = assumed(translation.RIGHT_BEGINS, echoes(translation.RIGHT_BEGINS))
        steps = {Side.LEFT: (begin, *screen), Side.RIGHT: (begin, right, *screen)}
        return PairRequest(steps, Order.LEFT_FIRST, LaneKind.LENS)


_DASHBOARD = (SetWeather, SetDashboard, SetCalendar, SetMap)
_NAVIGATION = (Navigate, ShowRoute, EndNavigation)
_TRANSLATION = (StartTranslation, ShowTranslation)


def _sound_of(packet: bytes) -> Callable[[bytes], StepResult]:
    """Return a judge for which the first packet of this note's sound is the answer."""

    def judge(answer: bytes) -> StepResult:
        if answer[1:2] == bytes((REFUSED,)) and len(answer) != REFUSED:
            return verdict(answer)
        mine = answer[4:5] == packet[4:5] and answer[9:10] == packet[5:6]
        return StepResult.TAKEN if mine else StepResult.OTHER

    return judge
