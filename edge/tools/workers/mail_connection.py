"""A signed-in IMAP connection that takes no more, and waits no longer, than its limits allow.

The daemon imports this, too, while it waits for new mail.
"""

import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from imaplib import IMAP4, IMAP4_SSL
from typing import Any, Final, NamedTuple

from edge.tools.workers.mail_account import TIMEOUT_S, Account, faults, unreachable

MAX_LITERAL: Final = 512 * 1024
CHUNK: Final = 16 * 1024
_TEMPORARY: Final = re.compile(rb"\[(?:UNAVAILABLE|LIMIT|INUSE|SERVERBUG)\]", re.IGNORECASE)


class Limits(NamedTuple):
    """Of what a server sends: the bytes of a line, those of all, and the seconds for all."""

    line: int = 1024 * 1024
    total: int = 16 * 1024 * 1024
    seconds: float = 120.0


STANDARD: Final = Limits()


def _ignore(_sock: socket.socket) -> None:
    pass


class Connection(IMAP4_SSL):
    """It reads the socket itself, as the file that `imaplib` reads from cannot be used after a
    timeout.
    """

    def __init__(
        self, account: Account, limits: Limits, opened: Callable[[socket.socket], None]
    ) -> None:
        self._opened, self._held = opened, bytearray()
        self._set(limits, TIMEOUT_S)
        host, port = account.imap.host, account.imap.port
        super().__init__(host, port, ssl_context=account.tls(), timeout=TIMEOUT_S)

    def open(self, *args: Any, **options: Any) -> None:
        super().open(*args, **options)
        try:
            self._opened(self.sock)
        except BaseException:
            self.shutdown()
            raise

    def allow(self, limits: Limits, *, step_s: float = TIMEOUT_S) -> None:
        """Apply these limits from now on. `step_s`: how long nothing at all may come."""
        self._set(limits, step_s)
        self.sock.settimeout(step_s)

    def _set(self, limits: Limits, step_s: float) -> None:
        self._limits, self._step_s = limits, step_s
        self._left, self._until = limits.total, time.monotonic() + limits.seconds

    def read(self, size: int) -> bytes:
        if size > MAX_LITERAL:
            raise self.abort("too long")
        while len(self._held) < size and self._receive():
            pass
        return self._take(size)

    def readline(self) -> bytes:
        """Return a line; b"" at the end of the connection."""
        looked = 0
        while (end := self._held.find(b"\n", looked)) < 0:
            looked = len(self._held)
            if looked > self._limits.line:
                raise self.abort("too long")
            if not self._receive():
                return b""
        return self._take(end + 1)

    def _receive(self) -> bool:
        if (seconds := self._until - time.monotonic()) <= 0:
            raise TimeoutError
        self.sock.settimeout(min(seconds, self._step_s))
        data = self.sock.recv(CHUNK)
        self._held += data
        self._left -= len(data)
        if self._left < 0:
            raise self.abort("too much")
        return bool(data)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def _log(self, line: str) -> None:
        """Keep nothing: `imaplib` keeps the last ten lines, the password among them."""


@contextmanager
def connected(
    account: Account,
    limits: Limits = STANDARD,
    opened: Callable[[socket.socket], None] = _ignore,
) -> Iterator[Connection]:
    """Connect and sign in. Raise `ToolFailure` for what goes wrong, within too. `opened` gets the
    socket before anything is sent.
    """
    account.secret()  # without one there is no need to connect
    with faults(account.imap):
        imap = Connection(account, limits, opened)
        try:
            _sign_in(imap, account)
            yield imap
        finally:
            _leave(imap)


def _sign_in(imap: Connection, account: Account) -> None:
    secret = account.secret()  # it is forgotten when this returns
    try:
        if account.by_token:
            sent = iter([account.xoauth2(secret).encode()])
            imap.authenticate("XOAUTH2", lambda _: next(sent, b""))
        elif "AUTH=PLAIN" in imap.capabilities:
            both = f"\0{account.user}\0{secret}".encode()
            imap.authenticate("PLAIN", lambda _: both)
        elif secret.isascii() and account.user.isascii():
            imap.login(quoted(account.user), secret)
        else:
            raise account.refused(account.imap)
    except IMAP4.abort:
        raise
    except IMAP4.error as e:
        if _TEMPORARY.search(str(e).encode()):
            raise unreachable(account.imap, "it takes no sign-in now") from None
        raise account.refused(account.imap) from None


def _leave(imap: Connection) -> None:
    """Close the connection without waiting for the server to agree."""
    with suppress(OSError):
        imap.shutdown()


def quoted(text: str) -> str:
    r"""Return an IMAP quoted string. Control characters become spaces."""
    plain = "".join(ch if ch.isprintable() else " " for ch in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
