"""`glassd events`: a line a person can read on a terminal; for programs, and with `--json`, one
JSON object a line, as the daemon sends them.
"""

import asyncio
import json
from io import StringIO
from typing import get_type_hints

import pytest

from edge.commands.events import KINDS, MAX_CALLS, EventLines
from edge.commands.shared.console import Screen
from edge.runtime import events
from edge.runtime.events import CallAnswered, CallReceived, LensChanged, LinkChanged, as_json
from tests.unit.commands.test_cli import start
from tests.unit.commands.test_confirm import at_terminal
from tests.unit.control.house import open_house
from tools_cache.api.tool import Delivery, DeliveryReport

pytestmark = pytest.mark.enable_socket

WITHIN_S = 60.0
HAPPENED = (
    LinkChanged("READY"),
    CallReceived("c1", "notes:add", "mcp"),
    CallAnswered("c1", "notes:add", True, "local", {"state": "shown"}),
    LensChanged("s", 1, 2, ("Noted: milk", "at \x1b[31mhome")),
)


def said(*given):
    """The texts of these events, one line each."""
    lines = EventLines(Screen(StringIO(), StringIO(), {}, as_json=False))
    return [" ".join(lines.text(event)) for event in given]


def publish_when_followed(house, happened=HAPPENED):
    async def publish():
        while not house.server.streams:
            await asyncio.sleep(0)
        for event in happened:
            house.bus.publish(event)

    return asyncio.create_task(publish())


@pytest.mark.requirement("I13-events-lines")
async def test_a_terminal_shows_one_line_an_event(tmp_path):
    async with open_house(tmp_path) as house:
        publishing = publish_when_followed(house)
        words = ("events", "--count", "4", "--socket", str(house.path))
        code, seen = await at_terminal(lambda person: person.reads("home"), *words)
        await publishing
    lines = seen.splitlines()
    assert (code, len(lines)) == (0, 4), seen
    assert all(line[2] == line[5] == ":" for line in lines)
    assert [line[10:] for line in lines] == [
        "link       READY",
        "call       notes:add · asked by mcp",
        "call       notes:add · done · route local · delivery shown",
        r"lens       Noted: milk / at \x1b[31mhome · page 1 of 2",
    ]


@pytest.mark.requirement("I13-events-lines")
async def test_a_pipe_and_json_get_the_objects_as_they_are_sent(tmp_path):
    async with open_house(tmp_path) as house:
        words = ("events", "--count", "4", "--socket", str(house.path))
        process = await start(*words)
        async with asyncio.timeout(WITHIN_S):
            await publish_when_followed(house)
            piped, _ = await process.communicate()
        again = (*words, "--json", "--after", "0")
        code, seen = await at_terminal(lambda person: person.reads("home"), *again)
    sent = [json.loads(line) for line in piped.splitlines()]
    for number, (event, each) in enumerate(zip(HAPPENED, sent, strict=True), 1):
        expected = {**as_json(event), "at": each["at"], "id": each["id"]}
        line = json.dumps(expected, ensure_ascii=False)
        assert each["id"].endswith(f"-{number}")
        assert piped.decode().splitlines()[number - 1] == line
    assert (code, seen.encode()) == (0, piped)


def test_every_kind_of_event_has_words():
    kinds = set()
    for found in vars(events).values():
        if isinstance(found, type) and issubclass(found, events.DaemonEvent) and found.kind:
            kinds.add(found.kind)
    kinds = kinds - {"uplink", "tools"} | {"uplink.up", "uplink.down", "tools.loaded"}
    assert kinds <= set(KINDS)


def test_no_event_is_without_a_line_whatever_is_missing_in_it():
    for kind in (*KINDS, "brand.new", ""):
        assert said({"event": kind})
    made = [
        found(**{name: VALUES[get_type_hints(found)[name]] for name in found.__struct_fields__})
        for found in vars(events).values()
        if isinstance(found, type)
        and issubclass(found, events.DaemonEvent)
        and found.kind
        and found not in {events.GlassesSaid, events.PrivateWords}
    ]
    assert len(made) > 20
    for event in made:
        (line,) = said(as_json(event))
        assert line.strip()
        assert "None" not in line
        assert "{" not in line


VALUES = {
    str: "word",
    int: 3,
    bool: True,
    float: 2.0,
    tuple[str, ...]: ("one", "two"),
    events.Json: {"state": "shown", "reason": "why"},
    DeliveryReport: DeliveryReport(Delivery.SHOWN),
    events.Mapping[str, tuple[str, ...]]: {"app": ("camera",)},
}


def test_what_the_words_say():
    asked = {"event": "confirmation.asked", "call_id": "c", "tool": "a:b", "expires_s": 300}
    assert said(
        {"event": "delivery", "call_id": "x", "report": {"state": "shown"}},
        {**asked, "particulars": ["A: b?", "x: 1"]},
        {"event": "delivery", "call_id": "c", "report": {"state": "superseded", "reason": "y"}},
        {"event": "call.answered", "call_id": "c", "ok": False, "code": "TIMEOUT", "route": ""},
        {"event": "call.answered", "call_id": "c", "ok": True, "final": False},
        {"event": "lens.acknowledged", "page": 0, "lines": []},
        {"event": "lens.acknowledged", "page": 1, "pages": 1, "lines": []},
        {"event": "glasses.event", "said": {"type": "BatteryChanged", "level": 80, "side": None}},
        {"event": "missed", "missed": None},
        {"event": "brand.new", "at": 1.0, "id": "7", "thing": {"a": [1]}, "word": "x"},
    ) == [
        "call call x · delivery shown",
        "call a:b · waits for a yes · A: b? · open for 5 min",
        "call a:b · delivery superseded (y)",
        "call a:b · failed TIMEOUT",
        "call a:b · waits",
        "lens dark",
        "lens a picture",
        "glasses battery changed · level=80",
        "events some events were missed",
        'brand.new thing={"a": [1]} · word=x',
    ]


def test_the_tools_of_old_calls_are_forgotten():
    lines = EventLines(Screen(StringIO(), StringIO(), {}, as_json=False))
    for number in range(MAX_CALLS + 5):
        lines.text({"event": "call.received", "call_id": str(number), "tool": f"a:{number}"})
    assert len(lines._tools) == MAX_CALLS
    assert lines.text({"event": "call.off", "call_id": "0"})[1].startswith("call 0")
    assert lines.text({"event": "call.off", "call_id": "260"})[1].startswith("a:260")


async def test_events_that_were_missed_are_said_whatever_kind_is_asked_for(tmp_path):
    async with open_house(tmp_path) as house:
        words = ("events", "--after", "0abc-1", "--kind", "call", "--count", "1")
        process = await start(*words, "--socket", str(house.path))
        async with asyncio.timeout(WITHIN_S):
            await publish_when_followed(house)
            piped, _ = await process.communicate()
    first, *others = [json.loads(line) for line in piped.splitlines()]
    assert first["event"] == "missed"
    assert [each["event"] for each in others] == ["call.received"]
