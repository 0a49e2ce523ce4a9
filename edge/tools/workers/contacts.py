"""The child part of the `contacts` tools: reads vCards, and an address book on a CardDAV server.

`{"do": "parse", "vcard": BASE64}` reads a text. `{"do": "read", …}` reads those cards of a server
that changed: `known` has the version of each card that the caller has, by its key. The server is
only ever read (PROPFIND and REPORT).
"""

import base64
import hashlib
from pathlib import Path
from typing import Any, Final

from edge.tools.workers.address_book import SETTINGS, AddressBook
from tools_cache.errors import ErrorCode, ToolFailure

MOST_CARDS: Final = 500
"""Cards of one text."""
MOST_CHANGED: Final = 200
"""Changed cards of one answer; for the rest the caller asks again."""
MOST_LISTED: Final = 5000
MAX_SECRET: Final = 4096


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return the cards, by `do`. Raises `ToolFailure`."""
    return {"parse": parse, "read": read}[request["do"]](request)


def parse(request: dict[str, Any]) -> dict[str, Any]:
    """Return the cards of a text."""
    from edge.tools.workers.contact_cards import read_cards  # noqa: PLC0415 - an extra

    cards: list[dict[str, Any]] = []
    for card in read_cards(base64.b64decode(request["vcard"]).decode()):
        if len(cards) >= MOST_CARDS:
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS,
                f"Invalid parameters: /vcard has more than {MOST_CARDS} cards",
                suggestion="Give them in several calls",
            )
        cards.append(card)
    return {"cards": cards}


def read(request: dict[str, Any]) -> dict[str, Any]:
    """Return `{"same": True}` if the address book is as it was at `ctag`; else its `ctag`, the keys
    of all cards that are `here`, the next changed `cards`, and whether there are `more`.
    """
    from edge.tools.workers.contact_cards import read_cards  # noqa: PLC0415 - an extra

    book = AddressBook(
        request["url"],
        username=request["username"],
        password=_password(request["password_file"]) if request["username"] else "",
        ca_file=request["ca_file"],
    )
    if request["ctag"] and book.ctag() == request["ctag"]:
        return {"same": True}
    listing = book.listing()
    if len(listing.etags) > MOST_LISTED:
        raise ToolFailure.of(
            ErrorCode.HTTP_ERROR,
            f"The address book has {len(listing.etags)} cards, at most {MOST_LISTED} are read",
            suggestion=f"Set url in {SETTINGS} to a smaller one",
        )
    place, known = f"{request['username']}@{request['url']}", request["known"]
    keys = {href: _digest(f"{place}\n{href}") for href in listing.etags}
    changed = [
        href
        for href, etag in listing.etags.items()
        if not etag or known.get(keys[href]) != _digest(etag)
    ]
    texts = book.texts(changed[:MOST_CHANGED])
    cards = []
    for href in changed[:MOST_CHANGED]:
        if (text := texts.get(href)) is None:
            del keys[href]  # it was removed a moment ago
            continue
        found = next(read_cards(text), {"name": "", "refused": "It is no vCard or is too large"})
        cards.append({"key": keys[href], "etag": _digest(listing.etags[href]), **found})
    more = len(changed) > MOST_CHANGED
    return {"ctag": listing.ctag, "here": list(keys.values()), "cards": cards, "more": more}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _password(path: str) -> str:
    """Return the text of the password's file. No error has any of it."""
    if not path:
        raise _no_password("is not set, but username is")
    try:
        with Path(path).expanduser().open("rb") as file:
            raw = file.read(MAX_SECRET + 1)
        found = raw.decode().strip()
    except UnicodeDecodeError:
        raise _no_password("is not text in UTF-8") from None
    except (OSError, RuntimeError, ValueError) as e:
        why = getattr(e, "strerror", None) or "there is no such place"
        raise _no_password(f"cannot be read: {why}") from None
    if not found or len(raw) > MAX_SECRET or not found.isprintable():
        raise _no_password(f"must hold one line of text, 1 to {MAX_SECRET} bytes")
    return found


def _no_password(problem: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.AUTH,
        f"The file of password_file {problem}",
        suggestion=f"Set password_file in {SETTINGS} to a file with the password alone",
        for_wearer="The password of the address book cannot be read.",
    )
