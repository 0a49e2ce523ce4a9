"""Errors between us and the glasses; the caller decides from the type whether to try again."""

from enum import StrEnum


class BridgeError(Exception):
    """Base of every error of this package; never raised itself."""


class LocalMisuse(BridgeError):
    """We tried to send something the protocol does not allow (a bug in glassd)."""


class Violation(StrEnum):
    """Why received bytes were rejected."""

    TRUNCATED = "truncated"
    OVERSIZED = "oversized"
    UNKNOWN_FRAME = "unknown_frame"
    BAD_ORDER = "bad_order"
    BAD_MESSAGE = "bad_message"
    UNSUPPORTED_VERSION = "unsupported_version"


class RemoteViolation(BridgeError):
    """The peer sent bytes that no correct peer sends. Their message is lost, not the link."""

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
    """the radio itself is gone: adapter removed, powered off, or its service stopped"""
    CLOSED = "closed"


class LinkLost(BridgeError):
    """This connection is over; a driver and a transport are used once, so make new ones."""

    def __init__(self, reason: LostReason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason


class RadioReason(StrEnum):
    """Why the radio could not do what was asked."""

    NO_ADAPTER = "no_adapter"
    POWERED_OFF = "powered_off"
    NO_SERVICE = "no_service"
    NOT_ALLOWED = "not_allowed"
    """this user may not use the radio"""
    NOT_FOUND = "not_found"
    DEAF = "deaf"
    """no advertisement from any device for long: the radio is more likely at fault than the place
    """
    BUSY = "busy"
    TIMEOUT = "timeout"
    LINK_FAILED = "link_failed"
    """the connection could not be made, or ended while it was being made"""
    STALE_CACHE = "stale_cache"
    """expected services are missing or handles are invalid: cached data is stale"""
    CONNECTED_ELSEWHERE = "connected_elsewhere"
    BOND_DOUBT = "bond_doubt"
    """a bonded link failed the way mismatched keys do; BlueZ does not report it itself"""
    BOND_LOST = "bond_lost"
    NOT_PAIRED = "not_paired"
    """the glasses require pairing and are not paired"""
    NO_AGENT = "no_agent"
    REFUSED = "refused"
    """the glasses refused to pair"""
    OTHER = "other"


class RadioError(BridgeError):
    """Scanning or connecting failed. `hint` tells the user what to do next, or is empty."""

    def __init__(self, reason: RadioReason, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.hint = hint


class CommandRefused(BridgeError):
    """The glasses refused a command they understood; `code`: one of the profile's error codes."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code


class CommandTimeout(BridgeError):
    """The glasses did not answer a command in time; whether they executed it is unknown."""
