"""Takes photos with the glasses' camera, one at a time. Imported at the first photo."""

import asyncio
import base64
from collections.abc import AsyncIterable
from typing import Final

from edge.ports import GlassesAway, GlassesPort
from edge.runtime.bus import Bus
from edge.runtime.events import DaemonEvent, GlassesLost
from edge.runtime.first_completed import run_unless
from firmware_bridge.capabilities import Hardware
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.messages import PhotoFailed, PhotoSize, PhotoTaken, TakePhoto
from tools_cache.api.handed import Photo
from tools_cache.api.tool import ErrorCode, ToolFailure

ORDER_S: Final = 8.0
"""Seconds until the glasses took the order."""
ARRIVE_S: Final = 60.0
"""Seconds until the photo is here: 640 × 480 over a slow link takes half a minute."""
MOST_BYTES: Final = 130_000
"""A larger photo does not fit a result (192 KiB) as base64."""
_NEVER: Final = frozenset({"unsupported", "bad_message", "too_big"})
"""Codes of refusals for which a retry does not help."""
_AWAY: Final = "The glasses went away before the photo arrived"


class GlassesCamera:
    """Implements `tools_cache.api.handed.Camera`."""

    def __init__(self, glasses: GlassesPort, bus: Bus) -> None:
        self._glasses = glasses
        self._bus = bus
        self._number = 0
        self._one = asyncio.Lock()
        self._coming: asyncio.Future[PhotoTaken | PhotoFailed] | None = None
        glasses.receive_photos(self._receive)

    async def take(self, size: str) -> Photo:
        """See `handed.Camera.take`."""
        self._check_able()
        async with self._one:
            self._number += 1
            self._coming = asyncio.get_running_loop().create_future()
            try:
                taken = await self._ordered(TakePhoto(self._number, PhotoSize(size)), self._coming)
            finally:
                self._coming = None
        if isinstance(taken, PhotoFailed):
            raise _failure(ErrorCode.NOT_ACCEPTED, f"The photo failed: {taken.detail}")
        if len(taken.jpeg) > MOST_BYTES:
            raise _failure(
                ErrorCode.NOT_ACCEPTED,
                f"The photo has {len(taken.jpeg)} bytes; a result holds {MOST_BYTES}",
                "Ask for a smaller size",
            )
        return Photo(base64.b64encode(taken.jpeg).decode(), len(taken.jpeg), taken.turned)

    def _check_able(self) -> None:
        status = self._glasses.status()
        if not status.ready or status.capabilities is None:
            raise _failure(
                ErrorCode.SESSION_INACTIVE,
                "The glasses are away",
                "Put them on, or see: glassd status",
            )
        if not status.capabilities.has(Hardware.CAMERA):
            raise _failure(ErrorCode.UNSUPPORTED, "These glasses have no camera")

    async def _ordered(
        self, order: TakePhoto, coming: "asyncio.Future[PhotoTaken | PhotoFailed]"
    ) -> PhotoTaken | PhotoFailed:
        """Order a photo and wait for it, unless the glasses are lost meanwhile."""
        with self._bus.listen(calls=False) as events:
            try:
                await self._glasses.request(order, timeout_s=ORDER_S)
                async with timeout(ARRIVE_S):
                    done = await run_unless(_wait(coming), _lost(events))
            except GlassesAway:
                raise _failure(ErrorCode.SESSION_INACTIVE, _AWAY) from None
            except CommandRefused as refused:
                code = ErrorCode.UNSUPPORTED if refused.code in _NEVER else ErrorCode.NOT_ACCEPTED
                raise _failure(code, f"The glasses refused: {refused}") from None
            except (CommandTimeout, TimeoutError):
                raise _failure(ErrorCode.TIMEOUT, "No photo came from the glasses") from None
        if done is None:
            raise _failure(ErrorCode.SESSION_INACTIVE, _AWAY)
        return done.value

    def _receive(self, photo: PhotoTaken | PhotoFailed) -> None:
        """Pass on the photo that is waited for; others are dropped."""
        coming = self._coming
        if coming is not None and photo.photo == self._number and not coming.done():
            coming.set_result(photo)


async def _wait(
    coming: "asyncio.Future[PhotoTaken | PhotoFailed]",
) -> PhotoTaken | PhotoFailed:
    return await coming


async def _lost(events: AsyncIterable[DaemonEvent]) -> None:
    async for event in events:
        if isinstance(event, GlassesLost):
            return


def _failure(code: ErrorCode, message: str, suggestion: str | None = None) -> ToolFailure:
    return ToolFailure.of(code, message, suggestion=suggestion)
