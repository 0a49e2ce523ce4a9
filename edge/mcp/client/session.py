"""The SDK's session with two changes: answers are kept as they came, and validated by us (the SDK's
validator follows regular expressions that never end; ours is bounded and offline).
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

from edge.mcp.client.request_trace import TRACE

US: Final = types.Implementation(name="glassd", version="1")


class Dispatcher(JSONRPCDispatcher):
    """Stores raw answers in their trace, and filters a list of tools before the SDK reads it."""

    keep_valid: Callable[[dict[str, Any]], dict[str, Any]] | None = None

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
        if method == "tools/list" and self.keep_valid is not None:
            raw = self.keep_valid(raw)
        if (trace := TRACE.get()) is not None:
            trace.raw = raw
        if method == "tools/call" and isinstance(raw, dict):
            return {"resultType": "complete", **raw}  # absent means complete (SEP-2322)
        return raw


class McpSession(ClientSession):
    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Accept it: `outcomes.py` validates."""


async def agree(session: ClientSession, *, legacy: bool) -> None:
    """Agree on the protocol's version: modern first, then `initialize`. Raises what the SDK
    raises if neither works.
    """
    if not legacy:
        try:
            await session.discover()
        except MCPError as e:
            if _modern_only(e):
                raise
        except (ValidationError, RuntimeError):  # not the answer of a modern server
            pass
        else:
            return
    try:
        await session.initialize()
    except MCPError as e:
        if e.code != UNSUPPORTED_PROTOCOL_VERSION or legacy:
            raise
        # it was only slow: a late answer to the probe made the connection modern
        await session.discover()


def _modern_only(error: MCPError) -> bool:
    supported = error.data.get("supported") if isinstance(error.data, dict) else None
    if error.code != UNSUPPORTED_PROTOCOL_VERSION or not isinstance(supported, list):
        return False
    return not any(version in HANDSHAKE_PROTOCOL_VERSIONS for version in supported)
