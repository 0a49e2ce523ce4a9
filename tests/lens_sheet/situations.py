"""The situations, by name: what happens, and what the wearer does."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from firmware_bridge.messages import Gesture
from tests.lens_sheet.acts import (
    STORY,
    Act,
    able,
    added_later,
    asked,
    called,
    cut_by_urgent,
    event_undone,
    failed,
    five_results,
    left_by_double_tap,
    live_value,
    look_up_presented,
    offline,
    old_result,
    over_a_page,
    page_back,
    photo,
    recalled,
    refused,
    short_over_long,
    shown,
    silent_look_up,
    slow_over_a_page,
    spoken_question,
    spoken_tool,
    spoken_words,
    tapped,
    timer_rings,
)
from tests.lens_sheet.everyday import situations as everyday
from tests.lens_sheet.everyday.services import WEARER
from tests.lens_sheet.listening import LISTENING

SENTENCES = json.loads(
    (Path(__file__).parents[1] / "unit/display/sentences.json").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Part:
    """Situations that are played one after the other in a world of their own."""

    acts: dict[str, Act]
    cloud: bool = False
    wearer: dict[str, str] = field(default_factory=dict)
    """`[wearer]` of the configuration."""
    language: str = ""
    """What the wearer speaks."""
    everyday: bool = False
    """With the services of the everyday tools."""


TEXTS: dict[str, Act] = {
    "short text": shown("Milk, bread and eggs"),
    "story": shown(STORY),
    "list": shown("Shopping:\n- milk\n- bread\n- potatoes\n- apples\n- tea\n- soap"),
    "title": called("glasses:show_text", title="Shopping", text="milk, bread, eggs"),
    "long word": shown("Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen ist lang"),
    "link": shown("Read https://en.example.org/wiki/Lighthouse_(tower)?lang=en first"),
    "markdown": called("town:weather", town="markdown"),
    "long JSON": called("town:weather", town="json"),
    "table": called("town:weather", town="table"),
    "weather": called("town:weather", town="Rome"),
    "code block": called("town:weather", town="program"),
    "wide table": called("town:weather", town="wide"),
    "people": called("town:weather", town="people"),
    "numbers": called("town:weather", town="numbers"),
    "nothing found": called("town:weather", town="empty"),
    "card in Hebrew": called(
        "glasses:show_card", title="רכבת לחיפה", lines=["15:30", "רציף 4"], footer="בזמן"
    ),
    "Arabic and Latin": shown("اجتماع مع Eva Olsen الساعة 15:30 في Oslo\nOK: نعم (2 من 3)"),
    "two pages in Hindi": shown("दिल्ली की ट्रेन 15:30 बजे प्लेटफ़ॉर्म चार से छूटेगी। " * 5),
    "two pages in Hebrew": shown("הרכבת לחיפה יוצאת בשעה 15:30 מרציף 4 " * 6),
    "long line": shown("=" * 90),
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
    "server fails": called("town:weather", town="html"),
    "server unknown": called("town:weather", town="nowhere"),
}
ORDER: dict[str, Act] = {
    "five results at once": five_results,
    "short over long": short_over_long,
    "slow tool over a page": slow_over_a_page,
    "slow tool": called("town:weather", town="slow"),
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
    "long JSON, tap": tapped("town:weather", town="json"),
    "link, tap": tapped("town:weather", town="markdown"),
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
UNDO: dict[str, Act] = {
    "timer, undone": tapped("timer:start", seconds=600, label="rice"),
    "event, undone": event_undone,
}
AGENTS: dict[str, Act] = {
    "look-up of an agent, presented": look_up_presented,
    "superseded": cut_by_urgent,
    "question refused": refused("Send 𑻷?"),
}
PICTURE_AFTER = tapped(
    "glasses:show_image", image=photo(), alt="mountains", caption="The Alps, 07:12"
)
NATIVE: dict[str, Act] = {
    "page back": page_back,
    "link, code": tapped("town:weather", taps=2, town="markdown"),
    "notification": called("glasses:notify", title="Eva", text="I am at the station.", app="Mail"),
    "said": called("glasses:say", text="Turn left at the church"),
}
POOL = (
    "HTTPSConnectionPool(host='api.example', port=443): Max retries exceeded with url: /v1 "
    "(Caused by NewConnectionError('Failed to establish a new connection'))"
)
CLOUD: dict[str, Act] = {
    "offline": offline,
    "added later": added_later,
    "old result": old_result,
    "connection pool": failed(POOL),
    "'temperature'": failed("'temperature'"),
    "traceback": failed("Traceback (most recent call last): File x, line 1"),
    "advice for a terminal": failed("run: sudo systemctl restart bakery"),
    "sentence of a tool": failed("that shop is closed today"),
    "own progress": called("com.test.sheet:bake"),
    "own progress over a page": over_a_page("com.test.sheet:bake"),
}
HEBREW = "הרכבת לחיפה יוצאת בשעה 15:30"
ABILITIES: dict[str, Act] = {
    f"without pictures, {name}": able(act, bitmap=False, tiles=False)
    for name, act in {
        "Georgian": shown("მატარებელი ბათუმისკენ 15:30-ზე გადის"),
        "Korean": shown("부산행 열차는 15시 30분에 출발합니다"),
        "emoji": shown("Well done 👍 see you soon 🚲"),
        "a few Chinese": shown("The train to 北京 leaves at 15:30"),
        "Chinese": shown("去北京的火车十五点三十分从四号站台发车"),
        "Hebrew": shown(HEBREW),
        "picture": called("glasses:show_image", image=photo(), alt="mountains at sunrise"),
        "link": tapped("town:weather", town="markdown"),
        "question in Hebrew": spoken_question("להתקשר לרופא?"),
        "question in Russian": asked(Gesture.TAP, "glasses:ask", question="Позвонить врачу?"),
    }.items()
} | {
    "without pictures and speaker, Hebrew": able(
        shown(HEBREW), bitmap=False, tiles=False, speaker=False
    ),
    "without display, text": able(shown("Turn left at the church"), display=False),
    "without display, Markdown": able(called("town:weather", town="markdown"), display=False),
    "without display, picture": able(
        called("glasses:show_image", image=photo(), alt="mountains at sunrise"), display=False
    ),
    "without display, question": able(spoken_question("Shall I call the dentist?"), display=False),
    "without speaker, said": able(
        called("glasses:say", text="Turn left at the church"), speaker=False
    ),
    "said": called("glasses:say", text="Turn left at the church"),
}
TODAY = datetime.now(UTC).date().isoformat()
FORMS: dict[str, Act] = {
    "free today": called(
        "calendar:get_availability", start=f"{TODAY}T12:00:00Z", end=f"{TODAY}T14:00:00Z"
    ),
    "free for two days": called(
        "calendar:get_availability", start="2026-12-01T08:00:00Z", end="2026-12-02T18:00:00Z"
    ),
    "event": asked(Gesture.TAP, "calendar:create_event", **EVENT),
    "data": tapped("town:weather", town="json"),
    "timer": called("timer:start", seconds=5400, label="bread"),
    "timers": called("timer:list"),
}
WEARERS = {
    "German": {"locale": "de-DE", "timezone": "Europe/Berlin"},
    "American": {"locale": "en-US", "timezone": "America/New_York"},
    "Arabic": {"locale": "ar-EG", "timezone": "Africa/Cairo"},
    "Japanese": {"locale": "ja-JP", "timezone": "Asia/Tokyo"},
}
G1_GROUPS = (
    *("Russian", "Hebrew", "Arabic", "Hindi", "Thai", "Japanese", "Korean"),
    *("Chinese, simplified", "Chinese, traditional", "Emoji"),
)


def of(model: str) -> list[Part]:
    """Return what is played on these glasses."""
    return [*basics(model), *everyday_parts(model)]


def everyday_parts(model: str) -> list[Part]:
    """Return the situations of the everyday tools; on an Even G1 in English alone, and without
    those that look alike on all glasses.
    """
    few = model == "sim:even_g1"
    found = everyday.groups(few=few)
    groups = [Part(acts, wearer=WEARER, everyday=True) for acts in found]
    groups.append(Part(everyday.pager(), cloud=True, everyday=True))
    if model != "sim:even_g1":
        groups.append(
            Part(everyday.in_german(), wearer=everyday.GERMAN, language="de", everyday=True)
        )
    return groups


def basics(model: str) -> list[Part]:
    """Return the situations of the display, the questions and the other tools."""
    if model == "sim:even_g1":
        groups = {name: shown(group[1]) for name, group in SENTENCES.items() if _on_g1(name)}
        some = (
            *("story", "list", "markdown", "mixed scripts", "numbers in Hebrew"),
            *("lost characters", "mostly lost"),
            *("code block", "wide table", "people", "card in Hebrew", "two pages in Hebrew"),
        )
        few = {name: TEXTS[name] for name in some}
        named = ("clock", "timer rings", "card", "picture")
        tools = {name: TOOLS[name] for name in named} | {"picture after words": PICTURE_AFTER}
        return [
            Part(few | tools | NATIVE | groups),
            Part(ORDER | MORE | AGENTS),
            Part(QUESTIONS | UNDO),
            Part(LISTENING),
            Part(CLOUD, cloud=True),
        ]
    groups = {name: shown(group[0]) for name, group in SENTENCES.items()}
    return [
        Part(TEXTS | TOOLS | FAILURES),
        Part(ORDER | MORE | AGENTS),
        Part(QUESTIONS | UNDO),
        Part(LISTENING),
        Part(ABILITIES | groups),
        Part(CLOUD, cloud=True),
        *(
            Part({f"{who} forms, {name}": act for name, act in FORMS.items()}, wearer=wearer)
            for who, wearer in WEARERS.items()
        ),
    ]


def _on_g1(name: str) -> bool:
    return any(name.startswith(group) for group in G1_GROUPS)
