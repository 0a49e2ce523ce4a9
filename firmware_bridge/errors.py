"""What can go wrong between us and the glasses: our misuse, their misuse, the radio's fault, their refusal.

Refuses to know what a caller does about it; retryable is decided above, from these types.
"""

from enum import StrEnum


class BridgeError(Exception):
    """Base of every error of this package; never raised itself."""


class LocalMisuse(BridgeError):
    """We tried to say something the protocol does not allow (a bug of ours)."""


class Violation(StrEnum):
    """Why the peer's bytes were refused."""

    TRUNCATED = "truncated"
    OVERSIZED = "oversized"
    UNKNOWN_FRAME = "unknown_frame"
    BAD_ORDER = "bad_order"
    BAD_MESSAGE = "bad_message"
    UNSUPPORTED_VERSION = "unsupported_version"


class RemoteViolation(BridgeError):
    """The peer sent bytes that no correct peer sends. The message they belonged to is gone, the link may live on."""

    def __init__(self, reason: Violation, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class LostReason(StrEnum):
    """Why a connection ended."""

    DISCONNECTED = "disconnected"
    SILENT = "silent"
    WRITE_FAILED = "write_failed"
    PROTOCOL = "protocol"
    CLOSED = "closed"


class LinkLost(BridgeError):
    """This connection is over; a driver and a transport are used once, so make new ones."""

    def __init__(self, reason: LostReason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason


class RadioReason(StrEnum):
    """Why the radio itself could not serve."""

    NO_ADAPTER = "no_adapter"
    POWERED_OFF = "powered_off"
    NO_SERVICE = "no_service"
    NOT_FOUND = "not_found"
    BUSY = "busy"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    OTHER = "other"


class RadioError(BridgeError):
    """Scanning or connecting failed. `hint` is the next thing a person can do, or empty."""

    def __init__(self, reason: RadioReason, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.hint = hint


class CommandRefused(BridgeError):
    """The glasses understood a command and said no. `code` is theirs, of the profile's closed list."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code


class CommandTimeout(BridgeError):
    """The glasses did not answer a command in time; whether they carried it out is unknown."""
