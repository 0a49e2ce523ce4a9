"""Moving a running uplink to another broker or other credentials."""

import pytest

from edge.runtime.events import UplinkChanged
from tests.e2e.broker import HOST, free_port, mosquitto
from tests.system import needs
from tests.unit.cloud.mqtt.support import a_call, cloud, edge

pytestmark = [pytest.mark.enable_socket, needs("mosquitto")]


def elsewhere(near, **changes):
    from msgspec.structs import replace

    return replace(near.options, **changes)


@pytest.mark.requirement("I4-enrol")
async def test_what_waited_without_a_cloud_is_said_to_the_one_that_comes(tmp_path):
    with mosquitto(tmp_path) as broker:
        async with edge(tmp_path, host=None, tenant="nobody") as near, cloud(broker.port) as far:
            near.start()
            call = a_call()
            await near.uplink.submit(call)
            assert not near.uplink.status().configured
            near.uplink.use(elsewhere(near, host=HOST, port=broker.port, tenant="default"))
            heard = await far.wait_for("call")
            assert heard[0].message.id == call.call_id
            assert heard[0].packet.topic.startswith("glassd/v1/default/e/")
            assert heard[0].packet.response_topic.startswith("glassd/v1/default/e/")
            await far.answer(call.call_id)
            from edge.ports import CallResult

            assert (await near.wait_for(CallResult))[0].call_id == call.call_id


async def test_a_link_publishes_offline_before_moving_elsewhere(tmp_path):
    (tmp_path / "b").mkdir()
    with mosquitto(tmp_path) as here, mosquitto(tmp_path / "b") as there:
        async with (
            edge(tmp_path, port=here.port) as near,
            cloud(here.port) as old,
            cloud(there.port) as new,
        ):
            near.start()
            await near.up()
            near.uplink.use(elsewhere(near, port=there.port))
            await new.wait_for("presence")
            states = [h.message.body["state"] for h in await old.wait_for("presence", 2)]
            assert states == ["online", "offline"]
            downs = [h.reason for h in near.happened if isinstance(h, UplinkChanged) and not h.up]
            assert downs == ["closed"]


async def test_after_a_move_pool_and_version_are_the_new_ones(tmp_path):
    with mosquitto(tmp_path) as broker:
        async with edge(tmp_path, host=None) as near, cloud(broker.port) as far:
            near.start()
            near.uplink.use(
                elsewhere(near, host=HOST, port=broker.port, pool="other", version="9.9")
            )
            presence = (await far.wait_for("presence"))[-1].message.body
            assert (presence["state"], presence["version"]) == ("online", "9.9")
            assert near.uplink._state.registry.endswith("/registry/other")


async def test_a_pausing_uplink_tries_the_new_address_at_once(tmp_path):
    with mosquitto(tmp_path) as broker:
        async with edge(
            tmp_path, port=free_port(), reconnect_min_s=3600.0, reconnect_max_s=3600.0
        ) as near:
            near.start()
            await near.down()
            from tests.e2e.broker import until

            await until(lambda: near.uplink.status().reason.startswith("refused"), what="a refusal")
            near.uplink.use(elsewhere(near, port=broker.port))
            await near.up()
