"""What a person sees while a call runs: a line with its progress, erased when it has ended."""

import asyncio
import re
import time
from io import StringIO

import pytest
from msgspec.structs import replace

from edge.commands.shared.console import Screen, fitting
from edge.commands.shared.spinner import FIRST_S, Spinner
from edge.control.http import HttpLimits
from tests.unit.commands.test_cli import glassd
from tests.unit.commands.test_confirm import at_terminal
from tests.unit.commands.test_console import Terminal
from tests.unit.control.house import open_house
from tools_cache.api.tool import ToolResponse

pytestmark = pytest.mark.enable_socket

ERASE = "\r\x1b[K"


async def call_at_terminal(tmp_path, *more, reads, **prepared):
    async with open_house(tmp_path) as house:
        prepare(house, **prepared)
        loop = asyncio.get_running_loop()

        def work(person):
            person.reads(reads)
            loop.call_soon_threadsafe(house.calls.gate.set)

        words = ("call", "notes:list", "--socket", str(house.path), *more)
        code, seen = await at_terminal(work, *words)
        return code, seen, len(house.calls.seen)


def prepare(house, *, runs=False):
    house.calls.reports = ["asking the\nserver \x1b[31m"]
    house.calls.answers["notes:list"] = ToolResponse(data={"temperature": 3})
    if not runs:
        house.calls.gate.clear()


@pytest.mark.requirement("I13-call-progress")
async def test_a_terminal_shows_the_progress_of_a_call_and_erases_it(tmp_path):
    code, seen, calls = await call_at_terminal(tmp_path, reads="asking")
    assert (code, calls) == (0, 1)
    assert re.search(r"⠋ notes:list · asking the server \\x1b\[31m · 0 s", seen), seen
    assert seen.count(ERASE) > 1
    after = seen.rsplit(ERASE, 1)[1]
    assert after == '{\n  "temperature": 3\n}\n\x1b[2mroute local · 3 ms · delivery shown\x1b[0m\n'


@pytest.mark.requirement("I13-call-progress")
async def test_a_script_sees_nothing_of_it(tmp_path):
    code, seen, _ = await call_at_terminal(tmp_path, "--json", reads="", runs=True)
    assert (code, "\x1b" in seen, seen[0]) == (0, False, "{")
    async with open_house(tmp_path) as house:
        prepare(house, runs=True)
        ran = await glassd("call", "notes:list", "--socket", str(house.path))
    assert (ran.code, ran.err, ran.out.count("\x1b")) == (0, "", 0)


async def test_with_no_stream_free_the_call_runs_without_progress(tmp_path):
    async with open_house(tmp_path, limits=replace(HttpLimits(), streams=0)) as house:
        prepare(house, runs=True)
        words = ("call", "notes:list", "--socket", str(house.path))
        code, seen = await at_terminal(lambda person: person.reads("delivery"), *words)
        assert (code, len(house.calls.seen)) == (0, 1), seen


async def test_a_tool_that_may_ask_first_is_answered_whole(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.asked["cal:add"] = ToolResponse(data="done")
        words = ("call", "cal:add", "--socket", str(house.path))
        code, seen = await at_terminal(lambda person: person.reads("done"), *words)
    assert (code, seen.rsplit(ERASE, 1)[-1].splitlines()[0]) == (0, "done")


@pytest.mark.parametrize(
    ("out", "err", "env", "as_json", "live"),
    [
        (Terminal, Terminal, {}, False, True),
        (Terminal, Terminal, {"NO_COLOR": "1"}, False, True),
        (Terminal, Terminal, {"TERM": "dumb"}, False, False),
        (Terminal, Terminal, {}, True, False),
        (StringIO, Terminal, {}, False, False),
        (Terminal, StringIO, {}, False, False),
    ],
)
def test_it_is_shown_only_to_a_person_at_a_terminal(out, err, env, as_json, live):
    screen = Screen(out(), written := err(), env, as_json=as_json)
    with Spinner(screen, "a:b") as spinner:
        if live:
            end = asyncio.run(_until(lambda: "a:b" in written.getvalue()))
            assert end
        spinner.say("x")
    assert screen.live is live
    assert bool(written.getvalue()) is live
    assert not live or written.getvalue().endswith(ERASE)


async def _until(true):
    for _ in range(2000):
        if true():
            return True
        await asyncio.sleep(0.01)
    return False


def test_what_ends_soon_shows_nothing():
    screen = Screen(Terminal(), written := Terminal(), {}, as_json=False)
    with Spinner(screen, "a:b"):
        pass
    assert FIRST_S >= 0.2
    assert written.getvalue() == ""


def test_a_terminal_without_unicode_gets_plain_characters():
    class Ascii(Terminal):
        encoding = "ascii"

    screen = Screen(Ascii(), written := Ascii(), {}, as_json=False)
    with Spinner(screen, "é"):
        asyncio.run(_until(written.getvalue))
    assert "| ? ? 0 s" in written.getvalue()


def test_a_line_takes_no_more_columns_than_there_are():
    assert fitting("abc", 2) == "ab"
    assert fitting("気温は", 5) == "気温"
    assert fitting("e\u0301e\u0301", 1) == "e\u0301"
    assert fitting("", 3) == ""


def test_nothing_is_drawn_where_nobody_watches():
    err = StringIO()
    screen = Screen(Terminal(), err, {}, as_json=True)
    with Spinner(screen, "notes:list"):
        time.sleep(FIRST_S + 0.3)
    assert err.getvalue() == ""
