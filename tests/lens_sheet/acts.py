"""What happens in a situation, and what the wearer does."""

import base64
import io
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from PIL import Image, ImageDraw

from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from tests.lens_sheet.stage import Stage
from tests.scenarios.world import until
from tools_cache.api.tool import ToolResponse

Act = Callable[[Stage], Awaitable[None]]
STORY = (
    "The old lighthouse keeper climbed the stairs every evening at six. He counted them, although "
    "he knew that there were one hundred and ninety-nine. At the top he wiped the great lens, "
    "lit the lamp, and wrote the weather into his book: wind, rain, and which ships went by. "
    "Nobody had read the book for forty years, and he liked it that way."
)


def shown(text: str, pages: int = 4) -> Act:
    async def act(stage: Stage) -> None:
        await stage.call("glasses:show_text", text=text)
        await stage.turn_pages(pages)

    return act


def called(tool: str, **args: object) -> Act:
    async def act(stage: Stage) -> None:
        await stage.call(tool, **args)
        await stage.turn_pages()

    return act


def asked(gesture: Gesture, tool: str, **args: object) -> Act:
    async def act(stage: Stage) -> None:
        asking = stage.begin(tool, **args)
        await stage.answers(gesture)
        await asking
        await stage.rest(2.0)

    return act


async def five_results(stage: Stage) -> None:
    calls = []
    for n in range(1, 6):
        calls.append(stage.begin("glasses:show_text", text=f"Result {n} of five"))
        await stage.rest(0.15)
    for call in calls:
        await call
    await stage.rest(8.0)


async def short_over_long(stage: Stage) -> None:
    await stage.call("glasses:show_text", text=STORY)
    await stage.rest(2.0)
    await stage.call("clock:now")
    await stage.rest(6.0)


async def slow_over_a_page(stage: Stage) -> None:
    await stage.call("glasses:show_text", text="A page that is being read.")
    await stage.rest(1.6)
    await stage.call("town:weather", town="slow")
    await stage.rest(1.0)


async def timer_rings(stage: Stage) -> None:
    await stage.call("timer:start", seconds=2, label="tea")
    await stage.rest(4.5)


async def spoken_words(stage: Stage) -> None:
    await stage.world.wearer_says("fly me to the moon")
    await stage.rest(1.5)


async def spoken_tool(stage: Stage) -> None:
    await stage.world.wearer_says("what time is it")
    await stage.rest(1.5)


async def left_by_double_tap(stage: Stage) -> None:
    await stage.call("glasses:show_text", text=STORY)
    await stage.rest(1.0)
    stage.does(Gesture.DOUBLE_TAP)
    await stage.rest(1.0)


async def live_value(stage: Stage) -> None:
    for minutes in (4, 3, 2):
        text = f"Bus 42 leaves in {minutes} min"
        await stage.call("glasses:show_text", text=text, scene="bus-42", title="Central station")
        await stage.rest(1.0)


async def recalled(stage: Stage) -> None:
    for text in ("The first result", "The second result"):
        await stage.call("glasses:show_text", text=text, duration_s=1.5)
        await stage.rest(1.6)
    await until(lambda: not stage.world.lens(), "a dark lens")
    await stage.rest(1.2)
    for _ in range(2):
        stage.does(Gesture.TAP)
        await stage.rest(1.5)


async def page_back(stage: Stage) -> None:
    await stage.call("glasses:show_text", text=f"{STORY} {STORY}")
    await stage.rest(1.0)
    for side in (Side.RIGHT, Side.LEFT):
        stage.does(Gesture.TAP, side)
        await stage.rest(9.0 if side is Side.RIGHT else 1.0)


async def silent_look_up(stage: Stage) -> None:
    await stage.call("glasses:show_text", text="A page that is being read.")
    await stage.rest(1.6)
    await stage.look_up("notes:list")
    await stage.rest(1.5)


def tapped(tool: str, taps: int = 1, **args: object) -> Act:
    """What a result offers behind a tap: undo, the rest, a link as a code."""

    async def act(stage: Stage) -> None:
        await stage.call(tool, **args)
        await stage.turn_pages()
        for _ in range(taps):
            await stage.rest(1.0)
            await stage.tap_on()
        await stage.rest(2.5)

    return act


