"""Users who may use the HTTP API, and the apps each of them has.

Not authentication: a session only records a user's presence; a bearer token protects the API.
"""

import time
from collections.abc import Callable, Collection, Mapping

from edge.devcloud.app_store import StoredApp
from edge.devcloud.edges import Edges


class CloudUsers:
    """Users with a session: `standing` ones, every edge ever heard, and those who opened one."""

    def __init__(
        self, edges: Edges, *, standing: Collection[str] = (), wall: Callable[[], float] = time.time
    ) -> None:
        self._edges = edges
        self._standing = frozenset(standing)
        self._wall = wall
        self._kept = StoredApp()

    def restore(self, kept: StoredApp) -> None:
        self._kept = kept

    def present(self, user: str) -> bool:
        """Return whether a user has an active session."""
        return (
            user in self._standing
            or user in self._edges.ids()
            or self._kept.sessions.get(user, 0.0) > self._wall()
        )

    def has(self, user: str, package: str) -> bool:
        """Return whether an app is installed for a user."""
        return (user, package) not in self._kept.removed

    def hardware_of(self, user: str) -> Mapping[str, bool] | None:
        """Return the hardware of a user's glasses; None if unknown."""
        return self._edges.hardware_of(user)

    def sessions(self) -> dict[str, float]:
        """Return open sessions and their remaining seconds."""
        now = self._wall()
        return {
            user: round(ends - now, 1)
            for user, ends in sorted(self._kept.sessions.items())
            if ends > now
        }
