"""What outlives one call: a turn's budget, and the voice session, which intents change."""

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from tools_cache.api.tool import Json, Turn

MAX_TURNS: Final = 256
"""Turns whose budget is remembered; an edge has a handful of sessions, so this is hours of talk."""
MAX_TRANSITIONS: Final = 100
IDLE_S: Final = 300.0
"""After this silence a session is over: nobody ends it when taking the glasses off."""
MAX_QUIET_S: Final = 86_400.0
MAX_MESSAGE: Final = 2000
"""Characters of a pending message: a few pages; a longer one is cut."""
FAREWELL: Final = "farewell_spoken"
"""`after` of an intent: wait until the wearer got the answer."""


class Spent(NamedTuple):
    """What one turn has used up."""

    calls: int = 0
    retrievals: int = 0


class TurnLedger:
    """Counts calls per turn. A call without a turn is a turn of its own."""

    def __init__(self) -> None:
        self._turns: OrderedDict[Turn, Spent] = OrderedDict()

    def spent(self, turn: Turn | None) -> Spent:
        return self._turns.get(turn, Spent()) if turn is not None else Spent()

    def spend(self, turn: Turn | None, *, retrieval: bool) -> None:
        """Count one call that passed both budgets."""
        if turn is None:
            return
        before = self.spent(turn)
        self._turns[turn] = Spent(before.calls + 1, before.retrievals + retrieval)
        self._turns.move_to_end(turn)
        while len(self._turns) > MAX_TURNS:
            self._turns.popitem(last=False)


class SessionState(Struct, frozen=True):
    """The voice session. The mode of a call is not part of it and never changes.

    `quiet_until`: moment on the boot clock at which the quiet time ends; None: with the next
    session.
    """

    voice_active: bool = False
    session_id: str | None = None
    suppress_audio: bool = False
    quiet_until: float | None = None
    suppress_transcript: bool = False
    end_after: str | None = None
    pending_message: str | None = None


class NoEffect(Exception):
    """An intent that is unknown or cannot be applied; the message says which."""


