"""From recognised words to calls: the daemon's own handling of calls, with its own tools and those
of the sample apps; what stands below the calls only notes what ran.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from edge.config import tool_options
from edge.core.hearing import expected_of_tools
from edge.core.hearing.expected import ExpectedWords
from edge.core.tools.snapshot import Entry
from edge.devcloud.main import sample_apps
from edge.ports import CallResult, Progress, Question
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import Answer, Transcript
from tests.hearing_eval.score import Called, Outcome, judge
from tests.hearing_eval.sentences import Sentence
from tests.unit.calls.orchestrator_house import (
    FakeAsk,
    FakeRegistry,
    FakeTools,
    FakeUplink,
    House,
    house,
)
from tools_cache.api.tool import (
    Json,
    SideEffects,
    Source,
    ToolCall,
    ToolDefinition,
    ToolResponse,
)
from tools_cache.registry import manifest
from tools_cache.schema import compile_schema

MADE: Final = 7007
"""Id of what each call made: a call with it takes back the call before a correction."""
SOON_S: Final = 30.0
REGISTRY = Path(manifest.__file__).parents[1] / "tool_registry.json"


def demo_tools() -> tuple[ToolDefinition, ...]:
    """The tools of a daemon without settings, and those of the demo's cloud."""
    built_in = manifest.load(REGISTRY.read_bytes(), source=Source.LOCAL)
    off = tool_options.read({}, REGISTRY.parent / "tools")[0].off
    own = [tool for app in built_in.apps for tool in app.tools if tool.name not in off]
    cloud = [
        manifest.definition(app.package, document, source=Source.CLOUD)
        for app in sample_apps()
        for document in app.document()["tools"]
    ]
    return (*own, *cloud)


class DemoRegistry(FakeRegistry):
    """These tools, with their arguments checked as the daemon checks them."""

    def __init__(self, tools: tuple[ToolDefinition, ...]) -> None:
        super().__init__()
        self.entries = {tool.name: Entry(tool, tool.name.partition(":")[0]) for tool in tools}

    def check_args(
        self, definition: ToolDefinition, args: Mapping[str, Json]
    ) -> tuple[dict[str, Json], list[dict[str, str]]]:
        validator = compile_schema(definition.input_schema)
        filled = validator.filled(dict(args))
        return filled, validator.errors(filled)


class Ran(FakeTools):
    """Every backend, the cloud's worker too: notes what ran, and answers as most tools do."""

    def __init__(self) -> None:
        super().__init__()
        self.handler = self._done

    def cloud(self) -> FakeUplink:
        uplink = FakeUplink()

        def work(call: ToolCall) -> None:
            self.runs.append(call)
            uplink.say(CallResult(call.call_id, ToolResponse(data={"text": "done", "id": MADE})))

        uplink.worker = work
        return uplink

    async def _done(self, call: ToolCall, _: Progress) -> ToolResponse:
        return ToolResponse(data={"text": "done", "id": MADE})


class TruthfulWearer(FakeAsk):
    """Says no to a question about another call than he meant, and yes to all others."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[ToolCall] = []
        self.call_of: Callable[[str], ToolCall]
        self.is_meant: Callable[[ToolCall], bool] = lambda _call: True

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        call = self.call_of(question.call_id)
        if self.is_meant(call):
            return Answer.ALLOW
        self.refused.append(call)
        return Answer.DENY


@dataclass
class Place:
    """A daemon's handling of calls, as it was just started. `tools` are read once for all."""

    folder: Path
    tools: tuple[ToolDefinition, ...] = field(default_factory=demo_tools)

    @property
    def expected(self) -> ExpectedWords:
        """What may be said to these tools."""
        return expected_of_tools.of_tools(DemoRegistry(self.tools).entries.values())

    async def take(
        self, *transcripts: Transcript, before: str = "", meant: Sentence | None = None
    ) -> Outcome:
        """Return what comes of what was heard, utterance by utterance. `before` was said, and
        understood, just before. The wearer says no to what is not `meant`.
        """
        wearer = TruthfulWearer()
        async with self._opened(wearer) as inside:
            if before:
                await self._hear(inside, Transcript(before))
                inside.tools.runs.clear()
                wearer.asked.clear()
            if meant is not None:
                wearer.is_meant = partial(self._is_meant, meant)
            calls: list[Called] = []
            for transcript in transcripts:
                calls += await self._calls_of(inside, wearer, transcript)
            return Outcome(
                heard=" ".join(each.text for each in transcripts),
                calls=tuple(calls),
                questions=tuple(question.text for question in wearer.asked),
            )

    async def _calls_of(
        self, inside: House, wearer: TruthfulWearer, transcript: Transcript
    ) -> list[Called]:
        """Return the calls that ran; if none did, those that were refused."""
        ran, asked, refused = len(inside.tools.runs), len(wearer.asked), len(wearer.refused)
        await self._hear(inside, transcript)
        was_asked = len(wearer.asked) > asked
        new = [call for call in inside.tools.runs[ran:] if call.args.get("id") != MADE]
        return [self._called(call, was_asked) for call in new or wearer.refused[refused:]]

    def _is_meant(self, meant: Sentence, call: ToolCall) -> bool:
        return judge(meant, Outcome(calls=(self._called(call, asked=True),))).is_right

    async def _hear(self, inside: House, transcript: Transcript) -> None:
        """Return when all that came of it is over."""
        await inside.orchestrator.spoken.take_safely(transcript)
        async with timeout(SOON_S):
            while inside.orchestrator.running:
                await asyncio.sleep(0.005)

    def _called(self, call: ToolCall, asked: bool) -> Called:
        tool = next(t for t in self.tools if t.name == call.tool)
        changes = tool.side_effects is SideEffects.WRITES
        return Called(call.tool, dict(call.args), asked, changes)

    @asynccontextmanager
    async def _opened(self, wearer: TruthfulWearer) -> AsyncIterator[House]:
        ran = Ran()
        for left in self.folder.glob("glassd.db*"):
            left.unlink()
        async with house(
            self.folder,
            registry=DemoRegistry(self.tools),
            tools=ran,
            wearer=wearer,
            uplink=ran.cloud(),
        ) as inside:
            open_questions = inside.orchestrator._confirmations._asking
            wearer.call_of = lambda call_id: open_questions[call_id].call.request
            yield inside
