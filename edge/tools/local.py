"""Runs local tools: loads the handler, gives it its services, checks what it returns.

If a handler crashes, hangs or returns nonsense, the caller still gets exactly one valid answer,
without the handler's secrets.
"""

import copy
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from edge.core.disk_faults import is_disk_fault
from edge.ports import Progress
from edge.storage.sqlite.errors import StorageUnavailable
from edge.tools.handler_results import (
    disk_unavailable,
    internal,
    nothing_fits,
    to_response,
    too_slow,
)
from edge.tools.handlers import BadHandler, Handlers, Runner
from edge.tools.services import Services
from firmware_bridge.deadlines import timeout
from tools_cache.api.handed import Json
from tools_cache.api.tool import (
    ErrorCode,
    Named,
    Source,
    ToolCall,
    ToolDefinition,
    ToolFailure,
    ToolResponse,
)

HERE: Final = frozenset({Source.LOCAL, Source.GLASSES})

NAMING_S: Final = 3.0
"""The wearer waits for the question; what takes longer is asked about as it was given."""
logger = logging.getLogger(__name__)


class LocalTools:
    """One per daemon. `full` are the errors of a full storage, which the caller may know; all
    other errors of a handler are only logged.
    """

    def __init__(
        self,
        *,
        tools: Path,
        services: Services,
        full: tuple[type[Exception], ...] = (),
    ) -> None:
        self._full = full
        self._handlers = Handlers(tools)
        self._services = services

    def configure(self, configs: Mapping[str, Mapping[str, Json]]) -> None:
        """Use these settings of tools from the next call on."""
        self._services = replace(self._services, configs=configs)

    def unload(self, definition: ToolDefinition) -> None:
        """Drop a tool's code until its next call; running calls continue. Raises `BadHandler`."""
        self._handlers.unload(definition)

    def forget(self, definition: ToolDefinition) -> None:
        """Drop the code of any tool, if it is a local one."""
        if definition.source in HERE:
            with suppress(BadHandler):  # it names no folder, so nothing of it was loaded
                self.unload(definition)

    async def run(
        self, call: ToolCall, definition: ToolDefinition, progress: Progress
    ) -> ToolResponse:
        """See `RunTool`."""
        try:
            runner = self._handlers.find(definition)
        except BadHandler as e:
            logger.error("%s", e)  # noqa: TRY400 - BadHandler says it all
            return internal(call.tool, side_effects=False)
        return await self._execute(runner, definition, call, progress)

    async def take_late_answer(
        self, definition: ToolDefinition, call: ToolCall, answer: ToolResponse
    ) -> None:
        """See `TakeLateAnswer`. The handler's `ctx.call` is the call it made, under its own name; a
        fault of the handler is logged, and the answer is not given again.
        """
        if definition.source not in HERE:
            return
        try:
            take = self._handlers.find_late_taker(definition)
            if take is None:
                return
            from edge.tools.context import Context  # noqa: PLC0415 - an idle daemon needs none

            context = Context(replace(call, tool=definition.name), self._services, _drop)
            async with timeout(definition.timeout_s):
                await take(answer, context)
        except StorageUnavailable:
            raise
        except self._full as e:
            raise StorageUnavailable(str(e)) from e
        except Exception as e:
            if is_disk_fault(e):
                raise StorageUnavailable(str(e)) from e
            logger.exception("%s cannot take a late answer of %s", definition.name, call.tool)

    async def name_arguments(
        self, definition: ToolDefinition, call: ToolCall
    ) -> Mapping[str, Named]:
        """See `NameArguments`. Of a tool that fails, nothing is named."""
        if definition.source not in HERE:
            return {}
        try:
            if (name := self._handlers.find_namer(definition)) is None:
                return {}
            from edge.tools.context import Context  # noqa: PLC0415 - an idle daemon needs none

            context = Context(call, self._services, _drop)
            async with timeout(NAMING_S):
                return await name(copy.deepcopy(dict(call.args)), context)
        except ToolFailure:
            raise
        except Exception:
            logger.exception("%s cannot name its arguments", definition.name)
            return {}

    async def _execute(
        self, runner: Runner, definition: ToolDefinition, call: ToolCall, progress: Progress
    ) -> ToolResponse:
        limit_s = min(definition.timeout_s, call.ttl_s)
        if limit_s <= 0:
            return ToolResponse.failure(
                ErrorCode.DEADLINE_EXPIRED, "The time for this call was over before it began"
            )
        from edge.tools.context import Context  # noqa: PLC0415 - an idle daemon needs none

        context = Context(call, self._services, progress)
        try:
            async with timeout(limit_s) as deadline:
                result = await runner(copy.deepcopy(dict(call.args)), context)
            return to_response(call.tool, result)
        except ToolFailure as e:
            return ToolResponse(error=e.error)
        except StorageUnavailable as e:
            return disk_unavailable(e, side_effects=False)
        except self._full as e:
            return nothing_fits(e)
        except Exception as e:
            if is_disk_fault(e):
                return disk_unavailable(e.strerror, side_effects=not definition.read_only)
            if isinstance(e, TimeoutError) and deadline.expired():
                return too_slow(definition, limit_s)
            logger.exception("handler of %s (call %s)", call.tool, call.call_id)
            return internal(call.tool, side_effects=True)


async def _drop(_text: str) -> None:
    """Take progress that nobody sees."""
