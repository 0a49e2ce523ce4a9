"""Builds the requests to the arms of an Even G1: steps with the usual patience, and judges."""

from collections.abc import Callable
from typing import Final

from firmware_bridge.codecs.even_g1.scheduler import (
    ANSWER_S,
    LaneKind,
    Order,
    PairRequest,
    Step,
    StepResult,
    anything,
    verdict,
)
from firmware_bridge.codecs.even_g1.wire import REFUSED
from firmware_bridge.sides import Side

REFUSAL_REST_S: Final = 0.1
"""Seconds before a command that an arm refused is sent again."""
INFO_S: Final = 0.6
INFO_TRIES: Final = 2
RESULT_AT: Final = 9
"""Where answers to 06 and to notes have their result; 0 is success."""
SETTING_AT: Final = 5
"""Where answers to 26 have C9 or CA."""
ASSUMED_S: Final = 0.4
"""Seconds to wait, once, for an answer that no source captured; captured ones took 40 ms."""
PIECE_GAP_S: Final = 0.008
"""Seconds between the pieces of a picture of navigation, which are not waited for, as its host."""
Judge = Callable[[bytes], StepResult]


def step(packet: bytes, judge: Judge = verdict, timeout_s: float = ANSWER_S) -> Step:
    return Step(packet, packet[0], timeout_s, rest_s=REFUSAL_REST_S, judge=judge)


def optional(packet: bytes) -> Step:
    return Step(packet, packet[0], INFO_S, INFO_TRIES, judge=anything, optional=True)


def assumed(packet: bytes, judge: Judge = verdict) -> Step:
    """Return a step that may stay unanswered; a refusal is a refusal."""
    return Step(packet, packet[0], ASSUMED_S, tries=1, judge=judge, optional=True)


def both(*steps: Step, kind: LaneKind = LaneKind.TALK) -> PairRequest:
    return PairRequest(dict.fromkeys(Side, steps), Order.LEFT_FIRST, kind)


def echoes(packet: bytes, result_at: int = -1, bad: int = REFUSED) -> Judge:
    """Return a judge of answers that repeat the sub-command in byte 4. A generic answer, which has
    a 0 there, counts too. With `result_at`, that byte says whether it was refused: by `bad`, or by
    anything but 0 if `bad` is 0.
    """

    def judge(answer: bytes) -> StepResult:
        if answer[4:5] != packet[4:5]:
            return StepResult.OTHER if any(answer[4:5]) else verdict(answer)
        result = answer[result_at] if 0 <= result_at < len(answer) else None
        refused = result is not None and (result == bad if bad else result != 0)
        return StepResult.REFUSED if refused else StepResult.TAKEN

    return judge
