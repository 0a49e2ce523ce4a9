"""The bus: nobody waits, nobody misses what came after they began to listen, a laggard loses
its oldest.
"""

import asyncio

from edge.runtime.bus import Bus
from edge.runtime.events import (
    CallAnswered,
    CallReceived,
    GlassesLost,
    GlassesSaid,
    LinkChanged,
    LoaderMoved,
    UplinkChanged,
    as_json,
)
from firmware_bridge.own_commands import HotspotChanged
from tools_cache.api.tool import Delivery, DeliveryReport


async def _take(listener, count):
    taken = []
    async with asyncio.timeout(20):
        async for event in listener:
            taken.append(event)
            if len(taken) == count:
                return taken


async def test_every_listener_gets_every_event_in_order():
    bus = Bus()
    with bus.listen() as one, bus.listen() as two:
        for n in range(3):
            bus.publish(LinkChanged(str(n)))
        assert [h.state for h in await _take(one, 3)] == ["0", "1", "2"]
        assert [h.state for h in await _take(two, 3)] == ["0", "1", "2"]


async def test_a_waiting_listener_is_woken():
    bus = Bus()
    with bus.listen() as listener:
        waiting = asyncio.ensure_future(_take(listener, 1))
        await asyncio.sleep(0)
        bus.publish(GlassesLost("gone"))
        assert (await waiting)[0].reason == "gone"


async def test_a_slow_listener_loses_its_oldest_and_knows_how_many():
    bus = Bus()
    with bus.listen(bound=2) as slow, bus.listen() as quick:
        for n in range(5):
            bus.publish(LinkChanged(str(n)))
        assert [h.state for h in await _take(slow, 2)] == ["3", "4"]
        assert slow.missed == 3
        assert len(await _take(quick, 5)) == 5


async def test_a_listener_that_left_is_forgotten():
    bus = Bus()
    with bus.listen() as listener:
        pass
    bus.publish(LinkChanged("x"))
    assert listener.missed == 0
    assert bus._listeners == []


def test_an_event_becomes_json_with_its_wire_name():
    assert as_json(UplinkChanged(up=False, broker="b:1", reason="refused")) == {
        "event": "uplink.down",
        "up": False,
        "broker": "b:1",
        "reason": "refused",
    }
    report = DeliveryReport(Delivery.SPOKEN, downgrade="display→speech")
    assert as_json(LinkChanged("READY"))["state"] == "READY"
    assert report.to_json() == {"state": "spoken", "downgrade": "display→speech"}
    assert DeliveryReport.from_json(report.to_json()) == report


def test_no_password_of_the_glasses_is_in_an_event():
    said = as_json(GlassesSaid(HotspotChanged(True, "Own", "secret", "192.168.43.1")))["said"]
    assert said["ssid"] == "Own"
    assert "password" not in said


async def test_who_does_not_watch_calls_is_not_woken_by_them():
    bus = Bus()
    with bus.listen(calls=False) as quiet, bus.listen() as watching:
        for event in (
            CallReceived("1", "a:b", "cli"),
            CallAnswered("1", "a:b", True, "local", "none"),
            LinkChanged("x"),
        ):
            bus.publish(event)
        assert [type(one).__name__ for one in await _take(watching, 3)] == [
            "CallReceived",
            "CallAnswered",
            "LinkChanged",
        ]
        assert await _take(quiet, 1) == [LinkChanged("x")]


async def test_a_tools_use_is_of_a_call_and_its_loading_is_not():
    bus, loaded = Bus(), LoaderMoved("loaded", 1, "a:b")
    with bus.listen(calls=False) as quiet:
        bus.publish(LoaderMoved("used", 1, "a:b"))
        bus.publish(loaded)
        assert await _take(quiet, 1) == [loaded]


def test_a_recorder_has_each_event_when_publish_returns_until_it_leaves():
    bus, all_, quiet = Bus(), [], []
    with bus.record(all_.append):
        with bus.record(quiet.append, calls=False):
            bus.publish(CallReceived("id", "a:b", "cli"))
            assert (len(all_), len(quiet)) == (1, 0)
            bus.publish(LinkChanged("1"))
            assert (len(all_), len(quiet)) == (2, 1)
        bus.publish(LinkChanged("2"))
    bus.publish(LinkChanged("3"))
    assert (len(all_), len(quiet)) == (3, 1)
