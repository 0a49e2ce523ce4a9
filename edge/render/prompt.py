"""Questions to the wearer: one at a time, on the lens or in the ear, until answered, taken back, or out of time.

Refuses to know what a yes is worth, and what else is on the lens: the stage covers that, and brings it back.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from edge.clock import Clock
from edge.core.results import Rendering
from edge.ports import GlassesAway, GlassesPort, NobodyToAsk, Question
from edge.render.act import ASKING_RANK, Act
from edge.render.display import ANSWER_S, CannotShow, Lens, Sheet
from edge.render.ear import Ear, SpeechOver
from edge.render.ladder import REFUSALS
from edge.render.question import ANSWERS, can_press, page, spoken
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import Answer, Done, EndPrompt, Gesture, PromptAnswered
from tools_cache.tool import Delivery

_log: Final = logging.getLogger(__name__)
WAITING: Final = 8
"""Questions that may wait behind the one being asked; nobody remembers a ninth."""
TOO_SOON_S: Final = 0.7
"""After a page with a question is there: a tap within this time was meant for what was on the lens before."""
RETRY_S: Final = 1.0
"""Between two tries to put a question where the glasses did not take it."""
_LONGEST_PROMPT_S: Final = 600.0
"""The profile's bound; a longer question is asked again."""
_SLICE_S: Final = 5.0
"""Longest sleep between two looks at the boot clock, which runs on while the machine is suspended."""
_NUMBERS_A_S: Final = 20
"""Prompt numbers come from the boot clock, so that no daemon of this boot uses another's: twice as many a second as the
lens takes, and 6.8 years until 32 bits are used up."""


class Way(Enum):
    """Where a question is before the wearer now."""

    NOWHERE = "nowhere"
    PROMPT = "prompt"
    PAGE = "page"
    EAR = "ear"


