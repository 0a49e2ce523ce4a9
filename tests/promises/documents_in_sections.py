"""Promises about documents in sections."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I15-package-settings": Promise(
        "A setting of a package counts for all its tools that have such a key, and a tool that is "
        "off says how to switch it on.",
        "issue 15",
    ),
    "I15-documents": Promise(
        "A document is created, listed, read, changed, searched and removed section by section.",
        "issue 15",
    ),
    "I15-documents-known": Promise(
        "A search of the knowledge base finds sections of the caller's documents, where the caller "
        "may search those.",
        "issue 15",
    ),
    "I15-documents-private": Promise(
        "Documents in sections are encrypted on disk, and no other user sees them.", "issue 15"
    ),
    "I15-documents-versions": Promise(
        "Each change of a document keeps the version before; the last 20 can be restored.",
        "issue 15",
    ),
}

DECLINED: Final[dict[str, str]] = {}
