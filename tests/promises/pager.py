"""Promises about pagers: short messages between two wearers."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S4-43": Promise(
        "A page lives a day and has 300 characters at most; a longer text is condensed, unless "
        "configured.",
        "seed S4-43",
    ),
    "S4-44": Promise("Pagers are PAGER-XXXX, messages MSG-XXXXXXXX.", "seed S4-44"),
    "S4-45": Promise(
        "A page has priority 0 (the inbox alone), 1 or 2 (urgent); any other is refused.",
        "seed S4-45",
    ),
    "S4-46": Promise(
        "A page is removed when its time is over, and does not come again.", "seed S4-46"
    ),
    "S4-47": Promise(
        "A page that is too long is condensed by the owner's tool, else cut with a sign; the "
        "original is kept.",
        "seed S4-47",
    ),
    "S4-48": Promise(
        "The first key of a sender is trusted; pages with another are flagged until the wearer "
        "accepts its fingerprint, and a revoked sender is refused.",
        "seed S4-48",
    ),
    "S4-49": Promise(
        "A page is signed with the device's secret; one flipped bit is rejected.", "seed S4-49"
    ),
    "S4-50": Promise("A fingerprint is the SHA-256 of the public key.", "seed S4-50"),
    "S4-51": Promise(
        "A page can carry a place; one that is not on earth is refused.", "seed S4-51"
    ),
    "S4-52": Promise("A deactivated pager sends and takes nothing any more.", "seed S4-52"),
    "I15-pager-door": Promise(
        "Of the pager the cloud may deliver a message, or report that one was not delivered, and "
        "nothing else, and nobody else may.",
        "issue 15",
    ),
    "I15-pager-told": Promise(
        "The wearer reads in one sentence, once, that a page which waited or was taken by the "
        "relay was not delivered, and the list of sent pages says it.",
        "issue 15",
    ),
    "I15-pager-relay": Promise(
        "A page made or sent to while a device is away arrives once when it is back; a restart of "
        "either side loses none.",
        "issue 15",
    ),
}

DECLINED: Final[dict[str, str]] = {
    "S4-53": "There is no federation: the only door is pager:deliver, bounded and write-only.",
}
