"""Promises about the uplink under load and with a broker that refuses. `DECLINED` is empty."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I11-uplink-backlog": Promise(
        "The uplink comes up, whatever the broker sends before SUBACK.", "issue 11, The uplink 1"
    ),
    "I11-burst": Promise(
        "What is taken waits for its turn, in order; RATE_LIMIT comes before "
        "`accepted`. What waits for an answer of somebody holds nothing up.",
        "issue 11, The uplink 3",
    ),
    "I11-too-large": Promise(
        "What is larger than the broker takes fails at once and holds nothing up.",
        "issue 11, The uplink 2",
    ),
    "I11-refused": Promise(
        "What the broker refuses for a while is tried again, with an alarm.",
        "issue 11, The uplink 4",
    ),
    "I11-one-id": Promise(
        "Two daemons with one edge id are named, and a flapping link is not taken for that.",
        "issue 11, The uplink 5",
    ),
}

DECLINED: Final[dict[str, str]] = {}
