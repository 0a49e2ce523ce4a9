"""The server of the two control sockets: limits clients and runs one loop per connection.

`routes.py` answers the requests, `http.py` reads and writes them.
"""

import asyncio
import logging
from contextlib import aclosing
from functools import partial
from pathlib import Path

from msgspec import Struct

from edge.control.dependencies import ControlDependencies
from edge.control.events import RING, Feed, missed
from edge.control.http import HttpConnection, HttpLimits, Reply, Request, RequestRefused, Stream
from edge.control.listings import Listings
from edge.control.routes import Follow, Routes
from edge.control.sockets import BACKLOG, ClientRole, SocketFile
from edge.runtime.clock import Clock
from edge.runtime.paths import owner_beside
from edge.storage.sqlite.errors import StorageUnavailable
from firmware_bridge.deadlines import timeout

log = logging.getLogger(__name__)


class _Entrance(Struct):
    """One of the sockets. Each has its own limits, so that callers cannot lock out the owner."""

    file: SocketFile
    routes: Routes
    clients: int = 0
    streams: int = 0


class ControlServer:
    """Serves the control API; `run()` is the service and may be run again after it ended. `full` is
    what a store raises that takes nothing new.
    """

    def __init__(
        self,
        path: Path,
        ports: ControlDependencies,
        *,
        clock: Clock,
        group: str = "",
        owner_path: Path | None = None,
        owner_group: str = "",
        full: tuple[type[Exception], ...] = (),
        limits: HttpLimits | None = None,
        ring: int = RING,
    ) -> None:
        self._full = full
        self._limits = limits or HttpLimits()
        self._feeds = {
            calls: Feed(ports.bus, clock=clock, ring=ring, calls=calls) for calls in (True, False)
        }
        owners = SocketFile(
            owner_path or owner_beside(path),
            owner_group,
            key="control.owner_socket",
            group_only=True,
        )
        files = {
            ClientRole.CALLER: SocketFile(path, group, key="control.socket"),
            ClientRole.OWNER: owners,
        }
        listings = Listings(ports)
        self._entrances = [
            _Entrance(file, Routes(ports, self._limits, role, owners, listings))
            for role, file in files.items()
        ]
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def streams(self) -> int:
        """Clients that follow events now."""
        return sum(entrance.streams for entrance in self._entrances)

    # -------------------------------------------------------------- the service

    def open(self) -> None:
        """Open the sockets, so that clients queue up; `run()` does it too. Raise `SocketTaken`."""
        try:
            for entrance in self._entrances:
                entrance.file.open()
        except BaseException:
            self.close()
            raise

    async def run(self) -> None:
        """Serve until cancelled; then every connection is closed and the socket files removed.
        Raise `SocketTaken`.
        """
        self.open()
        try:
            with self._feeds[True].open(), self._feeds[False].open():
                await self._serve_entrances()
        finally:
            self.close()

    async def _serve_entrances(self) -> None:
        servers = []
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                for entrance in self._entrances:
                    accept = partial(self._accept, entrance)
                    servers.append(
                        await asyncio.start_unix_server(
                            accept, sock=entrance.file.socket, backlog=BACKLOG
                        )
                    )
                await asyncio.Event().wait()
            finally:
                self._tasks = None  # a group that is being cancelled takes no more tasks
                for server in servers:
                    server.close()

    def close(self) -> None:
        """Remove the socket files; also when `run()` was never reached."""
        for entrance in self._entrances:
            entrance.file.close()

    # -------------------------------------------------------------- connections

    def _accept(
        self, entrance: _Entrance, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._tasks is None or entrance.clients >= 2 * self._limits.connections:
            writer.transport.abort()
            return
        serve = self._serve if entrance.clients < self._limits.connections else self._turn_away
        entrance.clients += 1
        client = serve(entrance, HttpConnection(reader, writer, self._limits))
        serving = self._tasks.create_task(client, name="control client")
        # a task that is cancelled before it begins closes nothing
        serving.add_done_callback(lambda _: writer.close())

    async def _turn_away(self, entrance: _Entrance, connection: HttpConnection) -> None:
        try:
            busy = RequestRefused("BUSY", "too many clients at once", "close some, try again")
            await _refuse(connection, busy)
        finally:
            entrance.clients -= 1
            await connection.close()

    async def _serve(self, entrance: _Entrance, connection: HttpConnection) -> None:
        try:
            while (request := await connection.request()) is not None:
                answer = await self._answer(entrance, request)
                if not isinstance(answer, Reply):
                    await self._follow(entrance, connection, answer)
                    return
                if not await connection.reply(answer):
                    return
        except RequestRefused as refused:
            await _refuse(connection, refused)
        except (OSError, TimeoutError) as e:
            log.debug("a control client disconnected: %s", e)
        except Exception:
            log.exception(
                "unexpected error while serving a control client; connection closed"
            )  # the other connections go on
        finally:
            entrance.clients -= 1
            await connection.close()

    async def _answer(self, entrance: _Entrance, request: Request) -> Reply | Follow | Stream:
        try:
            answer = await entrance.routes.answer(request)
        except RequestRefused as refused:
            return refused.reply
        except StorageUnavailable as e:
            fix = "glassd status says what to do about the disk; read requests still work"
            return _failed("STORAGE_UNAVAILABLE", f"nothing new can be stored now: {e}", fix)
        except self._full as e:
            fix = (
                "free space where glassd stores its state, or wait until calls are done; "
                "read requests still work"
            )
            return _failed("DISK_FULL", f"nothing new can be stored now: {e}", fix)
        except Exception:
            log.exception("the control API failed on %s", request.path[:80])
            fix = "see the journal: journalctl -u glassd"
            return _failed("INTERNAL", "internal error in glassd", fix)
        if not isinstance(answer, Reply) and entrance.streams >= self._limits.streams:
            return _failed("BUSY", "too many clients follow events", "close some, try again")
        return answer

    async def _follow(
        self, entrance: _Entrance, connection: HttpConnection, follow: Follow | Stream
    ) -> None:
        """Stream until the client disconnects, also while there is nothing to send."""
        entrance.streams += 1
        if isinstance(follow, Stream):
            sending = self._send_blocks(connection, follow)
        else:
            feed = self._feeds[follow.calls]  # its place among the events is taken now
            cursor, known = feed.cursor(follow.last_event_id)
            sending = self._send_events(connection, feed, cursor, known=known)
        try:
            async with asyncio.TaskGroup() as both:
                stream = both.create_task(sending, name="control stream")
                await connection.wait_closed()
                stream.cancel()
        finally:
            entrance.streams -= 1

    async def _send_events(
        self, connection: HttpConnection, feed: Feed, cursor: int, *, known: bool
    ) -> None:
        try:
            await connection.begin_events()
            await connection.event(": glassd" if known else missed(None))
            while True:
                cursor, blocks = await self._next_blocks(feed, cursor)
                for block in blocks:
                    await connection.event(block)
        except (OSError, TimeoutError) as e:
            log.debug("a client that follows events disconnected: %s", e)
            connection.abort()

    async def _send_blocks(self, connection: HttpConnection, stream: Stream) -> None:
        """Send a streamed reply to its end."""
        try:
            async with aclosing(stream.blocks) as blocks:
                await connection.begin_events()
                async for block in blocks:
                    await connection.event(block)
                await connection.end_events()
        except (OSError, TimeoutError) as e:
            log.debug("a control client disconnected during a stream: %s", e)
            connection.abort()

    async def _next_blocks(self, feed: Feed, cursor: int) -> tuple[int, list[str]]:
        try:
            async with timeout(self._limits.heartbeat_s):
                return await feed.news(cursor)
        except TimeoutError:
            return cursor, [":"]


def _failed(code: str, message: str, fix: str) -> Reply:
    return RequestRefused(code, message, fix).reply


async def _refuse(connection: HttpConnection, refused: RequestRefused) -> None:
    try:
        await connection.refuse(refused)
    except (OSError, TimeoutError) as e:
        log.debug("the error reply could not be sent to a control client: %s", e)
