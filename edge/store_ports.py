"""What the daemon asks of its disk: one Protocol per table, and the words they share. No code runs
here.

Implemented in `store/`; every method returns after its change is on disk. Refuses to know SQL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from edge.core.call_state import Submission
from edge.core.confirmation import Asked, Consumed, Granted
from tools_cache.tool import DeliveryReport, Json, ToolCall, ToolResponse


class StorageUnavailable(Exception):
    """The disk takes nothing new now: it is full, read-only or failing. Nothing was done; it
    may be tried again later.
    """


@dataclass(frozen=True, slots=True)
class Admission:
    """`fresh` when neither this id nor its first key was ever seen; else `response` is the stored
    answer, or None while that call (`call_id` of `tool`, asked in `turn_id` by somebody of
    `origin`) still runs.
    """

    fresh: bool
    response: ToolResponse | None = None
    call_id: str = ""
    turn_id: str = ""
    tool: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A call accepted and not answered, as it is read back after a restart; `call.ttl_s` is
    what is left of its life.
    """

    call: ToolCall
    state: str
    route: str
    keys: tuple[str, ...] = ()
    attempts: int = 0


class CallStorePort(Protocol):
    """Implemented by `store/calls.py`. Each method returns after its change is on disk. `keys` are
    idempotency keys, the deciding one first; all are remembered (C-47), only the first is looked up
    (C-48).
    """

    async def admit(
        self,
        call: ToolCall,
        route: str,
        *,
        keys: Sequence[str] = (),
        repeatable: bool = False,
        state: str = "ADMITTED",
        running: bool = False,
    ) -> Admission:
        """Commit a call before it runs, in `state` (and `running` from there on, in one); looking
        up and inserting are one transaction. A key whose answer may not be replayed (C-15) passes
        to this call.
        """

    async def known(self, call: ToolCall, *, keys: Sequence[str] = ()) -> Admission | None:
        """Look a call up by id or first key without admitting it; a hit renews its place in the
        LRU.
        """

    async def advance(self, call_id: str, state: str, *, note: str = "") -> None:
        """Move along `core/call_state.py`'s table; an unlisted step raises. Each step is kept with
        its time; entering RUNNING counts an attempt.
        """

    async def finish(self, call_id: str, state: str, response: ToolResponse) -> bool:
        """Store the one answer; False when there is one already (the stored one stands)."""

    async def tell_delivery(self, call_id: str, report: DeliveryReport) -> None:
        """Keep how far its result got to the wearer; an unknown id is fine. SHOWN and SPOKEN move
        it to DELIVERED when the table has that step. A word that it reached nobody is on disk soon,
        and before whatever is asked or written later.
        """

    async def unfinished(self) -> list[Unfinished]:
        """Everything accepted and not answered, oldest first; for restart."""

    async def get(self, call_id: str) -> Mapping[str, Json] | None:
        """One call's whole story: `{…summary, request, response, keys, steps: [{state, at_wall,
        after_s, note}]}`.
        """

    async def recent(self, limit: int, *, pending: bool) -> list[Mapping[str, Json]]: ...


# ------------------------------------------------------------------ confirmation


class ConfirmationStorePort(Protocol):
    """Implemented by `store/confirmations.py`."""

    async def ask(self, asked: Asked) -> None:
        """Keep an open question (`left_s` is its life)."""

    async def consume(
        self,
        token_hash: str,
        *,
        allow: bool,
        tool: str | None = None,
        args_hash: str | None = None,
        user_id: str,
        session: str | None = None,
    ) -> Consumed:
        """Use a token up, atomically with its call's step AWAITING_CONFIRMATION → ADMITTED
        (when allowed). None matches all.
        """

    async def consume_call(self, call_id: str, *, allow: bool) -> Consumed:
        """The same by call, for the wearer's own answer."""

    async def subject(self, call_id: str) -> str:
        """What the newest question about this call was about (`Asked.args_hash`); "" when it
        was never asked about.
        """

    async def open(self) -> list[Asked]:
        """Open questions with time left; for restart."""

    async def grant(self, user_id: str, tool: str, granted: Granted) -> None:
        """ALWAYS and NEVER are kept for this tool, ONCE forgets."""

    async def granted(self, user_id: str, tool: str) -> Granted:
        """ONCE when nothing is kept."""

    async def grants(self, user_id: str) -> list[Mapping[str, Json]]:
        """`[{tool, grant, since_wall, definition, origin}]` by tool."""


# ------------------------------------------------------------------ results that come later,
# results kept


class PendingStorePort(Protocol):
    """Implemented by `store/pending.py`: the S3 table of calls whose result somebody hands in
    later.
    """

    async def put(self, call: ToolCall, *, ttl_s: float) -> None: ...

    async def resolve(
        self, call_id: str, response: ToolResponse, *, user_id: str, session: str
    ) -> Submission:
        """Keep a result; pending → resolved happens once. The daemon itself (the wearer's answer,
        the cloud) passes the call's own user and session.
        """

    async def close(self, call_id: str, status: str) -> None:
        """Pending → `expired` or `cancelled`; anything else stays as it is."""

    async def open(self) -> list[tuple[str, float]]:
        """(call id, seconds left) of everything pending, soonest end first."""

    async def result(self, call_id: str) -> ToolResponse | None:
        """The result handed in, if it is resolved; for a restart between submission and answer."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A good result of a tool that only reads, `age_s` seconds old."""

    response: ToolResponse
    age_s: float


class ResultCachePort(Protocol):
    """Implemented by `store/results.py`: the last good result per user, tool and canonical
    arguments; bounded, LRU.
    """

    async def keep(
        self, user_id: str, tool: str, args_hash: str, response: ToolResponse, *, ttl_s: float
    ) -> None: ...

    async def last(self, user_id: str, tool: str, args_hash: str) -> Kept | None:
        """None when there is none, or its life is over."""


class SessionStorePort(Protocol):
    """Implemented by `store/sessions.py`."""

    async def open(self, user_id: str, session: str, mode: str) -> tuple[str, str]:
        """(mode, epoch) of a session: made on first sight with `mode`, never changed afterwards
        (S2-83). `epoch` is random and stays with the session, over restarts too.
        """

    async def note(
        self, *, cause: str, call_id: str, before: Mapping[str, Json], after: Mapping[str, Json]
    ) -> None:
        """Keep one transition of the session state; bounded, the oldest go."""

    async def transitions(self, limit: int) -> list[Mapping[str, Json]]:
        """Newest first: `{at_wall, cause, call_id, before, after}`."""


class NotesPort(Protocol):
    """Small durable facts of the daemon itself (last glasses, last scene): name → JSON."""

    async def get(self, name: str) -> Json: ...
    async def put(self, name: str, value: Json) -> None: ...
