"""Reads a mailbox by IMAP. Nothing is marked as read, and no answer is longer than a limit."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from imaplib import IMAP4
from typing import Any, Final

from edge.tools.workers.mail_account import Account
from edge.tools.workers.mail_connection import Connection, connected, quoted
from edge.tools.workers.mail_structure import parse

HEADER_BYTES: Final = 8_192
WINDOW: Final = 5_000
"""Messages that one search command looks at: its answer fits one line of `imaplib`."""
SEARCH_S: Final = 6.0
"""After which no older messages are searched."""
_LISTED: Final = re.compile(
    rb'\((?P<flags>[^)]*)\) (?:"(?:[^"\\]|\\.)*"|NIL) (?P<name>"(?:[^"\\]|\\.)*"|[^\s"{]+)$',
    re.IGNORECASE,
)
_SENT: Final = frozenset({"sent", "sent items", "sent messages", "sent mail", "inbox.sent"})


class Mailbox:
    """One signed-in connection."""

    def __init__(self, connection: Connection) -> None:
        self._imap = connection
        self.validity = 0
        self._count = 0
        self._next = 0

    def open(self, name: bytes = b"INBOX") -> None:
        """Open a mailbox for reading only."""
        status, data = self._imap.select(name, readonly=True)  # type: ignore[arg-type]
        if status != "OK":
            raise IMAP4.error("no such mailbox")
        self._count = int(data[0] or b"0")
        self.validity, self._next = self._said("UIDVALIDITY"), self._said("UIDNEXT")

    def _said(self, what: str) -> int:
        """Return the newest number that the server said of the mailbox; 0 if it said none."""
        found = self._imap.response(what)[1]
        return int(found[-1]) if found and found[-1] else 0

    def unread_total(self) -> int | None:
        """Return how many messages of the inbox are unread; None if the server does not say."""
        status, data = self._imap.status("INBOX", "(UNSEEN)")
        found = re.search(rb"UNSEEN (\d+)", data[0] or b"") if status == "OK" and data else None
        return int(found[1]) if found else None

    def newest(self, criteria: Sequence[tuple[str, str]], most: int) -> tuple[list[int], bool]:
        """Return the UIDs of the newest messages that meet all criteria, and whether all messages
        were looked at: not those before enough were found, nor those that time does not suffice
        for.
        """
        found: list[int] = []
        top, until = self._count, time.monotonic() + SEARCH_S
        while top > 0 and len(found) < most and time.monotonic() < until:
            bottom = max(1, top - WINDOW + 1)
            found += sorted(self._search(f"{bottom}:{top}", criteria), reverse=True)
            top = bottom - 1
        return found[:most], top == 0 and len(found) <= most

    def _search(self, window: str, criteria: Sequence[tuple[str, str]]) -> set[int]:
        """Search some messages. Text beyond ASCII goes as a literal, one a command."""
        plain = [window]
        for key, value in criteria:
            if value.isascii():
                plain += [key, quoted(value)] if value else [key]
        found = self._uids(*plain)
        for key, value in criteria:
            if found and not value.isascii():
                self._imap.literal = value.encode()  # type: ignore[assignment]
                found &= self._uids("CHARSET", "UTF-8", window, key)
        return found

    def _uids(self, *words: str) -> set[int]:
        status, data = self._imap.uid("SEARCH", *words)
        if status != "OK":
            raise IMAP4.error("search refused")
        return {int(uid) for line in data if line for uid in line.split()}

    def fetch(self, uids: Sequence[int], items: str) -> list[dict[str, Any]]:
        """Return the items of messages by name; of a body section its number, or `HEADER`. Raise
        `BadStructure`.
        """
        if not uids:
            return []
        status, data = self._imap.uid("FETCH", ",".join(map(str, uids)), f"({items})")
        if status != "OK":
            raise IMAP4.error("fetch refused")
        pieces = [piece for piece in data if piece is not None]
        return [_items(each) for each in parse(pieces) if isinstance(each, list)]

    # -------------------------------------------------------------- new messages

    def newest_uid(self) -> int:
        """Return the UID of the newest message when the mailbox was opened; 0 if there was none."""
        if self._next or not self._count:
            return max(0, self._next - 1)
        return max(self._uids(str(self._count)), default=0)

    def unread_after(self, uid: int, most: int) -> list[int]:
        """Return the UIDs of unread messages that came after this one, in their order, of the
        newest `most` messages.
        """
        if not self._count:
            return []
        window = f"{max(1, self._count - most + 1)}:*"
        found = self._uids(window, "UNSEEN", "UID", f"{uid + 1}:*")
        return sorted(each for each in found if each > uid)  # n:* names the newest one in any case

    # -------------------------------------------------------------- sent messages

    def sent_name(self) -> bytes | None:
        """Return the name of the folder of sent messages, as IMAP writes it."""
        named = None
        _status, able = self._imap.capability()  # those before the sign-in were others
        if b"SPECIAL-USE" in (able[0] or b"").upper():
            listed = self._listed('(SPECIAL-USE) ""', "*")
        else:
            listed = self._listed('""', "*")
        for flags, name in listed:
            if b"\\sent" in flags.lower():
                return name
        for _flags, name in self._listed('""', "*"):
            if name.strip(b'"').decode("ascii", "replace").lower() in _SENT:
                named = named or name
        return named

    def _listed(self, folder: str, pattern: str) -> list[tuple[bytes, bytes]]:
        _status, data = self._imap.list(folder, pattern)
        found = (_LISTED.match(line) for line in data or () if isinstance(line, bytes))
        return [(match["flags"], match["name"]) for match in found if match]

    def sent_has(self, message_id: str) -> bool:
        """Return whether the folder of sent messages has this one; False too if there is none."""
        if (name := self.sent_name()) is None:
            return False
        self.open(name)
        return bool(self._uids("HEADER", "Message-ID", quoted(message_id)))

    def add_sent(self, message: bytes, message_id: str) -> bool:
        """Put a message into the folder of sent messages, unless the server did. Return whether it
        is there.
        """
        if (name := self.sent_name()) is None:
            return False
        self.open(name)
        if self._uids("HEADER", "Message-ID", quoted(message_id)):
            return True
        self._imap.close()
        status, _ = self._imap.append(name, "(\\Seen)", "", message)  # type: ignore[arg-type]
        return status == "OK"


@contextmanager
def mailbox(account: Account) -> Iterator[Mailbox]:
    """Connect and sign in. Raise `ToolFailure` for what goes wrong, within too."""
    with connected(account) as imap:
        yield Mailbox(imap)


def _items(listed: list[Any]) -> dict[str, Any]:
    """Return one message's items by name."""
    found: dict[str, Any] = {}
    rest = iter(listed)
    for key in rest:
        name = key.decode("ascii", "replace").upper() if isinstance(key, bytes) else ""
        if name.startswith("BODY[") and "]" not in name:
            for token in rest:  # the list of fields, then "]<0>"
                if isinstance(token, bytes) and token.startswith(b"]"):
                    break
            name = "HEADER"
        elif name.startswith("BODY["):
            name = name[5:].partition("]")[0]
        found[name] = next(rest, None)
    return found
