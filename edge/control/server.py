"""The control socket: who may connect, how many at once, and one loop per connection.

Refuses to know what is asked (`routes.py`) and how it is spelled (`http.py`).
"""

import asyncio
import errno
import fcntl
import grp
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Final

from edge.choice_ports import ChoicePort
from edge.clock import Clock
from edge.control.counted import Exposition
from edge.control.feed import RING, Feed, missed
from edge.control.handed import Enrol, Ports, ServersPort, Sync
from edge.control.http import Connection, Limits, Refused, Reply, Request, failure
from edge.control.routes import Follow, Routes
from edge.control.stream import Stream
from edge.pairing_ports import PairingPort
from edge.ports import BusPort, CallsPort, RegistryPort, RenderPort
from edge.store_ports import CallStorePort, ConfirmationStorePort, SessionStorePort, StorageUnavailable
from firmware_bridge.deadlines import timeout
from tools_cache.tool import Json, ToolResponse

log = logging.getLogger(__name__)

MODE: Final = 0o660
MAX_PATH: Final = 107
"""Bytes of a unix socket's path (sun_path less its end mark)."""
BACKLOG: Final = 64
PROBE_S: Final = 1.0


class SocketTaken(Exception):
    """The control socket cannot be ours. The text says why and what to do."""


async def _nothing_to_look_at() -> None:
    """The status says all there is."""


