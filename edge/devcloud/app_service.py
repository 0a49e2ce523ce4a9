"""The cloud's apps, their keys, and its users' sessions, and the announcement of its registry.

Changes are stored first. Several processes may share the database; `refresh` reads the others'
changes.
"""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from edge.cloud.mqtt.wire import MessageKind
from edge.devcloud.app_store import AppStore, StoredApp
from edge.devcloud.definitions import AppSubmission, BadSubmission, check_submission
from edge.devcloud.edges import Edges
from edge.devcloud.link import CloudLink, NotConnected
from edge.devcloud.registry import AppRegistry, body_of
from edge.storage.sqlite.database import StoreError
from tools_cache.api.tool import Json

log = logging.getLogger(__name__)

SESSION_S: Final = 24 * 3600.0
KEY_PREFIX: Final = "gak_"
"""Prefix by which leaked keys can be recognised."""
EXPIRY_S: Final = 24 * 3600.0
RENEW_S: Final = EXPIRY_S / 2


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
    """Call `refresh()` before reading. Users with a session are the `standing` ones, every edge
    that was seen, and those who opened one. That is no authentication: a bearer token protects the
    API.
    """

    def __init__(
        self,
        registry: AppRegistry,
        edges: Edges,
        store: AppStore,
        *,
        standing: Collection[str] = (),
        session_s: float = SESSION_S,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.registry = registry
        self._edges = edges
        self._store = store
        self._standing = frozenset(standing)
        self._session_s = session_s
        self._wall = wall
        self._stored = StoredApp(serial=-1)
        self._checked: dict[str, tuple[Json, AppSubmission]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def refresh(self) -> None:
        """Read changes of other processes. If the disk fails, the known state stays."""
        try:
            if await self._store.serial() == self._stored.serial:
                return
            stored = await self._store.load()
        except StoreError as e:
            log.warning("changes of other workers cannot be read: %s", e)
            return
        if stored.serial > self._stored.serial:
            self._stored = stored
            apps = [self._submission(package, body) for package, body in stored.apps.items()]
            self.registry.restore([app for app in apps if app is not None])

    def present(self, user: str) -> bool:
        """Return whether a user has an active session."""
        opened = self._stored.sessions.get(user, 0.0) > self._wall()
        return opened or user in self._standing or user in self._edges.ids()

    def has(self, user: str, package: str) -> bool:
        """Return whether an app is installed for a user."""
        return (user, package) not in self._stored.removed

    def tools_of(self, user: str) -> list[dict[str, Json]]:
        """Return the tools that a user can call."""
        hardware = self._edges.hardware_of(user)
        return self.registry.listing(hardware, installed=lambda package: self.has(user, package))

    def sessions(self) -> dict[str, float]:
        """Return open sessions and their remaining seconds."""
        now, sessions = self._wall(), sorted(self._stored.sessions.items())
        return {user: round(ends - now, 1) for user, ends in sessions if ends > now}

    async def submit(self, submission: AppSubmission, *, key: str = "") -> bool:
        """Install or update an app; True if it is new. Raises NotYours, BadDefinition,
        StoreError.
        """
        async with self._one_at_a_time:
            await self.refresh()
            self._check_owner(submission.package, key)
            new = self.registry.app(submission.package) is None
            await self._store.put_app(submission.package, body_of(self.registry.merged(submission)))
            await self.refresh()
            return new

    async def issue_key(self, package: str, *, key: str = "") -> str:
        """Issue an app's key, or replace it for a request with the current one; its hash is stored.
        Raises NoSuchApp, NotYours, StoreError.
        """
        async with self._one_at_a_time:
            await self.refresh()
            app = self.registry.app(package)
            if app is None:
                raise NoSuchApp(f"App {package[:80]} not found")
            if app.command:
                problem = "is started here, with a key of its own each time"
                raise NoSuchApp(f"App {package[:80]} {problem}")
            self._check_owner(package, key)
            new = KEY_PREFIX + secrets.token_urlsafe(32)
            body = body_of(replace(app, api_key_hash=hashed(new)))
            await self._store.put_app(package, body, key_issued=True)
            await self.refresh()
            return new

    async def open_session(self, user: str) -> float:
        """Open or extend a session; return its seconds. Raises AppStoreFull, StoreError."""
        now = self._wall()
        await self._store.open_session(user, ends_wall=now + self._session_s, now=now)
        await self.refresh()
        return self._session_s

    async def end_session(self, user: str) -> bool:
        ended = await self._store.end_session(user)
        await self.refresh()
        return ended

    async def set_installed(self, user: str, package: str, *, installed: bool) -> None:
        """Remove an app for a user, or put it back. Raises NoSuchApp, AppStoreFull, StoreError."""
        if self.registry.app(package) is None:
            raise NoSuchApp(f"App {package[:80]} not found")
        await self._store.set_installed(user, package, installed=installed)
        await self.refresh()

    def _check_owner(self, package: str, key: str) -> None:
        """Check that a request has the app's key, if one was issued."""
        if package in self._stored.issued:
            app = self.registry.app(package)
            if app is None or not hmac.compare_digest(app.api_key_hash, hashed(key)):
                problem = "can only be changed with its key; send it as X-App-API-Key"
                raise NotYours(f"App {package} {problem}")

    def _submission(self, package: str, body: Json) -> AppSubmission | None:
        """Return a stored body validated; None, with a warning, if it is no longer valid."""
        known = self._checked.get(package)
        if known is not None and known[0] == body:
            return known[1]
        try:
            checked = check_submission(package, body)
        except BadSubmission as e:
            log.warning("the stored app %s is skipped: %s", package, e)
            return None
        self._checked[package] = (body, checked)
        return checked


class RegistryNotifier:
    """Announces the current registry in a retained message, from which edges know that they must
    fetch it: `publish()` sends it now; `renew()` sends it before it expires.
    """

    def __init__(self, service: AppService, *, topic: str, url: str) -> None:
        self._service = service
        self._topic = topic
        self._url = url
        self.link: CloudLink | None = None

    async def publish(self) -> None:
        """Raises NotConnected."""
        assert self.link is not None
        await self._service.refresh()  # an old message must not overwrite a new one
        registry = self._service.registry
        body = {"version": registry.version, "sha256": registry.sha256, "url": self._url}
        await self.link.publish(
            self._topic, MessageKind.REGISTRY, body, retain=True, expiry_s=EXPIRY_S
        )

    async def renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(NotConnected):  # repeated on the next connect
                await self.publish()
