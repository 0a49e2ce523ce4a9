"""One HTTP request of the daemon, over TLS or not: bounded, with one deadline and OpenSSL's errors.

Not httpx: it costs a process that lives long 5 MiB for a request now and then, and it hides why a
handshake failed. No redirects, no proxy from the environment, no compression.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from firmware_bridge.deadlines import timeout

if TYPE_CHECKING:
    import h11

CHUNK: Final = 64 * 1024
MAX_HEAD: Final = 16 * 1024
_ALWAYS: Final = {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}


class NotHttp(Exception):
    """The answer is not the agreed HTTP; the text says why."""


class TooLong(NotHttp):
    """The answer has more bytes than are allowed."""


class HttpAnswer(Struct, frozen=True):
    """A whole response; the names of `headers` are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def request(
    host: str,
    port: int,
    target: str,
    *,
    tls: ssl.SSLContext | None,
    most: int,
    limit_s: float,
    stall_s: float | None = None,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> HttpAnswer:
    """Send a request and return its answer of at most `most` bytes. `stall_s`: for connecting, and
    for each silence. Raise OSError (ssl.SSLError, TimeoutError) and `NotHttp`.
    """
    import h11  # noqa: PLC0415 - a daemon without a cloud asks nothing

    async with timeout(limit_s):
        async with _patience(stall_s):
            reader, writer = await asyncio.open_connection(
                host,
                port,
                ssl=tls,
                server_hostname=host if tls is not None else None,
                limit=CHUNK,
                ssl_handshake_timeout=limit_s if tls is not None else None,
            )
        try:
            named = {"Host": f"[{host}]:{port}" if ":" in host else f"{host}:{port}"}
            parts = _parts(method, target, {**named, **(headers or {})}, body)
            return await _exchange(reader, writer, parts, most, stall_s)
        except h11.LocalProtocolError as e:
            raise NotHttp(f"this cannot be asked over HTTP: {e}"[:200]) from None
        except h11.RemoteProtocolError as e:
            raise NotHttp(f"what answers there does not speak HTTP: {e}"[:200]) from None
        finally:
            writer.transport.abort()  # nothing is owed to it any more; a polite close could hang


def _parts(
    method: str, target: str, headers: Mapping[str, str], body: bytes | None
) -> "list[h11.Event]":
    import h11  # noqa: PLC0415 - as above

    length = {} if body is None else {"Content-Length": str(len(body))}
    every = {**_ALWAYS, **headers, **length}
    head = h11.Request(method=method, target=target, headers=list(every.items()))
    return [head, *([] if body is None else [h11.Data(data=body)]), h11.EndOfMessage()]


@asynccontextmanager
async def _patience(seconds: float | None) -> AsyncIterator[None]:
    """Raise ConnectionError when the body takes longer: it is not the deadline of the request."""
    try:
        async with timeout(seconds):
            yield
    except TimeoutError:
        raise ConnectionError(f"nothing came for {seconds:g} s") from None


async def _exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    parts: "list[h11.Event]",
    most: int,
    stall_s: float | None,
) -> HttpAnswer:
    import h11  # noqa: PLC0415 - as above

    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    for part in parts:
        writer.write(http.send(part) or b"")
    answer: h11.Response | None = None
    found = bytearray()
    while True:
        try:
            event = http.next_event()
        except h11.RemoteProtocolError:
            if answer is not None and reader.at_eof():  # lost on the way: asking again may mend it
                raise ConnectionResetError("it hung up in the middle of its answer") from None
            raise
        if event is h11.NEED_DATA:
            async with _patience(stall_s):
                received = await reader.read(CHUNK)
            if not received and answer is None:
                raise ConnectionResetError("it hung up without an answer")
            http.receive_data(received)
        elif isinstance(event, h11.Response):
            answer = event
        elif isinstance(event, h11.Data):
            found += event.data
            if len(found) > most:
                raise TooLong(f"the answer has more than {most // 1024} KiB")
        elif isinstance(event, h11.EndOfMessage) and answer is not None:
            headers = {name.decode(): value.decode("latin-1") for name, value in answer.headers}
            return HttpAnswer(answer.status_code, headers, bytes(found))
