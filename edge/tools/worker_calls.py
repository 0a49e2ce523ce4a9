"""Runs the network part of a shipped tool in a child process, which is ended when it takes too
long. Libraries for HTTP, mail or devices never stay in the daemon's memory.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

from firmware_bridge.deadlines import timeout
from tools_cache import subprocess_call
from tools_cache.api.handed import Json
from tools_cache.errors import ErrorCode, ToolFailure

MAX_REQUEST: Final = 256 * 1024
MAX_ANSWER: Final = 4 * 1024 * 1024
MOST_AT_ONCE: Final = 2
"""Children at a time: each has a Python of its own (20 to 40 MiB)."""
PACKAGE: Final = "edge.tools.workers"
_log = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class WorkerCalls:
    """Implements `tools_cache.api.services.Workers`."""

    _: KW_ONLY
    package: str = PACKAGE
    _turns: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MOST_AT_ONCE), init=False
    )

    async def ask(
        self,
        worker: str,
        request: Mapping[str, Json],
        *,
        deadline_s: float,
        writes: bool = False,
    ) -> dict[str, Any]:
        """See `Workers`."""
        question = json.dumps(request).encode()
        if len(question) > MAX_REQUEST:
            raise ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, "That is more than 256 KiB")
        # -P: a module in the working directory cannot replace a library.
        command = (sys.executable, "-P", "-m", self.package, worker)
        started = False
        try:
            async with timeout(deadline_s), self._turns:
                started = True
                raw, _code = await subprocess_call.run(
                    command, question=question, limit_s=deadline_s, max_bytes=MAX_ANSWER
                )
            answer = json.loads(raw)
        except TimeoutError:
            text = f"This took longer than {deadline_s:.0f} s"
            raise ToolFailure.of(
                ErrorCode.NETWORK_ERROR, text, partial_side_effects=writes and started
            ) from None
        except OSError as e:
            raise ToolFailure.of(
                ErrorCode.TOOL_UNAVAILABLE, f"No process could be started: {e.strerror}"
            ) from None
        except ValueError:
            _log.warning("the process of %s ended without an answer", worker)
            raise ToolFailure.of(
                ErrorCode.EXECUTION_ERROR,
                "The process for this ended without an answer",
                partial_side_effects=writes,
            ) from None
        if "error" in answer:
            error = answer["error"]
            code = ErrorCode(error.pop("code"))
            raise ToolFailure.of(code, error.pop("message"), **error)
        found: dict[str, Any] = answer["answer"]
        return found
