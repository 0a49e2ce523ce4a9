"""Story: an unchanged MCP client that reads structured content alone shows texts, and learns that
the wearer did not get to read one of them, and why.
"""

import asyncio
import sys

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from edge.display import page_life
from edge.ports import Question
from tests.scenarios.world import world
from tests.unit.commands.test_cli import environment
from tests.unit.mcp.server.mcp_house import ERAS
from tools_cache.api.tool import ToolResponse

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.enable_socket,
    pytest.mark.usefixtures("reading_time"),
]
QUEUED = ("queued", "1 of 1, a question is open")
REPLACED = {"state": "superseded", "reason": "by something newer"}


def agent(place, era):
    words = ["-m", "edge.cli", "mcp", "--socket", str(place.socket)]
    server = StdioServerParameters(command=sys.executable, args=words, env=environment())
    return Client(stdio_client(server), mode=era)


async def how_far(client, call_id):
    """What the client reads about the delivery of an earlier call."""
    answer = await client.call_tool("get_pending_result", {"id": call_id})
    return answer.structured_content["delivery"]


@pytest.mark.requirement("I13-agent-learns-superseded")
@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_learns_that_its_text_was_replaced_before_it_could_be_read(
    tmp_path, monkeypatch, era
):
    monkeypatch.setattr(page_life, "LEAST_S", 20.0)  # however slow this machine is
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        async with agent(place, era) as client:
            asked = {"text": "the first", "duration_s": 30}
            first = await client.call_tool("glasses:show_text", asked)
            delivery = first.structured_content["delivery"]
            assert delivery["state"] == "shown"
            urgent = {"text": "the house is on fire", "priority": "urgent", "durationMs": 120_000}
            await place.daemon.stage.present("u", ToolResponse(render={"display": urgent}))
            call_id = delivery["callId"]
            assert await how_far(client, call_id) == REPLACED | {"callId": call_id}


@pytest.mark.requirement("I13-agent-learns-superseded")
@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_whose_text_waits_knows_how_to_learn_what_became_of_it(tmp_path, era):
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        async with agent(place, era) as client:
            question = place.daemon.stage.ask(Question("q", "Really?", 300.0))
            asking = asyncio.ensure_future(question)
            await place.lens_shows("Really?")
            scene = {"scene": "score"}
            first = await client.call_tool("glasses:show_text", {"text": "1:0", **scene})
            found = first.structured_content
            delivery, call_id = found["delivery"], found["delivery"]["callId"]
            assert (delivery["state"], delivery["reason"]) == QUEUED
            assert f"get_pending_result with id {call_id} " in found["next"]
            await client.call_tool("glasses:show_text", {"text": "2:0", **scene})
            assert await how_far(client, call_id) == REPLACED | {"callId": call_id}
            asking.cancel()
