"""Promises about contacts of files and servers."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I15-vcard": Promise(
        "Contacts are imported from vCards; one that is wrong does not stop the others.", "issue 15"
    ),
    "I15-carddav": Promise(
        "What changed in the owner's address book on a CardDAV server is read into the contacts; "
        "the server is never written to.",
        "issue 15",
    ),
    "I15-carddav-own": Promise(
        "What the wearer changed stays, and nothing that was not from the server is removed.",
        "issue 15",
    ),
}

DECLINED: Final[dict[str, str]] = {}
