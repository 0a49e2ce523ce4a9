"""Promises of the lens as one stage for many."""

from typing import Final

from tests.promises.words import Promise

_SOURCE: Final = "issue 13, The lens as one stage for many"
_CONSENT: Final = "issue 13, Consent in plain words"

PROMISES: Final[dict[str, Promise]] = {
    "I13-equals-wait": Promise(
        "A page stays for 1.5 s, or until a tap, before one of equal priority replaces it; what "
        "waits is queued and hears its place.",
        _SOURCE,
    ),
    "I13-cut-is-superseded": Promise(
        "A page that was cut before 1.5 s ends superseded, never shown.", _SOURCE
    ),
    "I13-agent-learns-superseded": Promise(
        "An unchanged MCP client that reads structured content alone learns that its text was "
        "superseded, and why.",
        "issue 13, Show 5",
    ),
    "I13-under": Promise(
        "When a short page ends, the longer one under it returns with its remaining time.", _SOURCE
    ),
    "I13-mark": Promise(
        "The working mark appears within 1 s, also over a page that is being read, whose text "
        "stays; it never replaces a tool's own progress.",
        _SOURCE,
    ),
    "I13-silent-text": Promise("Text that is not spoken does not cut speech.", _SOURCE),
    "I13-on-tap": Promise(
        "Pages for those who want more are reached by a tap on the last page, never by time.",
        _SOURCE,
    ),
    "I13-offer": Promise(
        "A result may offer something for a tap, which counts for a limited time and not at once.",
        _CONSENT,
    ),
    "I13-after-the-tap": Promise(
        "After a yes the lens says so until the result, never the page from before; after a no one "
        "short line.",
        _CONSENT,
    ),
    "I13-questions-once": Promise(
        "A question is drawn once, unless its page was hidden or closed.", _CONSENT
    ),
}

DECLINED: Final[dict[str, str]] = {}
