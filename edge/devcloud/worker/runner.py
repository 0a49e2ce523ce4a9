"""Runs one tool call: find the tool, check, start the app, call it over HTTP, return one envelope.

The caller is notified just before the app is called.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from edge.devcloud.appserver import NDJSON
from edge.devcloud.registry import AppRegistry, InstalledApp
from edge.devcloud.worker.activation import ActivationFailed, ActivationTimeout, Launcher, Running
from firmware_bridge.deadlines import timeout
from tools_cache import app_results
from tools_cache.api.tool import ErrorCode, Json, ToolCall, ToolResponse
from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.schema import compile_schema

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

TOOL_TIMEOUT_S: Final = 30.0
MAX_ANSWER: Final = 240 * 1024
"""Bytes of an app's answer, or of one line of it: with its envelope it must fit one MQTT body."""
MAX_PROGRESS: Final = 300

Progress = Callable[[str], Awaitable[None]]
Sending = Callable[[], Awaitable[None]]


async def _nothing(_: str = "") -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A call that passed every check: what to send to whom."""

    call: ToolCall
    app: InstalledApp
    tool: Mapping[str, Json]
    args: Mapping[str, Json]
    ends_at: float


class Runner:
    """`run(call)`: one call in, exactly one envelope out; only cancellation raises."""

    def __init__(
        self,
        registry: AppRegistry,
        launcher: Launcher,
        http: "httpx.AsyncClient",
        *,
        tool_timeout_s: float = TOOL_TIMEOUT_S,
        installed: Callable[[str, str], bool] = lambda _user, _package: True,
    ) -> None:
        self._registry = registry
        self._launcher = launcher
        self._http = http
        self._tool_timeout_s = tool_timeout_s
        self._installed = installed
        self.asked: Counter[str] = Counter()
        """How often each tool's app was called."""

    def _tool(self, name: str) -> Mapping[str, Json] | None:
        try:
            found = self._registry.find(name)
        except BadToolName:
            return None
        return None if found is None else found.tool

    def repeatable(self, name: str) -> bool:
        """Return whether running twice is harmless: also if the tool is unknown, so never run."""
        tool = self._tool(name)
        return tool is None or _repeatable(tool)

    def queueable(self, name: str) -> bool:
        """Return whether calls of this tool may wait."""
        tool = self._tool(name)
        return tool is not None and tool.get("queueable") is True

    def deferred(self, name: str) -> bool:
        """Return whether a tool's result is submitted later, without calling an app."""
        tool = self._tool(name)
        return tool is not None and _deferred(tool)

    async def run(
        self, call: ToolCall, *, progress: Progress = _nothing, sending: Sending = _nothing
    ) -> ToolResponse:
        """Answer a call. `sending` is awaited right before the app is called: from then on it may
        have executed.
        """
        started = time.monotonic()
        plan = self._plan(call, started)
        if isinstance(plan, ToolResponse):
            response, running = plan, None
        else:
            response, running = await self._activate_and_ask(plan, progress, sending)
        duration = round((time.monotonic() - started) * 1000)
        who = {"tool": app_results.clean(call.tool), "userId": app_results.clean(call.user_id)}
        log.info("Tool executed", extra={**who, "duration": duration, "success": response.ok})
        activated = None if running is None else running.activated
        return self.stamped(call, response, duration=duration).with_meta(activatedForTool=activated)

    def stamped(
        self, call: ToolCall, response: ToolResponse, *, duration: int | None = None
    ) -> ToolResponse:
        """Add to an answer's meta what was called, its version, and when."""
        tool = self._tool(call.tool)
        return response.with_meta(
            tool=call.tool,
            toolVersion=None if tool is None else tool.get("version", "0"),
            registryVersion=self._registry.version,
            duration=duration,
            timestamp=datetime.now(UTC).isoformat(),
            callId=call.call_id,
            route="cloud",
        )

    def check(self, call: ToolCall) -> ToolCall | ToolResponse:
        """Check everything that needs no app, in the order of the REST API: return the call with
        its defaults, or why it is invalid.
        """
        try:
            found = self._registry.find(call.tool)
        except BadToolName as e:
            return ToolResponse.failure(ErrorCode.INVALID_TOOL_NAME, str(e))
        if found is None or not self._installed(call.user_id, found.app.package):
            return ToolResponse.failure(ErrorCode.TOOL_NOT_FOUND, f"Tool {call.tool} not found")
        try:
            validator = compile_schema(found.tool["inputSchema"])
        except BadDefinition as e:
            return ToolResponse.failure(ErrorCode.EXECUTION_ERROR, str(e))
        args = validator.filled(dict(call.args))
        if errors := validator.errors(args):
            first = f"{errors[0]['path']}: {errors[0]['problem']}"
            return ToolResponse.failure(ErrorCode.INVALID_ARGUMENTS, first, details=errors)
        return replace(call, args=args)

    def _plan(self, call: ToolCall, now: float) -> _Plan | ToolResponse:
        checked = self.check(call)
        if isinstance(checked, ToolResponse):
            return checked
        found = self._registry.find(call.tool)
        assert found is not None, "it was there a moment ago, and nothing was awaited"
        if _deferred(found.tool):
            message = f"{call.tool} is answered later, and HTTP cannot wait; call it over MQTT"
            return ToolResponse.failure(ErrorCode.UNSUPPORTED, message)
        has_route = bool(found.app.command or found.app.public_url)
        if not has_route and (model := _model(found.tool)):
            message = f"{call.tool} needs {model}, which this cloud does not run"
            fix = "give its app an address that does"
            return ToolResponse.failure(ErrorCode.UNSUPPORTED, f"{message}; {fix}")
        if not has_route:
            message = f"App {found.app.package} has no public URL"
            return ToolResponse.failure(ErrorCode.APP_NOT_AVAILABLE, message)
        return _Plan(call, found.app, found.tool, checked.args, now + call.ttl_s)

    async def _activate_and_ask(
        self, plan: _Plan, progress: Progress, sending: Sending
    ) -> tuple[ToolResponse, Running | None]:
        try:
            async with timeout(max(0.0, plan.ends_at - time.monotonic())):
                running = await self._launcher.ensure(plan.app)
        except ActivationTimeout as e:
            return ToolResponse.failure(ErrorCode.APP_ACTIVATION_TIMEOUT, str(e)), None
        except ActivationFailed as e:
            return ToolResponse.failure(ErrorCode.EXECUTION_ERROR, app_results.clean(str(e))), None
        except TimeoutError:
            return _too_late(maybe_done=False), None
        if plan.ends_at <= time.monotonic():
            return _too_late(maybe_done=False), running
        await sending()
        self.asked[plan.call.tool] += 1
        return await self._ask(plan, running, progress), running

    async def _ask(self, plan: _Plan, running: Running, progress: Progress) -> ToolResponse:
        import httpx  # noqa: PLC0415 - already loaded by the code that made the client

        package, maybe_done = plan.app.package, not _repeatable(plan.tool)
        left, most = plan.ends_at - time.monotonic(), self._tool_timeout_s
        most = min(most, float(plan.tool.get("timeoutS") or most))
        code, partial = ErrorCode.EXECUTION_ERROR, False
        try:
            async with timeout(min(left, most)):
                return await self._post(plan, running, progress)
        except TimeoutError:
            if left < most:
                return _too_late(maybe_done=maybe_done)
            return app_results.timed_out(most, maybe_done=maybe_done)
        except (httpx.ConnectError, httpx.ConnectTimeout) as e:
            timed_out = isinstance(e, httpx.ConnectTimeout)
            code = ErrorCode.TIMEOUT if timed_out else ErrorCode.NETWORK_ERROR
            message = f"App {package} cannot be reached: {app_results.clean(str(e))}"
        except httpx.TransportError as e:
            code, partial = ErrorCode.NETWORK_ERROR, maybe_done
            message = f"App {package} broke off: {app_results.clean(str(e)) or type(e).__name__}"
        except (httpx.HTTPError, httpx.InvalidURL, _BadAnswer) as e:
            message = app_results.clean(str(e)) or type(e).__name__
        except Exception:
            log.exception("unexpected error in a call of app %s", package)
            code, partial = ErrorCode.INTERNAL, True
            message = f"Internal error executing {plan.call.tool}"
        return ToolResponse.failure(code, message, partial_side_effects=partial)

    async def _post(self, plan: _Plan, running: Running, progress: Progress) -> ToolResponse:
        user_id, now = plan.call.user_id, datetime.now(UTC).isoformat()
        context = {"userId": user_id, "timestamp": now, "activatedForTool": running.activated}
        body = {"name": plan.tool["name"], "arguments": plan.args, "context": context}
        headers = {"X-App-API-Key": running.api_key_hash} if running.api_key_hash else {}
        async with self._http.stream(
            "POST", f"{running.url}/tool", json=body, headers=headers, timeout=None
        ) as answer:
            streams = answer.headers.get("content-type", "").startswith(NDJSON)
            if answer.is_success and streams:
                return app_results.of_app(await _last_line(answer, progress), plan.call.tool)
            text = await _whole(answer)
            if not answer.is_success:
                return app_results.of_status(answer.status_code, text.decode(errors="replace"))
            return app_results.of_app(_parse(text), plan.call.tool)


