"""The driver over the real codec and a loopback: answers, silence, back-pressure, and every way
to end.
"""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest
import uvloop

from firmware_bridge.codec import Role
from firmware_bridge.codecs.reference.codec import ReferenceCodec
from firmware_bridge.codecs.reference.frames import RETRY_AFTER_S
from firmware_bridge.driver import (
    BACKLOG_BYTES,
    CLOSE_S,
    HEARTBEAT_S,
    MAX_EVENTS,
    MAX_VIOLATIONS,
    WRITE_S,
    Driver,
    Passing,
)
from firmware_bridge.errors import (
    CommandRefused,
    CommandTimeout,
    LinkLost,
    LocalMisuse,
    LostReason,
    Violation,
)
from firmware_bridge.messages import (
    AudioChunk,
    BatteryChanged,
    ClearPage,
    Done,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    Ping,
    SetSilentMode,
    ShowPage,
    TextLine,
)
from firmware_bridge.transports.loopback import Faults, loopback_pair
from tests.unit.firmware_bridge.virtual import Glasses, obliging, virtual_time

TAP = Gestured(Gesture.TAP)
SOUND = bytes(1000)


def now():
    return asyncio.get_running_loop().time()


class Connection:
    def __init__(self, driver, glasses, transport):
        self.driver = driver
        self.glasses = glasses
        self.transport = transport
        self.running = asyncio.ensure_future(driver.run())
        self.serving = asyncio.ensure_future(glasses.serve())

    async def ends(self):
        """Wait for the end of `run()` and give the LinkLost it ended with."""
        async with asyncio.timeout(120):
            with pytest.raises(LinkLost) as lost:
                await self.running
        return lost.value


@asynccontextmanager
async def connected(*, reply=obliging, max_packet=244, wrap=lambda transport: transport, **air):
    central, peripheral = loopback_pair(max_packet=max_packet, **air)
    transport = wrap(central)
    driver = Driver(
        transport,
        ReferenceCodec(Role.CENTRAL, max_packet=max_packet),
        clock=asyncio.get_running_loop().time,
    )
    connection = Connection(driver, Glasses(peripheral, reply), central)
    try:
        yield connection
    finally:
        await central.close()
        await asyncio.wait([connection.running, connection.serving], timeout=60)
        for task in (connection.running, connection.serving):
            assert task.done(), "a pump outlived its connection"
            if not task.cancelled():
                assert isinstance(task.exception(), LinkLost | None)


class Under:
    """A transport with one thing changed, for faults of the radio itself."""

    def __init__(self, transport):
        self._transport = transport

    def __getattr__(self, name):
        return getattr(self._transport, name)


# ------------------------------------------------------------------ asking


@virtual_time
async def test_a_request_gets_its_answer():
    async with connected() as link:
        info = await link.driver.request(Hello("glassd", "1"), timeout_s=5)
        done = await link.driver.request(ShowPage("s", lines=(TextLine(0, "x"),)), timeout_s=5)
    assert (type(info), done) == (GlassesInfo, Done(drawn=1))
    assert link.driver.counters.packets_in > 0 < link.driver.counters.packets_out


@virtual_time
async def test_answers_find_their_requests_in_any_order():
    async with connected(reply=lambda _: None) as link:
        asking = [
            asyncio.ensure_future(link.driver.request(ClearPage(), timeout_s=5)) for _ in range(3)
        ]
        await link.glasses.has_heard(3)
        for number in (3, 1, 2):
            await link.glasses.answer(Done(drawn=number), number)
        assert [(await one).drawn for one in asking] == [1, 2, 3]


@virtual_time
async def test_a_refusal_is_raised_with_its_code():
    async with connected(reply=lambda _: Failed("busy", "later")) as link:
        with pytest.raises(CommandRefused, match="busy: later") as refused:
            await link.driver.request(ClearPage(), timeout_s=5)
        assert refused.value.code == "busy"
        assert not link.running.done()


@virtual_time
async def test_a_command_unknown_to_the_family_keeps_the_link():
    async with connected() as link:
        with pytest.raises(CommandRefused, match="does not have SetSilentMode") as refused:
            await link.driver.request(SetSilentMode(on=True), timeout_s=5)
        with pytest.raises(CommandRefused):
            await link.driver.post(SetSilentMode(on=True))
        assert isinstance(await link.driver.request(Ping(), timeout_s=5), Done)
    assert refused.value.code == "unsupported"


