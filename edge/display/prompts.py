"""Questions to the wearer, one at a time, on the lens or spoken, until answered or withdrawn."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from edge.core.results import Rendering
from edge.display.drawn_text import DrawnText
from edge.display.fallback import REFUSALS
from edge.display.lens import ANSWER_S, CannotShow, LensWriter, Sheet
from edge.display.open_prompt import ANSWERS, OpenPrompt, PromptWay, can_press
from edge.display.presentation import ASKING_RANK, Presentation
from edge.display.side_commands import SideCommands
from edge.display.voice.speech import CannotSpeak, SpeechOutput, SpeechOver, StoppedBy
from edge.ports import Chosen, GlassesAway, GlassesPort, NobodyToAsk, Question
from edge.runtime.clock import Clock
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.deadlines import timeout
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
    Transcript,
    WornChanged,
)

if TYPE_CHECKING:
    from edge.listening_ports import ListeningPort

_log: Final = logging.getLogger(__name__)
UNASKED: Final = "There was a question that these glasses cannot ask."
WAITING: Final = 8
"""Questions that may wait behind the one being asked."""
TOO_SOON_S: Final = 0.7
"""A gesture this soon after a page or its speech was meant for what was there before."""
RETRY_S: Final = 1.0
"""Seconds between two attempts to show a question that the glasses did not take."""
_LONGEST_PROMPT_S: Final = 600.0
"""The profile's bound; a longer question is asked again."""
_SLICE_S: Final = 5.0
"""Longest sleep between two looks at the boot clock, which runs on during suspend."""
_NUMBERS_A_S: Final = 20
"""Prompt numbers come from the boot clock, so that no daemon of this boot repeats another's: twice
as many a second as the lens takes, enough for 6.8 years in 32 bits.
"""


