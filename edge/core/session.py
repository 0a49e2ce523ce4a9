"""What outlives one call: a turn's budget, and the voice session that intents steer.

Refuses to decide whether a call may run (that is `policy`) and to touch microphone or speaker.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tools_cache.tool import Json

_log: Final = logging.getLogger(__name__)
MAX_TURNS: Final = 256
"""Turns whose budget is remembered; an edge has a handful of sessions, so this is hours of talk."""
MAX_TRANSITIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Spent:
    """What one turn has used up."""

    calls: int = 0
    retrievals: int = 0


class TurnLedger:
    """Counts calls per turn. A call without a turn is a turn of its own."""

    def __init__(self) -> None:
        self._turns: OrderedDict[tuple[str, str], Spent] = OrderedDict()

    def spent(self, user_id: str, turn_id: str) -> Spent:
        return self._turns.get((user_id, turn_id), Spent()) if turn_id else Spent()

    def spend(self, user_id: str, turn_id: str, *, retrieval: bool) -> None:
        """Count one call that passed both budgets."""
        if not turn_id:
            return
        before = self.spent(user_id, turn_id)
        self._turns[user_id, turn_id] = Spent(before.calls + 1, before.retrievals + retrieval)
        self._turns.move_to_end((user_id, turn_id))
        while len(self._turns) > MAX_TURNS:
            self._turns.popitem(last=False)


@dataclass(frozen=True, slots=True)
class SessionState:
    """The voice session as it is. The mode of a call is never in here: it travels with the call and never changes."""

    voice_active: bool = False
    suppress_audio: bool = False
    suppress_transcript: bool = False
    end_after: str | None = None
    pending_message: str | None = None


class SessionController:
    """The only one who changes `SessionState`; every change names the tool that caused it."""

    def __init__(self) -> None:
        self._state = SessionState()
        self.transitions: deque[tuple[str, SessionState, SessionState]] = deque(maxlen=MAX_TRANSITIONS)

    def snapshot(self) -> SessionState:
        """Give the state; frozen, so it is a copy."""
        return self._state

    def begin_voice(self) -> None:
        """Note that the wearer speaks with us; suppression of an earlier session ends."""
        if not self._state.voice_active:
            self._move("voice", SessionState(voice_active=True))

    def apply(self, intent: Mapping[str, Json], *, tool: str) -> bool:
        """Carry one intent out; False (and a warning) when it is unknown or has nothing to act on."""
        kind = intent.get("type")
        if kind == "END_VOICE_SESSION":
            return self._end(intent, tool)
        if kind == "SUPPRESS_AUDIO":
            return self._move(tool, replace(self._state, suppress_audio=intent.get("value") is True))
        if kind == "SUPPRESS_TRANSCRIPT":
            return self._move(tool, replace(self._state, suppress_transcript=intent.get("value") is True))
        if kind == "SET_PENDING_MESSAGE":
            text = intent.get("message", intent.get("value"))
            return self._move(tool, replace(self._state, pending_message=text if isinstance(text, str) else None))
        _log.warning("Unknown intent type: %s", str(kind)[:40])
        return False

    def _end(self, intent: Mapping[str, Json], tool: str) -> bool:
        if not self._state.voice_active:
            _log.warning("Cannot end inactive session")
            return False
        after = intent.get("after")
        return self._move(tool, SessionState(end_after=after if isinstance(after, str) else None))

    def _move(self, cause: str, after: SessionState) -> bool:
        self.transitions.append((cause, self._state, after))
        self._state = after
        return True