async def event_undone(stage: Stage) -> None:
    asking = stage.begin(
        "calendar:create_event",
        title="Dentist",
        start="2026-12-02T09:00:00Z",
        end="2026-12-02T09:30:00Z",
    )
    await stage.answers()
    await asking
    await stage.shows("tap to undo")
    await stage.rest(1.0)
    await stage.tap_on()
    await stage.rest(2.5)


async def look_up_presented(stage: Stage) -> None:
    await stage.call("glasses:show_text", text="A page that is being read.")
    await stage.rest(1.6)
    await stage.look_up("notes:list", present=True)
    await stage.rest(1.5)


async def cut_by_urgent(stage: Stage) -> None:
    """A page that something urgent replaces before it was read; its delivery ends `superseded`."""
    first = await stage.call("glasses:show_text", text="Milk, bread and eggs")
    urgent = {"display": {"text": "The house is on fire", "priority": "urgent"}}
    stage.film.takes[-1].acts.append(time.monotonic())
    await stage.world.daemon.stage.present("urgent", ToolResponse(data="", render=urgent))

    async def state() -> Mapping[str, Any]:
        found: Mapping[str, Any] = (await stage.world.daemon.store.get(first.meta["callId"]))[
            "delivery"
        ]
        return found

    while (final := await state())["state"] != "superseded":
        await stage.rest(0.1)
    stage.note(f"in the end {final['state']}: {final.get('reason', '')}")
    await stage.rest(2.0)


def over_a_page(tool: str, **args: object) -> Act:
    """A call while another page is being read."""

    async def act(stage: Stage) -> None:
        await stage.call("glasses:show_text", text="A page that is being read.", duration_s=60)
        await stage.rest(1.6)
        await stage.call(tool, **args)
        await stage.rest(1.5)

    return act


def refused(question: str) -> Act:
    """A question that cannot be shown or spoken whole is not asked."""

    async def act(stage: Stage) -> None:
        await stage.call("glasses:ask", question=question, wait_s=5)
        await stage.rest(2.0)

    return act


def spoken_question(question: str) -> Act:
    """A question of which the lens cannot draw all: it is asked by voice."""

    async def act(stage: Stage) -> None:
        asking = stage.begin("glasses:ask", question=question, wait_s=20)
        await until(lambda: asking.done() or stage.film.takes[-1].spoken_s, "the spoken question")
        if not asking.done():  # no voice reads this here: its caller hears that
            await stage.answers(Gesture.BUTTON)
        await asking
        await stage.rest(1.0)

    return act


def able(act: Act, **facts: bool) -> Act:
    """Play it on glasses that can do more or less: `bitmap=False` shows no pictures."""

    async def changed(stage: Stage) -> None:
        names = {"bitmap": "display.bitmap", "tiles": "display.tiles"}
        wanted = {names.get(name, name): value for name, value in facts.items()}
        before = {name: stage.world.mock.glasses.capabilities[name] for name in wanted}
        await stage.has(wanted)
        try:
            await act(stage)
            await stage.spoken()
        finally:
            await stage.has(before)

    return changed


@asynccontextmanager
async def no_internet(stage: Stage) -> AsyncIterator[None]:
    assert stage.world.cable is not None
    await stage.world.cable.pull_out()
    await until(lambda: not stage.world.daemon.uplink.status().up, "no internet")
    try:
        yield
    finally:
        await stage.world.cable.plug_in()
        await until(lambda: stage.world.daemon.uplink.status().up, "internet again")


async def offline(stage: Stage) -> None:
    async with no_internet(stage):
        await stage.call("com.example.calc:evaluate", expression="1+1")
        await stage.rest(2.0)


async def added_later(stage: Stage) -> None:
    async with no_internet(stage):
        await stage.call("com.example.tasks:add", title="buy a second key")
        await stage.rest(2.0)
    await stage.shows("buy a second key")
    await stage.rest(2.0)


async def old_result(stage: Stage) -> None:
    await stage.call("com.example.weather:forecast", place="Oslo")
    await stage.rest(1.6)
    async with no_internet(stage):
        await stage.call("com.example.weather:forecast", place="Oslo")
        await stage.rest(2.0)


def failed(report: str) -> Act:
    return called("com.test.echo:fail", text=report)


def photo() -> str:
    image = Image.radial_gradient("L").resize((400, 300))
    canvas = ImageDraw.Draw(image)
    canvas.polygon([(40, 260), (150, 90), (230, 200), (290, 130), (380, 260)], fill=40)
    return _encoded(image)


def _encoded(image: Image.Image) -> str:
    out = io.BytesIO()
    image.save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()
