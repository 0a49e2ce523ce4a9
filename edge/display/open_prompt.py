"""One question to the wearer, until its answer: where it is now, what was seen or heard of it."""

import asyncio
from enum import Enum
from typing import Final

from msgspec import Struct, field

from edge.display.lens import Sheet
from edge.display.presentation import Presentation
from edge.ports import Chosen, NobodyToAsk, Question
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.messages import Answer, Gesture
from tools_cache.api.tool import Delivery

ANSWERS: Final = {
    Gesture.TAP: Answer.ALLOW,
    Gesture.BUTTON: Answer.ALLOW,
    Gesture.DOUBLE_TAP: Answer.DENY,
    Gesture.BUTTON_LONG: Answer.DENY,
}


def can_press(capabilities: Capabilities) -> bool:
    """True when the wearer can say yes and no with a finger."""
    return capabilities.has(Hardware.BUTTON) or bool(gestures_of(capabilities) & {"tap", "button"})


def gestures_of(capabilities: Capabilities) -> set[str]:
    return {word.strip() for word in str(capabilities.get("gestures", "")).split(",")}


class PromptWay(Enum):
    """Where a question is now."""

    NOWHERE = "nowhere"
    PROMPT = "prompt"
    PAGE = "page"
    EAR = "ear"


class OpenPrompt(Struct, eq=False):
    """One question's life.

    `begun`: it was put to the wearer, or is being put. `page` of `sheets` is on the lens, or is to
    be put there next; a yes needs the last one, after all others were there on the same `link`.
    `since`: when it was put there, or its speech ended (boot clock). `number` of the prompt open on
    the glasses; `unprompted`: they may not ask this themselves. `speech`: its spoken form; `heard`:
    it was spoken to its end; `missed`: the glasses were taken off, or put on, meanwhile; `address`:
    the glasses that speak it. `hidden`: since drawing began, the page was hidden, or may have been
    taken off the lens. `spoken`: an answer by voice is heard, and the question says so.
    """

    question: Question
    expires_at: float
    answer: "asyncio.Future[Answer | Chosen]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    way: PromptWay = PromptWay.NOWHERE
    begun: bool = False
    number: int | None = None
    sheets: tuple[Sheet, ...] = ()
    page: int = 1
    link: int = 0
    since: float = 0.0
    again_at: float = float("-inf")
    speech: Presentation | None = None
    heard: bool = False
    missed: bool = False
    address: str = ""
    hidden: bool = False
    spoken: bool = False
    unprompted: bool = False
    unspeakable: str = ""
    """Why no voice can speak all of it."""

    @property
    def speaking(self) -> bool:
        """Whether at least its beginning was spoken."""
        return self.speech is not None and self.speech.report.state is Delivery.SENT

    @property
    def answered(self) -> Answer | Chosen | None:
        """The answer; None if there is none, or nobody waited for it."""
        if not self.answer.done() or self.answer.cancelled() or self.answer.exception():
            return None
        return self.answer.result()

    @property
    def accepted(self) -> bool:
        return self.answered is Answer.ALLOW

    @property
    def echo(self) -> str:
        """What the wearer reads after the answer; "" if the page from before returns."""
        if self.accepted:
            return self.question.accepted
        return self.question.refused if self.answered is Answer.DENY else ""

    def settle(self, answer: Answer | Chosen) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def give_up(self, reason: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(NobodyToAsk(reason))

    def release(self) -> None:
        """Nobody waits for the answer any more."""
        if not self.answer.cancel() and not self.answer.cancelled():
            self.answer.exception()  # retrieved, also if the asker was cancelled at this moment

    def nowhere(self, again_at: float = float("-inf")) -> None:
        """Show or speak it again, from its first page on."""
        self.way, self.number, self.again_at, self.page = PromptWay.NOWHERE, None, again_at, 1

    def turn(self) -> None:
        """Show the next page."""
        self.way, self.again_at, self.page = PromptWay.NOWHERE, float("-inf"), self.page + 1
