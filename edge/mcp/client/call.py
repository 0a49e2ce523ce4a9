"""One tool call over one open connection → an `Outcome`. Raises nothing but cancellation. Its trace
says whether the call was sent.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
)
from pydantic import ValidationError

from edge.mcp.client import outcomes
from edge.mcp.client.connection import ServerConnection, describe
from edge.mcp.client.held import ServerQuestion, cancel_all, new_question_queue
from edge.mcp.client.models import CallFault, Json, OnProgress, Outcome, ServerProgress, fault
from edge.mcp.client.request_trace import TRACE, RequestTrace
from edge.runtime.logs import clean

PROGRESS_S: Final = 0.1
"""Ten a second; what comes between is dropped."""
ROUNDS: Final = 5
"""Times that a server may ask for roots (there are none) within one call. A caller that brings
`input`, even an empty one, is asked itself.
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of a tool at a server, and what became of the request."""

    tool: str
    args: Mapping[str, Json]
    call_id: str = ""
    input: Mapping[str, Json] | None = None
    on_progress: OnProgress | None = None
    trace: RequestTrace = field(default_factory=RequestTrace)
    questions: "asyncio.Queue[ServerQuestion]" = field(default_factory=new_question_queue)
    """What an older server asks within the call."""


async def call_tool(connection: ServerConnection, request: ToolRequest) -> Outcome:
    """Call the tool. Run it in a task of its own: the context of the task carries the trace."""
    TRACE.set(request.trace)
    connection.declined = ""
    connection.calls.append(request.questions)
    try:
        outcome = await _call(connection, request)
    except asyncio.CancelledError:
        connection.given_up_at = monotonic()
        raise
    except MCPError as e:
        return _error(connection, request.trace, e)
    except ValidationError as e:
        what = "the input is no answer to what the server asked, and was not sent"
        what = "the answer is no MCP" if request.trace.sent else what
        return fault(CallFault.INVALID, f"{what}: {describe(e)}")
    except Exception as e:  # noqa: BLE001 - whatever a server brings the SDK to raise is its fault, not the caller's
        log.debug("a call of %s failed: %r", connection.config.id, e)
        return _unclear(request.trace, describe(e))
    finally:
        connection.calls.remove(request.questions)
        cancel_all(request.questions)
    if outcome.is_error and connection.declined:
        asked = f"it asked “{connection.declined}” while another of its calls was under way"
        message = clean(f"{outcome.message} ({asked})", outcomes.MAX_MESSAGE)
        return replace(outcome, message=message)
    return outcome


async def _call(connection: ServerConnection, request: ToolRequest) -> Outcome:
    """Call it, and again while the server only asks for roots. Raises what the SDK raises."""
    given = dict(request.input or {})
    responses, state = given.get("inputResponses"), given.get("requestState")
    for _ in range(ROUNDS):
        result = await _send(connection, request, responses, state)
        if request.input is not None or not isinstance(result, types.InputRequiredResult):
            break
        asked = result.input_requests or {}
        if not asked or any(not isinstance(r, types.ListRootsRequest) for r in asked.values()):
            break
        responses, state = {key: {"roots": []} for key in asked}, result.request_state
    tool = next((t for t in connection.listing.tools if t.name == request.tool), None)
    schema = tool.output_schema if tool is not None else None
    return outcomes.outcome(
        request.trace.raw or {}, schema, most_bytes=connection.config.max_answer_bytes
    )


async def _send(
    connection: ServerConnection, request: ToolRequest, responses: Any, state: str | None
) -> types.Result:
    async def send() -> types.Result:
        return await connection.session.call_tool(
            request.tool,
            dict(request.args),
            input_responses=responses,
            request_state=state,
            progress_callback=_progress_callback(request)
            if request.on_progress is not None
            else None,
            allow_input_required=True,
        )

    try:
        return await send()
    except MCPError as e:
        if e.code != HEADER_MISMATCH:
            raise
        # refused for headers made from an old schema, so it was not done
        await connection.list_tools()
        return await send()


def _progress_callback(request: ToolRequest) -> ProgressFnT:
    """Return a callback that passes progress on, at most once in `PROGRESS_S`."""
    last = -PROGRESS_S

    async def report(progress: float, total: float | None, message: str | None) -> None:
        nonlocal last
        now = asyncio.get_running_loop().time()
        if now - last >= PROGRESS_S and request.on_progress is not None:
            last = now
            step = ServerProgress(request.call_id, progress, total, clean(message or ""))
            request.on_progress(step)

    return report


def _error(connection: ServerConnection, trace: RequestTrace, error: MCPError) -> Outcome:
    if trace.fault is not None:
        return fault(trace.fault, trace.message)
    if error.code == CONNECTION_CLOSED:
        return _unclear(trace, connection.why)
    if error.code == REQUEST_TIMEOUT:
        return fault(CallFault.TIMEOUT, "no answer in time")
    message = clean(error.message or "no reason given", outcomes.MAX_MESSAGE)
    if trace.status >= 400 and error.code == INTERNAL_ERROR:  # the SDK found no MCP in the answer
        message = f"the server answers HTTP {trace.status}"
    if error.code == PARSE_ERROR:
        return fault(CallFault.INVALID, f"the answer is no MCP: {message}")
    if error.code == INVALID_PARAMS:
        connection.mark_stale()  # its tools may have changed
    return fault(CallFault.FAILED, message, code=error.code)


def _unclear(trace: RequestTrace, why: str) -> Outcome:
    if trace.sent:
        return fault(
            CallFault.LOST,
            f"the connection was lost during the call, which may have been done: {why}",
        )
    return fault(CallFault.UNSENT, f"the call was not sent: {why}")
