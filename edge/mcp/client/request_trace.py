"""What becomes of one request on its way to a server, told by the transport to who sent it.

The SDK gives one error for many things; whether a request left, and what hit a limit, only the
transport knows. It finds the flight of the request it carries in a context variable, as both
transports run in their sender's context.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from edge.mcp.client.models import CallFault


@dataclass(slots=True)
class RequestTrace:
    """`sent`: the last byte was handed over, so the server may have acted. The first fault told
    is the cause.
    """

    tried: bool = False
    """There was a connection for it."""
    sent: bool = False
    fault: CallFault | None = None
    message: str = ""
    raw: dict[str, Any] | None = None
    """The result as it came."""
    status: int = 0
    """HTTP status of the answer."""
    declined: list[str] = field(default_factory=list)
    """What the server asked for meanwhile and did not get."""

    def fail(self, kind: CallFault, message: str) -> None:
        if self.fault is None:
            self.fault, self.message = kind, message


FLIGHT: ContextVar[RequestTrace | None] = ContextVar("flight", default=None)
