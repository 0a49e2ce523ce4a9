"""Runs one tool call: find the tool, check, start the app, call it over HTTP, return one envelope.

The caller is notified just before the app is called.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from edge.devcloud.appserver import NDJSON
from edge.devcloud.http import envelope
from edge.devcloud.registry import AppRegistry, InstalledApp
from edge.devcloud.worker.activation import ActivationFailed, ActivationTimeout, Launcher, Running
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import ErrorCode, Json, ToolCall, ToolResponse
from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.schema import compile_schema

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

TOOL_TIMEOUT_S: Final = 30.0
MAX_ANSWER: Final = 240 * 1024
"""Maximum bytes of an app's answer, or of one line of it: with its envelope it must fit one MQTT
body.
"""
MAX_PROGRESS: Final = 300

Progress = Callable[[str], Awaitable[None]]
Sending = Callable[[], Awaitable[None]]


async def nothing_new() -> None:
    """Placeholder for `refresh` where no other process makes changes."""


def _for_all(_user: str, _package: str) -> bool:
    return True


async def _nothing(_: str = "") -> None:
    """Nobody listens."""


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
        installed: Callable[[str, str], bool] = _for_all,
    ) -> None:
        self._registry = registry
        self._launcher = launcher
        self._http = http
        self._tool_timeout_s = tool_timeout_s
        self._installed = installed
        self.asked: Counter[str] = Counter()
        """How often each tool's app was really asked."""

    def repeatable(self, name: str) -> bool:
        """Return whether running twice is harmless; also True for an unknown tool, which is never
        run.
        """
        try:
            found = self._registry.find(name)
        except BadToolName:
            return True
        return found is None or _repeatable(found.tool)

    def queueable(self, name: str) -> bool:
        """Return whether calls of this tool may wait."""
        try:
            found = self._registry.find(name)
        except BadToolName:
            return False
        return found is not None and found.tool.get("queueable") is True

    def deferred(self, name: str) -> bool:
        """Return whether a tool's result is submitted later, without calling an app."""
        try:
            found = self._registry.find(name)
        except BadToolName:
            return False
        return found is not None and _deferred(found.tool)

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
        log.info(
            "Tool executed",
            extra={
                "tool": envelope.clean(call.tool),
                "userId": envelope.clean(call.user_id),
                "duration": duration,
                "success": response.ok,
            },
        )
        activated = None if running is None else running.activated
        return self.stamped(call, response, duration=duration).with_meta(activatedForTool=activated)

    def stamped(
        self, call: ToolCall, response: ToolResponse, *, duration: int | None = None
    ) -> ToolResponse:
        """Add to an answer's meta what was called, its version, and when."""
        try:
            found = self._registry.find(call.tool)
        except BadToolName:
            found = None
        return response.with_meta(
            tool=call.tool,
            toolVersion=None if found is None else found.tool.get("version", "0"),
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
            message = (
                f"{call.tool} is answered later, and whoever asks this "
                "way cannot wait; call it over MQTT"
            )
            return ToolResponse.failure(ErrorCode.UNSUPPORTED, message)
        has_route = bool(found.app.command or found.app.public_url)
        if not has_route and (model := _model(found.tool)):
            message = (
                f"{call.tool} needs {model}, which this cloud does not run; "
                "give its app an address that does"
            )
            return ToolResponse.failure(ErrorCode.UNSUPPORTED, message)
        if not has_route:
            return ToolResponse.failure(
                ErrorCode.APP_NOT_AVAILABLE, f"App {found.app.package} has no public URL"
            )
        return _Plan(call, found.app, found.tool, checked.args, now + call.ttl_s)

    async def _activate_and_ask(
        self,
        plan: _Plan,
        progress: Progress,
        sending: Sending,
    ) -> tuple[ToolResponse, Running | None]:
        try:
            async with timeout(max(0.0, plan.ends_at - time.monotonic())):
                running = await self._launcher.ensure(plan.app)
        except ActivationTimeout as e:
            return ToolResponse.failure(ErrorCode.APP_ACTIVATION_TIMEOUT, str(e)), None
        except ActivationFailed as e:
            return ToolResponse.failure(ErrorCode.EXECUTION_ERROR, envelope.clean(str(e))), None
        except TimeoutError:
            return _too_late(maybe_done=False), None
        if plan.ends_at <= time.monotonic():
            return _too_late(maybe_done=False), running
        await sending()
        self.asked[plan.call.tool] += 1
        return await self._ask(plan, running, progress), running

    async def _ask(self, plan: _Plan, running: Running, progress: Progress) -> ToolResponse:
        import httpx  # noqa: PLC0415 - already loaded by the code that made the client

        left = plan.ends_at - time.monotonic()
        allowed = min(
            self._tool_timeout_s, float(plan.tool.get("timeoutS") or self._tool_timeout_s)
        )
        maybe_done = not _repeatable(plan.tool)
        try:
            async with timeout(min(left, allowed)):
                return await self._post(plan, running, progress)
        except TimeoutError:
            return (
                _too_late(maybe_done=maybe_done)
                if left < allowed
                else envelope.timed_out(allowed, maybe_done=maybe_done)
            )
        except (httpx.ConnectError, httpx.ConnectTimeout) as e:
            code = (
                ErrorCode.TIMEOUT
                if isinstance(e, httpx.ConnectTimeout)
                else ErrorCode.NETWORK_ERROR
            )
            return ToolResponse.failure(
                code, f"App {plan.app.package} cannot be reached: {envelope.clean(str(e))}"
            )
        except httpx.TransportError as e:
            message = (
                f"App {plan.app.package} broke off: {envelope.clean(str(e)) or type(e).__name__}"
            )
            return ToolResponse.failure(
                ErrorCode.NETWORK_ERROR, message, partial_side_effects=maybe_done
            )
        except (httpx.HTTPError, httpx.InvalidURL, _BadAnswer) as e:
            return ToolResponse.failure(
                ErrorCode.EXECUTION_ERROR, envelope.clean(str(e)) or type(e).__name__
            )
        except Exception:
            log.exception(
                "asking %s failed", plan.app.package
            )  # our own fault: the trace is for us, words for the caller
            message = f"Internal error executing {plan.call.tool}"
            return ToolResponse.failure(ErrorCode.INTERNAL, message, partial_side_effects=True)

    async def _post(self, plan: _Plan, running: Running, progress: Progress) -> ToolResponse:
        body = {
            "name": plan.tool["name"],
            "arguments": plan.args,
            "context": {
                "userId": plan.call.user_id,
                "timestamp": datetime.now(UTC).isoformat(),
                "activatedForTool": running.activated,
            },
        }
        headers = {"X-App-API-Key": running.api_key_hash} if running.api_key_hash else {}
        async with self._http.stream(
            "POST", f"{running.url}/tool", json=body, headers=headers, timeout=None
        ) as answer:
            streams = answer.headers.get("content-type", "").startswith(NDJSON)
            if answer.is_success and streams:
                return envelope.of_app(await _last_line(answer, progress), plan.call.tool)
            text = await _whole(answer)
            if not answer.is_success:
                return envelope.of_status(answer.status_code, text.decode(errors="replace"))
            return envelope.of_app(_parsed(text), plan.call.tool)


def _repeatable(tool: Mapping[str, Json]) -> bool:
    return tool.get("idempotent") is True or tool.get("sideEffects") in ("none", "read_only")


def _deferred(tool: Mapping[str, Json]) -> bool:
    kind, execution = tool.get("executionType"), tool.get("execution") or {}
    return kind == "space" or (
        kind == "external" and not (execution.get("url") or execution.get("webhookUrl"))
    )


def _model(tool: Mapping[str, Json]) -> str:
    """Return what a tool's execution needs besides its app; a tool that its app runs
    needs nothing.
    """
    execution = tool.get("execution")
    said = execution if isinstance(execution, dict) else {}
    if isinstance(said.get("agentConfig"), dict):
        return "a sub-agent"
    return "an image model" if said.get("provider") and said.get("model") else ""


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
            value = _parsed(bytes(line)) if line.strip() else {}
            if isinstance(value, dict) and "result" in value:
                return value["result"]
            if isinstance(value, dict) and isinstance(value.get("progress"), str):
                await progress(envelope.clean(value["progress"])[:MAX_PROGRESS])
    raise _BadAnswer("the app's answer ended without a result")


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _BadAnswer("the app answered something that is not JSON") from None


def _too_late(*, maybe_done: bool) -> ToolResponse:
    message = "The call's time was over before the tool had answered"
    return ToolResponse.failure(
        ErrorCode.DEADLINE_EXPIRED, message, partial_side_effects=maybe_done
    )