@virtual_time
async def test_no_answer_is_a_timeout_and_a_late_answer_is_ignored():
    async with connected(reply=lambda c: None if isinstance(c, ClearPage) else Done()) as link:
        began = now()
        with pytest.raises(CommandTimeout, match="ClearPage: no answer in 2 s"):
            await link.driver.request(ClearPage(), timeout_s=2)
        assert now() - began == pytest.approx(2, abs=0.01)
        await link.glasses.answer(Done(drawn=99), link.glasses.unanswered[0])
        assert await link.driver.request(Ping(), timeout_s=2) == Done()
        assert link.driver.counters.late_answers == 1


@virtual_time
async def test_a_cancelled_request_stays_cancelled_and_leaves_nothing_behind():
    async with connected(reply=lambda c: None if isinstance(c, ClearPage) else Done()) as link:
        asking = asyncio.ensure_future(link.driver.request(ClearPage(), timeout_s=50))
        await link.glasses.has_heard(1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert link.driver._pending == {}
        assert await link.driver.request(Ping(), timeout_s=2) == Done()


@virtual_time
async def test_requesting_what_has_no_answer_is_misuse():
    async with connected() as link:
        with pytest.raises(LocalMisuse, match="post it"):
            await link.driver.request(AudioChunk(1, 0, (b"x",)), timeout_s=1)


@virtual_time
async def test_a_request_made_before_the_pumps_run_is_answered():
    central, peripheral = loopback_pair()
    driver = Driver(central, ReferenceCodec(Role.CENTRAL), clock=now)
    asking = asyncio.ensure_future(driver.request(Ping(), timeout_s=5))
    await asyncio.wait([asking], timeout=0.5)
    link = Connection(driver, Glasses(peripheral), central)
    assert await asking == Done(drawn=1)
    await central.close()
    await link.ends()
    await link.serving


# ------------------------------------------------------------------ the end


@virtual_time
async def test_a_lost_link_fails_everyone_with_the_first_reason():
    async with connected(reply=lambda _: None) as link:
        asking = [
            asyncio.ensure_future(link.driver.request(ClearPage(), timeout_s=50)) for _ in range(3)
        ]
        await link.glasses.has_heard(3)
        await link.glasses.transport.close()
        lost = await link.ends()
        results = await asyncio.gather(*asking, return_exceptions=True)
        assert lost.reason is LostReason.DISCONNECTED
        assert [(type(r), r.reason) for r in results] == [(LinkLost, LostReason.DISCONNECTED)] * 3
        assert len({id(r) for r in results}) == 3, "each has an error of its own"
        for late in (
            link.driver.request(Ping(), timeout_s=5),
            link.driver.post(AudioChunk(1, 0, ())),
        ):
            with pytest.raises(LinkLost) as again:
                await late
            assert again.value.reason is LostReason.DISCONNECTED


@virtual_time
async def test_the_first_error_wins_over_those_that_follow():
    class Failing(Under):
        async def write(self, packet):
            raise LinkLost(LostReason.WRITE_FAILED, "no buffer")

    async with connected(wrap=Failing) as link:
        with pytest.raises(LinkLost) as mine:
            await link.driver.request(Ping(), timeout_s=5)
        lost = await link.ends()
    assert mine.value.reason is lost.reason is LostReason.WRITE_FAILED
    assert str(lost) == "write_failed: no buffer"
    link.driver._end(LinkLost(LostReason.SILENT))
    assert link.driver._over().reason is LostReason.WRITE_FAILED


@virtual_time
async def test_a_cancelled_run_stays_cancelled_closes_the_transport_and_fails_who_waits():
    async with connected(reply=lambda _: None) as link:
        asking = asyncio.ensure_future(link.driver.request(ClearPage(), timeout_s=50))
        await link.glasses.has_heard(1)
        link.running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await link.running
        with pytest.raises(LinkLost) as lost:
            await asking
        assert lost.value.reason is LostReason.CLOSED
        async with asyncio.timeout(5):
            await link.serving  # the other end saw the connection end


@virtual_time
async def test_a_bug_is_not_reported_as_a_lost_link():
    class Broken(Under):
        async def write(self, packet):
            raise ZeroDivisionError

    central, _ = loopback_pair()
    driver = Driver(Broken(central), ReferenceCodec(Role.CENTRAL), clock=now)
    asking = asyncio.ensure_future(driver.request(Ping(), timeout_s=5))
    with pytest.raises(ExceptionGroup) as group:
        await driver.run()
    assert group.group_contains(ZeroDivisionError)
    with pytest.raises(LinkLost):
        await asking


@virtual_time
async def test_a_driver_is_used_once():
    async with connected() as link:
        await link.driver.request(Ping(), timeout_s=5)
        with pytest.raises(LocalMisuse, match="once"):
            await link.driver.run()
        assert await link.driver.request(Ping(), timeout_s=5) == Done(drawn=1)


@virtual_time
async def test_a_write_that_never_ends_is_a_lost_link():
    class Stuck(Under):
        async def write(self, packet):
            await asyncio.Event().wait()

    async with connected(wrap=Stuck) as link:
        began = now()
        with pytest.raises(LinkLost):
            await link.driver.request(Ping(), timeout_s=60)
        assert (await link.ends()).reason is LostReason.WRITE_FAILED
        assert now() - began == pytest.approx(WRITE_S, abs=0.1)


@virtual_time
async def test_a_transport_that_does_not_close_blocks_nothing(caplog):
    class Sticky(Under):
        async def close(self):
            await asyncio.Event().wait()

    async with connected(wrap=Sticky) as link:
        await link.driver.request(Ping(), timeout_s=5)
        began = now()
        await link.glasses.transport.close()
        assert (await link.ends()).reason is LostReason.DISCONNECTED
        assert now() - began == pytest.approx(CLOSE_S, abs=0.1)
    assert "did not close within 5 s" in caplog.text


# ------------------------------------------------------------------ telling


@virtual_time
async def test_posted_chunks_arrive_in_order():
    chunks = [AudioChunk(1, index, (SOUND,)) for index in range(100)]
    async with connected() as link:
        for chunk in chunks:
            await link.driver.post(chunk)
        await link.glasses.has_heard(100)
    assert link.glasses.heard == chunks


@virtual_time
async def test_post_waits_until_the_glasses_take_packets_again():
    async with connected() as link:
        await link.driver.request(Ping(), timeout_s=5)
        link.glasses.listening = False
        posted = 0

        async def speak():
            nonlocal posted
            for index in range(40):
                await link.driver.post(AudioChunk(1, index, (SOUND,)), timeout_s=50)
                posted = index + 1

        speaking = asyncio.ensure_future(speak())
        await asyncio.wait([speaking], timeout=0.5)
        assert BACKLOG_BYTES // 1100 < posted <= BACKLOG_BYTES // 1000 + 1
        assert link.driver._codec.backlog() < BACKLOG_BYTES + 1100

        link.glasses.listening = True
        async with asyncio.timeout(10):
            await speaking
        await link.glasses.has_heard(41)
        assert [chunk.index for chunk in link.glasses.heard[1:]] == list(range(40))


@virtual_time
async def test_a_post_for_which_no_room_comes_is_a_timeout():
    async with connected() as link:
        await link.driver.request(Ping(), timeout_s=5)
        link.glasses.listening = False
        began = now()
        with pytest.raises(CommandTimeout, match="AudioChunk: no room in 2 s"):
            for index in range(100):
                await link.driver.post(AudioChunk(1, index, (SOUND,)), timeout_s=2)
        assert now() - began == pytest.approx(2, abs=0.1)


@virtual_time
async def test_a_sender_waiting_for_room_fails_with_the_link():
    async with connected() as link:
        await link.driver.request(Ping(), timeout_s=5)
        link.glasses.listening = False
        while link.driver._codec.backlog() <= BACKLOG_BYTES:
            await link.driver.post(AudioChunk(1, 0, (SOUND,)))
        waiting = [
            asyncio.ensure_future(link.driver.post(AudioChunk(1, 0, ()), timeout_s=50)),
            asyncio.ensure_future(link.driver.request(Ping(), timeout_s=50)),
        ]
        await asyncio.wait(waiting, timeout=0.1)
        await link.glasses.transport.close()
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [r.reason for r in results] == [LostReason.DISCONNECTED] * 2


@virtual_time
async def test_a_lost_packet_is_sent_again_when_its_time_comes():
    async with connected(to_glasses=Faults(lost=[0])) as link:
        began = now()
        assert await link.driver.request(Ping(), timeout_s=5) == Done(drawn=1)
        assert now() - began == pytest.approx(RETRY_AFTER_S[0], abs=0.05)


@virtual_time
async def test_the_driver_follows_a_growing_mtu():
    sizes = []

    class Watching(Under):
        async def write(self, packet):
            sizes.append(len(packet))
            await self._transport.write(packet)

    async with connected(max_packet=20, wrap=Watching) as link:
        page = ShowPage("s", lines=tuple(TextLine(row, "x" * 80) for row in range(9)))
        await link.driver.request(page, timeout_s=5)
        assert max(sizes) == 20
        link.transport.max_packet = 100
        await link.driver.request(page, timeout_s=5)
        assert max(sizes) == 100


# ------------------------------------------------------------------ silence


@virtual_time
async def test_a_smaller_mtu_is_known_before_the_packet_with_it():
    calls = []

    class Watched(ReferenceCodec):
        def set_max_packet(self, size):
            calls.append(size)
            super().set_max_packet(size)

        def receive_packet(self, packet, now):
            calls.append("packet")
            super().receive_packet(packet, now)

    central, peripheral = loopback_pair(max_packet=244)
    driver = Driver(central, Watched(Role.CENTRAL, max_packet=244), clock=now)
    running = asyncio.ensure_future(driver.run())
    await asyncio.sleep(1)
    central.max_packet = 20
    glasses = Glasses(peripheral)
    await glasses.say(TAP)
    await asyncio.sleep(1)
    await central.close()
    await asyncio.wait([running], timeout=60)
    assert isinstance(running.exception(), LinkLost)
    assert calls[:3] == [244, 20, "packet"]


@virtual_time
async def test_after_a_silence_the_glasses_are_asked_and_their_answer_counts():
    async with connected() as link:
        await link.driver.request(Ping(), timeout_s=5)
        await asyncio.wait([link.running], timeout=HEARTBEAT_S * 4 + 1)
        assert not link.running.done()
        assert link.driver.counters.pings == 4
        assert link.glasses.heard == [Ping()] * 5


@virtual_time
async def test_glasses_that_say_something_are_not_asked():
    async with connected() as link:
        for level in range(20):
            await asyncio.wait([link.running], timeout=HEARTBEAT_S * 0.8)
            await link.glasses.say(BatteryChanged(level))
        assert link.driver.counters.pings == 0
        assert link.glasses.heard == []


@virtual_time
async def test_a_refused_ping_is_a_sign_of_life():
    async with connected(reply=lambda _: Failed("unsupported")) as link:
        await asyncio.wait([link.running], timeout=HEARTBEAT_S * 3 + 1)
        assert not link.running.done()
        assert link.driver.counters.pings == 3


@virtual_time
async def test_silence_after_the_question_is_a_lost_link():
    async with connected() as link:
        link.glasses.listening = False
        began = now()
        lost = await link.ends()
        assert lost.reason is LostReason.SILENT
        assert now() - began == pytest.approx(2 * HEARTBEAT_S, abs=0.5)


@virtual_time
async def test_glasses_that_send_but_answer_no_ping_are_alive():
    async with connected(reply=lambda _: None) as link:
        for level in range(10):
            await asyncio.wait([link.running], timeout=HEARTBEAT_S * 1.2)
            await link.glasses.say(BatteryChanged(level))
        assert link.driver.counters.pings > 2
        assert not link.running.done()


@virtual_time
async def test_unacknowledged_packets_are_a_lost_link_before_the_heartbeat_is():
    async with connected() as link:
        await link.driver.request(Ping(), timeout_s=5)
        link.glasses.listening = False
        began = now()
        with pytest.raises(LinkLost) as lost:
            await link.driver.request(ClearPage(), timeout_s=50)
        assert lost.value.reason is LostReason.SILENT
        assert now() - began == pytest.approx(sum(RETRY_AFTER_S), abs=0.05)


# ------------------------------------------------------------------ events


@virtual_time
async def test_events_come_in_order_and_end_with_the_connection():
    said = [TAP, BatteryChanged(5), TAP]
    async with connected() as link:
        await link.glasses.say(*said)
        await link.glasses.transport.close()
        async with asyncio.timeout(60):
            assert [event async for event in link.driver.events()] == said
        assert [event async for event in link.driver.events()] == []


@virtual_time
async def test_a_waiting_reader_wakes_for_an_event_and_the_end():
    async with connected() as link:
        events = link.driver.events()
        first = asyncio.ensure_future(anext(events))
        await asyncio.wait([first], timeout=0.1)
        await link.glasses.say(TAP)
        assert await first == TAP
        second = asyncio.ensure_future(anext(events, "over"))
        await asyncio.wait([second], timeout=0.1)
        await link.glasses.transport.close()
        assert await second == "over"


@virtual_time
async def test_untaken_sound_is_dropped_before_what_the_wearer_did(caplog):
    async with connected() as link:
        await link.glasses.say(
            TAP, *(MicrophoneChunk(1, i, (b"x",)) for i in range(MAX_EVENTS - 2)), BatteryChanged(1)
        )
        await link.glasses.say(
            BatteryChanged(2), MicrophoneChunk(1, 999, (b"x",)), BatteryChanged(3)
        )
        await link.driver.request(Ping(), timeout_s=5)
        assert link.driver.counters.events_dropped == 3
        await link.glasses.transport.close()
        events = [event async for event in link.driver.events()]
    assert len(events) == MAX_EVENTS
    assert events[0] == TAP
    sound = [event.index for event in events if isinstance(event, MicrophoneChunk)]
    assert sound == [*range(3, MAX_EVENTS - 2), 999]
    assert [event for event in events if isinstance(event, BatteryChanged)] == [
        BatteryChanged(n) for n in (1, 2, 3)
    ]
    assert (
        next(r.levelno for r in caplog.records if "event queue full" in r.getMessage())
        == logging.WARNING
    )


@virtual_time
async def test_without_sound_the_oldest_event_is_dropped():
    async with connected() as link:
        await link.glasses.say(*(BatteryChanged(level % 101) for level in range(MAX_EVENTS + 5)))
        await link.driver.request(Ping(), timeout_s=5)
        await link.glasses.transport.close()
        levels = [event.level async for event in link.driver.events()]
    assert levels == [level % 101 for level in range(5, MAX_EVENTS + 5)]


# ------------------------------------------------------------------ bad bytes


@virtual_time
async def test_bad_bytes_are_counted_and_said_once_and_the_link_lives(caplog):
    async with connected() as link:
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                await link.glasses.transport.write(b"\x99\x00\x00\x00\x00\x00")
            await link.glasses.transport.write(b"\x1b[31m")
            assert await link.driver.request(Ping(), timeout_s=5) == Done(drawn=1)
        assert link.driver.counters.violations == {
            Violation.UNKNOWN_FRAME: 3,
            Violation.TRUNCATED: 1,
        }
    assert len(caplog.records) == 2
    assert "unknown_frame" in caplog.text


@virtual_time
async def test_nothing_but_bad_bytes_is_a_lost_link():
    async with connected() as link:
        for _ in range(MAX_VIOLATIONS - 1):
            await link.glasses.transport.write(b"\x99")
        assert await link.driver.request(Ping(), timeout_s=5) == Done(drawn=1)
        for _ in range(MAX_VIOLATIONS - 1):
            await link.glasses.transport.write(b"\x99")
        assert await link.driver.request(Ping(), timeout_s=5) == Done(drawn=1), (
            "a good message starts the count again"
        )
        for _ in range(MAX_VIOLATIONS):
            await link.glasses.transport.write(b"\x99")
        assert (await link.ends()).reason is LostReason.PROTOCOL


# ------------------------------------------------------------------ loops


def test_the_driver_runs_on_uvloop():
    async def story():
        async with connected(max_packet=20) as link:
            page = ShowPage("s", lines=tuple(TextLine(row, "x" * 80) for row in range(9)))
            answers = await asyncio.gather(
                *(link.driver.request(page, timeout_s=20) for _ in range(5))
            )
            assert answers == [Done(drawn=1)] * 5
            assert link.glasses.heard == [page] * 5

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(story())


# ------------------------------------------------------------------ recording


@virtual_time
async def test_a_tap_is_shown_each_packet_and_what_it_means_in_order():
    shown = []
    async with connected() as link:
        link.driver.tap = lambda _now, passing, value: shown.append((passing, value))
        await link.driver.request(ClearPage(), timeout_s=5)
        link.driver.tap = None
        await link.driver.request(ClearPage(), timeout_s=5)
    kinds = [passing for passing, _ in shown]
    assert [value for passing, value in shown if passing is Passing.COMMAND] == [(ClearPage(), 1)]
    assert kinds.index(Passing.COMMAND) < kinds.index(Passing.OUT) < kinds.index(Passing.IN)
    assert kinds.index(Passing.IN) < kinds.index(Passing.MESSAGE)
    [incoming] = [value for passing, value in shown if passing is Passing.MESSAGE]
    assert (incoming.message, incoming.re) == (Done(drawn=1), 1)
