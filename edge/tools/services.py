"""The services that the local tools of one daemon can use, as values and factories."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from edge.ports import GlassesStatus
from edge.runtime.clock import Clock
from edge.storage.tools.user_stores import Private
from tools_cache.api import handed
from tools_cache.api.handed import Json
from tools_cache.api.tool import (
    DeliveryReport,
    ErrorCode,
    ToolCall,
    ToolFailure,
    ToolResponse,
)

if TYPE_CHECKING:  # only the tools that use them load them
    from edge.listening_ports import CaptionsPort, RecordingPort
    from edge.tools.cloud_http import CloudHttp
    from tools_cache.api import services
    from tools_cache.api.calendars import Calendars
    from tools_cache.api.history import History
    from tools_cache.api.knowledge import Knowledge

Call = Callable[[ToolCall], Awaitable[ToolResponse]]
Present = Callable[[str, ToolResponse], Awaitable[DeliveryReport]]


def _nothing() -> Any:
    raise ToolFailure.of(
        ErrorCode.TOOL_UNAVAILABLE, "This installation has nothing to ask for that"
    )


class Services(Struct, frozen=True, kw_only=True):
    """Services shared by all calls. One that is None or has its default raises when a tool asks for
    it; a factory creates its service at the first use.
    """

    storage_for: Callable[[str], handed.ToolStorage]
    """A package's own tables."""
    alarms: handed.Alarms
    clock: Clock
    glasses: Callable[[], GlassesStatus] = GlassesStatus
    reminders: "services.Reminders | None" = None
    private: Callable[[str, str], Private] | None = None
    """(user, package) → that user's own tables and files."""
    call: Call | None = None
    """Calls another tool, with all checks."""
    present: Present | None = None
    """Shows and speaks something before the result is there."""
    state: Callable[[], Mapping[str, Json]] | None = None
    """The state of the voice session."""
    voice_active: Callable[[], bool] = lambda: False
    note: Callable[[Mapping[str, Json]], None] | None = None
    """Writes a line of the audit log."""
    configs: Mapping[str, Mapping[str, Json]] = field(default_factory=lambda: MappingProxyType({}))
    """Canonical name → settings of the tools that have any."""
    uploads: "Callable[[], CloudHttp | None]" = lambda: None
    """Returns the cloud that may take photos and sounds."""
    network: Callable[[], Mapping[str, Json]] = dict
    glasses_do: handed.Deeds | None = None
    captions: "Callable[[], CaptionsPort] | None" = None
    microphone: "Callable[[], RecordingPort] | None" = None
    knowledge: "Callable[[ToolCall], Knowledge]" = lambda _call: _nothing()
    calendars: "Callable[[], Calendars]" = _nothing
    history: "Callable[[str], History]" = lambda _user: _nothing()
    workers: "Callable[[], services.Workers]" = _nothing
    pictures: Callable[[], handed.Pictures] = _nothing
    camera: Callable[[], handed.Camera] = _nothing
    questions: Callable[[], handed.Questions] = _nothing
    wearer: Callable[[], handed.Wearer] = _nothing
    toolbox: Callable[[ToolCall], handed.Toolbox] = lambda _call: _nothing()
