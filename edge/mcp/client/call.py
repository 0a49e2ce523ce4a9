"""One tool call over one open connection → an `Outcome`. Never raises, but for its own
cancellation.

Refuses to know deadlines and second tries: it only tells, through the flight, whether the call was
sent.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
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
from edge.mcp.client.connection import ServerConnection, words
from edge.mcp.client.models import CallFault, Json, OnProgress, Outcome, ServerProgress, fault
from edge.mcp.client.request_trace import FLIGHT, RequestTrace
from edge.runtime.logs import clean

PROGRESS_S: Final = 0.1
"""Ten a second; what comes between is dropped, the next one says more."""
ROUNDS: Final = 5
"""Times a server may ask for our roots, of which there are none, within one call. A caller that
brings `input`, and be it empty, is asked itself.
"""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a server, and how it fares on the way."""

    tool: str
    args: Mapping[str, Json]
    call_id: str = ""
    input: Mapping[str, Json] | None = None
    on_progress: OnProgress | None = None
    flight: RequestTrace = field(default_factory=RequestTrace)


async def ask(connection: ServerConnection, question: Ask) -> Outcome:
    """Call the tool. To be run in a task of its own: its context carries the flight."""
    FLIGHT.set(question.flight)
    connection.declined = ""
    try:
        outcome = await _answer(connection, question)
    except MCPError as e:
        return _error(connection, question.flight, e)
    except ValidationError as e:
        what = (
            "the answer is no MCP"
            if question.flight.sent
            else "the input is no answer to what the server asked, and was not sent"
        )
        return fault(CallFault.INVALID, f"{what}: {words(e)}")
    except Exception as e:  # noqa: BLE001 - whatever a server brings the SDK to raise is its fault, not the caller's
        log.debug("a call of %s failed: %r", connection.config.id, e)
        return _unclear(question.flight, words(e))
    if outcome.is_error and connection.declined:
        more = (
            f"{outcome.message} (it asked a person "
            f"“{connection.declined}”, which this connection cannot)"
        )
        return replace(outcome, message=clean(more, outcomes.MAX_MESSAGE))
    return outcome


async def _answer(connection: ServerConnection, question: Ask) -> Outcome:
    given = dict(question.input or {})
    responses, state = given.get("inputResponses"), given.get("requestState")
    for _ in range(ROUNDS):
        result = await _call(connection, question, responses, state)
        if not isinstance(result, types.InputRequiredResult):
            break
        asked = result.input_requests or {}
        if (
            question.input is not None
            or not asked
            or any(not isinstance(r, types.ListRootsRequest) for r in asked.values())
        ):
            break
        responses, state = {key: {"roots": []} for key in asked}, result.request_state
    tool = next((t for t in connection.listing.tools if t.name == question.tool), None)
    schema = tool.output_schema if tool is not None else None
    return outcomes.outcome(
        question.flight.raw or {}, schema, most_bytes=connection.config.max_answer_bytes
    )


async def _call(
    connection: ServerConnection, question: Ask, responses: Any, state: str | None
) -> types.Result:
    async def send() -> types.Result:
        return await connection.session.call_tool(
            question.tool,
            dict(question.args),
            input_responses=responses,
            request_state=state,
            progress_callback=_Pacer(question) if question.on_progress is not None else None,
            allow_input_required=True,
        )

    try:
        return await send()
    except MCPError as e:
        if e.code != HEADER_MISMATCH:
            raise
        await (
            connection.list_tools()
        )  # it was refused for headers made from an old schema: not done, so sent again
        return await send()


class _Pacer:
    """Hands on progress, not too often."""

    def __init__(self, question: Ask) -> None:
        self._question = question
        self._at = -PROGRESS_S

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._at >= PROGRESS_S and self._question.on_progress is not None:
            self._at = now
            said = ServerProgress(self._question.call_id, progress, total, clean(message or ""))
            self._question.on_progress(said)


def _error(connection: ServerConnection, flight: RequestTrace, error: MCPError) -> Outcome:
    if flight.fault is not None:
        return fault(flight.fault, flight.message)
    if error.code == CONNECTION_CLOSED:
        return _unclear(flight, connection.why)
    if error.code == REQUEST_TIMEOUT:
        return fault(CallFault.TIMEOUT, "no answer in time")
    message = clean(error.message or "no reason given", outcomes.MAX_MESSAGE)
    if (
        flight.status >= 400 and error.code == INTERNAL_ERROR
    ):  # the SDK's word for an answer that is no MCP
        message = f"the server answers HTTP {flight.status}"
    if error.code == PARSE_ERROR:
        return fault(CallFault.INVALID, f"the answer is no MCP: {message}")
    if error.code == INVALID_PARAMS:
        connection.outdated()  # its tools may not be what we think
    return fault(CallFault.FAILED, message, code=error.code)


def _unclear(flight: RequestTrace, why: str) -> Outcome:
    if flight.sent:
        return fault(
            CallFault.LOST,
            f"the connection was lost during the call, which may have been done: {why}",
        )
    return fault(CallFault.UNSENT, f"the call was not sent: {why}")
