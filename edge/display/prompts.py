"""Questions to the wearer, one at a time, on the lens or spoken, until answered or withdrawn."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from edge.core.results import Rendering
from edge.display.fallback import REFUSALS
from edge.display.lens import ANSWER_S, CannotShow, LensWriter, Sheet
from edge.display.open_prompt import OpenPrompt, PromptWay
from edge.display.presentation import ASKING_RANK, Presentation
from edge.display.prompt_layout import ANSWERS, can_press, pages, spoken
from edge.display.side_commands import SideCommands
from edge.display.speech import CannotSpeak
from edge.display.speech_output import SpeechOutput, SpeechOver
from edge.ports import GlassesAway, GlassesPort, NobodyToAsk, Question
from edge.runtime.clock import Clock
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    Answer,
    Done,
    EndPrompt,
    Event,
    Gesture,
    HidingChanged,
    PageClosed,
    PromptAnswered,
    WornChanged,
)

__all__ = ["OpenPrompt", "PromptWay", "Prompter"]
_log: Final = logging.getLogger(__name__)
WAITING: Final = 8
"""Questions that may wait behind the one being asked; nobody remembers a ninth."""
TOO_SOON_S: Final = 0.7
"""A gesture this soon after a page or its speech was meant for what was there before."""
RETRY_S: Final = 1.0
"""Between two tries to put a question where the glasses did not take it."""
_LONGEST_PROMPT_S: Final = 600.0
"""The profile's bound; a longer question is asked again."""
_SLICE_S: Final = 5.0
"""Longest sleep between two looks at the boot clock, which runs on during suspend."""
_NUMBERS_A_S: Final = 20
"""Prompt numbers come from the boot clock, so that no daemon of this boot repeats another's: twice
as many a second as the lens takes, enough for 6.8 years in 32 bits.
"""


