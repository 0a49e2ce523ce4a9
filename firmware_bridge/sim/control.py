"""The simulator's control channel for tests and scripts: one JSON object per line, on a unix socket
or loopback TCP.
"""

import asyncio
import base64
import binascii
import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from firmware_bridge.deadlines import timeout
from firmware_bridge.sim import wav
from firmware_bridge.sim.glasses import MockGlasses, describe
from firmware_bridge.sim.wearer import ScriptedWearer, ScriptError, WearerStep, checked_value, parse

log = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
"""One request: 95 s of sound as base64."""
MAX_WATCHED: Final = 256
"""Events queued for a slow watcher; beyond that it is sent the number of missed events."""
IDLE_S: Final = 3600.0

Reply = dict[str, Any]


class MockControlError(ValueError):
    """A request that cannot be served; the message gives the reason and what is allowed."""


class MockFeed:
    """Passes every event of the simulated glasses to all watchers, after `also`."""

    def __init__(self, also: Callable[[Reply], None] | None = None) -> None:
        self._also = also
        self._watchers: dict[asyncio.Queue[Reply], int] = {}

    def tell(self, event: Reply) -> None:
        if self._also is not None:
            self._also(event)
        for queue in self._watchers:
            if queue.full():
                queue.get_nowait()
                self._watchers[queue] += 1
            queue.put_nowait(event)

    @contextlib.contextmanager
    def watch(self) -> Any:
        queue: asyncio.Queue[Reply] = asyncio.Queue(MAX_WATCHED)
        self._watchers[queue] = 0
        try:
            yield queue
        finally:
            del self._watchers[queue]

    def missed(self, queue: asyncio.Queue[Reply]) -> int:
        """Return how many events this watcher lost since the last call."""
        count = self._watchers[queue]
        self._watchers[queue] = 0
        return count


