"""The situations, by name: what happens, and what the wearer does."""

import base64
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from PIL import Image, ImageDraw

from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from tests.lens_sheet.stage import Stage
from tests.scenarios.world import until

Act = Callable[[Stage], Awaitable[None]]
SENTENCES = json.loads(
    (Path(__file__).parents[1] / "unit/display/sentences.json").read_text(encoding="utf-8")
)
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
    await stage.call("weather:now", town="slow")
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


def tapped(tool: str, **args: object) -> Act:
    """What a result offers behind a tap: undo, the rest, a link as a code."""

    async def act(stage: Stage) -> None:
        await stage.call(tool, **args)
        await stage.turn_pages()
        await stage.rest(1.0)
        await stage.tap_on()
        await stage.rest(2.5)

    return act


def photo() -> str:
    image = Image.radial_gradient("L").resize((400, 300))
    canvas = ImageDraw.Draw(image)
    canvas.polygon([(40, 260), (150, 90), (230, 200), (290, 130), (380, 260)], fill=40)
    return _encoded(image)


def _encoded(image: Image.Image) -> str:
    out = io.BytesIO()
    image.save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


TEXTS: dict[str, Act] = {
    "short text": shown("Milk, bread and eggs"),
    "story": shown(STORY),
    "list": shown("Shopping:\n- milk\n- bread\n- potatoes\n- apples\n- tea\n- soap"),
    "title": called("glasses:show_text", title="Shopping", text="milk, bread, eggs"),
    "long word": shown("Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen ist lang"),
    "link": shown("Read https://en.example.org/wiki/Lighthouse_(tower)?lang=en first"),
    "markdown": called("weather:now", town="markdown"),
    "long JSON": called("weather:now", town="json"),
    "table": called("weather:now", town="table"),
    "weather": called("weather:now", town="Rome"),
    "mixed scripts": shown("Meet Γιώργος and יוסי at 北京 station 👍"),
    "lost characters": shown("press ⌥ then C, then ✗"),
    "mostly lost": shown("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ"),
    "numbers in Hebrew": shown("הרכבת לחיפה יוצאת בשעה 15:30 מרציף 4"),
    "page of five rows": shown("one\ntwo 👍\nthree\nfour\nfive"),
}
TOOLS: dict[str, Act] = {
    "clock": called("clock:now"),
    "note added": called("notes:add", text="the car is on level three"),
    "notes": called("notes:list"),
    "timer": called("timer:start", seconds=600, label="tea"),
    "timer rings": timer_rings,
    "knowledge": called("kb:search", query="boiler pressure"),
    "free times": called(
        "calendar:get_availability", start="2026-12-01T08:00:00Z", end="2026-12-01T18:00:00Z"
    ),
    "contacts": called(
        "contacts:extract", text="Write to Eva <eva@example.org> or +47 22 33 44 55"
    ),
    "card": called(
        "glasses:show_card",
        title="Train to Oxford",
        lines=["15:30", "platform 4B"],
        footer="on time",
    ),
    "picture": called("glasses:show_image", image=photo(), alt="mountains"),
    "picture with words": called(
        "glasses:show_image", image=photo(), alt="mountains", caption="The Alps, 07:12"
    ),
    "spoken, unknown": spoken_words,
    "spoken": spoken_tool,
}
FAILURES: dict[str, Act] = {
    "server fails": called("weather:now", town="html"),
    "server unknown": called("weather:now", town="nowhere"),
}
ORDER: dict[str, Act] = {
    "five results at once": five_results,
    "short over long": short_over_long,
    "slow tool over a page": slow_over_a_page,
    "slow tool": called("weather:now", town="slow"),
    "left by double tap": left_by_double_tap,
}
EVENT = {
    "title": "Lunch",
    "start": "2026-12-01T12:00:00Z",
    "end": "2026-12-01T13:00:00Z",
}
DELETION = {
    "album": "Family",
    "before": "2026-01-01T00:00:00Z",
    "copies": 2,
    "recipients": ["eva@example.org", "אבא", "Jürgen"],
    "note": "מחק הכל, חוץ מ-3 תמונות",
    "keep_favourites": True,
    "folder": "2025/Summer",
    "limit": 4312,
}
MORE: dict[str, Act] = {
    "live value": live_value,
    "recalled": recalled,
    "look-up of an agent": silent_look_up,
    "note, undone": tapped("notes:add", text="the keys are in the bowl"),
    "long JSON, tap": tapped("weather:now", town="json"),
    "link, tap": tapped("weather:now", town="markdown"),
}
QUESTIONS: dict[str, Act] = {
    "question": asked(Gesture.TAP, "glasses:ask", question="Shall I call the dentist?"),
    "question, no": asked(Gesture.DOUBLE_TAP, "glasses:ask", question="Shall I call the dentist?"),
    "choices": asked(Gesture.TAP, "glasses:ask", question="Which line?", choices=["4", "7", "9"]),
    "question in Hebrew": asked(Gesture.TAP, "glasses:ask", question="להתקשר לרופא?"),
    "question in Chinese": asked(Gesture.TAP, "glasses:ask", question="要给牙医打电话吗？"),
    "event, yes": asked(Gesture.TAP, "calendar:create_event", **EVENT),
    "event, no": asked(Gesture.DOUBLE_TAP, "calendar:create_event", **EVENT),
    "eight arguments, yes": asked(Gesture.TAP, "photos:delete", **DELETION),
    "eight arguments, no": asked(Gesture.DOUBLE_TAP, "photos:delete", **DELETION),
}
NATIVE: dict[str, Act] = {
    "page back": page_back,
    "notification": called("glasses:notify", title="Eva", text="I am at the station.", app="Mail"),
}
G1_GROUPS = (
    *("Russian", "Hebrew", "Arabic", "Hindi", "Thai", "Japanese", "Korean"),
    *("Chinese, simplified", "Chinese, traditional", "Emoji"),
)


def of(model: str) -> dict[str, Act]:
    """Return what is played on these glasses."""
    if model == "sim:even_g1":
        groups = {name: shown(group[1]) for name, group in SENTENCES.items() if _on_g1(name)}
        some = ("story", "list", "markdown", "mixed scripts", "numbers in Hebrew")
        few = {name: TEXTS[name] for name in some}
        tools = {name: TOOLS[name] for name in ("clock", "card", "picture", "picture with words")}
        return few | tools | ORDER | MORE | QUESTIONS | NATIVE | groups
    groups = {name: shown(group[0]) for name, group in SENTENCES.items()}
    return TEXTS | TOOLS | FAILURES | ORDER | MORE | QUESTIONS | groups


def _on_g1(name: str) -> bool:
    return any(name.startswith(group) for group in G1_GROUPS)
