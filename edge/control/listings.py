"""The tools of `GET /v1/tools`, as the bytes that clients get.

They are made once for each state of the tools, a page at a time and in short steps, and kept within
a bound. A kept page is never out of date: each request compares all that a listing depends on.
"""

import asyncio
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, NamedTuple

from edge.control.dependencies import ControlDependencies
from edge.control.http import encode_json
from edge.core import policy
from edge.core.tools.selection_rules import AVAILABLE, HIDDEN, OFFERED, Choice
from edge.core.tools.snapshot import Entry
from tools_cache.api.tool import Json, Mode, Source, ToolDefinition
from tools_cache.registry import tool_docs

MAX_PAGE: Final = 1_000_000
"""Bytes of the tools of one page; a single tool that is larger is a page."""
MAX_KEPT: Final = 4_000_000
"""Bytes of the pages that are kept: those of some 3,500 tools."""
MAX_COUNTS: Final = 64
"""Queries whose counts are kept."""
STEP: Final = 10_000
"""Work between two turns of other tasks: about 0.5 ms on a PC. A byte that is written counts 1, and
each tool that is looked at `LOOK`.
"""
LOOK: Final = 100
ATTEMPTS: Final = 3
"""How often a listing is begun again because the tools changed while it was made."""


@dataclass(frozen=True, slots=True)
class ListingQuery:
    """Which tools are listed, and for callers of which mode. `scope` is the JSON text of what
    `admits` tests.
    """

    everything: bool = False
    category: str = ""
    mode: Mode | None = None
    scope: str = ""
    admits: Callable[[ToolDefinition], bool] | None = field(default=None, compare=False)

    def matches(self, tool: ToolDefinition) -> bool:
        return self.category in {"", tool.category} and (self.admits is None or self.admits(tool))


class Page(NamedTuple):
    """`tools`: each as JSON, with commas between; `next`: the name of the last one if more follow,
    else ""; `counts`: of all tools that match, by state.
    """

    tools: bytes
    next: str
    counts: Mapping[str, int]


