"""The SDK's session with two changes: answers are kept as they came, and are judged by us. Refuses
to know transports.

Python's own validator follows patterns that never end; ours is bounded and offline.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import mcp_types as types
from mcp import ClientSession, MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from edge.mcp.client.request_trace import FLIGHT

US: Final = types.Implementation(name="glassd", version="1")


class Dispatcher(JSONRPCDispatcher):
    """Leaves a raw answer with the flight that asked, and lets a list of tools be cleaned
    before the SDK judges it.
    """

    checked: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """As the SDK's."""
        raw = await super().send_raw_request(
            method, params, opts, _related_request_id=_related_request_id
        )
        if method == "tools/list" and self.checked is not None:
            raw = self.checked(raw)
        flight = FLIGHT.get()
        if flight is not None:
            flight.raw = raw
        return (
            {"resultType": "complete", **raw}
            if method == "tools/call" and isinstance(raw, dict)
            else raw
        )  # absent means complete (SEP-2322)


class McpSession(ClientSession):
    """Judges no structured content: `outcomes.py` does."""

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Take it as it is."""


async def agree(session: ClientSession, *, legacy: bool) -> None:
    """Find the era: modern first, and whatever does not look modern shakes hands (facts/mcp.md §1).
    Raises what the SDK raises when neither will do.
    """
    if not legacy:
        try:
            await session.discover()
        except MCPError as e:
            if _modern_only(e):
                raise
        except (ValidationError, RuntimeError):  # it answers, and not as a modern server would
            pass
        else:
            return
    try:
        await session.initialize()
    except MCPError as e:
        if e.code != UNSUPPORTED_PROTOCOL_VERSION or legacy:
            raise
        await (
            session.discover()
        )  # it was only slow: a late answer to the probe made the connection modern


def _modern_only(error: MCPError) -> bool:
    supported = error.data.get("supported") if isinstance(error.data, dict) else None
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or not isinstance(supported, list):
        return False
    return not any(version in HANDSHAKE_PROTOCOL_VERSIONS for version in supported)
