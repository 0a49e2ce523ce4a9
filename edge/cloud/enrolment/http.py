"""One HTTPS request to an enrolment endpoint: bounded, with one deadline and OpenSSL's errors.

Not httpx: an edge that only enrols would load it for one POST, and it hides why a handshake failed.
"""

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import Final

import h11

from firmware_bridge.deadlines import timeout

MAX_ANSWER: Final = 64 * 1024
"""Bytes: a certificate chain, an authority and a few words."""
REQUEST_S: Final = 20.0


class NotHttp(Exception):
    """The answer is not the agreed HTTP; the text says why."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole response."""

    status: int
    body: bytes

    def json(self) -> dict[str, object]:
        """Read the body as a JSON object. Raise `NotHttp`."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            raise NotHttp(f"the answer ({self.status}) is not JSON") from None
        if not isinstance(found, dict):
            raise NotHttp(f"the answer ({self.status}) is not a JSON object")
        return found


async def request(
    host: str,
    port: int,
    path: str,
    *,
    tls: ssl.SSLContext,
    body: object | None = None,
    limit_s: float = REQUEST_S,
) -> HttpAnswer:
    """GET, or POST a JSON body. Raise OSError (ssl.SSLError, TimeoutError) and `NotHttp`."""
    sent = None if body is None else json.dumps(body).encode()
    async with timeout(limit_s):
        reader, writer = await asyncio.open_connection(
            host,
            port,
            ssl=tls,
            server_hostname=host,
            limit=MAX_ANSWER,
            ssl_handshake_timeout=limit_s,
        )
        try:
            return await _exchange(reader, writer, _head(host, port, path, sent), sent)
        except h11.RemoteProtocolError as e:
            raise NotHttp(f"what answers there does not speak HTTP: {e}"[:200]) from None
        finally:
            writer.transport.abort()  # nothing is owed to it any more; a polite close could hang


def _head(host: str, port: int, path: str, body: bytes | None) -> h11.Request:
    name = f"[{host}]" if ":" in host else host
    headers = [
        ("Host", f"{name}:{port}"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ]
    if body is not None:
        headers += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return h11.Request(method="GET" if body is None else "POST", target=path, headers=headers)


async def _exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    head: h11.Request,
    body: bytes | None,
) -> HttpAnswer:
    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=16 * 1024)
    content = [] if body is None else [h11.Data(data=body)]
    for part in (head, *content, h11.EndOfMessage()):
        writer.write(http.send(part) or b"")
    status, found = 0, bytearray()
    while True:
        try:
            event = http.next_event()
        except h11.RemoteProtocolError:
            if status and reader.at_eof():  # lost on the way, which asking again may mend
                raise ConnectionResetError("it hung up in the middle of its answer") from None
            raise
        if event is h11.NEED_DATA:
            received = await reader.read(16 * 1024)
            if not received and not status:
                raise ConnectionResetError("it hung up without an answer")
            http.receive_data(received)
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            found += event.data
            if len(found) > MAX_ANSWER:
                raise NotHttp(f"the answer has more than {MAX_ANSWER // 1024} KiB")
        elif isinstance(event, h11.EndOfMessage):
            return HttpAnswer(status, bytes(found))