@dataclass(slots=True, eq=False)
class Asking:
    """One question's life. `begun`: it was put to the wearer, or is being put. `number` of the prompt open on the glasses;
    `since` its page is there (boot clock); `speech` is kept, as a question is said at most once.
    """

    question: Question
    expires_at: float
    answer: "asyncio.Future[Answer]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    way: Way = Way.NOWHERE
    begun: bool = False
    number: int | None = None
    since: float = 0.0
    again_at: float = float("-inf")
    speech: Act | None = None

    @property
    def said(self) -> bool:
        """True when at least the beginning of it was spoken."""
        return self.speech is not None and self.speech.report.state is Delivery.SENT

    def settle(self, answer: Answer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def give_up(self, reason: str) -> None:
        if not self.answer.done():
            self.answer.set_exception(NobodyToAsk(reason))

    def release(self) -> None:
        """Nobody waits for the answer any more."""
        if not self.answer.cancel() and not self.answer.cancelled():
            self.answer.exception()  # seen, also when the asker was called off in the same moment

    def nowhere(self, again_at: float = float("-inf")) -> None:
        """It has to be put to the wearer again."""
        self.way, self.number, self.again_at = Way.NOWHERE, None, again_at


class Asker:
    """`ask`, `gestured` and `answered` may be called at any time and never wait for the glasses; the rest is the actor's.

    `wake` tells the actor that there may be something to do.
    """

    def __init__(self, glasses: GlassesPort, lens: Lens, ear: Ear, clock: Clock, wake: Callable[[], None]) -> None:
        self._glasses = glasses
        self._lens = lens
        self._ear = ear
        self._clock = clock
        self._wake = wake
        self._queue: deque[Asking] = deque()
        self._prompts = True
        self._last_number = 0
        self.stray = False
        """The glasses may hold a question open that is none any more."""

    # ------------------------------------------------------------------ who asks

    async def ask(self, question: Question) -> Answer:
        """See `AskPort`."""
        asking = self._enlist(question)
        try:
            return await self._outcome(asking)
        finally:
            asking.release()

    def _enlist(self, question: Question) -> Asking:
        if reason := self._why_nobody(self._glasses.status().capabilities):
            raise NobodyToAsk(reason)
        waiting = [asking for asking in self._queue if not asking.answer.done()]
        if len(waiting) > WAITING:
            raise NobodyToAsk(f"{WAITING} questions wait already")
        self._queue = deque(a for a in self._queue if a is self._queue[0] or a in waiting)
        asking = Asking(question, self._clock.boot() + question.timeout_s)
        asking.answer.add_done_callback(lambda _: self._wake())
        self._queue.append(asking)
        self._wake()
        return asking

    def _why_nobody(self, capabilities: Capabilities | None) -> str:
        """Empty when these glasses can ask and be answered."""
        if capabilities is None:
            return "no glasses are known"
        if capabilities.has(Hardware.DISPLAY):
            return ""
        if not (capabilities.has(Hardware.SPEAKER) and can_press(capabilities)):
            return "these glasses have neither a display nor a speaker and a button"
        return self._ear.why_not(capabilities)

    async def _outcome(self, asking: Asking) -> Answer:
        """Wait for the answer. Our clock alone says when the time is over."""
        while not asking.answer.done():
            left = asking.expires_at - self._clock.boot()
            if left <= 0:
                asking.settle(Answer.TIMEOUT)
            else:
                await asyncio.wait({asking.answer}, timeout=min(left, _SLICE_S))
        return asking.answer.result()

    # ------------------------------------------------------------------ what the wearer does

    def gestured(self, gesture: Gesture) -> bool:
        """Take a gesture that answers, or would; False when it is not for us."""
        asking = self._head()
        if asking is None or not asking.begun or gesture not in ANSWERS:
            return False
        if self._counts(asking):
            self._decide(asking, ANSWERS[gesture])
        return True

    def _counts(self, asking: Asking) -> bool:
        """True when the wearer can have known what the gesture answers."""
        if asking.way is Way.PAGE:
            return self._clock.boot() - asking.since >= TOO_SOON_S
        return asking.way is Way.EAR and asking.said

    def answered(self, event: PromptAnswered) -> None:
        """Take what the glasses say. Their clock is not ours: a question they gave up too early is put again."""
        asking = self._head()
        if asking is None or asking.number != event.prompt:
            _log.debug("an answer to prompt %d, which is not open", event.prompt)
            return
        asking.number = None
        if event.answer is Answer.TIMEOUT and self._clock.boot() < asking.expires_at:
            asking.nowhere(self._clock.boot() + RETRY_S)
            self._wake()
        else:
            self._decide(asking, event.answer)

    def _decide(self, asking: Asking, answer: Answer) -> None:
        late = self._clock.boot() >= asking.expires_at
        asking.settle(Answer.TIMEOUT if late else answer)

    # ------------------------------------------------------------------ for the actor

    @property
    def asking(self) -> bool:
        """A question is before the wearer, or was when the glasses left."""
        head = self._head()
        return head is not None and head.begun

    @property
    def over_by(self) -> float:
        """When the last question now known is over at the latest (boot clock)."""
        return max((asking.expires_at for asking in self._queue), default=self._clock.boot())

    def due_at(self) -> float | None:
        """When somebody's turn is without anything happening; None when there is nothing to wait for."""
        head = self._head()
        wanted = head is not None and head.way is Way.NOWHERE and self._glasses.status().ready
        return head.again_at if head is not None and wanted else None

    def connected(self) -> None:
        """The glasses are there anew: what was put to the wearer has to be put again."""
        self._prompts = True
        if (head := self._head()) is not None:
            self.stray = self.stray or head.number is not None
            head.nowhere()

    async def tidy(self) -> None:
        """Take off what is answered, called off or out of time; a voice that still asks falls silent."""
        while self._queue and self._queue[0].answer.done():
            asking = self._queue.popleft()
            if asking.speech is not None and self._ear.speaking is asking.speech:
                await self._ear.hush("the end of its question")
            if asking.number is not None:
                await self.end_prompt(asking.number)

    async def end_prompt(self, number: int | None = None) -> None:
        """Take a prompt (None: whichever there is) off the glasses, if they can do that."""
        try:
            await self._glasses.request(EndPrompt(number), timeout_s=ANSWER_S)
            self.stray = False
        except REFUSALS as e:
            self.stray = False
            _log.debug("a question stays on the glasses until its time is over: %s", e)
        except GlassesAway:
            self.stray = True

    async def put(self) -> None:
        """Put the question whose turn it is to the wearer: on the lens, else in the ear."""
        asking, capabilities, why = self._queue[0], self._glasses.status().capabilities, ["glasses away"]
        asking.begun = True
        if capabilities is None or (nobody := self._why_nobody(capabilities)):
            asking.give_up(nobody if capabilities is not None else why[0])
            return
        try:
            if await self._on_lens(asking, capabilities, why) or self._in_ear(asking, capabilities, why):
                return
        except GlassesAway:
            self.stray = self.stray or asking.number is not None
        except Exception:  # noqa: BLE001 - one question that cannot be drawn must not stop all that is shown
            _log.exception("a question could not be asked")
            asking.give_up("it could not be asked")
        _log.debug("a question is nowhere yet: %s", "; ".join(why))
        asking.nowhere(self._clock.boot() + RETRY_S)

    def _head(self) -> Asking | None:
        return self._queue[0] if self._queue else None

    # ------------------------------------------------------------------ the lens

    async def _on_lens(self, asking: Asking, capabilities: Capabilities, why: list[str]) -> bool:
        if not capabilities.has(Hardware.DISPLAY):
            return False
        try:
            sheet = page(asking.question, capabilities)
            done = await self._prompted(asking, sheet) if self._prompts else None
            way = Way.PAGE if done is None else Way.PROMPT
            if done is None:
                done = await self._lens.show(asking.question.scene, (sheet,), 1)
        except (CannotShow, *REFUSALS) as e:
            why.append(f"not on the lens: {e}")
            self.stray = self.stray or asking.number is not None
            asking.number = None
            return False
        if way is Way.PROMPT and asking.number is None:
            return True  # decided, or given up, before we heard that it is drawn
        if done.drawn == 0:  # a yes to what nobody could see is none
            why.append("nothing was drawn")
            number, asking.number = asking.number, None
            if number is not None:
                await self.end_prompt(number)
            return False
        asking.way, asking.since = way, self._clock.boot()
        return True

    async def _prompted(self, asking: Asking, sheet: Sheet) -> Done | None:
        """Let the glasses ask; one question at a time is open on them. None when they cannot."""
        if self.stray:
            await self.end_prompt()
        for again in (True, False):
            asking.number = number = self._number()
            left = min(_LONGEST_PROMPT_S, max(0.1, asking.expires_at - self._clock.boot()))
            try:
                return await self._lens.ask(asking.question.scene, sheet, number, left)
            except CommandRefused as e:
                asking.number = None
                if e.code == "unsupported":
                    self._prompts = False
                    return None
                if e.code != "busy" or not again:
                    raise
            await self.end_prompt()
        return None

    def _number(self) -> int:
        self._last_number = max(self._last_number + 1, int(self._clock.boot() * _NUMBERS_A_S)) & 0xFFFFFFFF
        return self._last_number

    # ------------------------------------------------------------------ the ear

    def _in_ear(self, asking: Asking, capabilities: Capabilities, why: list[str]) -> bool:
        if not can_press(capabilities):
            return False
        if asking.speech is None:
            words = Rendering(speech=spoken(asking.question, capabilities))
            act = Act("", asking.question.scene, words, ASKING_RANK, asking.expires_at, lambda _id, _report: None)
            if not self._ear.begin(act, capabilities, why):
                return False
            asking.speech = act
        asking.way = Way.EAR
        return True

    def spoken(self, over: SpeechOver) -> None:
        """A question's speech ended. Once it has begun the wearer may take the time to answer; else it was not asked."""
        asking = self._head()
        if asking is None or asking.speech is not over.act or asking.said or asking.answer.done():
            return
        asking.speech = None
        capabilities = self._glasses.status().capabilities
        if over.away or (capabilities is not None and capabilities.has(Hardware.DISPLAY)):
            asking.nowhere(self._clock.boot() + RETRY_S)
        else:
            asking.give_up(over.reason or "the question has no sound")
