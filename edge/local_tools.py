"""Runs the tools that live here: finds a handler by its folder, hands it what it may touch, judges what it gives.

Implements `LocalToolsPort`. Refuses to know who called and how an answer is rendered: a handler crashes, hangs or
babbles, and the caller still gets exactly one well-formed answer, with nothing of the handler's secrets in it.
"""

import asyncio
import copy
import importlib.util
import inspect
import itertools
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from edge.clock import Clock
from edge.core.ids import new_call_id
from edge.ports import GlassesStatus, Progress, RegistryPort
from firmware_bridge.capabilities import FLAG
from tools_cache.names import parse
from tools_cache.registry import BUILD_KEY
from tools_cache.tool import (
    Alarms,
    ErrorCode,
    Json,
    Source,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolFailure,
    ToolResponse,
    ToolStorage,
)

if TYPE_CHECKING:  # they are read at the first call that needs them
    from tools_cache.calendars import Calendars
    from tools_cache.knowledge import Knowledge

MAX_RESULT_BYTES: Final = 192 * 1024
"""A result must fit one MQTT message (256 KiB) with its envelope."""
MAX_PROGRESS: Final = 500
MAX_DEPTH: Final = 3
"""Tools that call tools that call tools: deeper is a loop (S2-134)."""
HERE: Final = frozenset({Source.LOCAL, Source.GLASSES})
_FOLDER: Final = re.compile(r"[A-Za-z0-9_-]{1,255}")
_PARTS: Final = frozenset({"data", "render", "intents"})

Call = Callable[[ToolCall], Awaitable[ToolResponse]]
Handler = Callable[[Mapping[str, Json], Any], Awaitable[Json]]
logger = logging.getLogger(__name__)


class BadHandler(Exception):
    """A handler that cannot be loaded."""


def _nothing() -> Any:
    raise ToolFailure(ToolError.of(ErrorCode.TOOL_UNAVAILABLE, "This installation has nothing to ask for that"))


@dataclass(frozen=True, slots=True)
class Lent:
    """What the house lends to the tools that ask for it. A function each: made at its first use, not before."""

    knowledge: "Callable[[], Knowledge]" = _nothing
    calendars: "Callable[[], Calendars]" = _nothing
    voice_active: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Context:
    """`tools_cache.tool.ToolContext`: made anew for each call."""

    call: ToolCall
    storage: ToolStorage
    alarms: Alarms
    _clock: Clock
    _glasses: Callable[[], GlassesStatus]
    _progress: Progress
    _call: Call | None = None
    _lent: Lent = Lent()
    _calls: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @property
    def knowledge(self) -> "Knowledge":
        return self._lent.knowledge()

    @property
    def calendars(self) -> "Calendars":
        return self._lent.calendars()

    @property
    def voice_active(self) -> bool:
        return self._lent.voice_active()

    def now(self) -> float:
        return self._clock.wall()

    def glasses(self) -> Mapping[str, Json]:
        status = self._glasses()
        known = status.capabilities
        return {
            "state": status.state, "ready": status.ready, "stale": status.stale, "model": status.model,
            "firmware": status.firmware, "battery": status.battery, "worn": status.worn,
            "can": sorted(key for hardware, key in FLAG.items() if known is not None and known.has(hardware)),
        }  # fmt: skip

    async def progress(self, text: str) -> None:
        await self._progress(text[:MAX_PROGRESS])

    async def call_tool(self, tool: str, args: Mapping[str, Json]) -> ToolResponse:
        mine, number = self.call, next(self._calls)
        if self._call is None or mine.depth >= MAX_DEPTH:
            return ToolResponse.failure(ErrorCode.UNSUPPORTED, f"{tool} is called more than {MAX_DEPTH} tools deep")
        # The key makes a second run of this call ask for the same calls, not for more of them.
        return await self._call(replace(
            mine, call_id=new_call_id(self._clock), tool=tool, args=dict(args), depth=mine.depth + 1,
            idempotency_key=f"{mine.call_id}/{number}", provider_call_id=None, ordinal=None,
        ))  # fmt: skip


