"""The MCP client that sent a request, of either revision."""

from collections.abc import Mapping, MutableMapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp.server.connection import Connection, allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

Context = ServerRequestContext[Any, Any]
LEVEL: Final = "info"
"""The level of progress messages."""
_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_KINDS: Final[Mapping[str, tuple[type[Any], type[BaseModel]]]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}

Levels = MutableMapping[Connection, str]
"""The log levels that older clients set, by connection."""


def levels() -> Levels:
    return WeakKeyDictionary()


def connection_of(ctx: Context) -> Connection:
    return ctx.session._connection  # noqa: SLF001 - the SDK has no public name for it, and one proxy is made per request


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def meta_of(ctx: Context) -> Mapping[str, Any]:
    found = (ctx.params or {}).get("_meta")
    return found if isinstance(found, Mapping) else {}


class McpCaller:
    """One request's client."""

    unanswered: tuple[type[Exception], ...] = (MCPError, ValidationError, TimeoutError)

    def __init__(self, ctx: Context, wanted: Levels, name: str) -> None:
        self._ctx = ctx
        self._name = name
        self.modern = is_modern(ctx)
        """Whether it brings answers in its next request (2026-07-28), or is asked during the call
        (2025-11-25).
        """
        capabilities = ctx.session.client_capabilities
        self.capabilities: Mapping[str, Any] = (
            capabilities.model_dump(by_alias=True, exclude_none=True) if capabilities else {}
        )
        self._progress = "progressToken" in meta_of(ctx)
        self._logs = self._wants_logs(wanted)
        self.listens = self._progress or self._logs
        """Whether it wants reports of progress."""
        self.reachable = not self.modern and ctx.session.can_send_request
        """Whether it can be asked something now."""

    def _wants_logs(self, wanted: Levels) -> bool:
        if self.modern:
            return LEVEL in allowed_log_levels(self._ctx.protocol_version, self._ctx.meta)
        return _LEVELS.index(wanted.get(connection_of(self._ctx), LEVEL)) <= _LEVELS.index(LEVEL)

    async def report(self, step: int, text: str) -> None:
        """Report progress to a client that asked for it, and as a log message to one that reads
        those. `step` grows by one.
        """
        if self._progress:
            await self._ctx.session.report_progress(step, None, text)
        if self._logs:
            message = types.LoggingMessageNotification(
                params=types.LoggingMessageNotificationParams(
                    level="info", data=text, logger=self._name
                )
            )
            await self._ctx.session.send_notification(message, self._ctx.request_id)

    async def ask(self, request: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        """Ask something of an older client. Raises what `unanswered` lists."""
        asked, answered = _KINDS[request["method"]]
        metadata = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        result = await self._ctx.session.send_request(
            asked.model_validate(dict(request)), answered, timeout_s, metadata
        )
        answer: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        return answer
