"""Client of the control API: finds the socket, sends a request, reads the answer. Standard library
only, so that it is imported quickly.
"""

import contextlib
import json
import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

from edge.control.answer import NO_CONTENT, Answer, head
from edge.runtime.control_api import (
    CONNECT_S,
    MAX_ANSWER,
    QUIET_S,
    late,
    not_connected,
    refusal,
    stopped,
)
from edge.runtime.errors import UserError

MAX_LINE: Final = 4 * 1024 * 1024
BAD_REQUEST: Final = 400


class ControlClient:
    """Sends requests to the daemon on the first of `sockets` that answers. Every method raises
    `UserError` if there is no answer, or if the answer is an error.
    """

    def __init__(self, sockets: tuple[Path, ...]) -> None:
        self._sockets = sockets

    def request(
        self, method: str, path: str, body: Any = None, *, timeout_s: float = 30.0
    ) -> tuple[int, Any]:
        """Return (HTTP status, JSON; None if the body is empty)."""
        with self._answer(method, path, body, timeout_s) as answer:
            raw = _read(answer)
            empty = answer.status == NO_CONTENT
            return answer.status, None if empty else json.loads(raw)

    def text(self, path: str, *, timeout_s: float = 30.0) -> str:
        """Return the text of an answer that is not JSON."""
        with self._answer("GET", path, None, timeout_s) as answer:
            return _read(answer).decode("utf-8", "replace")

    def events(self, last_event_id: str | None = None) -> Iterator[tuple[str, str, str]]:
        """Yield events as (event id, event name, data as JSON text) until the connection ends,
        which is an error.
        """
        headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
        with self._answer("GET", "/v1/events", None, QUIET_S, headers) as answer:
            with contextlib.suppress(TimeoutError):
                yield from _blocks(answer)
            raise stopped()

    def stream(
        self, method: str, path: str, body: Any = None, *, quiet_s: float
    ) -> Generator[Any, None, None]:
        """Yield the JSON of each event of a streamed answer, until it ends; an answer that is not
        streamed is yielded whole. Closing the iterator ends the connection.
        """
        with self._answer(method, path, body, quiet_s) as answer:
            if answer.headers.get("content-type", "").partition(";")[0] != "text/event-stream":
                yield json.loads(_read(answer))
                return
            for _, _, data in _blocks(answer):
                yield json.loads(data)

    @contextlib.contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        body: Any,
        timeout_s: float,
        headers: dict[str, str] | None = None,
    ) -> Iterator[Answer]:
        """Send a request; inside, its answer is read, and what goes wrong becomes a `UserError`."""
        connection = self._connect(timeout_s)
        payload = None if body is None else json.dumps(body).encode()
        try:
            more = {**(headers or {}), "Content-Type": "application/json"}
            connection.sendall(head(method, path, more, payload) + (payload or b""))
            with contextlib.closing(Answer(connection)) as answer:
                answer.read_head()
                if answer.status >= BAD_REQUEST:
                    raise _refusal(answer)
                yield answer
        except TimeoutError:
            raise late(timeout_s) from None
        except (OSError, ValueError):
            raise stopped() from None
        finally:
            connection.close()

    def _connect(self, timeout_s: float) -> socket.socket:
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
        raise not_connected(self._sockets, forbidden)


def _read(answer: Answer) -> bytes:
    raw = answer.read(MAX_ANSWER + 1)
    if len(raw) > MAX_ANSWER:
        raise UserError("TOO_LARGE", "the daemon's answer is too large", "ask for less")
    return raw


def _refusal(answer: Answer) -> UserError:
    try:
        return refusal(answer.status, answer.read(MAX_LINE))
    except (OSError, ValueError):
        return refusal(answer.status, b"")


def _blocks(answer: Answer) -> Iterator[tuple[str, str, str]]:
    """Yield (id, name, data) of each event of a stream."""
    fields: dict[str, str] = {}
    while raw := answer.readline(MAX_LINE):
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield fields.get("id", ""), fields.get("event", ""), fields["data"]
            fields = {}
