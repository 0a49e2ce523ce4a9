"""What the wearer says: the tool whose activation phrase is in a transcript is called."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from edge.calls.dependencies import CallPorts, CallRules
from edge.calls.faults import Attempt
from edge.calls.turns import VoiceTurns
from edge.calls.voice_session import VoiceSession
from edge.core import phrases, policy
from edge.runtime.ids import new_call_id
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    Mode,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
)

_MAX_QUOTED: Final = 60
"""Characters of a transcript that are repeated on the lens, which is kept on disk."""


class SpokenCalls:
    """One per daemon. `refuse` answers a call that is none: (call, error, reason)."""

    def __init__(
        self,
        ports: CallPorts,
        rules: CallRules,
        voice: VoiceSession,
        call: Callable[[ToolCall], Awaitable[ToolResponse]],
        refuse: Callable[[ToolCall, ToolError, str], ToolResponse],
    ) -> None:
        self._registry = ports.registry
        self._session = ports.session
        self._stage = ports.stage
        self._clock = ports.clock
        self._rules = rules
        self._voice = voice
        self._turns = VoiceTurns(ports.notes, ports.clock)
        self._call = call
        self._refuse = refuse
        self.reconnected = self._turns.reconnected

    async def take(self, text: str, mode: Mode = Mode.VOICE) -> ToolResponse:
        """Take a final transcript; NOT_FOUND when no phrase is in it."""
        now, call_id = self._clock.boot(), new_call_id(self._clock.wall())
        began = not self._session.voice_active(now)
        if not self._session.begin_voice(now):
            call = self._spoken_call(call_id, mode)
            return self._refuse(call, policy.quiet(self._session.quiet_s(now)), "quiet")
        answer = await self._understand(call_id, text, mode)
        if began:
            self._voice.started()
        return answer

    async def take_safely(self, text: str) -> None:
        """The same where nobody waits for the answer: an utterance never ends the other calls."""
        with Attempt("an utterance could not be handled", bug=True):
            await self.take(text)

    async def _understand(self, call_id: str, text: str, mode: Mode) -> ToolResponse:
        turn_id, replayed = await self._turns.turn(text, call_id)
        entries, language = self._registry.snapshot().entries(), self._rules.policy.language
        found = phrases.find_tool(text, entries, language, self._why_not(turn_id))
        if found is not None:
            return await self._call(
                self._spoken_call(
                    call_id,
                    mode,
                    tool=found.tool.name,
                    args=found.args,
                    turn_id=turn_id,
                    replayed=replayed,
                )
            )
        call = self._spoken_call(call_id, mode, turn_id=turn_id, replayed=replayed)
        private = self._session.snapshot().suppress_transcript
        quoted = "that" if private else f"“{' '.join(text.split())[:_MAX_QUOTED]}”"
        error = ToolError.of(
            ErrorCode.TOOL_NOT_FOUND, f"Nothing here answers to {quoted}", suggestion="glassd tools"
        )
        refusal = self._refuse(call, error, "no phrase matches")
        report = await self._stage.present(call_id, refusal)
        return refusal.with_meta(delivery=report.to_json())

    def _spoken_call(self, call_id: str, mode: Mode, **more: Any) -> ToolCall:
        about: dict[str, Any] = {"tool": "", "args": {}, "user_id": self._rules.policy.user_id}
        return ToolCall(call_id=call_id, origin=CallOrigin.VOICE, mode=mode, **(about | more))

    def _why_not(self, turn_id: str) -> Callable[[ToolDefinition], str]:
        choice = self._rules.policy.choice
        if choice is None:
            return lambda _tool: ""
        choice.turn(turn_id)
        return partial(choice.why_not, self._rules.policy.user_id)
