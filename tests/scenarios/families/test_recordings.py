"""Story: an agent or the cloud wants to hear what is around the wearer, who decides."""

import base64
import io
import math
import wave
from array import array

import httpx
import pytest

from edge.mcp.server.results import result
from tests.scenarios.world import until, whole_world, world
from tests.system import needs
from tools_cache.api.tool import CallOrigin

pytestmark = pytest.mark.asyncio(loop_scope="session")
RECORD = "glasses:record_sound"
TONE = array("h", [round(12000 * math.sin(n * 0.2)) for n in range(6 * 16000)]).tobytes()
"""Six seconds of 509 Hz."""


def heard(wav):
    """Return (rate, seconds, how loud its loudest half second is)."""
    with wave.open(io.BytesIO(wav)) as file:
        rate, frames = file.getframerate(), file.getnframes()
        pcm = array("h", file.readframes(frames))
    half = rate // 2
    loud = [
        math.sqrt(sum(x * x for x in pcm[at : at + half]) / half)
        for at in range(0, max(1, len(pcm) - half), half)
    ]
    return rate, frames / rate, max(loud)


@pytest.mark.parametrize(
    "model",
    [
        "mock:full",
        pytest.param("sim:even_g1", marks=needs("liblc3")),
        pytest.param("sim:mentra_nex", marks=needs("liblc3")),
        "sim:frame",
        "sim:monocle",
        "sim:omi",
        "sim:openglass",
    ],
)
async def test_sound_of_each_format_is_recorded(tmp_path, model):
    worn = {} if model.startswith("mock:") else {"model": model.removeprefix("sim:")}
    async with world(tmp_path, model, glasses=worn) as place:
        await place.switch_glasses_on(speed=1.0)
        await place.start_daemon(microphone={"recogniser": "off"})
        await place.ready()
        place.mock.glasses.microphone.hear(TONE)
        rate, seconds, loudness = heard(await place.daemon.listening.record(2.0, rate=16000))
        assert rate == 16000
        assert 1.0 < seconds < 2.6
        assert loudness > 3000
        await until(lambda: not place.mock.glasses.microphone.open, "the microphone off")


async def test_an_agent_gets_the_sound_after_a_yes(tmp_path):
    async with world(tmp_path, "mock:full") as place:
        await place.switch_glasses_on(speed=1.0)
        await place.start_daemon(microphone={"recogniser": "off"})
        await place.ready()
        place.start_call(RECORD, {"seconds": 1}, origin=CallOrigin.MCP)
        place.mock.glasses.microphone.hear(TONE)
        await place.answer_question()
        await place.lens_shows("Listening")
        response = await place.answer()
        assert response.ok, response.error
        said, sound = result(response.to_json())["content"][:2]
        assert (said["text"], sound["type"]) == ("Sound was recorded", "audio")
        assert heard(base64.b64decode(sound["data"]))[2] > 3000
        await place.lens_shows("Sound was recorded")


async def test_the_cloud_gets_a_link_to_the_sound(tmp_path, cloud):
    async with (
        whole_world(tmp_path, "mock:full", cloud=cloud, speed=1.0) as place,
        place.onlooker() as cloud_side,
    ):
        await cloud_side.hears_on("capabilities", model="mock:full")
        invocation = await cloud_side.invokes(RECORD, {"seconds": 9})
        await place.answer_question()
        response = await cloud_side.answer_to(invocation)
        assert response["ok"], response
        link = response["meta"]["content"][1]
        assert (link["type"], link["mimeType"]) == ("resource_link", "audio/wav")
        async with httpx.AsyncClient(trust_env=False) as client:
            found = await client.get(link["uri"], headers={"X-User-Id": "local"})
        assert len(found.content) == link["size"] > 200_000
        assert heard(found.content)[0] == 16000
