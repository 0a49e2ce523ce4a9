"""`glasses:captions`: on and off, by arguments and by what the wearer says."""

from pathlib import Path

import pytest

import tools_cache
from edge.core import phrases
from edge.listening_ports import CannotListen
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.tools.local import LocalTools
from edge.tools.registry import ToolRegistry
from edge.tools.services import Services
from tests.unit.tools.compiled import shipped as compiled
from tests.unit.tools.test_glasses_settings import CLOCK
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolCall

TOOLS = Path(tools_cache.__file__).parent / "tools"
NAME = "glasses:captions"


class Microphone:
    """`CaptionsPort`."""

    def __init__(self):
        self.told = []
        self.why = ""

    async def switch(self, *, on):
        if self.why:
            raise CannotListen(self.why)
        self.told.append(on)


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
    async def go(args, microphone):
        definition = registry.snapshot().find(NAME).definition
        filled, problems = registry.check_args(definition, args)
        assert problems == []
        captions = None if microphone is None else (lambda: microphone)
        services = Services(storage_for=None, alarms=None, clock=CLOCK, captions=captions)
        call = ToolCall(call_id="c1", tool=NAME, args=filled, origin=CallOrigin.CLI)
        return await LocalTools(tools=TOOLS, services=services).run(call, definition, None)

    return go


@pytest.mark.parametrize(("args", "on"), [({}, True), ({"on": True}, True), ({"on": False}, False)])
async def test_it_turns_them_on_and_off(run, args, on):
    microphone = Microphone()
    answer = await run(args, microphone)
    assert microphone.told == [on]
    assert answer.data == {"on": on, "text": f"Captions are {'on' if on else 'off'}"}


async def test_it_passes_on_why_the_microphone_cannot_listen(run):
    microphone = Microphone()
    microphone.why = "These glasses have no microphone."
    answer = await run({}, microphone)
    assert (answer.error.code, answer.error.message) == (ErrorCode.NOT_ACCEPTED, microphone.why)
    assert answer.error.for_wearer == microphone.why


async def test_it_is_refused_where_nothing_listens(run):
    assert (await run({}, None)).error.code is ErrorCode.UNSUPPORTED


@pytest.mark.parametrize(
    ("said", "on"),
    [
        ("turn on captions", True),
        ("turn on the captions please", True),
        ("turn on live captions", True),
        ("show captions", True),
        ("turn off captions", False),
        ("please turn the captions off", False),
        ("stop captions", False),
        ("Stop the captions.", False),
    ],
)
def test_the_wearer_turns_them_on_and_off_by_voice(registry, said, on):
    tools = [entry.definition for entry in registry.snapshot().entries()]
    found = phrases.match(said, tools)
    assert found.tool.name == NAME
    assert registry.check_args(found.tool, found.args) == ({"on": on}, [])
