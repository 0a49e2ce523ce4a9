"""Takes photos with the glasses' camera, one at a time. Imported at the first photo."""

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable
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
MEDIUM_BYTES: Final = 40_000
"""What a photo of 640 × 480 has, about."""
SOON_S: Final = 10.0
"""Seconds that a photo may take whose size is left to us."""
_NEVER: Final = frozenset({"unsupported", "bad_message", "too_big"})
"""Codes of refusals for which a retry does not help."""
_BOX: Final = b"ftyp"
"""The beginning of an AVIF picture, after its size; a JPEG has none."""
_AWAY: Final = "The glasses went away before the photo arrived"


class GlassesCamera:
    """Implements `tools_cache.api.handed.Camera`. `to_jpeg` makes a JPEG of an AVIF, or raises
    `ToolFailure`.
    """

    def __init__(
        self, glasses: GlassesPort, bus: Bus, to_jpeg: Callable[[bytes], Awaitable[bytes]]
    ) -> None:
        self._glasses = glasses
        self._bus = bus
        self._to_jpeg = to_jpeg
        self._number = 0
        self._one = asyncio.Lock()
        self._coming: asyncio.Future[PhotoTaken | PhotoFailed] | None = None
        self._bytes_per_s: float | None = None
        """How fast the last photo came."""
        glasses.receive_photos(self._receive)

    async def take(self, size: str) -> Photo:
        """See `handed.Camera.take`."""
        self._check_able()
        async with self._one:
            self._number += 1
            self._coming = asyncio.get_running_loop().create_future()
            order = TakePhoto(self._number, self._size(size))
            began_at = asyncio.get_running_loop().time()
            try:
                taken = await self._ordered(order, self._coming)
            finally:
                self._coming = None
            took_s = asyncio.get_running_loop().time() - began_at
        if isinstance(taken, PhotoFailed):
            raise _failure(ErrorCode.NOT_ACCEPTED, f"The photo failed: {taken.detail}")
        self._bytes_per_s = len(taken.jpeg) / max(took_s, 0.001)
        is_avif = taken.jpeg[4:8] == _BOX
        return Photo(await self._to_jpeg(taken.jpeg) if is_avif else taken.jpeg, taken.turned)

    def _size(self, wanted: str) -> PhotoSize:
        """Return the size to order. `auto` is medium, unless the last photo came too slowly for
        that.
        """
        if wanted != "auto":
            return PhotoSize(wanted)
        slow = self._bytes_per_s is not None and MEDIUM_BYTES / self._bytes_per_s > SOON_S
        return PhotoSize.SMALL if slow else PhotoSize.MEDIUM

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
