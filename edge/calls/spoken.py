"""What the wearer says: the tool whose activation phrase is in a transcript is called."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from edge.calls.call import Caller, Recognition
from edge.calls.dependencies import CallPorts, CallRules
from edge.calls.faults import Attempt
from edge.calls.last_spoken import CallEntry, LastSpoken, wait_for_answer
from edge.calls.turns import VoiceTurns
from edge.calls.undo import Undos
from edge.calls.voice_session import VoiceSession
from edge.core import confirmation, phrases, policy
from edge.core.phrases import Match
from edge.runtime.ids import new_call_id
from firmware_bridge.messages import Transcript
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    Mode,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
)

if TYPE_CHECKING:
    from edge.core.hearing.meaning import Meaning

_MAX_QUOTED: Final = 60
"""Characters of a transcript that are repeated on the lens, which is kept on disk."""
SORRY: Final = "Sorry, I don't know that one."
STAYS: Final = "The first one stays as it is."
_CLEAR: Final = "glasses:clear"


class SpokenCalls:
    """One per daemon."""

    def __init__(
        self,
        ports: CallPorts,
        rules: CallRules,
        voice: VoiceSession,
        undos: Undos,
        entry: CallEntry,
    ) -> None:
        self._registry = ports.registry
        self._session = ports.session
        self._stage = ports.stage
        self._uplink = ports.uplink
        self._words_wanted = ports.words_wanted
        self._names = ports.names
        self._clock = ports.clock
        self._rules = rules
        self._voice = voice
        self._turns = VoiceTurns(ports.notes, ports.clock)
        self._tasks = entry.tasks
        self._start = entry.start
        self._refuse = entry.refuse
        self._last = LastSpoken(ports.clock, undos, entry)
        self._heard_until = 0.0
        """The end of the last sound whose words were acted on."""
        self._apologised = False
        self.reconnected = self._turns.reconnected

    async def take(self, text: str, mode: Mode = Mode.VOICE) -> ToolResponse:
        """Take a final transcript; NOT_FOUND when no phrase is in it."""
        return await self._take(Transcript(text), mode)

    async def take_safely(self, said: Transcript) -> None:
        """The same where nobody waits for the answer: an utterance never ends the other calls."""
        with Attempt("an utterance could not be handled", bug=True):
            if not self._is_known_sound(said):
                await self._take(said, Mode.VOICE)

    def _is_known_sound(self, said: Transcript) -> bool:
        """Return whether its sound was recognised and acted on before (by another listening)."""
        return said.began_at is not None and said.began_at < self._heard_until

    async def _take(self, said: Transcript, mode: Mode) -> ToolResponse:
        now, call_id = self._clock.boot(), new_call_id(self._clock.wall())
        began = not self._session.voice_active(now)
        if not self._session.begin_voice(now):
            call = self._spoken_call(call_id, mode)
            return self._refuse(call, policy.quiet(self._session.quiet_s(now)), "quiet")
        answer = await self._understand(call_id, said, mode)
        if began:
            self._voice.started()
        return answer

    async def _understand(self, call_id: str, said: Transcript, mode: Mode) -> ToolResponse:
        from edge.core.hearing import meaning  # noqa: PLC0415 - at the first utterance

        turn_id, replayed = await self._turns.turn(said.text, call_id)
        call = self._spoken_call(call_id, mode, turn_id=turn_id, replayed=replayed)
        recognised = meaning.is_recognised(said)
        find = self._finder(turn_id, leading=recognised)
        former = self._last.former(said.began_at)
        understood = meaning.understand(said, find, former, self._names())
        meant = understood.meaning
        if meant is not None:
            self._apologised = False
            self._heard_until = max(self._heard_until, said.ended_at or 0.0)
            private = self._session.snapshot().suppress_transcript
            heard = None
            if recognised:
                heard = Recognition(
                    said.confidence,
                    understood.unsure,
                    understood.guessed,
                    private=private,
                    correct=self._correct,
                )
            answer = await self._act(call, meant, heard)
            for other in understood.others:
                if not _is_refused(answer, meant):
                    break
                meant, call = other, replace(call, call_id=new_call_id(self._clock.wall()))
                answer = await self._act(call, meant, heard)
            if answer is not None:
                return answer
        return await self._not_understood(call, said, recognised=recognised)

    # -------------------------------------------------------------- what was understood

    async def _act(
        self, call: ToolCall, meant: "Meaning", heard: Recognition | None
    ) -> ToolResponse | None:
        """Do what was said; None if there is nothing to stop or to take back."""
        from edge.core.hearing.corrections import Act  # noqa: PLC0415 - at the first utterance

        match meant.act, meant.match:
            case None, Match() as found:
                return await self._run(call, found, heard)
            case Act.CHANGE, Match() as found:
                return await self._run_instead(call, found, heard)
            case Act.UNDO, _:
                return await self._last.take_back(heard) or await self._clear(call, heard)
            case Act.STOP, _:
                return await self._last.stop() or await self._clear(call, heard)
            case Act.NO, _:
                return await self._last.stop()
        return None

    async def _run(self, call: ToolCall, found: Match, heard: Recognition | None) -> ToolResponse:
        call = replace(call, tool=found.tool.name, args=found.args)
        with self._last.running(call, found) as running:
            running.answer = await wait_for_answer(await self._start(call, Caller(heard=heard)))
        return running.answer

    async def _run_instead(
        self, call: ToolCall, found: Match, heard: Recognition | None
    ) -> ToolResponse:
        """Run a call in the place of the last one, which is taken back when this one is done."""
        way = await self._last.make_way()
        if way.refusal is not None:
            return way.refusal
        if way.stands:
            heard = replace(heard or Recognition(correct=self._correct), unsure=True, remark=STAYS)
        answer = await self._run(call, found, heard)
        if way.undo is not None and answer.ok:
            undone = await wait_for_answer(await self._start(*way.undo))
            if not undone.ok:
                await self._stage.tell(STAYS)
        return answer

    async def _clear(self, call: ToolCall, heard: Recognition | None) -> ToolResponse | None:
        """Take away what is shown; None if nothing is."""
        entry = self._registry.snapshot().find(_CLEAR)
        if entry is None or entry.hidden or not self._stage.lens().get("lines"):
            return None
        call = replace(call, tool=_CLEAR)
        return await wait_for_answer(await self._start(call, Caller(heard=heard)))

    def _correct(self, said: Transcript) -> bool:
        """Take words said to the question about the last call, if they correct it."""
        from edge.core.hearing import meaning  # noqa: PLC0415 - as above

        said, former = replace(said, addressed=True), self._last.former()
        find = self._finder("", leading=True)
        meant = meaning.understand(said, find, former, self._names()).meaning
        if meant is None or meant.match is None or meant.act is None or not self._tasks.open:
            return False
        self._tasks.create_task(self.take_safely(said), name="call.corrected")
        return True

    # -------------------------------------------------------------- what was not

    async def _not_understood(
        self, call: ToolCall, said: Transcript, *, recognised: bool
    ) -> ToolResponse:
        private = self._session.snapshot().suppress_transcript
        quoted = "that" if private else f"“{' '.join(said.text.split())[:_MAX_QUOTED]}”"
        error = ToolError.of(
            ErrorCode.TOOL_NOT_FOUND, f"Nothing here answers to {quoted}", suggestion="glassd tools"
        )
        if recognised and not said.addressed:
            return ToolResponse(error=error)  # said near the glasses, perhaps to somebody else
        refusal = self._refuse(call, error, "no phrase matches")
        if not recognised:
            report = await self._stage.present(call.call_id, refusal)
            return refusal.with_meta(delivery=report.to_json())
        elsewhere = not private and (self._uplink.status().up or self._words_wanted())
        if not (self._apologised or elsewhere):
            self._apologised = True
            await self._stage.tell(SORRY, scene="sorry")
        return refusal

    # -------------------------------------------------------------- parts

    def _finder(self, turn_id: str, *, leading: bool) -> Callable[[str], Match | None]:
        entries, language = self._registry.snapshot().entries(), self._rules.policy.language
        why_not = self._why_not(turn_id)
        return lambda text: phrases.find_tool(text, entries, language, why_not, leading=leading)

    def _spoken_call(self, call_id: str, mode: Mode, **more: Any) -> ToolCall:
        about: dict[str, Any] = {"tool": "", "args": {}, "user_id": self._rules.policy.user_id}
        return ToolCall(call_id=call_id, origin=CallOrigin.VOICE, mode=mode, **(about | more))

    def _why_not(self, turn_id: str) -> Callable[[ToolDefinition], str]:
        choice = self._rules.policy.choice
        if choice is None:
            return lambda _tool: ""
        if turn_id:
            choice.turn(turn_id)
        return partial(choice.why_not, self._rules.policy.user_id)


def _is_refused(answer: ToolResponse | None, meant: "Meaning") -> bool:
    """Return whether the wearer was asked for this call, and said no."""
    if answer is None or answer.error is None or meant.match is None:
        return False
    return answer.error == confirmation.denied(meant.match.tool, confirmation.WEARER)
