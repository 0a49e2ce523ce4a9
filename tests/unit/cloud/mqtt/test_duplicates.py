"""Two daemons with one edge id: named and no longer fighting; a link that only flaps is never
taken for that.
"""

import asyncio

import pytest

from edge.cloud.mqtt.duplicates import Duplicates
from edge.runtime.events import Alarmed
from tests.e2e.broker import iotcore, mosquitto, proxy, until
from tests.unit.cloud.mqtt.support import TOPICS, cloud, edge

pytestmark = [pytest.mark.enable_socket, pytest.mark.mosquitto]


def alarms(near) -> list[tuple[str, bool]]:
    return [(h.alarm, h.over) for h in near.happened if isinstance(h, Alarmed)]


@pytest.mark.requirement("I11-one-id")
@pytest.mark.parametrize("start", [mosquitto, iotcore])
async def test_two_daemons_with_one_edge_id_raise_an_alarm_and_wait(tmp_path, start):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    patient = {
        "takeover_wait_s": 1.5,
        "stable_s": 2.0,
        "reconnect_min_s": 0.2,
        "reconnect_max_s": 0.5,
    }
    with start(tmp_path) as broker:
        async with (
            edge(tmp_path / "a", port=broker.port, **patient) as one,
            edge(tmp_path / "b", port=broker.port, **patient) as two,
        ):
            one.start()
            await one.up()
            two.start()
            await until(
                lambda: ("uplink.taken_over", False) in alarms(one) + alarms(two),
                what="one of them knows",
            )
            knows = one if alarms(one) else two
            (alarm, *_) = [h for h in knows.happened if isinstance(h, Alarmed)]
            assert "edge-1" in alarm.text
            assert "stop it, or give" in alarm.text
            await until(
                lambda: (
                    knows.uplink.status().reason.startswith("taken_over")
                    or knows.uplink.status().up
                )
            )
            before = knows.uplink._retained.connections
            await asyncio.sleep(1.0)
            assert knows.uplink._retained.connections - before <= 1, "it does not fight on"
            await (two if knows is one else one).stop()
            await until(
                lambda: alarms(knows)[-1:] == [("uplink.taken_over", True)],
                what="the alarm ends when the other is gone",
            )
            assert knows.uplink.status().up


@pytest.mark.requirement("I11-one-id")
@pytest.mark.parametrize("start", [mosquitto, iotcore])
async def test_a_link_that_is_cut_seventy_times_raises_no_alarm(tmp_path, start):
    with start(tmp_path) as broker:
        async with (
            proxy(broker.port) as middle,
            edge(tmp_path, port=middle.port, reconnect_max_s=0.02) as near,
        ):
            near.start()
            for _ in range(73):
                await near.up()
                middle.cut()
                await near.down()
            await near.up()
            assert near.uplink._retained.connections > 73
            assert alarms(near) == []


@pytest.mark.requirement("I11-one-id")
async def test_a_daemon_that_was_killed_is_not_taken_for_another_one(tmp_path):
    with mosquitto(tmp_path) as broker:
        async with proxy(broker.port) as middle, cloud(broker.port) as far:
            async with edge(tmp_path, port=broker.port) as before:
                before.start()
                await before.up()
            (seen, *_) = await far.wait_for("presence")
            async with edge(tmp_path, port=middle.port) as near:
                near.start()
                for _ in range(3):
                    await near.up()
                    await far.say(
                        "presence", dict(seen.message.body), topic=TOPICS.presence, retain=True
                    )
                    middle.cut()
                    await near.down()
                await near.up()
                assert alarms(near) == []


def test_only_a_process_that_goes_on_connecting_is_another_daemon():
    found: list[int] = []
    duplicates = Duplicates("me", lambda: found.append(1))
    for instance, seq in [("me", 1), ("me", 2), ("old", 7), ("old", 7), ("me", 3), ("older", 9)]:
        duplicates.saw({"instance": instance, "seq": seq})
    assert not found
    duplicates.saw({"instance": "older", "seq": 10})
    assert found
