"""`GET /v1/metrics`: the daemon's metrics as OpenMetrics text, if metrics are enabled and the
library for the text is installed.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from edge.control.http import Reply, RequestRefused

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
Exposition = Callable[[], Awaitable[str]]
"""Writes OpenMetrics text; ModuleNotFoundError when the library for that is not installed."""


async def counted(exposition: Exposition | None) -> Reply:
    """Reply with the text. Raises `RequestRefused`: 501 where there is none."""
    if exposition is None:
        raise RequestRefused(
            501,
            "UNSUPPORTED",
            "this daemon keeps no metrics",
            "see its state instead: glassd status --json",
        )
    try:
        text = await exposition()
    except ModuleNotFoundError as e:
        fix = "pip install 'glassd[metrics]', then start glassd again; or read glassd status --json"
        raise RequestRefused(
            501, "UNSUPPORTED", f"OpenMetrics text needs prometheus-client: {e}", fix
        ) from None
    return Reply(200, text, content_type=CONTENT_TYPE)