class Prompter:
    """`ask`, `take_gesture` and `receive` never wait for the glasses; the rest is for the actor
    (the task in `presenter.py` that alone draws and speaks).

    `wake` tells the actor that there may be something to do.
    """

    def __init__(
        self,
        glasses: GlassesPort,
        lens: LensWriter,
        speech: SpeechOutput,
        clock: Clock,
        wake: Callable[[], None],
        *,
        drawn: DrawnText,
        listens: "Callable[[], ListeningPort | None]" = lambda: None,
    ) -> None:
        self._glasses = glasses
        self._listens = listens
        self._lens = lens
        self._speech = speech
        self._drawn = drawn
        self._clock = clock
        self._wake = wake
        self._queue: deque[OpenPrompt] = deque()
        self._prompts = True
        self._last_number = 0
        self._ended: OpenPrompt | None = None
        self.side_commands = SideCommands(
            glasses, clock, lambda: any(not prompt.answer.done() for prompt in self._queue)
        )
        self.stray = False
        """Whether the glasses may still hold a question open that has ended."""

    # ------------------------------------------------------------------ for the asker

    async def ask(self, question: Question) -> Answer | Chosen:
        """See `AskPort.choose`."""
        expires_at = self._clock.boot() + question.timeout_s
        if reason := await self._why_nobody(question, self._glasses.status().capabilities):
            raise NobodyToAsk(reason, UNASKED if self._glasses.status().ready else "")
        prompt = self._enlist(question, expires_at)
        try:
            return await self._outcome(prompt)
        finally:
            prompt.release()

    def _enlist(self, question: Question, expires_at: float) -> OpenPrompt:
        waiting = [prompt for prompt in self._queue if not prompt.answer.done()]
        if len(waiting) > WAITING:
            raise NobodyToAsk(f"{WAITING} questions wait already")
        self._queue = deque(a for a in self._queue if a is self._queue[0] or a in waiting)
        prompt = OpenPrompt(question, expires_at)
        prompt.answer.add_done_callback(lambda _: self._wake())
        self._queue.append(prompt)
        self._wake()
        return prompt

    async def _why_nobody(
        self, question: Question, capabilities: Capabilities | None, unspeakable: str = ""
    ) -> str:
        """Why these glasses cannot ask this, or not be answered; "" when they can. `unspeakable`:
        why it cannot be spoken, as far as that was tried.
        """
        from edge.display.prompt_layout import pages, to_speech  # noqa: PLC0415 - at the first question

        if capabilities is None:
            return "no glasses are known"
        why: list[str] = []
        if capabilities.has(Hardware.DISPLAY):
            try:
                async with timeout(question.timeout_s):
                    await pages(question, capabilities, self._drawn)
            except CannotShow as e:
                why.append(str(e))
            except TimeoutError:
                why.append("it took too long to draw the question")
            else:
                if not (unseen := self._glasses.status().unseen):
                    return ""
                why.append(unseen)
        if not (capabilities.has(Hardware.SPEAKER) and can_press(capabilities)):
            why.append("these glasses have neither a display nor a speaker and a button")
            return why[0]
        try:
            to_speech(question, capabilities)
            unheard = unspeakable or self._speech.why_not(capabilities)
        except CannotSpeak as e:
            unheard = str(e)
        return "; ".join([*why, unheard]) if unheard else ""

    async def _outcome(self, prompt: OpenPrompt) -> Answer | Chosen:
        """Wait for the answer. Our clock alone says when the time is over."""
        while not prompt.answer.done():
            left = prompt.expires_at - self._clock.boot()
            if left <= 0:
                prompt.settle(Answer.TIMEOUT)
            else:
                await asyncio.wait({prompt.answer}, timeout=min(left, _SLICE_S))
        return prompt.answer.result()

    # ------------------------------------------------------------------ what the wearer does

    def take_gesture(self, gesture: Gesture) -> bool:
        """Take a gesture that answers, or would; False when it is for something else."""
        prompt = self._head()
        if prompt is None or not prompt.begun or gesture not in ANSWERS:
            return False
        answer = ANSWERS[gesture]
        if self._counts(prompt, answer, self._clock.boot()):
            self._take(prompt, answer)
        return True

    def answer_by_words(self, said: Transcript) -> bool:
        """Take words that answer the question before the wearer; False if they do not. They count
        as a gesture does that is made at their end, and not if they began before the question was
        there.
        """
        prompt = self._head()
        if prompt is None or not prompt.begun or prompt.answer.done() or not said.final:
            return False
        if prompt.question.correct is not None and prompt.question.correct(said):
            return True
        from edge.display.listening.spoken_answer import answer_in  # noqa: PLC0415 - at the first words

        answer = answer_in(said, prompt.question)
        ended_at = self._clock.boot() if said.ended_at is None else said.ended_at
        began_at = ended_at if said.began_at is None else said.began_at
        gesture = answer if isinstance(answer, Answer) else Answer.ALLOW
        if answer is None or began_at < prompt.since:
            return False
        if not self._counts(prompt, gesture, ended_at, spoken=True):
            return False
        self._take(prompt, answer)
        return True

    def _take(self, prompt: OpenPrompt, answer: Answer | Chosen) -> None:
        """Take an answer; a yes to a page that is not the last leads to the next one."""
        more = prompt.way is PromptWay.PAGE and prompt.page < len(prompt.sheets)
        if answer is Answer.ALLOW and more:
            prompt.turn()
            self._wake()
        else:
            self._decide(prompt, answer)

    def _counts(
        self, prompt: OpenPrompt, answer: Answer, at: float, *, spoken: bool = False
    ) -> bool:
        """Whether the wearer could know at this time what the gesture, or the `spoken` word,
        answers; a no needs only the beginning.
        """
        settled, status = at - prompt.since >= TOO_SOON_S, self._glasses.status()
        if spoken and prompt.way is PromptWay.PROMPT:  # gestures are answers of the glasses there
            return settled and status.ready and not (self._hidden() or self._unworn(answer))
        if prompt.way is PromptWay.PAGE and not (status.ready and status.link == prompt.link):
            return False  # another connection: nobody knows what is on the lens now
        if prompt.way is not PromptWay.EAR and self._hidden():
            return False
        if self._unworn(answer):
            return False
        if answer is Answer.DENY and prompt.page > 1:
            return True  # the wearer has turned pages already
        if prompt.way is PromptWay.PAGE:
            return settled
        if prompt.way is not PromptWay.EAR or not status.ready or status.address != prompt.address:
            return False
        return prompt.speaking if answer is Answer.DENY else prompt.heard and settled

    def _hidden(self) -> str:
        """Why nobody sees the lens now; "" when it can be seen."""
        status = self._glasses.status()
        return status.unseen or status.covered

    def _show_again(self, prompt: OpenPrompt) -> None:
        """The page may be off the lens or unseen: show it again from its first page."""
        prompt.hidden = True
        if prompt.way is PromptWay.PAGE:
            prompt.nowhere()
        if prompt.way is PromptWay.NOWHERE:
            prompt.again_at = float("-inf")
        self._wake()

    def receive(self, event: Event) -> None:
        """Take any other event of the glasses."""
        if (head := self._head()) is None:
            return
        if isinstance(event, PromptAnswered):
            self._receive_answer(head, event)
        elif isinstance(event, WornChanged):
            self._reset_reading(head)
        elif isinstance(event, PageClosed) or (isinstance(event, HidingChanged) and event.hidden):
            self._show_again(head)
        elif isinstance(event, HidingChanged) and head.way is PromptWay.NOWHERE:
            head.again_at = float("-inf")  # it waited to be seen
            self._wake()

    def _receive_answer(self, prompt: OpenPrompt, event: PromptAnswered) -> None:
        """Process an answer of the glasses. Their clocks are not trusted: a question they gave up
        too early is shown again; one answered too early is shown as a page, whose gestures are read
        here.
        """
        if prompt.number != event.prompt:
            _log.debug("an answer to prompt %d, which is not open", event.prompt)
            return
        prompt.number = None
        now = self._clock.boot()
        early = prompt.way is not PromptWay.PROMPT or now - prompt.since < TOO_SOON_S
        if event.answer is Answer.TIMEOUT and now < prompt.expires_at:
            prompt.nowhere(now + RETRY_S)
        elif early or self._unworn(event.answer):
            _log.debug("prompt %d was answered before anybody could have read it", event.prompt)
            prompt.unprompted = self.stray = True
            prompt.nowhere()
        else:
            self._decide(prompt, event.answer)
        self._wake()

    def _unworn(self, answer: Answer) -> bool:
        """Whether this is a yes of glasses that nobody wears, and so reads or hears."""
        return answer is Answer.ALLOW and self._glasses.status().worn is False

    def _reset_reading(self, prompt: OpenPrompt) -> None:
        """The glasses were put on or taken off, which touches them: what is there was not read yet,
        what is said not heard whole.
        """
        prompt.since = self._clock.boot()
        prompt.missed = prompt.speech is not None
        if prompt.heard:
            self._say_again(prompt)
            self._wake()

    def _say_again(self, prompt: OpenPrompt, again_at: float = float("-inf")) -> None:
        prompt.speech, prompt.heard, prompt.missed = None, False, False
        prompt.nowhere(again_at)

    def _decide(self, prompt: OpenPrompt, answer: Answer | Chosen) -> None:
        late = self._clock.boot() >= prompt.expires_at
        prompt.settle(Answer.TIMEOUT if late else answer)

    # ------------------------------------------------------------------ for the actor

    @property
    def active(self) -> bool:
        """A question is before the wearer, or was when the glasses left."""
        head = self._head()
        return head is not None and head.begun

    @property
    def over_by(self) -> float:
        """When the last question now known is over at the latest (boot clock)."""
        return max((prompt.expires_at for prompt in self._queue), default=self._clock.boot())

    def due_at(self) -> float | None:
        """When a question's turn comes by time alone; None if there is nothing to wait for."""
        head = self._head()
        if head is None or head.way is not PromptWay.NOWHERE or not self._glasses.status().ready:
            return None
        return max(head.again_at, self.side_commands.over_at)

    def connected(self) -> None:
        """The glasses are back: show the question again, unless that was done since already."""
        self._prompts = True
        head = self._head()
        if head is not None and head.link != self._glasses.status().link:
            self.stray = self.stray or head.number is not None
            head.nowhere()

    async def tidy(self) -> None:
        """Remove questions that are answered, withdrawn or out of time; silence their speech."""
        while self._queue and self._queue[0].answer.done():
            prompt = self._queue.popleft()
            self._ended = prompt if prompt.begun else self._ended
            if prompt.speech is not None and self._speech.speaking is prompt.speech:
                await self._speech.silence(StoppedBy.ANSWERED)
            if prompt.number is not None:
                await self.end_prompt(prompt.number)
            if prompt.begun and (listens := self._listens()) is not None:
                listens.closed()

    def take_ended(self) -> OpenPrompt | None:
        """Return the question that was before the wearer last, once."""
        ended, self._ended = self._ended, None
        return ended

    async def end_prompt(self, number: int | None = None) -> None:
        """Remove a prompt (None: any) from the glasses, if they can do that."""
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
        async with self.side_commands.turn:
            if self._clock.boot() >= self.side_commands.over_at:
                await self._put()

    async def _put(self) -> None:
        """Show it on the lens, else speak it."""
        prompt, why = self._queue[0], ["glasses away"]
        capabilities = self._glasses.status().capabilities
        prompt.begun = True
        if capabilities is None:
            prompt.give_up(why[0])
            return
        nobody = await self._why_nobody(prompt.question, capabilities, prompt.unspeakable)
        if nobody and not self._hidden():  # what is hidden now may be seen before the time is over
            prompt.give_up(nobody)
            return
        if (listens := self._listens()) is not None:
            prompt.spoken = listens.opened(prompt.question)
        try:
            if await self._show(prompt, capabilities, why):
                return
            if self._speak(prompt, capabilities, why):
                return
        except GlassesAway:
            self.stray = self.stray or prompt.number is not None
        except Exception:  # noqa: BLE001 - one question that cannot be drawn must not stop all that is shown
            _log.exception("a question could not be asked")
            prompt.give_up("it could not be asked")
        _log.debug("a question is nowhere yet: %s", "; ".join(why))
        prompt.nowhere(self._clock.boot() + RETRY_S)

    def _head(self) -> OpenPrompt | None:
        return self._queue[0] if self._queue else None

    # ------------------------------------------------------------------ the lens

    async def _show(self, prompt: OpenPrompt, capabilities: Capabilities, why: list[str]) -> bool:
        if not capabilities.has(Hardware.DISPLAY):
            return False
        if hidden := self._hidden():
            why.append(hidden)
            return False
        from edge.display.prompt_layout import pages  # noqa: PLC0415 - at the first question

        prompt.hidden = False
        try:
            sheets = await pages(prompt.question, capabilities, self._drawn, spoken=prompt.spoken)
            link = self._glasses.status().link
            if (sheets, link) != (prompt.sheets, prompt.link):
                prompt.sheets, prompt.link, prompt.page = sheets, link, 1
            alone = len(sheets) == 1 and not sheets[0].tiles  # their own question has lines only
            native = self._prompts and not prompt.unprompted and alone
            done = await self._prompted(prompt, sheets[0]) if native else None
            way = PromptWay.PAGE if done is None else PromptWay.PROMPT
            if done is None:
                if prompt.unprompted and self.stray:  # their prompt may still cover the page
                    await self.end_prompt()
                done = await self._lens.show(prompt.question.scene, sheets, prompt.page)
        except (CannotShow, *REFUSALS) as e:
            why.append(f"not on the lens: {e}")
            self.stray = self.stray or prompt.number is not None
            prompt.number = None
            return False
        if way is PromptWay.PROMPT and prompt.number is None:
            return True  # it ended before it was reported as drawn
        if way is PromptWay.PAGE and prompt.hidden:
            why.append("it was hidden while it was drawn")
            return False
        if done.drawn == 0 or done.clipped:  # a yes to what was not visible does not count
            why.append("nothing was drawn" if done.drawn == 0 else "not all of it was drawn")
            number, prompt.number = prompt.number, None
            if number is not None:
                await self.end_prompt(number)
            return False
        prompt.way, prompt.since = way, self._clock.boot()
        return True

    async def _prompted(self, prompt: OpenPrompt, sheet: Sheet) -> Done | None:
        """Let the glasses ask; one question at a time is open on them. None when they cannot."""
        if self.stray:
            await self.end_prompt()
        if prompt.question.accepted and self._lens.lit:
            await self._lens.clear()  # when their prompt ends, the glasses show what is under it
        for again in (True, False):
            prompt.number = number = self._number()
            left = min(_LONGEST_PROMPT_S, max(0.1, prompt.expires_at - self._clock.boot()))
            try:
                return await self._lens.ask(prompt.question.scene, sheet, number, left)
            except CommandRefused as e:
                prompt.number = None
                if e.code == "unsupported":
                    self._prompts = False
                    return None
                if e.code != "busy" or not again:
                    raise
            await self.end_prompt()
        return None

    def _number(self) -> int:
        by_clock = int(self._clock.boot() * _NUMBERS_A_S)
        self._last_number = max(self._last_number + 1, by_clock) & 0xFFFFFFFF
        return self._last_number

    # ------------------------------------------------------------------ speech

    def _speak(self, prompt: OpenPrompt, capabilities: Capabilities, why: list[str]) -> bool:
        if prompt.unspeakable or not can_press(capabilities):
            return False
        here = self._glasses.status().address
        if prompt.address != here:  # on these glasses nothing of it was heard yet
            self._say_again(prompt)
        if prompt.speech is None:
            from edge.display.prompt_layout import to_speech  # noqa: PLC0415 - at the first question

            try:
                speech = to_speech(prompt.question, capabilities, spoken=prompt.spoken)
                words = Rendering(speech=speech)
            except CannotSpeak as e:
                why.append(str(e))
                return False
            scene, expires_at = prompt.question.scene, prompt.expires_at
            item = Presentation("", scene, words, ASKING_RANK, expires_at, lambda *_: None)
            if not self._speech.begin(item, capabilities, why):
                return False
            prompt.speech, prompt.address = item, here
        prompt.way, prompt.since = PromptWay.EAR, self._clock.boot()
        return True

    def speech_ended(self, over: SpeechOver) -> None:
        """A question's speech ended. Heard to its end it may be answered now; else it is spoken
        again from its beginning when the glasses are back.
        """
        prompt = self._head()
        if prompt is None or prompt.speech is not over.item or prompt.answer.done():
            return
        if over.whole and not prompt.missed:
            prompt.heard, prompt.since = True, self._clock.boot()
            return
        capabilities, again = self._glasses.status().capabilities, over.away or prompt.missed
        prompt.speech, prompt.unspeakable = None, over.reason if over.no_voice else ""
        if again or (capabilities is not None and capabilities.has(Hardware.DISPLAY)):
            self._say_again(prompt, self._clock.boot() + RETRY_S)
        else:
            prompt.give_up(over.reason or "a part of the question has no sound")