class Listings:
    """One per daemon. Clients are served one after the other while pages are made."""

    def __init__(self, ports: ControlDependencies) -> None:
        self._ports = ports
        self._start = ""
        """Names this start of the daemon: numbers begin again at each."""
        self._state: tuple[object, object] | None = None
        self._number = 0
        self._pages: OrderedDict[tuple[ListingQuery, str], Page] = OrderedDict()
        self._kept_bytes = 0
        self._counts: dict[ListingQuery, Mapping[str, int]] = {}
        self._making = asyncio.Lock()

    def number(self) -> int:
        """Return a number that is another one after each change of any tool or its state; 0 if
        such a change cannot be noticed.
        """
        choice = self._ports.choice
        chosen = () if choice is None else choice.version()
        if chosen is None:
            self._forget()
            return 0
        snapshot = self._ports.registry.snapshot()
        if self._state is None or self._state[0] is not snapshot or self._state[1] != chosen:
            self._state = (snapshot, chosen)
            self._number += 1
            self._forget()
        return self._number

    def choice_of(self, entry: Entry, mode: Mode | None = None) -> Choice:
        """Return the state of a tool for this device's user."""
        if self._ports.choice is not None:
            return self._ports.choice.choice(entry, self._ports.user_id, mode)
        return unchosen(entry, mode)

    def tag(
        self, number: int, query: ListingQuery, after: str | None, about: Mapping[str, Json]
    ) -> str:
        """Return the ETag of a listing with this `about`: another one after each change of
        anything but the age of the registry; "" for number 0.
        """
        if not number:
            return ""
        self._start = self._start or self._ports.new_id()
        registry = {key: v for key, v in about.get("registry", {}).items() if key != "age_s"}
        wanted = (query.everything, query.category, query.mode, query.scope, after)
        made = encode_json([self._start, number, wanted, about.get("loader"), registry])
        return f'W/"{sha256(made).hexdigest()[:32]}"'

    async def read(self, query: ListingQuery, after: str | None) -> tuple[int, list[Page]]:
        """Return the page of the tools after this name, or with None all pages; and the `number`
        that they belong to, 0 if there is none.
        """
        if (number := self.number()) and (kept := self._find(query, after)):
            return number, kept
        async with self._making:
            for _ in range(ATTEMPTS):
                number = self.number()
                pages = await self._read(query, after, number)
                if number in {0, self.number()}:
                    return number, pages
        return 0, pages

    def _find(self, query: ListingQuery, after: str | None) -> list[Page]:
        """Return the pages if all of them are kept, else none."""
        pages: list[Page] = []
        while not pages or (after is None and pages[-1].next):
            key = (query, pages[-1].next if pages else after or "")
            if (page := self._pages.get(key)) is None:
                return []
            self._pages.move_to_end(key)
            pages.append(page)
        return pages

    async def _read(self, query: ListingQuery, after: str | None, number: int) -> list[Page]:
        pages = [await self._page(query, after or "", number)]
        while after is None and pages[-1].next:
            pages.append(await self._page(query, pages[-1].next, number))
        return pages

    async def _page(self, query: ListingQuery, after: str, number: int) -> Page:
        if (kept := self._pages.get((query, after))) is not None:
            return kept
        page = await self._make(query, after)
        if number and number == self.number():
            self._keep(query, after, page)
        return page

    # -------------------------------------------------------------- making

    async def _make(self, query: ListingQuery, after: str) -> Page:
        counts = self._counts.get(query) or await self._count(query)
        snapshot = self._ports.registry.snapshot()
        entries, first = snapshot.entries(), bisect_right(snapshot.names, after) if after else 0
        rows: list[bytes] = []
        size, work, last = 0, 0, ""
        for place in range(first, len(entries)):
            if work >= STEP:
                work = 0
                await asyncio.sleep(0)
            work += LOOK
            row = self._row(entries[place], query)
            if row is None:
                continue
            if rows and size + len(row) > MAX_PAGE:
                return Page(b",".join(rows), last, counts)
            rows.append(row)
            size, work = size + len(row) + 1, work + len(row)
            last = entries[place].definition.name
        return Page(b",".join(rows), "", counts)

    def _row(self, entry: Entry, query: ListingQuery) -> bytes | None:
        """Return a tool as JSON; None if it is not asked for."""
        if not query.matches(entry.definition):
            return None
        choice = self.choice_of(entry, query.mode)
        if choice.state == HIDDEN and not query.everything:
            return None
        return encode_json(listed(entry, choice))

    async def _count(self, query: ListingQuery) -> Mapping[str, int]:
        found = Counter[str]()
        for number, entry in enumerate(self._ports.registry.snapshot().entries(), 1):
            if number % (STEP // LOOK) == 0:
                await asyncio.sleep(0)
            if query.matches(entry.definition):
                found[self.choice_of(entry, query.mode).state] += 1
        return {state: found[state] for state in (OFFERED, AVAILABLE, HIDDEN)}

    # -------------------------------------------------------------- keeping

    def _keep(self, query: ListingQuery, after: str, page: Page) -> None:
        if len(self._counts) < MAX_COUNTS:
            self._counts[query] = page.counts
        if len(page.tools) > MAX_KEPT:
            return
        self._pages[query, after] = page
        self._kept_bytes += len(page.tools)
        while self._kept_bytes > MAX_KEPT or len(self._pages) > MAX_COUNTS:
            _, oldest = self._pages.popitem(last=False)
            self._kept_bytes -= len(oldest.tools)

    def _forget(self) -> None:
        self._pages.clear()
        self._counts.clear()
        self._kept_bytes = 0


def unchosen(entry: Entry, mode: Mode | None = None) -> Choice:
    """Return the state of a tool without a tool selection, for a caller of this mode."""
    hidden = entry.hidden or policy.not_offered(entry.definition, mode)
    return Choice(HIDDEN, hidden) if hidden else Choice(OFFERED)


def listed(entry: Entry, choice: Choice) -> dict[str, Json]:
    """Return one tool as it is listed."""
    d = entry.definition
    return {
        "name": d.name,
        "description": d.description,
        "summary": tool_docs.summary(d),
        "category": d.category,
        "source": d.source.value,
        "app": entry.app_name,
        "version": d.version,
        "inputSchema": dict(d.input_schema),
        "sideEffects": d.side_effects.value,
        "requiresConfirmation": d.requires_confirmation,
        "allowedModes": sorted(d.allowed_modes),
        "queueable": d.queueable,
        "idempotent": d.idempotent,
        "latencyBudgetMs": d.latency_budget_ms,
        "activationPhrases": list(d.activation_phrases),
        "dependsOn": list(d.depends_on),
        "state": choice.state,
        "reason": choice.reason,
        "enabled": choice.on,
        "hidden": choice.reason if choice.state == HIDDEN else "",
        "missing": list(entry.missing),
        "without": list(entry.without),
        "warnings": list(entry.warnings),
        "stale": entry.stale,
        **{key: d.raw[key] for key in _VERBATIM if key in d.raw},
        **_of_another_server(d),
    }


_VERBATIM: Final = ("title", "outputSchema", "annotations", "icons", "_meta")
"""What of a definition is passed on as its author wrote it."""


def _of_another_server(tool: ToolDefinition) -> dict[str, Json]:
    """Return the id that older clouds have for a tool of another server; no call uses it."""
    if tool.source is not Source.UPSTREAM:
        return {}
    from edge.core.tools import legacy_ids, scope  # noqa: PLC0415 - a daemon without such servers never loads them

    found = scope.origin(tool)
    return {} if found is None else {"compatId": legacy_ids.tool_id(found.server, found.tool)}
