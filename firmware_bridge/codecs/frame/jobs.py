"""Sends messages to the program one packet at a time: the next follows the acknowledgement."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from firmware_bridge.codecs.frame.wire import From, cut
from firmware_bridge.errors import LinkLost, LocalMisuse, LostReason
from firmware_bridge.messages import Command, Done, Failed, Reply

ACKNOWLEDGED_S: Final = 5.0
"""Seconds for one acknowledgement, as in frame-ble."""
MAX_JOBS: Final = 64
"""Commands that may wait; beyond it the caller does not wait for answers."""

HURRY_BYTES: Final = 2048
"""What is left of a page that a newer one does not wait for: about 0.25 s."""
_REPLACED: Final = Failed("interrupted", "a newer page replaced it")

Message = tuple[int, bytes]


@dataclass(slots=True, eq=False)
class Job:
    """The messages of one command. `number` 0: our own. `answer`: code of the data that says what
    was done, which `judge` makes the reply of. `is_page`: what follows replaces it.

    After a refusal a page still sends its last message, which shows what was drawn: else that
    would be left for the next page.
    """

    messages: deque[Message]
    number: int = 0
    command: Command | None = None
    judge: Callable[[bytes | None], Reply] | None = None
    answer: From | None = None
    is_page: bool = False
    heard: bytes | None = None
    failure: Failed | None = None
    begun: bool = False

    def size(self) -> int:
        return sum(len(payload) for _, payload in self.messages)

    def fail(self, why: Failed) -> None:
        """Leave out what is still to be sent, but the last message of a page."""
        if self.failure is None:
            self.failure = why
        last = [self.messages[-1]] if self.is_page and self.messages else []
        self.messages = deque(last)

    def reply(self) -> Reply:
        if self.failure is not None:
            return self.failure
        return Done() if self.judge is None else self.judge(self.heard)


class JobQueue:
    """All jobs of a connection, in order. `ended` is called with each finished one."""

    def __init__(self, ended: Callable[[Job, Reply], None]) -> None:
        self._ended = ended
        self._jobs: deque[Job] = deque()
        self._packets: Iterator[bytes] = iter(())
        self._next: bytes | None = None
        self._acknowledged_by: float | None = None
        self._unsent = 0

    @property
    def full(self) -> bool:
        return len(self._jobs) >= MAX_JOBS

    def add(self, job: Job) -> None:
        """Queue a job; a page replaces those that wait, and the rest of one that takes long. Raises
        `LocalMisuse` if too many wait.
        """
        if self.full:
            raise LocalMisuse(f"{MAX_JOBS} commands are under way: wait for their answers")
        if job.is_page:
            for old in [old for old in self._jobs if old.is_page]:
                if not old.begun:
                    self._jobs.remove(old)
                    self._ended(old, _REPLACED)
                elif old.size() > HURRY_BYTES:
                    old.fail(_REPLACED)
        self._jobs.append(job)

    def due(self) -> float | None:
        return self._acknowledged_by

    def backlog(self) -> int:
        return self._unsent + sum(job.size() for job in self._jobs)

    def emit(self, now: float, max_packet: int) -> list[bytes]:
        """Return the packet to send now, if any."""
        if self._acknowledged_by is not None or not self._jobs:
            return []
        if self._next is None:
            job = self._jobs[0]
            job.begun = True
            code, payload = job.messages.popleft()
            self._packets = cut(code, payload, max_packet)
            self._next = next(self._packets)
            self._unsent = len(payload)
        packet, self._next = self._next, next(self._packets, None)
        self._unsent = max(0, self._unsent - len(packet)) if self._next is not None else 0
        self._acknowledged_by = now + ACKNOWLEDGED_S
        return [packet]

    def acknowledged(self, problem: str | None) -> None:
        """Process an acknowledgement, or a refusal with its reason."""
        if self._acknowledged_by is None:
            return  # the answer to a packet of an earlier connection
        self._acknowledged_by = None
        job = self._jobs[0]
        if problem is not None:
            self._next = None
            job.fail(Failed("bad_message", problem))
        if self._next is None and not job.messages:
            self._jobs.popleft()
            self._ended(job, job.reply())

    def answered(self, code: From, data: bytes) -> bool:
        """Process data that may be the answer to the current job; return whether it was."""
        if not self._jobs or not self._jobs[0].begun or self._jobs[0].answer is not code:
            return False
        self._jobs[0].heard = data
        return True

    def timer(self, now: float) -> None:
        """Raise `LinkLost` if an acknowledgement is overdue: it is not known what arrived."""
        if self._acknowledged_by is not None and now >= self._acknowledged_by:
            raise LinkLost(
                LostReason.SILENT, f"a packet was not acknowledged in {ACKNOWLEDGED_S:g} s"
            )
