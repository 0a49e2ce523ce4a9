"""Turns: which are under way; and each utterance's id, kept on disk, so that a repetition after a
reconnect is the same turn. What a repetition is, `core/turns.py` decides.
"""

import asyncio
import hashlib
import secrets
from typing import Any, Final

from msgspec.structs import replace

from edge.calls.faults import Attempt
from edge.core.turns import Turn, is_replay, last_turn
from edge.runtime.clock import Clock
from edge.storage.notes import Notes

NOTE: Final = "voice.turn"


class OpenTurns:
    """Which turns are under way: those whose caller waits for an answer. Where none is, there is a
    turn boundary.

    A turn keeps the snapshot it began with (`admission.py`), so nothing is replaced within one;
    changes of the tool list are made and announced at a boundary.
    """

    def __init__(self) -> None:
        self._open = 0
        self._none = asyncio.Event()
        self._none.set()

    def begin(self, answer: "asyncio.Future[Any]") -> None:
        """A call began; its part of the turn ends with its answer, an interim one too."""
        self._open += 1
        self._none.clear()
        answer.add_done_callback(self._ended)

    async def boundary(self) -> None:
        """Wait for a moment without any turn. Bound it: somebody may always be talking."""
        await self._none.wait()

    def _ended(self, _answer: "asyncio.Future[Any]") -> None:
        self._open -= 1
        if not self._open:
            self._none.set()


class VoiceTurns:
    """One per daemon. A new daemon is a new connection, so what it hears first may be a
    repetition too.
    """

    def __init__(self, notes: Notes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock
        self._link = secrets.token_hex(4)

    def reconnected(self) -> None:
        """The glasses are there again: what they say now may be what they said before."""
        self._link = secrets.token_hex(4)

    async def turn(self, text: str, fresh_id: str) -> tuple[str, bool]:
        """(turn id, whether it is a repetition); a new turn is on disk when this returns, if
        the disk takes it.
        """
        heard = Turn(fresh_id, _digest(text), self._clock.boot_id, self._clock.boot(), self._link)
        # Without it a repetition after a crash is a new turn, no more.
        with Attempt("the turn of an utterance is not on disk"):
            last = last_turn(await self._notes.get(NOTE))
            if last is not None and is_replay(last, heard):
                # Over this connection it has been said now: once more is a new turn.
                await self._notes.put(NOTE, replace(last, link=self._link).to_json())
                return last.turn_id, True
            await self._notes.put(NOTE, heard.to_json())
        return fresh_id, False


def _digest(text: str) -> str:
    """Return a digest by which an utterance is recognized without being stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
