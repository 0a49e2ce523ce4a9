"""What can go wrong between us and the glasses: our misuse, their misuse, the radio's fault, their
refusal.

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
    """The peer sent bytes that no correct peer sends. The message they belonged to is gone, the
    link may live on.
    """

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
    ADAPTER_LOST = "adapter_lost"
    """our radio went, not the glasses: removed, powered off, its service gone"""
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
    NOT_ALLOWED = "not_allowed"
    """this user may not use the radio"""
    NOT_FOUND = "not_found"
    DEAF = "deaf"
    """not one advertisement of anybody in a long time: more likely the radio's fault than an
    empty world
    """
    BUSY = "busy"
    TIMEOUT = "timeout"
    LINK_FAILED = "link_failed"
    """the connection did not come about, or ended while it was being made"""
    STALE_CACHE = "stale_cache"
    """services that should be there are not, or handles lead nowhere: what is remembered of
    them is old
    """
    CONNECTED_ELSEWHERE = "connected_elsewhere"
    BOND_DOUBT = "bond_doubt"
    """a bonded link failed the way one does whose keys differ; BlueZ does not say so itself"""
    BOND_LOST = "bond_lost"
    NOT_PAIRED = "not_paired"
    """the glasses want a pairing that there never was"""
    NO_AGENT = "no_agent"
    REFUSED = "refused"
    """the glasses refused a pairing"""
    OTHER = "other"


class RadioError(BridgeError):
    """Scanning or connecting failed. `hint` is the next thing a person can do, or empty."""

    def __init__(self, reason: RadioReason, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.hint = hint


class CommandRefused(BridgeError):
    """The glasses understood a command and said no. `code` is theirs, of the profile's closed
    list.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code


class CommandTimeout(BridgeError):
    """The glasses did not answer a command in time; whether they carried it out is unknown."""