class ControlServer:
    """Serves the control API; `run()` is the service and may be run again after it ended. `full` is what a store raises
    that takes nothing new.
    """

    def __init__(
        self, path: Path, *, calls: CallsPort, registry: RegistryPort, render: RenderPort, store: CallStorePort,
        bus: BusPort, clock: Clock, status: Callable[[], Mapping[str, Json]],
        heard: Callable[[str], Awaitable[ToolResponse]], new_id: Callable[[], str],
        confirmations: ConfirmationStorePort | None = None, sessions: SessionStorePort | None = None,
        session_state: Callable[[], Mapping[str, Json]] = dict, user_id: str = "local", group: str = "",
        full: tuple[type[Exception], ...] = (), limits: Limits | None = None, ring: int = RING,
        metrics: Exposition | None = None, pairing: PairingPort | None = None, enrol: Enrol | None = None,
        choice: ChoicePort | None = None, sync: Sync | None = None, servers: ServersPort | None = None,
        look: Callable[[], Awaitable[None]] = _nothing_to_look_at,
    ) -> None:  # fmt: skip
        self._path = path
        self._group = group
        self._full = full
        self._limits = limits or Limits()
        self._feeds = {calls: Feed(bus, clock=clock, ring=ring, calls=calls) for calls in (True, False)}
        self._routes = Routes(Ports(
            calls=calls, registry=registry, render=render, store=store, bus=bus, status=status, look=look, heard=heard, new_id=new_id,
            confirmations=confirmations, sessions=sessions, session_state=session_state, metrics=metrics,
            user_id=user_id, pairing=pairing, enrol=enrol, choice=choice, sync=sync, servers=servers,
        ), self._limits)  # fmt: skip
        self._tasks: asyncio.TaskGroup | None = None
        self._socket: socket.socket | None = None
        self._lock = -1
        self._clients = 0
        self.streams = 0
        """Clients that follow events now."""

    # -------------------------------------------------------------- the service

    def open(self) -> None:
        """Take the socket, so that clients may queue up; `run()` does it too. Raises `SocketTaken`."""
        if self._socket is None:
            self._lock = _locked(self._path)
            try:
                self._socket = _bound(self._path, self._group)
            except BaseException:
                self._let_go()
                raise

    async def run(self) -> None:
        """Serve until cancelled; then every connection is closed and the socket file removed. Raises `SocketTaken`."""
        self.open()
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for feed in self._feeds.values():
                    self._tasks.create_task(feed.run(), name="control feed")
                server = await asyncio.start_unix_server(self._accept, sock=self._socket, backlog=BACKLOG)
                try:
                    await asyncio.Event().wait()
                finally:
                    server.close()
        finally:
            self._tasks = None
            self._let_go()

    def close(self) -> None:
        """Give the socket back when `run()` was never reached."""
        self._let_go()

    def _let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._path.unlink(missing_ok=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # -------------------------------------------------------------- connections

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._tasks is None or self._clients >= 2 * self._limits.connections:
            writer.transport.abort()
            return
        serve = self._serve if self._clients < self._limits.connections else self._turn_away
        self._clients += 1
        self._tasks.create_task(serve(Connection(reader, writer, self._limits)), name="control client")

    async def _turn_away(self, connection: Connection) -> None:
        try:
            await _quietly(connection.refuse(Refused(503, "BUSY", "too many clients at once", "close some, try again")))
        finally:
            self._clients -= 1
            await connection.close()

    async def _serve(self, connection: Connection) -> None:
        try:
            while (request := await connection.request()) is not None:
                answer = await self._answer(request)
                if not isinstance(answer, Reply):
                    await self._follow(connection, answer)
                    return
                if not await connection.reply(answer):
                    return
        except Refused as refused:
            await _quietly(connection.refuse(refused))
        except (OSError, TimeoutError) as e:
            log.debug("a control client went away: %s", e)
        except Exception:
            log.exception("a control client was cut off by a mistake of ours")  # and no other with it
        finally:
            self._clients -= 1
            await connection.close()

    async def _answer(self, request: Request) -> Reply | Follow | Stream:
        try:
            answer = await self._routes.answer(request)
        except Refused as refused:
            return refused.reply
        except StorageUnavailable as e:
            fix = "glassd status says what to do about the disk; reading goes on meanwhile"
            return Reply(507, failure("STORAGE_UNAVAILABLE", f"nothing new can be stored now: {e}", fix))
        except self._full as e:
            fix = "make room where glassd keeps its state, or wait until calls are done; reading goes on meanwhile"
            return Reply(507, failure("DISK_FULL", f"nothing new can be kept now: {e}", fix))
        except Exception:
            log.exception("the control API failed on %s", request.path[:80])
            return Reply(500, failure("INTERNAL", "glassd made a mistake", "see the journal: journalctl -u glassd"))
        if not isinstance(answer, Reply) and self.streams >= self._limits.streams:
            return Reply(503, failure("BUSY", "too many clients follow what happens", "close some, try again"))
        return answer

    async def _follow(self, connection: Connection, follow: Follow | Stream) -> None:
        """Stream until the client goes, also when there is nothing to send that would show it."""
        self.streams += 1
        try:
            async with asyncio.TaskGroup() as both:
                stream = both.create_task(
                    self._tell(connection, follow) if isinstance(follow, Stream) else self._stream(connection, follow),
                    name="control stream",
                )
                await connection.gone()
                stream.cancel()
        finally:
            self.streams -= 1

    async def _stream(self, connection: Connection, follow: Follow) -> None:
        try:
            feed = self._feeds[follow.calls]
            cursor, ours = feed.cursor(follow.last_event_id)
            await connection.begin_events()
            await connection.event(": glassd" if ours else missed(None))
            while True:
                cursor, blocks = await self._next_blocks(feed, cursor)
                for block in blocks:
                    await connection.event(block)
        except (OSError, TimeoutError) as e:
            log.debug("a follower of events went away: %s", e)
            connection.abort()

    async def _tell(self, connection: Connection, stream: Stream) -> None:
        """Send a reply that goes on, to its end."""
        try:
            async with aclosing(stream.blocks) as blocks:
                await connection.begin_events()
                async for block in blocks:
                    await connection.event(block)
                await connection.end_events()
        except (OSError, TimeoutError) as e:
            log.debug("a client went away in the middle of a stream: %s", e)
            connection.abort()

    async def _next_blocks(self, feed: Feed, cursor: int) -> tuple[int, list[str]]:
        try:
            async with timeout(self._limits.heartbeat_s):
                return await feed.news(cursor)
        except TimeoutError:
            return cursor, [":"]


async def _quietly(sending: Awaitable[None]) -> None:
    try:
        await sending
    except (OSError, TimeoutError) as e:
        log.debug("a control client did not hear why it was refused: %s", e)


# ------------------------------------------------------------------ the socket file


def _locked(path: Path) -> int:
    """Hold the lock beside the socket: of two daemons starting at once, one gets it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise _taken(path) from None
    return lock


def _bound(path: Path, group: str) -> socket.socket:
    """Bind the socket with its mode and group in place before anyone can connect. Raises `SocketTaken`."""
    if len(os.fsencode(path)) > MAX_PATH:
        raise SocketTaken(f"{path}: a socket's path may have {MAX_PATH} bytes; set control.socket to a shorter one")
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.setblocking(False)
        bound.bind(str(path))
        _give_to(path, group)
        path.chmod(MODE)
        bound.listen(BACKLOG)
    except OSError as e:
        bound.close()
        raise SocketTaken(f"{path}: cannot be made: {e.strerror}; check the directory, or set control.socket") from e
    return bound


def _remove_stale(path: Path) -> None:
    """Remove a socket file nobody answers on; anything else is left alone."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketTaken(f"{path}: is in the way and is no socket; move it, or set control.socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_S)
        answer = probe.connect_ex(str(path))
    if answer != errno.ECONNREFUSED:
        raise _taken(path)
    path.unlink(missing_ok=True)


def _taken(path: Path) -> SocketTaken:
    return SocketTaken(f"{path}: another glassd is running here; stop it (systemctl stop glassd), or set control.socket")


def _give_to(path: Path, group: str) -> None:
    """Let the group in. Under systemd the file has it already (Group=), and changing it is not allowed there."""
    try:
        wanted = grp.getgrnam(group).gr_gid if group else -1
    except KeyError:
        log.debug("there is no group %s; only this user can reach the control socket", group)
        return
    if wanted in {-1, path.stat().st_gid}:
        return
    try:
        os.chown(path, -1, wanted)
    except OSError as e:
        log.warning("cannot give the control socket to group %s: %s", group, e.strerror)
