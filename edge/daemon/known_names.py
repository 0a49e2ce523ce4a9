"""Reads the names that the wearer may say to tools: of contacts, and of trusted pagers."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from edge.core.hearing.names import KnownNames, NameList
from edge.core.tools.snapshot import Snapshot
from edge.storage.sqlite.errors import StoreError
from edge.storage.tools.user_stores import Private
from firmware_bridge.deadlines import timeout
from tools_cache.api.handed import Database
from tools_cache.api.tool import Source, ToolFailure

READ_S: Final = 2.0
"""Longest wait for the names: listening begins without them, or with those of before."""
NONE: Final = KnownNames({})

_log: Final = logging.getLogger(__name__)


class _Source(NamedTuple):
    """Where the names of a package's tools are, and which of its tools take one."""

    tools: tuple[str, ...]
    read: Callable[[Database], Awaitable[NameList]]


async def _contacts(db: Database) -> NameList:
    from tools_cache.everyday.contact_book import ContactBook  # noqa: PLC0415 - few have contacts

    return NameList.of((contact.name for contact in await ContactBook(db).all()), parts=True)


async def _pagers(db: Database) -> NameList:
    from tools_cache.everyday.pager.book import REVOKED, PagerBook  # noqa: PLC0415 - as above

    senders = await PagerBook(db).senders()
    named = (one.alias for one in senders if one.alias and one.state != REVOKED)
    return NameList.of(named, text_follows=True)


_SOURCES: Final[Mapping[str, _Source]] = {
    "contacts": _Source(("contacts:find", "contacts:remove"), _contacts),
    "pager": _Source(("pager:send",), _pagers),
}


class KnownNamesReader:
    """One per daemon. `current` are the names read last; they are in no log and in no file."""

    def __init__(
        self,
        user: str,
        snapshot: Callable[[], Snapshot],
        private: Callable[[str, str], Private],
        has_tables: Callable[[str, str], bool],
    ) -> None:
        """`private` and `has_tables`: of a user, in a package."""
        self._user = user
        self._snapshot = snapshot
        self._private = private
        self._has_tables = has_tables
        self.current = NONE
        self._failed = False

    def may_change(self, tool: str) -> bool:
        """Return whether a call of this tool may have changed a name."""
        found = self._snapshot().find(tool)
        return (
            found is not None
            and tool.partition(":")[0] in _SOURCES
            and not found.definition.read_only
        )

    async def read(self) -> bool:
        """Read the names; return whether they changed. Where they cannot be read now, those of
        before stay.
        """
        try:
            async with timeout(READ_S):
                names = await self._read()
        except (ToolFailure, StoreError, OSError, TimeoutError) as e:
            if not self._failed:
                why = str(e) or "it took too long"
                _log.warning("names of contacts are not recognised by ear: %s", why)
            self._failed = True
            return False
        self._failed = False
        changed = names != self.current
        if changed:
            self.current = names
        return changed

    async def _read(self) -> KnownNames:
        of_tool: dict[str, NameList] = {}
        for package, source in _SOURCES.items():
            tools = [tool for tool in source.tools if self._is_ours(tool)]
            if tools and self._has_tables(self._user, package):
                names = await source.read(self._private(self._user, package).db)
                if names.count or names.left_out:
                    of_tool |= dict.fromkeys(tools, names)
        return KnownNames(of_tool)

    def _is_ours(self, tool: str) -> bool:
        """Return whether a tool is active, and runs here: no name of a contact goes elsewhere."""
        found = self._snapshot().find(tool)
        if found is None or found.hidden or found.missing:
            return False
        return found.definition.source is Source.LOCAL

    def describe(self) -> dict[str, int]:
        """Return how many names may be said, and how many are left out; nothing without names."""
        lists = {id(names): names for names in self.current.of_tool.values()}.values()
        counts = {
            "names": sum(each.count for each in lists),
            "names_left_out": sum(each.left_out for each in lists),
        }
        return counts if lists else {}
