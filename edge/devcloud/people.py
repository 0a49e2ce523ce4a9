"""Who may ask over HTTP, and which apps each of them has.

Refuses to authenticate: a session is a user's presence, as the seed has it (S0-26, S0-27); a bearer
token guards the door.
"""

import time
from collections.abc import Callable, Collection, Mapping

from edge.devcloud.edges import Edges
from edge.devcloud.shelf import Kept


class People:
    """`standing` users always have a session; so has every edge that was ever heard, and
    whoever opened one.
    """

    def __init__(
        self, edges: Edges, *, standing: Collection[str] = (), wall: Callable[[], float] = time.time
    ) -> None:
        self._edges = edges
        self._standing = frozenset(standing)
        self._wall = wall
        self._kept = Kept()

    def restore(self, kept: Kept) -> None:
        self._kept = kept

    def present(self, user: str) -> bool:
        """Tell whether there is an active session."""
        return (
            user in self._standing
            or user in self._edges.ids()
            or self._kept.sessions.get(user, 0.0) > self._wall()
        )

    def has(self, user: str, package: str) -> bool:
        """Tell whether an app is installed for a user."""
        return (user, package) not in self._kept.removed

    def hardware_of(self, user: str) -> Mapping[str, bool] | None:
        """What the glasses of a user have; None while nobody has said."""
        return self._edges.hardware_of(user)

    def sessions(self) -> dict[str, float]:
        """Open sessions and how many seconds each has left."""
        now = self._wall()
        return {
            user: round(ends - now, 1)
            for user, ends in sorted(self._kept.sessions.items())
            if ends > now
        }
