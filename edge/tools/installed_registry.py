"""The registry of this installation: read at the start and locked, unless in development."""

import logging
from typing import Final

from tools_cache.frozen import FrozenDict, FrozenList
from tools_cache.registry.models import Registry

EMPTY: Final = Registry(version="1.0.00000000", sha256="", apps=())

_log: Final = logging.getLogger(__name__)


class RegistryLocked(Exception):
    """A locked registry cannot change; restart the daemon instead."""


class NotLocked(Exception):
    """An unlocked registry has no snapshot: it may still change."""


class InstalledRegistry:
    """One per daemon. `registry` is what was loaded last."""

    def __init__(self) -> None:
        self.registry = EMPTY
        self.locked = False

    def load(self, registry: Registry) -> None:
        """Replace the registry. Raises `RegistryLocked`."""
        if self.locked:
            raise RegistryLocked(
                "Cannot reload a locked registry (production mode); "
                "restart glassd, or set registry.locked = false"
            )
        self.registry = registry

    def lock(self) -> None:
        """Lock it; a second time only logs a warning."""
        if self.locked:
            _log.warning("Already locked: registry %s", self.registry.version)
            return
        self.locked = True
        _log.info(
            "registry %s is locked: %d tools of this installation",
            self.registry.version,
            len(self.snapshot()["tools"]),
        )

    def snapshot(self) -> FrozenDict:
        """Return `{version, gitCommit, tools: [{toolId, version, category}]}`, read-only. Raises
        `NotLocked`.
        """
        if not self.locked:
            raise NotLocked("Must call lock() before snapshot()")
        tools = (tool for app in self.registry.apps for tool in app.tools)
        return FrozenDict(
            version=self.registry.version,
            gitCommit=self.registry.commit,
            tools=FrozenList(
                FrozenDict(toolId=t.name, version=t.version, category=t.category) for t in tools
            ),
        )

    def describe(self) -> dict[str, object]:
        """Return its part of the status."""
        commit = {"git_commit": self.registry.commit} if self.registry.commit else {}
        return {"version": self.registry.version, "locked": self.locked, **commit}
