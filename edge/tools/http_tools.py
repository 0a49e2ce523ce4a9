"""Runs the owner's HTTP tools: sends the request, or passes a call on that is answered later.

The caller always gets exactly one valid answer, and no secret is in it.
"""

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from edge.core.tools import templates
from edge.core.tools.user_tools import RequestPlan
from edge.ports import Progress
from edge.runtime.library_imports import leave_out_command_line_of_httpx
from firmware_bridge.deadlines import timeout
from tools_cache import app_results
from tools_cache.api.tool import ErrorCode, Json, ToolCall, ToolDefinition, ToolResponse

if TYPE_CHECKING:
    from edge.tools.http_request import HttpToolAnswer, OutgoingRequest

MAX_ADDRESS: Final = 8000
"""Characters of a filled address; servers give up between 8,000 and 16,000."""
_RESULT: Final = frozenset({"success", "content", "error", "mentraExtensions", "render"})
_ENVELOPE: Final = frozenset({"ok", "data", "error", "intents", "render", "meta"})

logger = logging.getLogger(__name__)


class ToolRequest(NamedTuple):
    """A filled request, without placeholders."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


class HttpTools:
    """One per daemon; `use` sets its plans. The HTTP library is loaded at the first call."""

    def __init__(self) -> None:
        self._plans: Mapping[str, RequestPlan] = MappingProxyType({})
        self._secrets: frozenset[str] = frozenset()
        self._asking: OutgoingRequest | None = None
        self._opening = asyncio.Lock()

    def use(self, plans: Mapping[str, RequestPlan], secrets: Iterable[str] = ()) -> None:
        """Use these plans for new calls. `secrets` are removed from answers, unless a host contains
        them.
        """
        self._plans = plans
        hosts = [templates.origin(plan.url) for plan in plans.values()]
        self._secrets = frozenset(
            value for value in secrets if not any(value in host for host in hosts)
        )

    async def close(self) -> None:
        if self._asking is not None:
            await self._asking.close()

    async def run(self, call: ToolCall, tool: ToolDefinition, _progress: Progress) -> ToolResponse:
        """See `RunTool`. An asynchronous tool's address is only notified; without an address, the
        result is handed in for the pending call.
        """
        plan = self._plans.get(call.tool)
        if plan is None and tool.asynchronous:
            return ToolResponse()
        if plan is None:
            return ToolResponse.failure(
                ErrorCode.TOOL_NOT_FOUND, f"Tool {call.tool} not found: it has no address"
            )
        limit_s = min(tool.timeout_s, call.ttl_s)
        if limit_s <= 0:
            return ToolResponse.failure(
                ErrorCode.DEADLINE_EXPIRED, "The time for this call was over before it began"
            )
        try:
            request = request_of(call, plan)
            async with timeout(limit_s):
                answer = await (await self._ready()).ask(*request)
        except templates.Unfilled as e:
            return ToolResponse.failure(ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: {e}")
        except TimeoutError:
            return app_results.timed_out(limit_s, maybe_done=not _repeatable(tool))
        except Exception:  # a mistake in glassd itself, so the log has the trace
            logger.exception("asking for %s (call %s)", call.tool, call.call_id)
            return ToolResponse.failure(
                ErrorCode.INTERNAL,
                f"Internal error executing {call.tool}",
                partial_side_effects=True,
            )
        return response_of(answer, tool, taken=plan.later, secrets=self._secrets)

    async def _ready(self) -> "OutgoingRequest":
        async with self._opening:
            if self._asking is None:
                self._asking = await asyncio.to_thread(_opened)  # the import alone takes 150 ms
        return self._asking


def _opened() -> "OutgoingRequest":
    leave_out_command_line_of_httpx()
    from edge.tools.http_request import OutgoingRequest  # noqa: PLC0415 - a daemon without own tools never loads httpx

    return OutgoingRequest()


def _repeatable(tool: ToolDefinition) -> bool:
    return tool.idempotent or tool.read_only


# ------------------------------------------------------------------ what leaves


def request_of(call: ToolCall, plan: RequestPlan) -> ToolRequest:
    """Fill a plan for one call. Raises `Unfilled` if a required place has no value."""
    scope: dict[str, Json] = {
        "input": dict(call.args),
        "call": {"id": call.call_id, "tool": call.tool},
    }
    url = templates.address(plan.url, plan.query, scope)
    if len(url) > MAX_ADDRESS:
        raise templates.Unfilled(f"the address becomes longer than {MAX_ADDRESS} characters")
    # The id lets a server that hears a call twice know it.
    headers = {
        "Accept": "application/json, text/*;q=0.9",
        "Idempotency-Key": call.call_id,
        **plan.headers,
    }
    if plan.method in {"GET", "DELETE"}:
        return ToolRequest(plan.method, url, headers, None)
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return ToolRequest(plan.method, url, headers, _body(call, plan, scope))


def _body(call: ToolCall, plan: RequestPlan, scope: Mapping[str, Json]) -> bytes:
    body: Json = dict(call.args)
    if plan.body is not None:
        body = templates.filled(plan.body, scope)
    elif plan.later:
        body = {"callId": call.call_id, "tool": call.tool, "arguments": body}
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        errors="replace"
    )


# ------------------------------------------------------------------ what comes back


def response_of(
    answer: "HttpToolAnswer",
    tool: ToolDefinition,
    *,
    taken: bool = False,
    secrets: Iterable[str] = (),
) -> ToolResponse:
    """Convert an answer: the result if it has that form, else its JSON or text as data. `taken`:
    the result comes later, so the answer is empty. Secrets are removed.
    """
    text = str(templates.without_secrets(answer.text, secrets))
    if answer.failed:
        maybe_done = answer.sent and not _repeatable(tool)
        why = str(templates.without_secrets(answer.failed, secrets))
        return ToolResponse.failure(answer.code, why, partial_side_effects=maybe_done)
    if not 200 <= answer.status < 300:
        if 300 <= answer.status < 400:
            text += " (redirects are not followed: write the final address)"
        return app_results.of_status(answer.status, text)
    if taken or not answer.text.strip():
        return ToolResponse(data=None)
    try:
        value = templates.without_secrets(
            json.loads(answer.text, parse_constant=_no_number), secrets
        )
    except (ValueError, RecursionError):
        return _as_text(answer.type, text)
    if _is_result(value):
        return app_results.of_app(value, tool.name)
    return ToolResponse(data=value)


def _is_result(value: Json) -> bool:
    """Return whether it has one of the two result forms; other services also answer with `ok` or
    `success`.
    """
    if not isinstance(value, dict):
        return False
    keys = value.keys()
    if isinstance(value.get("success"), bool):
        return keys <= _RESULT and ("content" in keys or isinstance(value.get("error"), dict))
    return (
        isinstance(value.get("ok"), bool)
        and keys <= _ENVELOPE
        and ("data" in keys or isinstance(value.get("error"), dict))
    )


def _as_text(kind: str, text: str) -> ToolResponse:
    if kind.startswith("text/") or not kind:
        return ToolResponse(data={"text": text})
    kind = app_results.clean(kind)[:60]
    return ToolResponse.failure(
        ErrorCode.EXECUTION_ERROR, f"The answer ({kind}) is neither JSON nor text"
    )


def _no_number(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")
