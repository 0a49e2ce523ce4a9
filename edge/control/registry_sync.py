"""`POST /v1/registry/sync`: fetch the cloud's registry now."""

from typing import Final

from edge.control.dependencies import Sync
from edge.control.http import Reply, Request, RequestRefused
from edge.core.tools.registry_sync import SyncFailed
from firmware_bridge.deadlines import timeout

LONGEST_S: Final = 120.0
"""Fetching 8 MiB and checking it takes a Raspberry Pi a quarter of that."""


async def synced(sync: Sync | None, _request: Request) -> Reply:
    """Return the registry layer of `status` after a sync; the active registry stays when
    it fails.
    """
    if sync is None:
        raise RequestRefused(
            501, "UNSUPPORTED", "this daemon has no registry to fetch", "update glassd"
        )
    try:
        async with timeout(LONGEST_S):
            return Reply(200, dict(await sync()))
    except SyncFailed as e:
        raise RequestRefused(
            502, "SYNC_FAILED", f"the registry was not fetched: {e}", e.hint or "see: glassd doctor"
        ) from None
    except TimeoutError:
        raise RequestRefused(
            504,
            "TIMEOUT",
            f"the registry was not fetched in {LONGEST_S:.0f} s",
            "see: glassd doctor",
        ) from None
