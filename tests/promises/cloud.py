"""Promises about the registry and executor of the small cloud. `DECLINED` holds rows that do
not apply to an edge, each with its reason.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I5-cloud-keys": Promise(
        "An app's key is told once, kept as its hash, "
        "and from then on nobody else changes the app.",
        "issue 5, Devcloud; S0-56",
    ),
    "I5-cloud-one-app": Promise(
        "Workers share one process of a mini-app, and start another when its worker died.",
        "issue 5, Devcloud; S0-18",
    ),
    "I5-cloud-sdk": Promise(
        "The guide's mini-app of ten lines runs as it is printed.", "issue 5, Devcloud"
    ),
    "I5-cloud-sessions": Promise(
        "A user has a session and apps of one's own; both outlive a restart.",
        "issue 5, Devcloud; S0-27",
    ),
    "I5-cloud-workers": Promise(
        "Of two workers on one broker one is killed mid call: exactly one answer comes.",
        "issue 5, Devcloud; C-43",
    ),
    "S0-17": Promise(
        "A call starts its app if that does not run, once, and tells it so.",
        "seed S0-17, S0-18, S0-19",
    ),
    "S0-20": Promise(
        "A started app has 10 s to connect and is looked for every 200 ms.", "seed S0-20, C-40"
    ),
    "S0-21": Promise(
        "An app that cannot be started is told with its own last words, and not as worth a retry.",
        "seed S0-21",
    ),
    "S0-22": Promise(
        "An app that does not connect in time is never asked, and the call is worth a retry.",
        "seed S0-22, C-11",
    ),
    "S0-23": Promise(
        "An app stays as it is whatever its call came to; one that never connected is left alone.",
        "seed S0-23, S0-24, S0-25",
    ),
    "S0-28": Promise(
        "GET /api/tools gives the tools whose hardware the user's glasses have.", "seed S0-28"
    ),
    "S0-29": Promise("POST /api/tools/execute takes a name and, at will, arguments.", "seed S0-29"),
    "S0-31": Promise(
        "The seed's route answers 200, 404 for an unknown tool, 400 for wrong arguments, else 500.",
        "seed S0-31, C-12",
    ),
    "S0-34": Promise(
        "What a developer hands in is checked field by field, stored, "
        "and survives; the daemon has no such endpoint.",
        "seed S0-34",
    ),
    "S0-39": Promise(
        "An app is told its tool's local name, the arguments, the user, "
        "the time and whether it was started for this.",
        "seed S0-39, S0-55",
    ),
    "S0-40": Promise(
        "What an app answers in the seed's shape becomes the one "
        "envelope, and goes out in the seed's shape again.",
        "seed S0-40",
    ),
    "S0-48": Promise(
        "Wrong arguments are told by their first fault, and all of them in the details.",
        "seed S0-48",
    ),
    "S0-49": Promise("A tool without a route is said before anything is started.", "seed S0-49"),
    "S0-56": Promise(
        "An app's hashed key goes along with each call and is in no log.", "seed S0-56"
    ),
    "S0-57": Promise(
        "A tool has 30 s; one that takes longer is a timeout worth "
        "a retry, unless it may have written.",
        "seed S0-57, C-40",
    ),
    "S0-58": Promise(
        "An app's HTTP error keeps its status and text; from 500 on it is worth a retry.",
        "seed S0-58",
    ),
    "S0-59": Promise(
        "Errors are told apart as timeout, network or execution, "
        "by their kind or else by their words.",
        "seed S0-59",
    ),
    "S0-62": Promise("A mini-app answers 404 for a tool it has not.", "seed S0-62"),
    "S0-63": Promise("A mini-app that breaks answers 500 with the message.", "seed S0-63"),
    "S0-64": Promise(
        "A mini-app gives its definitions out in the order they were registered.", "seed S0-64"
    ),
    "S0-67": Promise("The removed endpoints are 404.", "seed S0-67"),
    "S3-15": Promise(
        "A tool that needs a sub-agent or an image model is run by its app, or is unsupported.",
        "seed S3-15, S3-16",
    ),
    "S0-68": Promise(
        "With the compatibility flag the removed endpoints serve old clients in their old shapes.",
        "seed S0-68",
    ),
    "CLOUD-strangers": Promise(
        "A page of another site, or another name of this machine, changes nothing in the devcloud.",
        "issue 11.14",
    ),
    "CLOUD-app-address": Promise(
        "No app of the devcloud lives at a link-local or metadata address.", "issue 11.14"
    ),
    "CLOUD-hang-up": Promise(
        "A client that hangs up is no traceback; one that only ended its side gets its answer.",
        "issue 11.14",
    ),
}

DECLINED: Final[dict[str, str]] = {
    "S0-65": (
        "The assistant's loop (final transcripts, history) is not in the "
        "daemon nor in the cloud: both only list and execute."
    ),
}
