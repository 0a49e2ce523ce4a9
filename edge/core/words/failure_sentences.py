"""A failure as one or two short sentences for the wearer.

Messages of errors are for programs and logs: of those only what reads like a sentence for people
goes on the lens, and no advice that needs a terminal ever does.
"""

import math
import re
from collections.abc import Mapping
from typing import Final

from edge.core.tools import missing_hardware
from edge.core.words.data_text import label
from tools_cache.api.tool import ErrorCode, ErrorType, Json, ToolError

MAX_MESSAGE: Final = 160
"""Characters of a message that is shown; a longer one is a report, no sentence."""
_PERHAPS: Final = "It may have been done."
_OF_CODE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.TOOL_NOT_FOUND: "Sorry, I don't know that one.",
    ErrorCode.INVALID_TOOL_NAME: "Sorry, I don't know that one.",
    ErrorCode.OFFLINE: "No internet. {name} needs it.",
    ErrorCode.NOT_ACCEPTED: "{name} did not answer. Try again in a moment.",
    ErrorCode.NETWORK_ERROR: "{name} is not answering.",
    ErrorCode.APP_ACTIVATION_TIMEOUT: "{name} is not answering.",
    ErrorCode.TIMEOUT: "{name} took too long.",
    ErrorCode.DEADLINE_EXPIRED: "{name} took too long.",
    ErrorCode.EXPIRED: "No answer, so nothing was done.",
    ErrorCode.USED: "That was answered already.",
    ErrorCode.MISMATCH: "It changed after you were asked, so nothing was done.",
    ErrorCode.CANCELLED: "Cancelled.",
    ErrorCode.INTERRUPTED: "Interrupted. Try again in a moment.",
    ErrorCode.STORAGE_UNAVAILABLE: "Nothing can be saved right now.",
    ErrorCode.USER_DISABLED: "{name} is switched off.",
    ErrorCode.APP_NOT_AVAILABLE: "{name} is not available.",
    ErrorCode.MODE_RESTRICTED: "{name} does not work by voice.",
    ErrorCode.BUDGET_EXCEEDED: "That was a lot at once. Ask again.",
    ErrorCode.CONFIRMATION_REQUIRED: "{name} needs your yes.",
    ErrorCode.SESSION_INACTIVE: "The glasses are away.",
    ErrorCode.AUTH: "{name} wants you to sign in again.",
}
"""Codes whose sentence does not depend on the message."""
_DENIED: Final = "That is not allowed."
_PROBLEM: Final = "{name} had a problem."
_MISUNDERSTOOD: Final = "{name} did not understand that."

_PREFIX: Final = re.compile(r"^(?:invalid parameters: )?(?:/[\w/.-]+:? )?", re.IGNORECASE)
_SCHEMA: Final = re.compile(
    r"\broot\b|\bproperty\b|is not (?:of type|one of|valid)|does not match|\bschema\b"
)
_REQUIRED: Final = re.compile(r'"(\w{1,40})" is (?:a )?required')
_AWAY: Final = re.compile(
    r"ConnectionPool|max retries|connection (?:refused|reset|aborted|closed|error)|timed? ?out"
    r"|ECONN\w+|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN|name or service not known"
    r"|name resolution|network is unreachable|no route to host|bad gateway|service unavailable"
    r"|gateway time-?out|getaddrinfo|fetch failed|socket hang up",
    re.IGNORECASE,
)
"""What programs say when a service cannot be reached."""
_INSIDE: Final = re.compile(
    r"""
    [A-Za-z](?:Error|Exception|Warning)\b | \bTraceback\b | \berrno\b | \bE[A-Z]{5,}\b
    | [{}\[\]<>`|\\=;$] | :: | :// | 0x[0-9a-f]{2} | \w\(
    | (?:^|\s)[~.]?/[\w.-]+/ | \b[A-Za-z]:\\
    | \b\w+_\w+\b | \b\w+\.\w+[.:]\w+ | \b\w+:\w*[a-z]\w*\b
    | \b(?:glassd|pip|sudo|npm|npx|systemctl|apt|curl|chmod)\b | (?:^|\s)--?[a-z]
    | \b(?:null|None|undefined|NaN|stderr|stdout|exit\ code|status\ code)\b
    | \b(?:HTTP|status|code)[ ]?\d{3}\b | \bline\ \d | ^['"]
    """,
    re.VERBOSE,
)
"""What no person would write in a sentence to another."""


def sentence(error: ToolError, name: str) -> str:
    """Return the sentence about a failure for the wearer. `name`: its app or tool, in words."""
    if not error.partial_side_effects or error.type is ErrorType.CONFIRMATION_EXPIRED:
        return _main_sentence(error, _name(name))
    if error.code is ErrorCode.INTERRUPTED and not error.for_wearer:
        return f"Interrupted. {_PERHAPS}"  # no advice to try what may have been done again
    return f"{_main_sentence(error, _name(name))} {_PERHAPS}"


def _main_sentence(error: ToolError, name: str) -> str:
    if error.for_wearer:
        return " ".join(error.for_wearer.split())[:MAX_MESSAGE]
    match error.code:
        case ErrorCode.HARDWARE_MISSING:
            return _without(error.details)
        case ErrorCode.RATE_LIMIT:
            return _too_often(error.retry_after_ms)
        case ErrorCode.DENIED:
            return _literal(error.message) or _DENIED
        case ErrorCode.INVALID_ARGUMENTS | ErrorCode.INVALID_REQUEST:
            message = _PREFIX.sub("", error.message, count=1)
            if missing := dict.fromkeys(_REQUIRED.findall(message)):
                return f"{name} needs to know: {', '.join(map(label, missing))}."
            foreign = _SCHEMA.search(message) is not None
            return (not foreign and _literal(message)) or _MISUNDERSTOOD.format(name=name)
        case code if code in _OF_CODE:
            return _OF_CODE[code].format(name=name)
    if _AWAY.search(error.message):
        return _OF_CODE[ErrorCode.NETWORK_ERROR].format(name=name)
    return _literal(error.message) or _PROBLEM.format(name=name)


def _literal(message: str) -> str:
    """Return a message as a sentence, "" if it is not for people."""
    text = " ".join(message.split())
    if not for_people(text):
        return ""
    return text[:1].upper() + text[1:] + ("" if text[-1:] in ".!?…" else ".")


def for_people(text: str) -> bool:
    """Return whether a text reads like a sentence, and not like a program's report."""
    words = text.split()
    return (
        len(text) <= MAX_MESSAGE
        and (len(words) >= 3 or not text.isascii())
        and any(ch.isalpha() for ch in text)
        and _INSIDE.search(text) is None
    )


def _without(details: Json) -> str:
    missing = details.get("missing") if isinstance(details, Mapping) else None
    if not isinstance(missing, list) or not missing:
        return "These glasses cannot do that."
    kinds = [str(each) for each in missing]
    if any(kind not in missing_hardware.KNOWN for kind in kinds):
        return "These glasses cannot do that."
    without = (missing_hardware.word(kind).removeprefix("a ") for kind in kinds)
    return f"These glasses have no {missing_hardware.joined(without)}."


def _too_often(retry_after_ms: int | None) -> str:
    if retry_after_ms is None:
        return "Too often. Try again in a moment."
    seconds = max(1, math.ceil(retry_after_ms / 1000))
    wait = f"{seconds} s" if seconds < 90 else f"{math.ceil(seconds / 60)} min"
    return f"Too often. Try again in {wait}."


def _name(name: str) -> str:
    name = " ".join(name.split())[:60] or "It"
    return name[:1].upper() + name[1:]
