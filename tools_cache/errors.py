"""Errors in names, definitions and registry documents, and why a call failed (`ToolError`)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from tools_cache.api.handed import Json


class ToolsError(Exception):
    """Base of every error of this package; never raised itself."""


class BadToolName(ToolsError):
    """A name that is not `package:tool`."""


class BadDefinition(ToolsError):
    """One tool (or app) that is rejected; the others are not affected."""


class BadManifest(ToolsError):
    """A rejected registry document: not JSON, wrong hash, wrong version, too large."""


class MissingForm(ToolsError):
    """A tool that has no form for one model provider; the message names both."""


# ------------------------------------------------------------------ why a call fails


class ErrorType(StrEnum):
    """What the caller can do about an error; exactly these 14 exist."""

    VALIDATION = "VALIDATION"
    NOT_FOUND = "NOT_FOUND"
    MODE_RESTRICTED = "MODE_RESTRICTED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED"
    CONFIRMATION_EXPIRED = "CONFIRMATION_EXPIRED"
    SESSION_INACTIVE = "SESSION_INACTIVE"
    SESSION_ACTIVE = "SESSION_ACTIVE"
    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    RATE_LIMIT = "RATE_LIMIT"
    AUTH = "AUTH"
    CONFLICT = "CONFLICT"
    INTERNAL = "INTERNAL"


class ErrorCode(StrEnum):
    """The precise reason of an error; each code belongs to one type."""

    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_TOOL_NAME = "INVALID_TOOL_NAME"
    INVALID_ARGUMENTS = "INVALID_ARGUMENTS"
    TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
    HARDWARE_MISSING = "HARDWARE_MISSING"
    USER_DISABLED = "USER_DISABLED"
    TOOL_UNAVAILABLE = "TOOL_UNAVAILABLE"
    UNSUPPORTED = "UNSUPPORTED"
    APP_NOT_AVAILABLE = "APP_NOT_AVAILABLE"
    DENIED = "DENIED"
    CANCELLED = "CANCELLED"
    OFFLINE = "OFFLINE"
    NOT_ACCEPTED = "NOT_ACCEPTED"
    TIMEOUT = "TIMEOUT"
    NETWORK_ERROR = "NETWORK_ERROR"
    APP_ACTIVATION_TIMEOUT = "APP_ACTIVATION_TIMEOUT"
    DEADLINE_EXPIRED = "DEADLINE_EXPIRED"
    INTERRUPTED = "INTERRUPTED"
    STORAGE_UNAVAILABLE = "STORAGE_UNAVAILABLE"
    EXPIRED = "EXPIRED"
    USED = "USED"
    MISMATCH = "MISMATCH"
    MODE_RESTRICTED = "MODE_RESTRICTED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED"
    SESSION_INACTIVE = "SESSION_INACTIVE"
    SESSION_ACTIVE = "SESSION_ACTIVE"
    RATE_LIMIT = "RATE_LIMIT"
    AUTH = "AUTH"
    CONFLICT = "CONFLICT"
    INTERNAL = "INTERNAL"
    HTTP_ERROR = "HTTP_ERROR"
    EXECUTION_ERROR = "EXECUTION_ERROR"
    HANDLER_ERROR = "HANDLER_ERROR"


_TYPE_OF: Final[Mapping[ErrorCode, ErrorType]] = {
    ErrorCode.INVALID_REQUEST: ErrorType.VALIDATION,
    ErrorCode.INVALID_TOOL_NAME: ErrorType.VALIDATION,
    ErrorCode.INVALID_ARGUMENTS: ErrorType.VALIDATION,
    ErrorCode.TOOL_NOT_FOUND: ErrorType.NOT_FOUND,
    ErrorCode.HARDWARE_MISSING: ErrorType.PERMANENT,
    ErrorCode.USER_DISABLED: ErrorType.PERMANENT,
    ErrorCode.TOOL_UNAVAILABLE: ErrorType.PERMANENT,
    ErrorCode.UNSUPPORTED: ErrorType.PERMANENT,
    ErrorCode.APP_NOT_AVAILABLE: ErrorType.PERMANENT,
    ErrorCode.DENIED: ErrorType.PERMANENT,
    ErrorCode.CANCELLED: ErrorType.PERMANENT,
    ErrorCode.OFFLINE: ErrorType.TRANSIENT,
    ErrorCode.NOT_ACCEPTED: ErrorType.TRANSIENT,
    ErrorCode.TIMEOUT: ErrorType.TRANSIENT,
    ErrorCode.NETWORK_ERROR: ErrorType.TRANSIENT,
    ErrorCode.APP_ACTIVATION_TIMEOUT: ErrorType.TRANSIENT,
    ErrorCode.DEADLINE_EXPIRED: ErrorType.TRANSIENT,
    ErrorCode.INTERRUPTED: ErrorType.TRANSIENT,
    ErrorCode.STORAGE_UNAVAILABLE: ErrorType.TRANSIENT,
    ErrorCode.EXPIRED: ErrorType.CONFIRMATION_EXPIRED,
    ErrorCode.USED: ErrorType.CONFIRMATION_EXPIRED,
    ErrorCode.MISMATCH: ErrorType.CONFIRMATION_EXPIRED,
    ErrorCode.HTTP_ERROR: ErrorType.PERMANENT,
    ErrorCode.EXECUTION_ERROR: ErrorType.INTERNAL,
    ErrorCode.HANDLER_ERROR: ErrorType.INTERNAL,
}
RETRYABLE: Final = frozenset({ErrorType.TRANSIENT, ErrorType.RATE_LIMIT})
"""Types that are retryable unless said otherwise."""


def type_of(code: ErrorCode) -> ErrorType:
    """Return the type of a code; codes named like a type are that type."""
    return _TYPE_OF.get(code) or ErrorType(code.value)


class ToolError(Struct, frozen=True, kw_only=True):
    """Why a call failed: `message` for people, `code` for programs, `suggestion` as next step.

    `for_wearer`: a sentence for the lens and the voice, where the code's own would say less; it is
    no part of the answer to a caller.
    """

    code: ErrorCode
    message: str
    type: ErrorType
    retryable: bool
    suggestion: str | None = None
    details: Json = None
    confirmation_request: Mapping[str, Json] | None = None
    retry_after_ms: int | None = None
    partial_side_effects: bool = False
    idempotency_required: bool = False
    for_wearer: str = ""

    @classmethod
    def of(cls, code: ErrorCode, message: str, **extra: Any) -> "ToolError":
        """Return an error with this code; type and retryability follow from it unless given."""
        kind = extra.pop("type", None) or type_of(code)
        retryable = extra.pop("retryable", kind in RETRYABLE)
        return cls(code=code, message=message, type=kind, retryable=retryable, **extra)


class ToolFailure(Exception):
    """Raised by a handler to fail with a specific error."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error

    @classmethod
    def of(cls, code: ErrorCode, message: str, **extra: Any) -> "ToolFailure":
        """Return a failure with the error that `ToolError.of` makes of the same arguments."""
        return cls(ToolError.of(code, message, **extra))
