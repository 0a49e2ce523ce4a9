"""Announces new mail of chosen senders. A thread learns from the server that there may be some; a
short-lived child process looks, as it is strangers' mail that has to be read for that.

How far mail was announced is on disk, and what was found after that is not: the next look finds it
again, after a restart too.
"""

import asyncio
import hashlib
import logging
import random
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from edge.core.backoff import Backoff
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import Alarmed
from edge.runtime.first_completed import race
from edge.storage.notes import Notes
from edge.storage.sqlite.errors import StoreError
from edge.tools.worker_calls import WorkerCalls
from tools_cache.api.handed import Json
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday import mail

if TYPE_CHECKING:
    from edge.tools.announcements.mail_idle import MailIdle

NOTE: Final = "mail.announced"
ALARM: Final = "mail"
THREAD: Final = "mail"
LOOK_S: Final = 130.0
"""Longer than a child's connection may last: its error names the reason."""
FIRST_S: Final = 2.0
MOST_S: Final = 300.0
REFUSED_S: Final = 600.0
"""Minimum pause after a refusal that only a person can end: many servers lock an account that signs
in wrongly too often.
"""

T = TypeVar("T")
Position = tuple[int, int]
"""UIDVALIDITY and UID (RFC 3501) of the newest message that was looked at."""

log = logging.getLogger(__name__)


class Times(NamedTuple):
    """Seconds."""

    pause: float = 30.0
    """Between two announcements; what comes meanwhile is announced together."""
    between: float = 10.0
    """Between two looks: each takes 0.3 s of a processor, and signs in."""
    idle: float = 600.0
    """After which a wait is begun again, which shows whether the connection is alive, and the
    mailbox is looked at. Servers end a wait of 30 min, many home routers one of less.
    """
    poll: float = 300.0
    """Between two looks at a server that says nothing by itself."""


TIMES: Final = Times()


class MailNotice(NamedTuple):
    """One announcement, in the form that `AlarmNotifier` takes; it is never late."""

    id: int
    text: str
    late_s: float = 0.0

    @property
    def scene(self) -> str:
        return f"mail-{self.id}"


class Waiting(NamedTuple):
    """New messages that were not announced yet. `until`: where the newest of them is."""

    number: int
    latest: Mapping[str, Json]
    until: Position

    def text(self) -> str:
        who, subject = mail.sender(self.latest), self.latest["subject"]
        about = f"{who}: {subject}" if subject else who
        if self.number == 1:
            return f"New mail from {about}"
        return f"{self.number} new messages, the latest from {about}"


class Failure(NamedTuple):
    """Why mail is not watched. `final`: only a person can change it."""

    text: str
    final: bool = False


def default_backoff() -> Backoff:
    return Backoff(random.random, first_s=FIRST_S, most_s=MOST_S)