def _repeatable(tool: Mapping[str, Json]) -> bool:
    return tool.get("idempotent") is True or tool.get("sideEffects") in ("none", "read_only")


def _deferred(tool: Mapping[str, Json]) -> bool:
    kind, execution = tool.get("executionType"), tool.get("execution") or {}
    has_url = bool(execution.get("url") or execution.get("webhookUrl"))
    return kind == "space" or (kind == "external" and not has_url)


def _model(tool: Mapping[str, Json]) -> str:
    """Return which model a tool without an app needs, or ""."""
    execution = tool.get("execution")
    if not isinstance(execution, dict):
        return ""
    if isinstance(execution.get("agentConfig"), dict):
        return "a sub-agent"
    return "an image model" if execution.get("provider") and execution.get("model") else ""


class _BadAnswer(Exception):
    """The app's answer cannot be read."""


async def _whole(answer: "httpx.Response") -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > MAX_ANSWER:
            raise _BadAnswer(f"the app answered more than {MAX_ANSWER // 1024} KiB")
    return bytes(body)


async def _last_line(answer: "httpx.Response", progress: Progress) -> Json:
    """Pass progress on as it arrives; return the result that ends the stream."""
    rest = bytearray()
    async for chunk in answer.aiter_bytes():
        rest += chunk
        *lines, rest = rest.split(b"\n")
        if len(rest) > MAX_ANSWER or any(len(line) > MAX_ANSWER for line in lines):
            raise _BadAnswer(f"the app answered more than {MAX_ANSWER // 1024} KiB")
        for line in lines:
            value = _parse(bytes(line)) if line.strip() else {}
            if isinstance(value, dict) and "result" in value:
                return value["result"]
            if isinstance(value, dict) and isinstance(value.get("progress"), str):
                await progress(app_results.clean(value["progress"])[:MAX_PROGRESS])
    raise _BadAnswer("the app's answer ended without a result")


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _BadAnswer("the app answered something that is not JSON") from None


def _too_late(*, maybe_done: bool) -> ToolResponse:
    message = "The call's time was over before the tool had answered"
    code = ErrorCode.DEADLINE_EXPIRED
    return ToolResponse.failure(code, message, partial_side_effects=maybe_done)
