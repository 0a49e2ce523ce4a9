"""Announces new mail of chosen senders. A child process waits for it, one per connection.

How far mail was announced is on disk, and what was found after that is not: the next child finds it
again, after a restart too.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import random
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Final, NamedTuple

from edge.core.backoff import Backoff
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import Alarmed
from edge.storage.notes import Notes
from edge.storage.sqlite.errors import StoreError
from firmware_bridge.deadlines import timeout
from tools_cache.api.handed import Json
from tools_cache.errors import ErrorCode
from tools_cache.everyday import mail

COMMAND: Final = (sys.executable, "-P", "-m", "edge.tools.workers.mail_watch")
"""-P: a module in the working directory cannot replace a library."""
NOTE: Final = "mail.announced"
ALARM: Final = "mail"
LINE_S: Final = 900.0
"""A child looks at the mailbox, and says so, every ten minutes at least."""
MAX_LINE: Final = 16 * 1024
FIRST_S: Final = 2.0
MOST_S: Final = 300.0
REFUSED_S: Final = 600.0
"""Minimum pause after a refusal that only a person can end: many servers lock an account that signs
in wrongly too often.
"""
PAUSE_S: Final = 30.0
"""Between two announcements; what comes meanwhile is announced together."""

Position = tuple[int, int]
"""UIDVALIDITY and UID (RFC 3501) of the newest message that was looked at."""

log = logging.getLogger(__name__)


class MailNotice(NamedTuple):
    """One announcement, in the form that `AlarmNotifier` takes; it is never late."""

    id: int
    text: str
    late_s: float = 0.0

    @property
    def scene(self) -> str:
        return f"mail-{self.id}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """New messages that were not announced yet. `until`: where the newest of them is."""

    count: int
    latest: Mapping[str, Json]
    until: Position

    def text(self) -> str:
        who, subject = mail.sender(self.latest), self.latest["subject"]
        about = f"{who}: {subject}" if subject else who
        if self.count == 1:
            return f"New mail from {about}"
        return f"{self.count} new messages, the latest from {about}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a child ended. `final`: only a person can change it."""

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
    command: Sequence[str] = COMMAND
    pause_s: float = PAUSE_S
    more: Mapping[str, Json] = field(default_factory=dict)
    """More of the request, in tests."""
    _looked: Position | None = field(default=None, init=False)
    _stored: Position | None = field(default=None, init=False)
    _waiting: Waiting | None = field(default=None, init=False)
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
        """Run one child to its end. Whatever ends this ends the child."""
        try:
            child = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=MAX_LINE,
            )
        except OSError as e:
            return Failure(f"No process could be started: {e.strerror}")
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            with contextlib.suppress(ConnectionError):  # one that ended says nothing
                child.stdin.write(json.dumps(self._request()).encode() + b"\n")
                await child.stdin.drain()
            while line := await _next_line(child.stdout):
                if "error" in line:
                    return _failure(line)
                self._tell(None)
                await self._take(line)
        except (TimeoutError, ValueError):
            return Failure("The process that watches mail said nothing that can be read")
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        return Failure("The process that watches mail ended")

    def _request(self) -> dict[str, Json]:
        settings = {key: self.config[key] for key in mail.SETTINGS if key in self.config}
        return {
            "settings": settings,
            "senders": list(self.config["notify_from"]),
            "after": self._looked,
            **self.more,
        }

    async def _take(self, line: Mapping[str, Any]) -> None:
        self._looked = looked = (line["validity"], line["uid"])
        if line["count"]:
            before = self._waiting.count if self._waiting else 0
            self._waiting = Waiting(before + line["count"], line["latest"], looked)
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
            await asyncio.sleep(self.pause_s)

    async def is_due(self, _notice: int) -> bool:
        """Return False: what waited for the glasses is announced in new words, with what came
        meanwhile.
        """
        self._postponed = True
        return False


def _rest(now: Waiting | None, announced: Waiting) -> Waiting | None:
    """Return what came while the rest was announced."""
    left = now.count - announced.count if now is not None else 0
    return replace(now, count=left) if now is not None and left else None


async def _next_line(source: asyncio.StreamReader) -> dict[str, Any]:
    """Return what a child says next; {} when it has ended. Raise TimeoutError, ValueError."""
    async with timeout(LINE_S):
        raw = await source.readline()
    return dict(json.loads(raw)) if raw else {}


def _failure(line: Mapping[str, Any]) -> Failure:
    text = ". ".join(filter(None, (line["error"], line["suggestion"])))
    return Failure(text, final=line["code"] != ErrorCode.NETWORK_ERROR.value)
