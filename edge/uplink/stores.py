"""What the uplink needs of the disk, as Protocols; `store/` has these shapes.

Refuses to know SQL. Whatever cannot be stored raises `UplinkBusy`; an inbox that takes some of a
batch marks the rest `held`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tools_cache.tool import Json

CALL, ANSWER, TELL = "call", "answer", "tell"
"""Lanes of the outbox: calls until their result · results of invocations and · small facts until
their PUBACK. Only the last one ever drops anything when it is full.
"""


class OutRow(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def lane(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def topic(self) -> str: ...
    @property
    def as_json(self) -> bool: ...
    @property
    def accepted(self) -> bool: ...
    @property
    def left_s(self) -> float: ...
    @property
    def age_s(self) -> float: ...


class Put(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def dropped(self) -> Sequence[int]: ...


class OutboxPort(Protocol):
    async def load(self) -> Sequence[OutRow]: ...
    async def body(self, seq: int) -> dict[str, Json] | None: ...
    async def put(
        self,
        lane: str,
        kind: str,
        call_id: str,
        *,
        topic: str,
        body: Mapping[str, Json],
        ttl_s: float,
        as_json: bool = False,
        age_s: float = 0.0,
    ) -> Put: ...
    async def remove(self, seq: int) -> None: ...


class Taken(Protocol):
    @property
    def seq(self) -> int | None: ...
    @property
    def answer(self) -> dict[str, Json] | None: ...
    @property
    def held(self) -> str: ...


class InRow(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def body(self) -> dict[str, Json]: ...
    @property
    def reply_to(self) -> str: ...
    @property
    def as_json(self) -> bool: ...
    @property
    def left_s(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message to keep. `accepts` and `closes` say what it means for the call of ours it speaks
    about; `ttl_s` is how long it is worth something.
    """

    kind: str
    id: str
    body: Mapping[str, Json]
    ttl_s: float
    reply_to: str = ""
    as_json: bool = False
    accepts: bool = False
    closes: bool = False


class InboxPort(Protocol):
    async def take(self, arrivals: Sequence[Arrival]) -> Sequence[Taken]: ...
    async def unhandled(self) -> Sequence[InRow]: ...
    async def handled(self, seq: int) -> None: ...