@dataclass(eq=False, repr=False)
class MailWatch:
    """Of one account, used once. `run` watches; `fired` yields what to announce."""

    config: Mapping[str, Json]
    _: KW_ONLY
    notes: Notes
    bus: Bus
    clock: Clock
    backoff: Backoff = field(default_factory=default_backoff)
    workers: WorkerCalls = field(default_factory=WorkerCalls)
    """Its own: a look does not wait for tools, nor they for a look."""
    times: Times = TIMES
    _looked: Position | None = field(default=None, init=False)
    _stored: Position | None = field(default=None, init=False)
    _waiting: Waiting | None = field(default=None, init=False)
    _may_be_new: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _came: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _postponed: bool = field(default=False, init=False)
    _failure: Failure | None = field(default=None, init=False)

    # -------------------------------------------------------------- watching

    async def run(self) -> None:
        """Watch until cancelled."""
        note = await self.notes.get(NOTE)
        if note is not None and note["account"] == self._account():
            self._looked = self._stored = (note["at"][0], note["at"][1])
        try:
            while True:
                began = self.clock.boot()
                failure = await self._watch_once()
                up_s = self.clock.boot() - began if self._failure is None else 0.0
                self._tell(failure)
                at_least_s = REFUSED_S if failure.final else 0.0
                await asyncio.sleep(self.backoff.after(up_s, at_least_s=at_least_s))
        finally:
            self._tell(None)

    async def _watch_once(self) -> Failure:
        """Watch until something fails. Whatever ends this ends the connection and the child."""
        self._may_be_new.clear()
        try:
            await race(self._learn(), self._look_again())
        except ToolFailure as e:
            return _failure(e)
        return Failure("It ended without a reason")

    async def _learn(self) -> None:
        """Learn that there may be new mail: from the server, or as time has passed."""
        idle = await _in_thread(partial(self._make_idle, asyncio.get_running_loop()))
        try:
            await _in_thread(idle.run)
        finally:
            idle.close()
        while True:
            self._may_be_new.set()
            await asyncio.sleep(self.times.poll)

    def _make_idle(self, loop: asyncio.AbstractEventLoop) -> "MailIdle":
        from edge.tools.announcements.mail_idle import MailIdle  # noqa: PLC0415 - takes 20 ms

        def may_be_new() -> None:
            if not self._may_be_new.is_set():  # a server may say it very often
                loop.call_soon_threadsafe(self._may_be_new.set)

        return MailIdle(self._settings(), may_be_new, idle_s=self.times.idle)

    async def _look_again(self) -> None:
        while True:
            await self._may_be_new.wait()
            self._may_be_new.clear()
            found = await self.workers.ask("new_mail", self._request(), deadline_s=LOOK_S)
            self._tell(None)
            await self._take(found)
            await asyncio.sleep(self.times.between)

    def _settings(self) -> dict[str, Json]:
        return {key: self.config[key] for key in mail.SETTINGS if key in self.config}

    def _request(self) -> dict[str, Json]:
        return {
            "settings": self._settings(),
            "senders": list(self.config["notify_from"]),
            "after": self._looked,
        }

    async def _take(self, found: Mapping[str, Any]) -> None:
        self._looked = looked = (found["validity"], found["uid"])
        if found["count"]:
            before = self._waiting.number if self._waiting else 0
            self._waiting = Waiting(before + found["count"], found["latest"], looked)
            self._came.set()
        elif self._waiting is None:
            await self._store(looked)

    def _account(self) -> str:
        names = f"{self.config['username']}\0{self.config['imap_host']}"
        return hashlib.sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:40]

    async def _store(self, announced: Position) -> None:
        """Store how far mail was announced. If that fails, it may be announced again after a
        restart.
        """
        if announced == self._stored:
            return
        try:
            await self.notes.put(NOTE, {"account": self._account(), "at": list(announced)})
            self._stored = announced
        except StoreError as e:
            log.warning("how far mail was announced cannot be stored: %s", e)

    def _tell(self, failure: Failure | None) -> None:
        """Report a failure once, in the log and, if a person must act, in the status."""
        before, self._failure = self._failure, failure
        if failure == before:
            return
        if before is not None and before.final:
            self.bus.publish(Alarmed(ALARM, "new mail is announced again", over=True))
        if failure is None:
            log.info("new mail is watched again")
        elif failure.final:
            log.warning("new mail is not announced: %s", failure.text)
            self.bus.publish(Alarmed(ALARM, f"New mail is not announced: {failure.text}"))
        else:
            log.info("new mail is not watched now: %s", failure.text)

    # -------------------------------------------------------------- announcing

    async def fired(self) -> AsyncIterator[MailNotice]:
        """Yield announcements; one consumer. What one says is stored as announced when the next is
        requested.
        """
        number = 0
        while True:
            self._came.clear()
            if (waiting := self._waiting) is None:
                await self._came.wait()
                continue
            self._postponed = False
            yield MailNotice(number, waiting.text())
            if self._postponed:
                continue
            number += 1
            self._waiting = _rest(self._waiting, waiting)
            await self._store(waiting.until)
            await asyncio.sleep(self.times.pause)

    async def is_due(self, _notice: int) -> bool:
        """Return False: what waited for the glasses is announced in new words, with what came
        meanwhile.
        """
        self._postponed = True
        return False


def _rest(now: Waiting | None, announced: Waiting) -> Waiting | None:
    """Return what came while the rest was announced."""
    left = now.number - announced.number if now is not None else 0
    return now._replace(number=left) if now is not None and left else None


async def _in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread of its own, which the end of the process does not wait for: a resolver
    that hangs cannot be interrupted.
    """
    ended: Future[T] = Future()
    ended.set_running_or_notify_cancel()  # it cannot be cancelled any more

    def run() -> None:
        try:
            ended.set_result(work())
        except Exception as e:  # noqa: BLE001 - raised again below
            ended.set_exception(e)

    threading.Thread(target=run, name=THREAD, daemon=True).start()
    return await asyncio.wrap_future(ended)


def _failure(raised: ToolFailure) -> Failure:
    """Return it as final if it says what a person can do, other than wait for the network."""
    error = raised.error
    text = ". ".join(filter(None, (error.message, error.suggestion)))
    final = error.suggestion is not None and error.code is not ErrorCode.NETWORK_ERROR
    return Failure(text, final=final)
