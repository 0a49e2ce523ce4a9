"""`glasses:record_sound`: how long, at which rate, and what its result has."""

import base64
from pathlib import Path

import pytest

import tools_cache
from edge.core import phrases
from edge.listening_ports import CannotListen
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.tools.context import Context
from edge.tools.local import LocalTools
from edge.tools.registry import ToolRegistry
from edge.tools.services import Services
from tests.unit.tools.compiled import shipped as compiled
from tests.unit.tools.test_glasses_settings import CLOCK
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolCall, ToolFailure

TOOLS = Path(tools_cache.__file__).parent / "tools"
NAME = "glasses:record_sound"


class Microphone:
    """`RecordingPort`: each second is a thousandth of what it really has."""

    def __init__(self, why=""):
        self.asked = []
        self.why = why

    async def record(self, seconds, *, rate):
        self.asked.append((seconds, rate))
        if self.why:
            raise CannotListen(self.why)
        return b"RIFF" * seconds


@pytest.fixture
def registry(tmp_path):
    artifact = tmp_path / "tool_registry.json"
    artifact.write_text(compiled())
    made = ToolRegistry(
        builtin=artifact, state=tmp_path / "registry", bus=Bus(), clock=Clock.system()
    )
    made.load()
    return made


@pytest.fixture
def run(registry):
    async def go(args, microphone, origin=CallOrigin.MCP):
        definition = registry.snapshot().find(NAME).definition
        filled, problems = registry.check_args(definition, args)
        assert problems == []
        services = Services(
            storage_for=None, alarms=None, clock=CLOCK, microphone=lambda: microphone
        )
        call = ToolCall(call_id="c1", tool=NAME, args=filled, origin=origin)
        return await LocalTools(tools=TOOLS, services=services).run(call, definition, None)

    return go


@pytest.mark.parametrize(
    ("args", "origin", "asked"),
    [
        ({}, CallOrigin.MCP, (4, 16000)),
        ({"seconds": 5}, CallOrigin.MCP, (5, 8000)),
        ({"seconds": 8}, CallOrigin.CLI, (8, 8000)),
        ({"seconds": 9}, CallOrigin.CLOUD, (9, 16000)),
        ({"seconds": 30}, CallOrigin.CLOUD, (30, 16000)),
    ],
)
async def test_the_rate_is_the_best_that_a_result_holds(run, args, origin, asked):
    microphone = Microphone()
    response = await run(args, microphone, origin)
    assert response.ok, response.error
    assert microphone.asked == [asked]
    wav = b"RIFF" * asked[0]
    assert response.data["rate"] == asked[1]
    assert response.data["bytes"] == len(wav)
    said, sound = response.meta["content"]
    assert said == {"type": "text", "text": "Sound was recorded"}
    assert base64.b64decode(sound["data"]) == wav
    assert (sound["type"], sound["mimeType"]) == ("audio", "audio/wav")


async def test_what_a_result_cannot_hold_is_refused_before_the_wearer_hears_of_it(run):
    microphone = Microphone()
    error = (await run({"seconds": 9}, microphone)).error
    assert error.code is ErrorCode.INVALID_ARGUMENTS
    assert microphone.asked == []


async def test_a_recording_that_fails_says_why(run):
    error = (await run({}, Microphone("The glasses are not connected."))).error
    assert (error.code, error.message) == (
        ErrorCode.NOT_ACCEPTED,
        "The glasses are not connected.",
    )


async def test_no_other_tool_gets_the_microphone():
    services = Services(storage_for=None, alarms=None, clock=CLOCK, microphone=Microphone)
    call = ToolCall(call_id="c1", tool="spy:listen", args={}, origin=CallOrigin.CLI)
    with pytest.raises(ToolFailure, match="asks the wearer"):
        _ = Context(call, services, None).microphone


@pytest.mark.parametrize("said", ["record sound", "record what I hear"])
def test_it_can_be_said(registry, said):
    tools = [entry.definition for entry in registry.snapshot().entries()]
    assert phrases.match(said, tools).tool.name == NAME


def test_the_wearer_is_asked_each_time(registry):
    definition = registry.snapshot().find(NAME).definition
    assert definition.requires_confirmation == "always"
