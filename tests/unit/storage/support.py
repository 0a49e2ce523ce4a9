"""Helpers for tests of the store: a clock that obeys, calls, and a database in a folder."""

import uuid

from msgspec.structs import replace

from edge.core.call_state import check
from edge.core.idempotency import replayable
from edge.runtime.clock import Clock
from edge.storage.calls import BOUNDS, CallStore
from edge.storage.keys import SESSION_CALLS
from edge.storage.migrations import MIGRATIONS
from edge.storage.sqlite.database import SqliteDatabase
from edge.storage.timestamps import Stamper
from tools_cache.api.tool import CallOrigin, ToolCall

START = 1000.0
WALL = 1_800_000_000.0


class Hands:
    """A clock's hands: move them."""

    def __init__(self, boot_id: str = "boot-1") -> None:
        self.boot = START
        self.wall = WALL
        self.synced = True
        self.clock = Clock(
            boot=lambda: self.boot,
            wall=lambda: self.wall,
            boot_id=boot_id,
            synced=lambda: self.synced,
        )

    def stamper(self) -> Stamper:
        return Stamper(self.clock)

    def pass_s(self, seconds: float) -> None:
        self.boot += seconds
        self.wall += seconds

    def reboot(self, boot_id: str = "boot-2", *, off_s: float = 0.0) -> None:
        self.boot = 5.0
        self.wall += off_s
        self.clock = replace(self.clock, boot_id=boot_id)


def a_call(**changes) -> ToolCall:
    basis = ToolCall(
        call_id=str(uuid.uuid4()), tool="notes:list", args={"n": 1}, origin=CallOrigin.CLI
    )
    return replace(basis, **changes)


async def open_db(folder, **more) -> SqliteDatabase:
    return await SqliteDatabase.open(folder / "glassd.db", MIGRATIONS, **more)


def call_store(db, hands, *, session_calls=SESSION_CALLS, **bounds) -> CallStore:
    return CallStore(
        db,
        hands.clock,
        check,
        replayable=replayable,
        bounds=replace(BOUNDS, **bounds),
        session_calls=session_calls,
    )
