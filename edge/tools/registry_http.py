"""Fetches the cloud's registry over HTTP: one conditional GET, one deadline for everything."""

from dataclasses import KW_ONLY, dataclass
from typing import Final

from edge.core.tools.registry_sync import Fetched, SyncFailed
from edge.runtime.http_request import HttpAnswer, NotHttp, TooLong
from edge.tools.cloud_http import CertificatesUnreadable, CloudHttp, reason
from firmware_bridge.deadlines import timeout
from tools_cache.registry.models import MAX_BYTES
from tools_cache.registry.registry_store import Generation

FETCH_S: Final = 60.0
"""One fetch, whatever the cloud does: 8 MiB over a slow mobile link."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
NO_SUCH_PATH: Final = frozenset({404, 405, 410, 501})
MAX_ETAG: Final = 200
MOST_RETRY_AFTER_S: Final = 3600.0


@dataclass(eq=False, repr=False)
class CloudRegistry(CloudHttp):
    """Implements `RegistrySource`."""

    _: KW_ONLY
    limit_s: float = FETCH_S

    async def fetch(self, have: Generation | None, *, past_caches: bool) -> Fetched:
        """Fetch the registry, or the tool list of a cloud without one. Raises `SyncFailed`."""
        try:
            async with timeout(self.limit_s):
                for kind in ("registry", "tools"):
                    conditions = self._conditions(have, kind, past_caches=past_caches)
                    if (found := await self._get(kind, conditions)) is not None:
                        return found
        except CertificatesUnreadable as e:
            raise SyncFailed(str(e), hint="enrol again: glassd up CODE") from None
        except TimeoutError:
            raise SyncFailed(f"the cloud did not finish in {self.limit_s:.0f} s") from None
        except TooLong:
            raise SyncFailed(f"the registry is larger than {MAX_BYTES} bytes") from None
        except (OSError, NotHttp, ValueError) as e:
            raise SyncFailed(f"the cloud cannot be reached: {reason(e)}") from None
        raise SyncFailed(
            "the cloud has neither /api/registry nor /api/tools", hint="is cloud.url right?"
        )

    async def _get(self, kind: str, conditions: dict[str, str]) -> Fetched | None:
        """Return None if this cloud has no such path."""
        answer = await self.request(kind, most=MAX_BYTES, limit_s=self.limit_s, headers=conditions)
        if answer.status == 304 and "If-None-Match" in conditions:
            return Fetched(None, kind)
        if answer.status in NO_SUCH_PATH:
            return None
        _check(answer, kind)
        return Fetched(answer.body, kind, answer.headers.get("etag", "")[:MAX_ETAG])

    def _conditions(
        self, have: Generation | None, kind: str, *, past_caches: bool
    ) -> dict[str, str]:
        if past_caches:
            return {"Cache-Control": "no-cache"}
        if have is None or not have.etag or (have.base, have.kind) != (self.url, kind):
            return {}
        return {"If-None-Match": have.etag}


def _check(answer: HttpAnswer, kind: str) -> None:
    """Accept a plain 200. Raises `SyncFailed`."""
    status = answer.status
    if status in (401, 403):
        raise SyncFailed(f"the cloud refused us ({status})", hint="check cloud.token_file")
    if status in REDIRECTS:
        raise SyncFailed(
            f"the cloud redirects ({status}), which is not followed",
            hint="put its final address into cloud.url",
        )
    if status != 200:
        raise SyncFailed(
            f"the cloud answered {status} to /api/{kind}", retry_after_s=_retry_after(answer)
        )
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise SyncFailed("the cloud compressed the registry although asked not to")


def _retry_after(answer: HttpAnswer) -> float:
    text = answer.headers.get("retry-after", "")
    return min(MOST_RETRY_AFTER_S, float(text)) if text.isdecimal() else 0.0
