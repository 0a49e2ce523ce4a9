"""The child: one JSON request on stdin, one JSON answer on stdout.

Run: `python -P -m edge.tools.workers NAME`. Expected failures are raised as `ToolFailure` and
become an answer; the parent ends a child that does not finish.
"""

import importlib
import json
import os
import sys
from typing import Any, Final

from edge.runtime.stdio import claim_stdio
from tools_cache.errors import ErrorCode, ToolFailure

MAX_REQUEST: Final = 256 * 1024
PASSED: Final = ("suggestion", "retry_after_ms", "partial_side_effects", "for_wearer")
"""Fields of an error that reach the parent, besides its code and message."""


def run(name: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return what the worker answers, or the error it raised."""
    try:
        worker = importlib.import_module(f"edge.tools.workers.{name}")
        return {"answer": worker.answer(request)}
    except ToolFailure as failure:
        error = failure.error
        passed = {key: value for key in PASSED if (value := getattr(error, key))}
        return {"error": {"code": error.code.value, "message": error.message, **passed}}
    except ModuleNotFoundError as e:
        text = f"This needs {e.name}, which is not installed: pip install 'glassd[{name}]'"
        return {"error": {"code": ErrorCode.TOOL_UNAVAILABLE.value, "message": text}}


def main() -> None:
    incoming, outgoing = claim_stdio()
    with os.fdopen(incoming, "rb") as source, os.fdopen(outgoing, "wb") as sink:
        sink.write(json.dumps(run(sys.argv[1], json.loads(source.read(MAX_REQUEST)))).encode())


if __name__ == "__main__":
    main()
