"""Client of the control API: finds the socket, sends a request, reads the answer. Standard library
only, so that it is imported quickly.
"""

import contextlib
import grp
import http.client
import json
import pwd
import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final, Self

MAX_ANSWER: Final = 64 * 1024 * 1024
MAX_LINE: Final = 4 * 1024 * 1024
CONNECT_S: Final = 5.0
NO_CONTENT: Final = 204
QUIET_S: Final = 60.0
"""A stream that is silent this long is lost: the daemon sends something every 15 s."""


class ControlError(Exception):
    """The request failed. `exit_code` is the exit code of the command line, `fix` the next thing to
    do.
    """

    def __init__(self, code: str, message: str, fix: str = "", *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.exit_code = exit_code


NOT_RUNNING: Final = (
    "start it: systemctl start glassd (or, in a terminal: glassd run); "
    "it does not stay up? glassd doctor; no glasses at hand? glassd demo"
)
_EXIT_OF: Final = {"NOT_FOUND": 4, "TIMEOUT": 5, "INVALID_REQUEST": 2}


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket that is already connected."""

    def __init__(self, connected: socket.socket) -> None:
        super().__init__("localhost")
        self.sock = connected


class ControlClient:
    """Sends requests to the daemon on the first of `sockets` that exists."""

    def __init__(self, sockets: tuple[Path, ...]) -> None:
        self._sockets = sockets

    def request(
        self, method: str, path: str, body: Any = None, *, timeout_s: float = 30.0
    ) -> tuple[int, Any]:
        """Return (HTTP status, JSON; None if the body is empty). Raises `ControlError`, also for
        every answer that is an error.
        """
        status, raw = self._whole(method, path, body, timeout_s)
        try:
            return status, None if status == NO_CONTENT else json.loads(raw)
        except ValueError:
            raise _stopped() from None

    def text(self, path: str, *, timeout_s: float = 30.0) -> str:
        """Return the text of an answer that is not JSON. Raises `ControlError`."""
        return self._whole("GET", path, None, timeout_s)[1].decode("utf-8", "replace")

    def _whole(self, method: str, path: str, body: Any, timeout_s: float) -> tuple[int, bytes]:
        with self._open(method, path, body, {}, timeout_s) as answer:
            try:
                raw = answer.read(MAX_ANSWER + 1)
            except TimeoutError:
                raise _late(timeout_s) from None
            except (OSError, http.client.HTTPException):
                raise _stopped() from None
            if len(raw) > MAX_ANSWER:
                raise ControlError("TOO_LARGE", "the daemon's answer is too large", "ask for less")
            return answer.status, raw

    def events(self, last_event_id: str | None = None) -> Iterator[tuple[str, str, str]]:
        """Yield events as (event id, event name, data as JSON text) without end. Raises
        `ControlError` when the connection ends.
        """
        headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
        lost = contextlib.suppress(OSError, http.client.HTTPException)
        with self._open("GET", "/v1/events", None, headers, QUIET_S) as answer, lost:
            yield from _blocks(answer)
        raise _stopped()

    def stream(
        self, method: str, path: str, body: Any = None, *, quiet_s: float
    ) -> Generator[Any, None, None]:
        """Yield the JSON of each event of a streamed reply, until it ends. Closing the iterator
        ends the connection. Raises `ControlError`.
        """
        with self._open(method, path, body, {}, quiet_s) as answer:
            try:
                for _, _, data in _blocks(answer):
                    yield json.loads(data)
            except TimeoutError:
                raise _late(quiet_s) from None
            except (OSError, http.client.HTTPException, ValueError):
                raise _stopped() from None

    def _open(
        self, method: str, path: str, body: Any, headers: dict[str, str], timeout_s: float
    ) -> "_Answer":
        connection = _UnixConnection(self._connected(timeout_s))
        try:
            payload = None if body is None else json.dumps(body).encode()
            connection.request(
                method, path, payload, {**headers, "Content-Type": "application/json"}
            )
            answer = _Answer(connection)
        except (OSError, http.client.HTTPException) as e:
            connection.close()
            raise (_late(timeout_s) if isinstance(e, TimeoutError) else _stopped()) from None
        if answer.status >= 400:
            with answer:
                raise _refusal(answer)
        return answer

    def _connected(self, timeout_s: float) -> socket.socket:
        """Connect to the first socket that answers; a forbidden one is an error only if no other
        answers.
        """
        forbidden: Path | None = None
        for path in self._sockets:
            connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connecting.settimeout(CONNECT_S)
            try:
                connecting.connect(str(path))
            except OSError as e:
                connecting.close()
                forbidden = forbidden or (path if isinstance(e, PermissionError) else None)
                continue
            connecting.settimeout(timeout_s)
            return connecting
        raise _forbidden(forbidden) if forbidden else _not_running(self._sockets)


class _Answer:
    """One answer, and the connection it came on."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response = connection.getresponse()
        self.status = self._response.status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()
        self._connection.close()

    def read(self, most: int) -> bytes:
        return self._response.read(most)

    def line(self) -> bytes:
        return self._response.readline(MAX_LINE)


def _blocks(answer: _Answer) -> Iterator[tuple[str, str, str]]:
    fields: dict[str, str] = {}
    while raw := answer.line():
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield fields.get("id", ""), fields.get("event", ""), fields["data"]
            fields = {}


def _refusal(answer: _Answer) -> ControlError:
    try:
        error = json.loads(answer.read(MAX_LINE))["error"]
        code, message, fix = (str(error.get(key, "")) for key in ("code", "message", "fix"))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError):
        return ControlError("INTERNAL", f"the daemon answered {answer.status} without a reason")
    return ControlError(code, message, fix, exit_code=_EXIT_OF.get(code, 1))


def _not_running(sockets: tuple[Path, ...]) -> ControlError:
    tried = ", ".join(str(path) for path in sockets)
    return ControlError(
        "NOT_RUNNING",
        f"glassd is not running (no answer at {tried})",
        NOT_RUNNING,
        exit_code=3,
    )


def _forbidden(path: Path) -> ControlError:
    if user := _alone(path):
        fix = f"ask as that user: sudo -u {user} glassd …"
        return ControlError(
            "PERMISSION",
            f"you may not use {path}: it is for the user {user} alone",
            fix,
            exit_code=3,
        )
    group = _group_of(path)
    fix = f"join the group: sudo usermod -aG {group} $USER, then log in again"
    return ControlError(
        "PERMISSION", f"you may not use {path}: it is for the group {group}", fix, exit_code=3
    )


def _late(timeout_s: float) -> ControlError:
    fix = "find the cause: glassd doctor, and in its journal: journalctl -u glassd -n 50"
    return ControlError(
        "TIMEOUT", f"the daemon did not answer within {timeout_s:g} s", fix, exit_code=5
    )


def _stopped() -> ControlError:
    return ControlError(
        "NOT_RUNNING",
        "the daemon closed the connection",
        "see whether it runs: glassd status",
        exit_code=3,
    )


def _alone(path: Path) -> str:
    """Return the user who owns this socket, if no group may use it; "" if one may, or if it is
    unknown.
    """
    try:
        found = path.stat()
        return "" if found.st_mode & 0o060 else pwd.getpwuid(found.st_uid).pw_name
    except (OSError, KeyError):
        return ""


def _group_of(path: Path) -> str:
    for place in (path, path.parent):
        try:
            return grp.getgrgid(place.stat().st_gid).gr_name
        except (OSError, KeyError):
            continue
    return "glassd"
