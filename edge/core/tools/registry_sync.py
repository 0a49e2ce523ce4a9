"""Syncing a registry: what a fetch returns, how it fails, and when to try again."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from tools_cache.registry.registry_store import Generation

TRIES_FOR_NOTICE = 3
"""Fetches for one announced registry: a cache may lag, but the cloud may have moved on."""


class SyncFailed(Exception):
    """This sync changed nothing. `hint` is for people, `retry_after_s` the cloud's wish."""

    def __init__(self, detail: str, *, hint: str = "", retry_after_s: float = 0.0) -> None:
        super().__init__(detail)
        self.hint = hint
        self.retry_after_s = retry_after_s


class Fetched(Struct, frozen=True):
    """Result of a fetch. `body` None: unchanged. `kind`: `registry` or `tools`."""

    body: bytes | None
    kind: str = "registry"
    etag: str = ""


class RegistrySource(Protocol):
    """Where a registry comes from; implemented by `tools/registry_http.py`."""

    @property
    def url(self) -> str: ...

    async def fetch(self, have: Generation | None, *, past_caches: bool) -> Fetched:
        """Fetch once. `past_caches`: no cache may answer, it has changed. Raises `SyncFailed`."""


class SyncPace:
    """When to sync next: every `refresh_s`; after failures doubled from `retry_s[0]` to
    `retry_s[1]`, half of it random; for an announced registry that is not served yet, a few times
    as after failures.
    """

    def __init__(
        self, refresh_s: float, retry_s: tuple[float, float], chance: Callable[[], float]
    ) -> None:
        self._refresh_s = refresh_s
        self._retry_s = retry_s
        self._chance = chance
        self._tries = 0
        self.failures = 0
        self.wanted = ""
        """Hash of the announced registry that was not fetched yet."""

    def every(self, refresh_s: float) -> None:
        """Use this interval from the next sync on."""
        self._refresh_s = refresh_s

    def announced(self, sha256: str) -> bool:
        """Note an announced registry; return whether it is new."""
        news = sha256 != self.wanted
        if news:
            self.wanted, self._tries = sha256, 0
        return news

    def failed(self, retry_after_s: float) -> float:
        """Return the wait after a failure."""
        self.failures += 1
        return max(retry_after_s, self._doubled(self.failures))

    def succeeded(self, sha256: str) -> float:
        """Return the wait after a sync that ended with this registry."""
        self.failures = 0
        if not self.wanted:
            return self._refresh_s * (0.9 + 0.2 * self._chance())
        self._tries += 1
        if sha256 == self.wanted or self._tries >= TRIES_FOR_NOTICE:
            self.wanted = ""
            return self._refresh_s * (0.9 + 0.2 * self._chance())
        return self._doubled(self._tries)

    def _doubled(self, times: int) -> float:
        first, most = self._retry_s
        return min(most, first * 2.0 ** min(times - 1, 16)) * (0.5 + 0.5 * self._chance())
