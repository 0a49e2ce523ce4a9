"""What became of one request, reported by the transport to the sender.

The SDK raises one error for many causes; only the transport knows whether a request was sent and
which limit it hit. It finds the trace in a context variable: both transports run in the context of
the sender.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from edge.mcp.client.models import CallFault


@dataclass(slots=True)
class RequestTrace:
    """`sent`: the last byte was written, so the server may have acted. The first fault is kept."""

    tried: bool = False
    """Whether there was a connection for it."""
    sent: bool = False
    fault: CallFault | None = None
    message: str = ""
    raw: dict[str, Any] | None = None
    """The result as it came."""
    status: int = 0
    """HTTP status of the answer."""

    def fail(self, kind: CallFault, message: str) -> None:
        if self.fault is None:
            self.fault, self.message = kind, message


TRACE: ContextVar[RequestTrace | None] = ContextVar("trace", default=None)
