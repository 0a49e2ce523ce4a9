"""What was promised when small faults were mended that showed in daily use."""

from typing import Final

from tests.promises.words import Promise

_SOURCE: Final = "issue 12, Small faults found while using it"

PROMISES: Final[dict[str, Promise]] = {
    "I12-turns-per-session": Promise(
        "A turn's budget, latency and registry are those of its own session, "
        "also where another session uses the same turn id.",
        _SOURCE,
    ),
    "I12-backlog-resend": Promise(
        "A call among hundreds is not sent again before the cloud can have read it.", "issue 12"
    ),
    "I12-sliding-rate": Promise(
        "A rate limit lets no more calls through than it says, within any window of its length.",
        _SOURCE,
    ),
    "I12-options-anywhere": Promise(
        "An option of a verb means the same wherever it stands behind that verb.", _SOURCE
    ),
    "I12-empty-lists": Promise(
        "A verb that lists exits 0 also when there is nothing to list; "
        "4 means that what was named is unknown.",
        _SOURCE,
    ),
    "I12-did-you-mean": Promise(
        "An unknown tool or argument is answered with the known one nearest to "
        "it, and with none that the caller may not use.",
        _SOURCE,
    ),
    "I12-transcripts-suppressed": Promise(
        "While transcripts are suppressed, what the wearer says is "
        "acted on, but neither published nor stored.",
        _SOURCE,
    ),
    "I12-pending-message": Promise(
        "A pending message is shown and spoken once when the session "
        "starts, over restarts and absent glasses too.",
        _SOURCE,
    ),
    "I12-suppressed-first": Promise(
        "Suppressed transcripts are suppressed before anything is served, and "
        "while the stored setting cannot be read.",
        _SOURCE,
    ),
    "I12-what-ran": Promise(
        "Within a turn, the definition that runs is the one that is reported and recorded.",
        _SOURCE,
    ),
    "I12-reused-id": Promise(
        "A call id or key of another tool's call is refused by its name.", _SOURCE
    ),
}
DECLINED: Final[dict[str, str]] = {}
