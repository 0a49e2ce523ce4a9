"""Where what the cloud is told is taken down: apps from the developer console, their keys,
sessions. Disk first, then memory.

Refuses to know HTTP. Several processes may each have one over the same shelf; `refresh` catches up
with the others.
"""

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from edge.devcloud.definitions import BadSubmission, Submission, check_submission
from edge.devcloud.people import People
from edge.devcloud.registry import Registry, body_of
from edge.devcloud.shelf import Kept, Shelf
from edge.store.db import StoreError
from tools_cache.tool import Json

log = logging.getLogger(__name__)

SESSION_S: Final = 24 * 3600.0
KEY_PREFIX: Final = "gak_"
"""So that a key that leaked is recognised as one."""


class NotYours(Exception):
    """This app has a key, and whoever asks did not show it."""


class NoSuchApp(Exception):
    """There is no app of this name, or none that could have a key."""


def hashed(key: str) -> str:
    """An app's key as it is kept and sent. Plain SHA-256: a key has 256 bits of chance, nothing
    is gained by making it slow.
    """
    return hashlib.sha256(key.encode()).hexdigest()


class Office:
    """`refresh()` before reading `registry` and `people`; the rest changes them."""

    def __init__(
        self,
        registry: Registry,
        people: People,
        shelf: Shelf,
        *,
        session_s: float = SESSION_S,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.registry = registry
        self.people = people
        self._shelf = shelf
        self._session_s = session_s
        self._wall = wall
        self._kept = Kept(serial=-1)
        self._read: dict[str, tuple[Json, Submission]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def refresh(self) -> None:
        """See what other processes changed. What is known stays in force when the disk does not
        answer.
        """
        try:
            if await self._shelf.serial() == self._kept.serial:
                return
            kept = await self._shelf.load()
        except StoreError as e:
            log.warning("what other workers changed cannot be read: %s", e)
            return
        if kept.serial > self._kept.serial:
            self._kept = kept
            self.registry.restore(
                [
                    s
                    for package, body in kept.apps.items()
                    if (s := self._submission(package, body)) is not None
                ]
            )
            self.people.restore(kept)

    async def submit(self, submission: Submission, *, key: str = "") -> bool:
        """Install or update an app; True when it is new. Raises NotYours, BadDefinition,
        StoreError.
        """
        async with self._one_at_a_time:
            await self.refresh()
            self._check_owner(submission.package, key)
            new = self.registry.app(submission.package) is None
            await self._shelf.put_app(submission.package, body_of(self.registry.merged(submission)))
            await self.refresh()
            return new

    async def issue_key(self, package: str, *, key: str = "") -> str:
        """Make an app's key, or the next one for who shows the last. It is told this once; its hash
        is kept.

        Raises NoSuchApp, NotYours, StoreError.
        """
        async with self._one_at_a_time:
            await self.refresh()
            app = self.registry.app(package)
            if app is None:
                raise NoSuchApp(f"App {package[:80]} not found")
            if app.command:
                raise NoSuchApp(
                    f"App {package[:80]} is started here, with a key of its own each time"
                )
            self._check_owner(package, key)
            made = KEY_PREFIX + secrets.token_urlsafe(32)
            await self._shelf.put_app(
                package, body_of(replace(app, api_key_hash=hashed(made))), key_issued=True
            )
            await self.refresh()
            return made

    async def open_session(self, user: str) -> float:
        """Begin or prolong a session; gives its seconds. Raises ShelfFull, StoreError."""
        now = self._wall()
        await self._shelf.open_session(user, ends_wall=now + self._session_s, now=now)
        await self.refresh()
        return self._session_s

    async def end_session(self, user: str) -> bool:
        ended = await self._shelf.end_session(user)
        await self.refresh()
        return ended

    async def set_installed(self, user: str, package: str, *, installed: bool) -> None:
        """Take an app off for a user, or put it back. Raises NoSuchApp, ShelfFull, StoreError."""
        if self.registry.app(package) is None:
            raise NoSuchApp(f"App {package[:80]} not found")
        await self._shelf.set_installed(user, package, installed=installed)
        await self.refresh()

    def _check_owner(self, package: str, key: str) -> None:
        """Whoever was given a key is the only one to change the app from then on."""
        if package in self._kept.issued:
            app = self.registry.app(package)
            if app is None or not hmac.compare_digest(app.api_key_hash, hashed(key)):
                raise NotYours(
                    f"App {package} belongs to whoever has its key; send it as X-App-API-Key"
                )

    def _submission(self, package: str, body: Json) -> Submission | None:
        """A stored body as a checked one; None, said once, for one an older version of us let
        in.
        """
        known = self._read.get(package)
        if known is not None and known[0] == body:
            return known[1]
        try:
            checked = check_submission(package, body)
        except BadSubmission as e:
            log.warning("the stored app %s is left out: %s", package, e)
            return None
        self._read[package] = (body, checked)
        return checked
