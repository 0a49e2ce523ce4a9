"""Stores submitted apps, their keys, and user sessions; on disk first, then in memory.

Several processes may each have one over the same database; `refresh` reads the others' changes.
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

from edge.devcloud.app_store import AppStore, StoredApp
from edge.devcloud.definitions import AppSubmission, BadSubmission, check_submission
from edge.devcloud.registry import AppRegistry, body_of
from edge.devcloud.users import CloudUsers
from edge.storage.sqlite.database import StoreError
from tools_cache.api.tool import Json

log = logging.getLogger(__name__)

SESSION_S: Final = 24 * 3600.0
KEY_PREFIX: Final = "gak_"
"""Prefix by which leaked keys can be recognised."""


class NotYours(Exception):
    """The app has a key, and the request does not have it."""


class NoSuchApp(Exception):
    """There is no app of this name, or none that could have a key."""


def hashed(key: str) -> str:
    """Return an app's key as stored and sent. Plain SHA-256: a key has 256 random bits, so a slow
    hash gains nothing.
    """
    return hashlib.sha256(key.encode()).hexdigest()


class AppService:
    """Call `refresh()` before reading `registry` and `people`; the other methods change them."""

    def __init__(
        self,
        registry: AppRegistry,
        people: CloudUsers,
        shelf: AppStore,
        *,
        session_s: float = SESSION_S,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.registry = registry
        self.people = people
        self._shelf = shelf
        self._session_s = session_s
        self._wall = wall
        self._kept = StoredApp(serial=-1)
        self._read: dict[str, tuple[Json, AppSubmission]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def refresh(self) -> None:
        """Read changes of other processes. If the disk fails, the known state is kept."""
        try:
            if await self._shelf.serial() == self._kept.serial:
                return
            kept = await self._shelf.load()
        except StoreError as e:
            log.warning("changes of other workers cannot be read: %s", e)
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

    async def submit(self, submission: AppSubmission, *, key: str = "") -> bool:
        """Install or update an app; True if it is new. Raises NotYours, BadDefinition,
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
        """Issue an app's key, or replace it for a request with the current one. It is returned only
        once; its hash is stored.

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
        """Open or extend a session; return its seconds. Raises ShelfFull, StoreError."""
        now = self._wall()
        await self._shelf.open_session(user, ends_wall=now + self._session_s, now=now)
        await self.refresh()
        return self._session_s

    async def end_session(self, user: str) -> bool:
        ended = await self._shelf.end_session(user)
        await self.refresh()
        return ended

    async def set_installed(self, user: str, package: str, *, installed: bool) -> None:
        """Remove an app for a user, or put it back. Raises NoSuchApp, ShelfFull, StoreError."""
        if self.registry.app(package) is None:
            raise NoSuchApp(f"App {package[:80]} not found")
        await self._shelf.set_installed(user, package, installed=installed)
        await self.refresh()

    def _check_owner(self, package: str, key: str) -> None:
        """Check that a request has the app's key, if one was issued."""
        if package in self._kept.issued:
            app = self.registry.app(package)
            if app is None or not hmac.compare_digest(app.api_key_hash, hashed(key)):
                raise NotYours(
                    f"App {package} can only be changed with its key; send it as X-App-API-Key"
                )

    def _submission(self, package: str, body: Json) -> AppSubmission | None:
        """Return a stored body validated; None, logged once, for one that an older version
        accepted.
        """
        known = self._read.get(package)
        if known is not None and known[0] == body:
            return known[1]
        try:
            checked = check_submission(package, body)
        except BadSubmission as e:
            log.warning("the stored app %s is skipped: %s", package, e)
            return None
        self._read[package] = (body, checked)
        return checked
