"""Waits, in a thread, for a mail server to say that there may be new mail (IMAP's IDLE, RFC 2177).

It reads no mail: of all that a server sends here, only how many messages there are is used.
"""

import re
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from imaplib import IMAP4
from typing import Any, Final

from edge.tools.workers.mail_account import TIMEOUT_S, UNUSABLE, Account, unreachable
from edge.tools.workers.mail_connection import Connection, Limits, connected

MAX_LINE: Final = 16 * 1024
SIGN_IN: Final = Limits(line=MAX_LINE, total=64 * 1024, seconds=30.0)
"""`imaplib` keeps what comes until the mailbox is open."""
START: Final = Limits(line=MAX_LINE, total=64 * 1024, seconds=TIMEOUT_S)
"""Of the answer to a command."""
MAX_WAIT: Final = 256 * 1024
"""Bytes that may come during one wait: 5,000 messages may change."""
_TAG: Final = b"WAIT"
"""The tag of the one command that is not sent by `imaplib`."""
_COUNT: Final = re.compile(rb"\* (\d{1,10}) (EXISTS|RECENT|EXPUNGE)\r?\n", re.IGNORECASE)


class MailIdle:
    """One connection, used once."""

    def __init__(
        self, settings: Mapping[str, Any], may_be_new: Callable[[], None], *, idle_s: float
    ) -> None:
        self._settings = settings
        self._may_be_new = may_be_new
        self._idle_s = idle_s
        self._counts: dict[bytes, int] = {}
        self._socket: socket.socket | None = None
        self._closed = False

    def run(self) -> None:
        """Call `may_be_new` when the mailbox is open, when it grew, and every `idle_s` seconds.
        Return if the server does not say by itself that it grew. Raise `ToolFailure`.
        """
        account = Account(self._settings)
        try:
            with connected(account, SIGN_IN, self._use) as imap:
                if _can_idle(imap):
                    self._open(imap)
                    self._may_be_new()
                    while self._wait(imap):
                        self._may_be_new()
        except (AttributeError, LookupError, TypeError, ValueError):
            # `imaplib` is not prepared for every answer, a literal in the wrong place for example.
            raise unreachable(account.imap, UNUSABLE) from None

    def close(self) -> None:
        """Close the connection, from another thread. `run` ends; while it connects, when the
        deadline of that is over.
        """
        self._closed = True
        if self._socket is not None:
            with suppress(OSError):
                # Not the method of the TLS socket, which would go on in plain text.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _use(self, connected_socket: socket.socket) -> None:
        self._socket = connected_socket
        if self._closed:
            raise IMAP4.abort("closed")

    def _open(self, imap: Connection) -> None:
        status, exist = imap.select("INBOX", readonly=True)
        if status != "OK":
            raise IMAP4.error("no such mailbox")
        found = {b"EXISTS": exist, b"RECENT": imap.response("RECENT")[1]}
        self._counts = {what: int(numbers[-1] or b"0") for what, numbers in found.items()}
        imap.untagged_responses = {}

    def _wait(self, imap: Connection) -> bool:
        """Wait once; return False if the server refuses to."""
        imap.allow(START)
        imap.send(_TAG + b" IDLE\r\n")
        if not self._read_until(imap, b"+"):
            return False
        imap.allow(Limits(MAX_LINE, MAX_WAIT, self._idle_s), step_s=self._idle_s)
        with suppress(TimeoutError):
            while not (line := _line(imap)).startswith(_TAG):
                self._take(line)
            raise IMAP4.abort("the server ended the wait")
        imap.allow(START)
        imap.send(b"DONE\r\n")
        return self._read_until(imap, _TAG)

    def _read_until(self, imap: Connection, start: bytes) -> bool:
        """Read up to the line that begins so; return False if the command ended before."""
        while True:
            line = _line(imap)
            if line.startswith((start, _TAG)):
                return line.startswith(start)
            self._take(line)

    def _take(self, line: bytes) -> None:
        if (found := _COUNT.fullmatch(line)) is None:
            return
        number, what = int(found[1]), found[2].upper()
        if what == b"EXPUNGE":
            self._counts[b"EXISTS"] -= 1
            return
        before, self._counts[what] = self._counts[what], number
        if number > before:
            self._may_be_new()


def _can_idle(imap: Connection) -> bool:
    _status, able = imap.capability()  # those before the sign-in were others
    return b"IDLE" in (able[0] or b"").upper().split()


def _line(imap: Connection) -> bytes:
    if line := imap.readline():
        return line
    raise IMAP4.abort("closed")