class ControlChannel:
    """Serves requests. `where` is `tcp:HOST:PORT` or the path of a unix socket."""

    def __init__(
        self, where: str, glasses: MockGlasses, wearer: ScriptedWearer, feed: MockFeed
    ) -> None:
        self.where = where
        self._glasses = glasses
        self._wearer = wearer
        self._feed = feed
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()

    async def open(self) -> str:
        """Listen; return the address (port 0: a free one). Raises OSError, `MockControlError`."""
        if self.where.startswith("tcp:"):
            host, _, port = self.where[4:].rpartition(":")
            if not host or not port.isdigit():
                raise MockControlError(f"control {self.where!r}; tcp:HOST:PORT or a path is needed")
            self._server = await asyncio.start_server(
                self._serve, host, int(port), limit=MAX_LINE_BYTES
            )
            bound = self._server.sockets[0].getsockname()
            self.where = f"tcp:{bound[0]}:{bound[1]}"
        else:
            path = self.where.removeprefix("unix:")
            _forget(path)
            try:
                self._server = await asyncio.start_unix_server(
                    self._serve, path, limit=MAX_LINE_BYTES
                )
            except FileNotFoundError:
                text = "there is no such directory; create it, or name another"
                raise MockControlError(f"control {self.where!r}: {text}") from None
            os.chmod(path, 0o600)  # noqa: PTH101 - one call on a fresh socket, not worth a thread
        return self.where

    async def close(self) -> None:
        """Stop listening and end every connection. Idempotent."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for writer in list(self._clients):
            writer.close()
        with contextlib.suppress(TimeoutError):
            async with timeout(1):
                await server.wait_closed()
        if not self.where.startswith("tcp:"):
            _forget(self.where.removeprefix("unix:"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        try:
            while (line := await self._line(reader)) is not None:
                if not line.strip():
                    continue
                request = _parse(line)
                if request.get("do") == "watch":
                    await self._watch(reader, writer)
                    return
                await _say(writer, await self._answer(request))
        except MockControlError as error:
            with contextlib.suppress(ConnectionError):
                await _say(writer, {"ok": False, "error": str(error)})
        except (ConnectionError, TimeoutError):
            log.debug("control client disconnected")
        finally:
            self._clients.discard(writer)
            writer.close()

    async def _line(self, reader: asyncio.StreamReader) -> bytes | None:
        try:
            async with timeout(IDLE_S):
                return await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            return end.partial or None
        except asyncio.LimitOverrunError:
            raise MockControlError(f"a line over {MAX_LINE_BYTES} bytes") from None

    async def _watch(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send events until the client disconnects."""
        with self._feed.watch() as queue:
            await _say(writer, {"ok": True, "watching": True})
            gone = asyncio.ensure_future(reader.read(1))
            try:
                while not gone.done():
                    fresh = asyncio.ensure_future(queue.get())
                    await asyncio.wait([gone, fresh], return_when=asyncio.FIRST_COMPLETED)
                    if not fresh.done():
                        fresh.cancel()
                        return
                    missed = self._feed.missed(queue)
                    if missed:
                        await _say(writer, {"event": "missed", "count": missed})
                    await _say(writer, fresh.result())
            finally:
                gone.cancel()

    async def _answer(self, request: Reply) -> Reply:
        """Answer one request. An invalid one gets `ok: false` and an `error` text."""
        try:
            return {"ok": True, **await self._do(request)}
        except ValueError as error:  # ours, and those of messages that cannot exist
            return {"ok": False, "error": str(error)}

    async def _do(self, request: Reply) -> Reply:
        match request.get("do"):
            case "lens":
                return self._glasses.lens_report()
            case "speaker":
                speaker = self._glasses.speaker
                return {"playing": speaker.playing, **describe(speaker.last)}
            case "status":
                return self._status()
            case "hear":
                return await self._hear(request)
            case "caps":
                return {"noticed": self._glasses.set_capabilities(_changes(request))}
            case str(verb):
                return {"noticed": await self._wearer.do(_step(verb, request))}
            case _:
                raise MockControlError('a request is {"do": VERB, …}; "do" is missing or no string')

    async def _hear(self, request: Reply) -> Reply:
        """Play a WAV file, or bytes (of a WAV file, or samples: 16 kHz, mono, 16 bits)."""
        path, data = request.get("path", request.get("text")), request.get("data")
        if isinstance(path, str) and path:
            name, pcm = path, await asyncio.to_thread(wav.read_file, Path(path))
        elif isinstance(data, str) and data:
            name, pcm = str(request.get("name") or "sound"), _base64(data)
            if pcm.startswith(wav.MAGIC):
                pcm = await asyncio.to_thread(partial(wav.read, pcm, name=name))
            elif len(pcm) % 2:
                raise MockControlError(f"{name}: samples of 16 bits have an even number of bytes")
        else:
            raise MockControlError('hear needs "path": a WAV file, or "data": its bytes as base64')
        over_in = self._glasses.hear(pcm, name)
        seconds = len(pcm) / 2 / wav.RATE
        noticed = self._glasses.microphone.open
        return {"noticed": noticed, "seconds": round(seconds, 3), "over_in": round(over_in, 3)}

    def _status(self) -> Reply:
        glasses = self._glasses
        status = {
            "model": glasses.model.key,
            "connected": glasses.connected,
            "battery": glasses.battery,
            "worn": glasses.worn,
            "capabilities": dict(glasses.capabilities),
        }
        if None not in glasses.sides:
            status |= {"sides": glasses.by_side(), "settings": dict(glasses.settings)}
        return status


def _forget(path: str) -> None:
    """Remove the socket of a killed simulator; any other file stays, and binding reports it."""
    left = Path(path)
    if left.is_socket():
        left.unlink()


def _parse(line: bytes) -> Reply:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        raise MockControlError("a line must be one JSON object") from None
    if not isinstance(request, dict):
        raise MockControlError("a line must be one JSON object")
    return request


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise MockControlError(f'"data" is no base64: {error}') from None


def _changes(request: Reply) -> Mapping[str, Any]:
    wanted = request.get("set")
    if not isinstance(wanted, dict) or not wanted:
        raise MockControlError('caps needs "set": {KEY: VALUE, …}')
    return {key: checked_value(key, value) for key, value in wanted.items()}


def _step(verb: str, request: Reply) -> WearerStep:
    """Parse a wearer's verb with its argument, as in a script: {"do": "say", "text": "…"}."""
    word = request.get("text", request.get("value", ""))
    if isinstance(word, bool):
        word = "on" if word else "off"
    try:
        step = parse(f"{verb} {word}")
    except ScriptError as error:
        raise MockControlError(f"{error}; and lens, speaker, status, watch") from None
    if step is None:
        raise MockControlError("an empty verb")
    return step


async def _say(writer: asyncio.StreamWriter, reply: Reply) -> None:
    writer.write(json.dumps(reply, ensure_ascii=False).encode() + b"\n")
    async with timeout(IDLE_S):
        await writer.drain()
