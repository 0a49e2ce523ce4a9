"""An event loop whose time passes only when nobody has anything to do, and glasses made of the real
codec.

It does not know the driver: everything here is below it.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable

from firmware_bridge.codec import NEED_DATA, Role
from firmware_bridge.codecs.reference.codec import ReferenceCodec
from firmware_bridge.messages import Command, Done, Event, GlassesInfo, Hello, Reply
from firmware_bridge.transports.loopback import LoopbackTransport


class _IdleSelector(selectors.DefaultSelector):
    """Never waits: what would have been a wait is added to `passed`."""

    passed = 0.0

    def select(self, timeout=None):
        if timeout:
            self.passed += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Ten minutes of waiting take no time, and two runs take the same steps."""

    def __init__(self) -> None:
        self._idle = _IdleSelector()
        super().__init__(self._idle)

    def time(self) -> float:
        return 1000.0 + self._idle.passed

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for threads without the limit, which virtual time reaches before they end."""
        await super().shutdown_default_executor()


def virtual_time(story):
    """Run an async test on a loop of its own whose time is virtual."""

    @functools.wraps(story)
    def test(*args, **kwargs):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(story(*args, **kwargs))

    return test


def obliging(command: Command) -> Reply | None:
    return GlassesInfo("test", "1", "1", {}, {}) if isinstance(command, Hello) else Done(drawn=1)


class Glasses:
    """The peripheral's codec on its end of a loopback. `reply` None: the command is left
    unanswered.
    """

    def __init__(
        self, transport: LoopbackTransport, reply: Callable[[Command], Reply | None] = obliging
    ) -> None:
        self.transport = transport
        self.codec = ReferenceCodec(Role.PERIPHERAL, max_packet=transport.max_packet)
        self.reply = reply
        self.heard: list[Command] = []
        self.unanswered: list[int] = []
        self.listening = True
        self.heard_one = asyncio.Condition()

    async def serve(self) -> None:
        async for packet in self.transport.packets():
            if not self.listening:
                continue
            self.codec.receive_packet(packet, 0.0)
            while (incoming := self.codec.next_event()) is not NEED_DATA:
                self.heard.append(incoming.message)
                answer = self.reply(incoming.message)
                if answer is not None and incoming.number is not None:
                    self.codec.send(answer, 0.0, re=incoming.number)
                elif incoming.number is not None:
                    self.unanswered.append(incoming.number)
            await self.flush()
            async with self.heard_one:
                self.heard_one.notify_all()

    async def flush(self) -> None:
        for packet in self.codec.packets_to_send(0.0):
            await self.transport.write(packet)

    async def say(self, *events: Event) -> None:
        for event in events:
            self.codec.send(event, 0.0)
        await self.flush()

    async def answer(self, reply: Reply, number: int) -> None:
        self.codec.send(reply, 0.0, re=number)
        await self.flush()

    async def has_heard(self, count: int) -> None:
        async with asyncio.timeout(60), self.heard_one:
            await self.heard_one.wait_for(lambda: len(self.heard) >= count)