class SessionController:
    """Changes `SessionState`; every change is recorded with the tool that caused it."""

    def __init__(self) -> None:
        self._state = SessionState()
        self._heard_at = 0.0
        self.on_change: Callable[[], None] = lambda: None
        """Called after each change; it never waits."""
        self.transitions: deque[tuple[str, SessionState, SessionState]] = deque(
            maxlen=MAX_TRANSITIONS
        )

    def snapshot(self) -> SessionState:
        """Return the state; it is frozen."""
        return self._state

    def described(self, now: float) -> dict[str, Json]:
        """Return the state for others: the seconds left of a quiet time instead of its end."""
        state = asdict(self._state)
        del state["quiet_until"]
        return {
            **state,
            "voice_active": self.voice_active(now),
            "quiet_s": round(self.quiet_s(now)),
        }

    def begin_voice(self, now: float = 0.0) -> bool:
        """Start or continue a voice session; False in a quiet time. Silence of an earlier session
        ends. Suppression of transcripts does not, because the wearer asked for privacy: only an
        intent or a tool's new session ends it.
        """
        if self.quiet_s(now) > 0:
            return False
        self._heard_at = now
        if not self._state.voice_active:
            before = self._state
            kept = SessionState(
                suppress_transcript=before.suppress_transcript,
                pending_message=before.pending_message,
            )
            self._move("voice", replace(kept, voice_active=True))
        return True

    def voice_active(self, now: float) -> bool:
        """Return whether there is a voice session in which something was said within `IDLE_S`."""
        return self._state.voice_active and now - self._heard_at <= IDLE_S

    def suppresses_transcripts(self) -> bool:
        """Return whether the wearer's words may be in no event now."""
        return self._state.suppress_transcript

    def quiet_s(self, now: float) -> float:
        """Return the seconds left of a quiet time."""
        until = self._state.quiet_until
        return max(0.0, until - now) if until is not None else 0.0

    def silent(self, now: float) -> bool:
        """Return whether speech is suppressed now."""
        return self._state.suppress_audio and (
            self._state.quiet_until is None or self.quiet_s(now) > 0
        )

    def apply(self, intent: Mapping[str, Json], *, tool: str, now: float = 0.0) -> None:
        """Apply one intent. Raises `NoEffect` if it is unknown or cannot be applied."""
        kind = intent.get("type")
        if kind == "START_VOICE_SESSION":
            self._start(intent, tool, now)
        elif kind == "END_VOICE_SESSION":
            self._end(intent, tool)
        elif kind == "SUPPRESS_AUDIO":
            self._silence(intent, tool, now)
        elif kind == "SUPPRESS_TRANSCRIPT":
            self._move(tool, replace(self._state, suppress_transcript=intent.get("value") is True))
        elif kind == "SET_PENDING_MESSAGE":
            text = _message(intent.get("message", intent.get("value")))
            self._move(tool, replace(self._state, pending_message=text))
        else:
            raise NoEffect(f"Unknown intent type: {str(kind)[:40]}")

    def _start(self, intent: Mapping[str, Json], tool: str, now: float) -> None:
        """Start a session: silence, quiet time and suppression end. A pending message is kept,
        because it is for this moment. What was only begun by a sentence goes on as this one.
        """
        if self.voice_active(now) and self._state.session_id is not None:
            raise NoEffect("Cannot start a session in an active one")
        self._heard_at = now
        named = intent.get("sessionId")
        session_id, pending = named if isinstance(named, str) else None, self._state.pending_message
        self._move(
            tool, SessionState(voice_active=True, session_id=session_id, pending_message=pending)
        )

    def _silence(self, intent: Mapping[str, Json], tool: str, now: float) -> None:
        on, seconds, until = intent.get("value") is True, intent.get("duration"), None
        if on and isinstance(seconds, int | float) and not isinstance(seconds, bool):
            until = now + seconds if 0 < seconds <= MAX_QUIET_S else None
        self._move(tool, replace(self._state, suppress_audio=on, quiet_until=until))

    def _end(self, intent: Mapping[str, Json], tool: str) -> None:
        if not self._state.voice_active:
            raise NoEffect("Cannot end inactive session")
        after = intent.get("after")
        ended = SessionState(
            end_after=after if isinstance(after, str) else None,
            pending_message=self._state.pending_message,
        )
        self._move(tool, ended)

    # -------------------------------------------------------------- what outlives the daemon

    def lasting(self) -> dict[str, Json]:
        """Return what the next daemon must know; {} if nothing."""
        state = self._state
        kept: dict[str, Json] = {"suppress_transcript": True} if state.suppress_transcript else {}
        return {**kept, "pending_message": state.pending_message} if state.pending_message else kept

    def restore(self, lasting: Json) -> None:
        """Take what `lasting()` returned in the last daemon; None is nothing. Raises ValueError
        where it is not known whether transcripts were suppressed.
        """
        found = {} if lasting is None else lasting
        suppressed = found.get("suppress_transcript", False) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping) or not isinstance(suppressed, bool):
            raise ValueError(f"{str(lasting)[:60]!r} is no stored voice session")
        state = replace(
            self._state,
            suppress_transcript=suppressed,
            pending_message=_message(found.get("pending_message")),
        )
        if state != self._state:
            self._move("restart", state)

    def forget_message(self, message: str) -> None:
        """Delete a pending message that was shown, unless it was replaced meanwhile."""
        if self._state.pending_message == message:
            self._move("shown", replace(self._state, pending_message=None))

    def _move(self, cause: str, after: SessionState) -> None:
        self.transitions.append((cause, self._state, after))
        self._state = after
        self.on_change()


def _message(value: Json) -> str | None:
    return value[:MAX_MESSAGE] if isinstance(value, str) and value.strip() else None
