"""What one call of a local tool has in its hands: `tools_cache.tool.ToolContext`, made anew for
each call.

Refuses to hand out what it was handed: a tool gets verbs, never a room, a radio, a socket or a path
(S2-50).
"""

import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from edge.clock import Clock
from edge.core import confirmation
from edge.core.ids import new_call_id
from edge.ports import GlassesStatus, Progress
from firmware_bridge.capabilities import FLAG, Hardware
from tools_cache import handed
from tools_cache.handed import Json
from tools_cache.names import parse
from tools_cache.tool import (
    DeliveryReport,
    ErrorCode,
    ToolCall,
    ToolError,
    ToolFailure,
    ToolResponse,
)

if TYPE_CHECKING:  # they are read at the first call that needs them
    from tools_cache.calendars import Calendars
    from tools_cache.knowledge import Knowledge
    from tools_cache.pictures import Pictures
    from tools_cache.toolbox import Toolbox
    from tools_cache.wearer import Wearer

MAX_PROGRESS: Final = 500
MAX_DEPTH: Final = 3
"""Tools that call tools that call tools: deeper is a loop (S2-134)."""
LOG: Final = "glassd.tool."
_LENS: Final = ("width", "height", "lines", "bitmap")

T = TypeVar("T")
UNSET: Final[Mapping[str, Json]] = MappingProxyType({"enabled": True})
"""The settings of a tool that has none (S4-16)."""
Call = Callable[[ToolCall], Awaitable[ToolResponse]]
Present = Callable[[str, ToolResponse], Awaitable[DeliveryReport]]


class Private(Protocol):
    """What belongs to one user of one package."""

    @property
    def db(self) -> handed.Database: ...
    @property
    def files(self) -> handed.Files: ...


def _nothing() -> Any:
    raise ToolFailure(
        ToolError.of(ErrorCode.TOOL_UNAVAILABLE, "This installation has nothing to ask for that")
    )


