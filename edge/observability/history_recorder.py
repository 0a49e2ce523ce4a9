"""Records the history: what the bus says of calls, of what was shown, and of spoken words.

Built only where `[history] enabled` is set. Its trouble costs entries, and nothing else.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from edge.core.words import data_text
from edge.runtime.bus import Bus
from edge.runtime.events import (
    CallAnswered,
    CallCompleted,
    DaemonEvent,
    GlassesSaid,
    LensChanged,
    PrivateWords,
)
from edge.storage.history import HistoryStore, Retention
from edge.storage.sqlite.errors import StoreError
from firmware_bridge.messages import Transcript
from tools_cache.api.history import CALLED, SAID, SHOWN, HistoryEntry
from tools_cache.api.tool import Json, ToolFailure

SWEEP_S: Final = 3600.0
SWEEP_EVERY: Final = 100
"""Entries after which is looked whether there are too many."""
LEFT_OUT: Final = frozenset({"context", "continuum", "registry"})
"""Packages whose answers only repeat what is recorded already."""
SEEN: Final = 512
"""Calls whose answer is not recorded again when it is repeated."""
_ALARMS: Final = ("alarm-", "reminder-")
_BY_HANDLER: Final = "/shown-"
"""Marks of what is shown without being the result of a call. Questions, captions and the words of
others are not recorded.
"""
FindCall = Callable[[str], Awaitable[Mapping[str, Json] | None]]
_log: Final = logging.getLogger(__name__)


class HistoryRecorder:
    """`run()` is the service. `find` returns a stored call; `user` wears the glasses."""

    def __init__(
        self,
        store: HistoryStore,
        find: FindCall,
        *,
        bus: Bus,
        user: str,
        keep: Retention,
        transcripts: bool,
    ) -> None:
        self._store = store
        self._find = find
        self._bus = bus
        self._user = user
        self._keep = keep
        self._transcripts = transcripts
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._lens: tuple[str, int, tuple[str, ...]] | None = None
        self._added = 0
        self.trouble = ""
        """Why the last entry is not recorded; empty while entries are."""

    async def run(self) -> None:
        """Record until cancelled."""
        with self._bus.listen() as events:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._sweep_regularly(), name="history.sweep")
                async for event in events:
                    await self._take(event)

    async def _sweep_regularly(self) -> None:
        while True:
            await self._attempt(self._store.sweep(self._keep))
            await asyncio.sleep(SWEEP_S)

    async def _take(self, event: DaemonEvent) -> None:
        match event:
            case PrivateWords():
                pass
            case GlassesSaid(Transcript(text=text, final=True)) if self._transcripts:
                await self._add(self._user, HistoryEntry(0.0, SAID, text.strip()))
            case CallAnswered(call_id=call_id, final=True) | CallCompleted(call_id=call_id):
                await self._attempt(self._take_call(call_id, event.delivery))
            case LensChanged(scene=scene) if scene.startswith(_ALARMS) or _BY_HANDLER in scene:
                await self._take_page(event)
            case _:
                pass

    async def _take_call(self, call_id: str, delivery: Json) -> None:
        """Record a call by what its answer says; its arguments are not recorded."""
        if call_id in self._seen:
            return
        self._seen[call_id] = None
        if len(self._seen) > SEEN:
            self._seen.popitem(last=False)
        call = await self._find(call_id)
        if call is None or not isinstance(call.get("response"), Mapping):
            return  # refused, or a repeated answer
        request = call["request"]
        tool = str(request["tool"])
        if tool.partition(":")[0] in LEFT_OUT:
            return
        state = delivery.get("state", "") if isinstance(delivery, Mapping) else str(delivery or "")
        entry = HistoryEntry(0.0, CALLED, answer_text(call["response"]), tool, state)
        await self._add(str(request.get("user_id") or self._user), entry)

    async def _take_page(self, page: LensChanged) -> None:
        shown = (page.scene, page.page, page.lines)
        if not page.lines or shown == self._lens:
            return  # it was drawn again
        self._lens = shown
        await self._add(self._user, HistoryEntry(0.0, SHOWN, "\n".join(page.lines)))

    async def _add(self, user: str, entry: HistoryEntry) -> None:
        if not (entry.text or entry.tool):
            return
        await self._attempt(self._store.add(user, entry), adds=True)
        self._added += 1
        if self._added % SWEEP_EVERY == 0:
            await self._attempt(self._store.sweep(self._keep))

    async def _attempt(self, work: Awaitable[object], *, adds: bool = False) -> None:
        """Do it. The first failure is logged, and the first entry that is added after it."""
        try:
            await work
        except (StoreError, ToolFailure, OSError) as e:
            if not self.trouble:
                _log.warning("the history is not recorded: %s", e)
            self.trouble = str(e)
            return
        if adds and self.trouble:
            _log.info("the history is recorded again")
            self.trouble = ""


def answer_text(response: Mapping[str, Json]) -> str:
    """Return what an answer says to a person."""
    error = response.get("error")
    if isinstance(error, Mapping):
        return f"failed: {error.get('code')}"  # its message may repeat arguments
    render = response.get("render")
    display = render.get("display") if isinstance(render, Mapping) else None
    pages = display.get("pages") if isinstance(display, Mapping) else None
    if isinstance(pages, list) and pages:
        return "\n".join(page for page in pages if isinstance(page, str)).strip()
    if isinstance(display, Mapping) and isinstance(display.get("text"), str):
        title = str(display.get("title") or "")
        return f"{title}\n{display['text']}".strip()
    return data_text.describe(response.get("data"), str).text.strip()