class LocalTools:
    """One per daemon. `storage_for(package)` gives a package its own tables; `full` are the errors by which a storage
    says that nothing more fits, which are the caller's to know (all other errors of a handler stay in the log).
    """

    def __init__(
        self, *, registry: RegistryPort, tools: Path, storage_for: Callable[[str], ToolStorage], alarms: Alarms,
        clock: Clock, glasses: Callable[[], GlassesStatus] = GlassesStatus, full: tuple[type[Exception], ...] = (),
        lent: Lent | None = None,
    ) -> None:  # fmt: skip
        self._registry = registry
        self._tools = tools
        self._storage_for = storage_for
        self._alarms = alarms
        self._clock = clock
        self._glasses = glasses
        self._full = full
        self._lent = lent or Lent()
        self._call: Call | None = None
        self._handlers: dict[str, Handler] = {}

    def compose(self, call: Call) -> None:
        """From now on handlers may call other tools, through the whole pipeline."""
        self._call = call

    async def run(self, call: ToolCall, progress: Progress) -> ToolResponse:
        """Run one call. Never raises, but for its own cancellation."""
        entry = self._registry.snapshot().find(call.tool)
        if entry is None or entry.definition.source not in HERE:
            return ToolResponse.failure(ErrorCode.TOOL_NOT_FOUND, f"Tool {call.tool} not found")
        try:
            handler = self._handler(entry.definition)
        except BadHandler as e:
            logger.error("%s", e)  # noqa: TRY400 - BadHandler says it all
            return _internal(call.tool, side_effects=False)
        return await self._execute(handler, entry.definition, call, progress)

    async def _execute(
        self, handler: Handler, definition: ToolDefinition, call: ToolCall, progress: Progress
    ) -> ToolResponse:
        limit_s = min(definition.timeout_s, call.ttl_s)
        if limit_s <= 0:
            return ToolResponse.failure(ErrorCode.DEADLINE_EXPIRED, "The time for this call was over before it began")
        storage = self._storage_for(parse(definition.name).package)
        context = Context(call, storage, self._alarms, self._clock, self._glasses, progress, self._call, self._lent)
        deadline = asyncio.timeout(limit_s)
        try:
            async with deadline:
                result = await handler(copy.deepcopy(dict(call.args)), context)
            return _judged(call.tool, result)
        except ToolFailure as e:
            return ToolResponse(error=e.error)
        except self._full as e:
            return ToolResponse.failure(ErrorCode.TOOL_UNAVAILABLE, f"Nothing more can be kept: {e}",
                                        suggestion="Free some disk space, or delete what is no longer needed")
        except Exception as e:
            if isinstance(e, TimeoutError) and deadline.expired():
                return _too_slow(definition, limit_s)
            logger.exception("handler of %s (call %s)", call.tool, call.call_id)
            return _internal(call.tool, side_effects=True)

    # -------------------------------------------------------------- handlers

    def _handler(self, definition: ToolDefinition) -> Handler:
        """Give the tool's `execute`, loaded once. Raises `BadHandler`."""
        build = (definition.raw.get("_meta") or {}).get(BUILD_KEY) or {}
        folder = build.get("folder")
        if not isinstance(folder, str) or not _FOLDER.fullmatch(folder):
            raise BadHandler(f"tool {definition.name}: the registry names no folder for it")
        if folder not in self._handlers:
            self._handlers[folder] = _load(self._tools / folder / "handler.py", folder)
        return self._handlers[folder]


def _load(path: Path, folder: str) -> Handler:
    """Import one file by its path, under a name nothing else has. Raises `BadHandler`."""
    spec = importlib.util.spec_from_file_location(f"glassd_tool_{folder.replace('-', '_')}", path)
    if spec is None or spec.loader is None:
        raise BadHandler(f"Handler for {folder} cannot be loaded from {path.name}")
    module: ModuleType = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        raise BadHandler(f"Handler for {folder} cannot be loaded: {type(e).__name__}: {e}") from e
    execute = getattr(module, "execute", None)
    if not inspect.iscoroutinefunction(execute):
        raise BadHandler(f"Handler for {folder} doesn't export execute function")
    loaded: Handler = execute
    return loaded


# ------------------------------------------------------------------ what a handler gave → an envelope


def _judged(tool: str, result: Json) -> ToolResponse:
    """Turn `{data, render?, intents?}`, a whole envelope, or any plain JSON into a response (S2-46, S2-47)."""
    try:
        return _envelope(result)
    except (ValueError, TypeError, RecursionError) as e:
        logger.error("Invalid result structure for tool %s: %s", tool, e)  # noqa: TRY400 - the result is at fault
        return _internal(tool, side_effects=True)


def _envelope(result: Json) -> ToolResponse:
    text = json.dumps(result, allow_nan=False)
    if len(text) > MAX_RESULT_BYTES:
        raise ValueError(f"{len(text)} bytes; at most {MAX_RESULT_BYTES} fit a message")
    result = json.loads(text)  # a copy of its own, with text for keys
    if not isinstance(result, dict) or not ("ok" in result or (result.keys() & _PARTS and result.keys() <= _PARTS)):
        return ToolResponse(data=result)
    if not isinstance(result.get("intents", []), list):
        raise ValueError("intents: must be a list of objects")
    if "ok" in result:
        return _whole(result)
    return ToolResponse.from_json({"ok": True, **result})


def _whole(result: dict[str, Json]) -> ToolResponse:
    """Take an envelope the handler made itself; a retryable that is there must be true or false."""
    error = result.get("error")
    if isinstance(error, dict) and not isinstance(error.get("retryable", False), bool):
        raise ValueError("error.retryable: must be true or false")
    return ToolResponse.from_json(result)


def _internal(tool: str, *, side_effects: bool) -> ToolResponse:
    return ToolResponse.failure(
        ErrorCode.HANDLER_ERROR, f"Internal error executing {tool}", partial_side_effects=side_effects,
        suggestion="glassd doctor, or the daemon's log")  # fmt: skip


def _too_slow(definition: ToolDefinition, limit_s: float) -> ToolResponse:
    return ToolResponse.failure(
        ErrorCode.TIMEOUT, f"Tool execution timeout after {round(limit_s * 1000)}ms",
        partial_side_effects=not definition.read_only)  # fmt: skip