@dataclass(frozen=True, slots=True)
class Lent:
    """What the house lends to the tools that ask for it. A function each: made at its first
    use, not before.
    """

    knowledge: "Callable[[], Knowledge]" = _nothing
    calendars: "Callable[[], Calendars]" = _nothing
    voice_active: Callable[[], bool] = lambda: False
    toolbox: "Callable[[ToolCall], Toolbox]" = lambda _call: _nothing()
    pictures: "Callable[[], Pictures]" = _nothing
    wearer: "Callable[[], Wearer]" = _nothing
    network: Callable[[], Mapping[str, Json]] = dict


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What the roof handed over for all calls; what is None makes its part say that it is not
    there.
    """

    storage_for: Callable[[str], handed.ToolStorage]
    alarms: handed.Alarms
    clock: Clock
    glasses: Callable[[], GlassesStatus] = GlassesStatus
    private: Callable[[str, str], Private] | None = None
    call: Call | None = None
    present: Present | None = None
    state: Callable[[], Mapping[str, Json]] | None = None
    note: Callable[[Mapping[str, Json]], None] | None = None
    glasses_do: handed.Deeds | None = None
    configs: Mapping[str, Mapping[str, Json]] = field(default_factory=lambda: MappingProxyType({}))
    """Canonical name → settings, for tools that have any."""
    lent: Lent = Lent()


@dataclass(frozen=True, slots=True)
class Context:
    """See `ToolContext`. Every part is made when it is asked for."""

    call: ToolCall
    _hands: Hands
    _progress: Progress
    _calls: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _shows: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    # -------------------------------------------------------------- what lasts

    @property
    def storage(self) -> handed.ToolStorage:
        return self._hands.storage_for(self._package)

    @property
    def db(self) -> handed.Database:
        return self._private.db

    @property
    def files(self) -> handed.Files:
        return self._private.files

    @property
    def kv(self) -> handed.KV:
        from edge.tool_parts import Kept  # noqa: PLC0415 - see there

        return Kept(self._private.db)

    @property
    def alarms(self) -> handed.Alarms:
        return self._hands.alarms

    @property
    def config(self) -> handed.Config:
        return self._hands.configs.get(self.call.tool, UNSET)

    @property
    def glasses_do(self) -> handed.Deeds:
        return _there(self._hands.glasses_do, "way to tell the glasses that")

    @property
    def knowledge(self) -> "Knowledge":
        return self._hands.lent.knowledge()

    @property
    def calendars(self) -> "Calendars":
        return self._hands.lent.calendars()

    @property
    def toolbox(self) -> "Toolbox":
        return self._hands.lent.toolbox(self.call)

    @property
    def pictures(self) -> "Pictures":
        return self._hands.lent.pictures()

    @property
    def wearer(self) -> "Wearer":
        return self._hands.lent.wearer()

    # -------------------------------------------------------------- what is to be seen, heard and
    # asked

    @property
    def display(self) -> handed.Display:
        from edge.tool_parts import Shown  # noqa: PLC0415 - see there

        return Shown(self._present)

    @property
    def audio(self) -> handed.Audio:
        from edge.tool_parts import Said  # noqa: PLC0415 - see there

        return Said(self._present)

    @property
    def cloud(self) -> handed.Cloud:
        from edge.tool_parts import Others  # noqa: PLC0415 - see there

        return Others(self.call_tool)

    @property
    def clock(self) -> handed.Clock:
        from edge.tool_parts import Wall  # noqa: PLC0415 - see there

        return Wall(self._hands.clock.wall)

    @property
    def session(self) -> handed.Session:
        from edge.tool_parts import Seen  # noqa: PLC0415 - see there

        return Seen(_there(self._hands.state, "a voice session"))

    @property
    def voice_active(self) -> bool:
        return self._hands.lent.voice_active()

    @property
    def audit(self) -> handed.Audit:
        from edge.tool_parts import Noted  # noqa: PLC0415 - see there

        return Noted(self.call, self._hands.note)

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(LOG + self.call.tool)

    def now(self) -> float:
        return self._hands.clock.wall()

    def glasses(self) -> Mapping[str, Json]:
        status = self._hands.glasses()
        known = status.capabilities
        return {
            "state": status.state,
            "ready": status.ready,
            "stale": status.stale,
            "model": status.model,
            "firmware": status.firmware,
            "battery": status.battery,
            "worn": status.worn,
            "can": sorted(
                key for hardware, key in FLAG.items() if known is not None and known.has(hardware)
            ),
            "lens": {key: known.get(f"display.{key}") for key in _LENS}
            if known is not None and known.has(Hardware.DISPLAY)
            else None,
            "gestures": sorted(
                filter(None, str(known.get("gestures", "")).replace(" ", "").split(","))
            )
            if known is not None
            else [],
        }

    def network(self) -> Mapping[str, Json]:
        return dict(self._hands.lent.network())

    async def progress(self, text: str) -> None:
        await self._progress(text[:MAX_PROGRESS])

    async def call_tool(self, tool: str, args: Mapping[str, Json]) -> ToolResponse:
        mine, number, call = self.call, next(self._calls), self._hands.call
        if call is None or mine.depth >= MAX_DEPTH:
            return ToolResponse.failure(
                ErrorCode.UNSUPPORTED, f"{tool} is called more than {MAX_DEPTH} tools deep"
            )
        # The key makes a second run of this call ask for the same calls, not for more of them.
        return confirmation.without_token(
            await call(
                replace(
                    mine,
                    call_id=new_call_id(self._hands.clock.wall()),
                    tool=tool,
                    args=dict(args),
                    depth=mine.depth + 1,
                    through=mine.tool,
                    idempotency_key=f"{mine.call_id}/{number}",
                    provider_call_id=None,
                    ordinal=None,
                )
            )
        )

    # -------------------------------------------------------------- within

    @property
    def _package(self) -> str:
        return parse(self.call.tool).package

    @property
    def _private(self) -> Private:
        return _there(self._hands.private, "storage of one user's own")(
            self.call.user_id, self._package
        )

    async def _present(self, render: dict[str, Json]) -> str:
        """Show it as a scene of its own, so that it neither is nor becomes the result of this
        call.
        """
        present = _there(self._hands.present, "a lens")
        report = await present(
            f"{self.call.call_id}/shown-{next(self._shows)}", ToolResponse(render=render)
        )
        return report.state.value


def _there(part: T | None, what: str) -> T:
    """Raises ToolFailure: a tool run where this was not wired is told so in words."""
    if part is None:
        raise ToolFailure(ToolError.of(ErrorCode.UNSUPPORTED, f"There is no {what} here"))
    return part
