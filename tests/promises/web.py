"""Promises about the web."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I15-web-search": Promise(
        "The web is searched with the owner's service; without a network the last known answer is "
        "given with its age.",
        "issue 15",
    ),
    "I15-web-fetch": Promise(
        "A page of the web is given as readable text, in parts, without characters that are not "
        "seen.",
        "issue 15",
    ),
    "I15-web-request": Promise(
        "An HTTP request is sent after the wearer confirmed it, with a method that the owner "
        "allows.",
        "issue 15",
    ),
    "I15-web-public": Promise(
        "Tools of the web reach public hosts only, and private ones that the owner names, also "
        "after a redirect.",
        "issue 15",
    ),
    "I15-web-secrets": Promise(
        "Keys, headers and bodies of a request are not carried to another host.", "issue 15"
    ),
}

DECLINED: Final[dict[str, str]] = {}