class Prompter:
    """`ask`, `gestured` and `receive` never wait for the glasses; the rest is for the actor.

    `wake` tells the actor that there may be something to do.
    """

    def __init__(
        self,
        glasses: GlassesPort,
        lens: LensWriter,
        ear: SpeechOutput,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._glasses = glasses
        self._lens = lens
        self._ear = ear
        self._clock = clock
        self._wake = wake
        self._queue: deque[OpenPrompt] = deque()
        self._prompts = True
        self._last_number = 0
        self.beside = SideCommands(
            glasses, clock, lambda: any(not asking.answer.done() for asking in self._queue)
        )
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

    def _enlist(self, question: Question) -> OpenPrompt:
        if reason := self._why_nobody(question, self._glasses.status().capabilities):
            raise NobodyToAsk(reason)
        waiting = [asking for asking in self._queue if not asking.answer.done()]
        if len(waiting) > WAITING:
            raise NobodyToAsk(f"{WAITING} questions wait already")
        self._queue = deque(a for a in self._queue if a is self._queue[0] or a in waiting)
        asking = OpenPrompt(question, self._clock.boot() + question.timeout_s)
        asking.answer.add_done_callback(lambda _: self._wake())
        self._queue.append(asking)
        self._wake()
        return asking

    def _why_nobody(self, question: Question, capabilities: Capabilities | None) -> str:
        """Why these glasses cannot ask this, or not be answered; "" when they can."""
        if capabilities is None:
            return "no glasses are known"
        why: list[str] = []
        if capabilities.has(Hardware.DISPLAY):
            try:
                pages(question, capabilities)
            except CannotShow as e:
                why.append(str(e))
            else:
                if not (unseen := self._glasses.status().unseen):
                    return ""
                why.append(unseen)
        if not (capabilities.has(Hardware.SPEAKER) and can_press(capabilities)):
            return (
                why[0] if why else "these glasses have neither a display nor a speaker and a button"
            )
        try:
            spoken(question, capabilities)
            unheard = self._ear.why_not(capabilities)
        except CannotSpeak as e:
            unheard = str(e)
        return "; ".join([*why, unheard]) if unheard else ""

    async def _outcome(self, asking: OpenPrompt) -> Answer:
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
        answer = ANSWERS[gesture]
        if not self._counts(asking, answer):
            return True
        if (
            answer is Answer.ALLOW
            and asking.way is PromptWay.PAGE
            and asking.page < len(asking.sheets)
        ):
            asking.turn()
            self._wake()
        else:
            self._decide(asking, answer)
        return True

    def _counts(self, asking: OpenPrompt, answer: Answer) -> bool:
        """Whether the wearer can know what the gesture answers; a no needs only the beginning."""
        settled, status = self._clock.boot() - asking.since >= TOO_SOON_S, self._glasses.status()
        if asking.way is PromptWay.PAGE and not (status.ready and status.link == asking.link):
            return False  # another connection: nobody knows what is on the lens now
        if asking.way is not PromptWay.EAR and self._hidden():
            return False
        if self._unworn(answer):
            return False
        if answer is Answer.DENY and asking.page > 1:
            return True  # the wearer has turned pages already
        if asking.way is PromptWay.PAGE:
            return settled
        if asking.way is not PromptWay.EAR or not status.ready or status.address != asking.address:
            return False
        return asking.said if answer is Answer.DENY else asking.heard and settled

    def _hidden(self) -> str:
        """Why nobody sees the lens now; "" when it can be seen."""
        status = self._glasses.status()
        return status.unseen or status.covered

    def _gone(self, asking: OpenPrompt) -> None:
        """The page may be off the lens or unseen: show it again from its first page."""
        asking.hidden = True
        if asking.way is PromptWay.PAGE:
            asking.nowhere()
        if asking.way is PromptWay.NOWHERE:
            asking.again_at = float("-inf")
        self._wake()

    def told(self, event: Event) -> None:
        """Take what else the glasses say."""
        head = self._head()
        if isinstance(event, PromptAnswered):
            self.answered(event)
        elif isinstance(event, WornChanged):
            self.worn_changed()
        elif isinstance(event, HidingChanged | PageClosed) and head is not None:
            self._gone(head)

    def answered(self, event: PromptAnswered) -> None:
        """Process an answer of the glasses. Their clocks are not trusted: a question they gave up
        too early is shown again; one answered too early is shown as a page, whose gestures are read
        here.
        """
        asking = self._head()
        if asking is None or asking.number != event.prompt:
            _log.debug("an answer to prompt %d, which is not open", event.prompt)
            return
        asking.number = None
        now = self._clock.boot()
        if event.answer is Answer.TIMEOUT and now < asking.expires_at:
            asking.nowhere(now + RETRY_S)
        elif (
            asking.way is not PromptWay.PROMPT
            or now - asking.since < TOO_SOON_S
            or self._unworn(event.answer)
        ):
            _log.debug(
                "an answer to prompt %d came before anybody could have read it", event.prompt
            )
            asking.unprompted = self.stray = True
            asking.nowhere()
        else:
            self._decide(asking, event.answer)
        self._wake()

    def _unworn(self, answer: Answer) -> bool:
        """A yes of glasses that are not worn: nobody reads them, or hears them."""
        return answer is Answer.ALLOW and self._glasses.status().worn is False

    def worn_changed(self) -> None:
        """The glasses were put on or taken off, which touches them: what is there was not read yet,
        what is said not heard whole.
        """
        if (asking := self._head()) is None:
            return
        asking.since = self._clock.boot()
        asking.missed = asking.speech is not None
        if asking.heard:
            self._say_again(asking)
            self._wake()

    def _say_again(self, asking: OpenPrompt, again_at: float = float("-inf")) -> None:
        asking.speech, asking.heard, asking.missed = None, False, False
        asking.nowhere(again_at)

    def _decide(self, asking: OpenPrompt, answer: Answer) -> None:
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
        """When a question's turn comes by time alone; None if there is nothing to wait for."""
        head = self._head()
        wanted = head is not None and head.way is PromptWay.NOWHERE and self._glasses.status().ready
        return max(head.again_at, self.beside.over_at) if head is not None and wanted else None

    def connected(self) -> None:
        """The glasses are there anew: what was put to the wearer has to be put again, unless it
        was put there before the news of their return came.
        """
        self._prompts = True
        head = self._head()
        if head is not None and head.link != self._glasses.status().link:
            self.stray = self.stray or head.number is not None
            head.nowhere()

    async def tidy(self) -> None:
        """Remove questions that are answered, withdrawn or out of time; silence their speech."""
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
        """Show the question whose turn it is, unless a side command covers the lens first."""
        async with self.beside.turn:
            if self._clock.boot() >= self.beside.over_at:
                await self._put()

    async def _put(self) -> None:
        """On the lens, else in the ear."""
        asking, capabilities, why = (
            self._queue[0],
            self._glasses.status().capabilities,
            ["glasses away"],
        )
        asking.begun = True
        nobody = why[0] if capabilities is None else self._why_nobody(asking.question, capabilities)
        # what is hidden now may be seen before the time is over
        if capabilities is None or (nobody and not self._hidden()):
            asking.give_up(nobody)
            return
        try:
            if await self._on_lens(asking, capabilities, why) or self._in_ear(
                asking, capabilities, why
            ):
                return
        except GlassesAway:
            self.stray = self.stray or asking.number is not None
        except Exception:  # noqa: BLE001 - one question that cannot be drawn must not stop all that is shown
            _log.exception("a question could not be asked")
            asking.give_up("it could not be asked")
        _log.debug("a question is nowhere yet: %s", "; ".join(why))
        asking.nowhere(self._clock.boot() + RETRY_S)

    def _head(self) -> OpenPrompt | None:
        return self._queue[0] if self._queue else None

    # ------------------------------------------------------------------ the lens

    async def _on_lens(
        self, asking: OpenPrompt, capabilities: Capabilities, why: list[str]
    ) -> bool:
        if not capabilities.has(Hardware.DISPLAY):
            return False
        if hidden := self._hidden():
            why.append(hidden)
            return False
        asking.hidden = False
        try:
            sheets, link = pages(asking.question, capabilities), self._glasses.status().link
            if (sheets, link) != (asking.sheets, asking.link):
                asking.sheets, asking.link, asking.page = sheets, link, 1
            native = self._prompts and not asking.unprompted and len(sheets) == 1
            done = await self._prompted(asking, sheets[0]) if native else None
            way = PromptWay.PAGE if done is None else PromptWay.PROMPT
            if done is None:
                if asking.unprompted and self.stray:  # theirs may still be over the page
                    await self.end_prompt()
                done = await self._lens.show(asking.question.scene, sheets, asking.page)
        except (CannotShow, *REFUSALS) as e:
            why.append(f"not on the lens: {e}")
            self.stray = self.stray or asking.number is not None
            asking.number = None
            return False
        if way is PromptWay.PROMPT and asking.number is None:
            return True  # given up, or answered too early, before we heard that it is drawn
        if way is PromptWay.PAGE and asking.hidden:
            why.append("it was hidden while it was drawn")
            return False
        if done.drawn == 0 or done.clipped:  # a yes to what nobody could see is none
            why.append("nothing was drawn" if done.drawn == 0 else "not all of it was drawn")
            number, asking.number = asking.number, None
            if number is not None:
                await self.end_prompt(number)
            return False
        asking.way, asking.since = way, self._clock.boot()
        return True

    async def _prompted(self, asking: OpenPrompt, sheet: Sheet) -> Done | None:
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
        self._last_number = (
            max(self._last_number + 1, int(self._clock.boot() * _NUMBERS_A_S)) & 0xFFFFFFFF
        )
        return self._last_number

    # ------------------------------------------------------------------ the ear

    def _in_ear(self, asking: OpenPrompt, capabilities: Capabilities, why: list[str]) -> bool:
        if not can_press(capabilities):
            return False
        here = self._glasses.status().address
        if asking.address != here:  # who wears these glasses has heard nothing of it yet
            self._say_again(asking)
        if asking.speech is None:
            try:
                words = Rendering(speech=spoken(asking.question, capabilities))
            except CannotSpeak as e:
                why.append(str(e))
                return False
            act = Presentation(
                "",
                asking.question.scene,
                words,
                ASKING_RANK,
                asking.expires_at,
                lambda _id, _report: None,
            )
            if not self._ear.begin(act, capabilities, why):
                return False
            asking.speech, asking.address = act, here
        asking.way, asking.since = PromptWay.EAR, self._clock.boot()
        return True

    def spoken(self, over: SpeechOver) -> None:
        """A question's speech ended. Heard to its end it may be answered now; else it is spoken
        again from its beginning when the glasses are back.
        """
        asking = self._head()
        if asking is None or asking.speech is not over.act or asking.answer.done():
            return
        if over.whole and not asking.missed:
            asking.heard, asking.since = True, self._clock.boot()
            return
        capabilities, again = self._glasses.status().capabilities, over.away or asking.missed
        asking.speech = None
        if again or (capabilities is not None and capabilities.has(Hardware.DISPLAY)):
            self._say_again(asking, self._clock.boot() + RETRY_S)
        else:
            asking.give_up(over.reason or "a part of the question has no sound")
