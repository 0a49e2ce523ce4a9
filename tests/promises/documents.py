"""Promises about the documents, and about what app developers get to test with."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I11-plugin": Promise(
        "The package brings a pytest fixture: a mock of any model and a daemon that wears it.",
        "issue 11, 21",
    ),
    "I11-documents": Promise(
        "Every block of README and docs is run as it is printed, "
        "or stands in one table with the reason why not.",
        "issue 11, 21",
    ),
    "I12-control-api": Promise(
        "docs/control-api.md names every route, field, error code and event kind there "
        "is, and no other; a daemon answers its examples as shown.",
        "issue 12, Build 5",
    ),
    "I11-verbs": Promise(
        "Every verb, option and exit code that a document names exists.", "issue 11, 21"
    ),
    "I12-documents": Promise(
        "The README has at most 200 lines, every link in the documents "
        "leads to something that exists, and DECISIONS.md has an index.",
        "issue 12, 6",
    ),
    "I12-mqtt": Promise(
        "docs/mqtt.md names every topic, message, "
        "field and error code of the MQTT contract, and its examples are real.",
        "issue 12, 5",
    ),
}

DECLINED: Final[dict[str, str]] = {}
