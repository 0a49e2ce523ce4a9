"""The steps of the story that all glasses share; which of them a model tells follows from what it
can do.

`python -m tests.scenarios.families.steps` prints the steps that are left out, model by model, and
why: left-out.txt is that list.
"""

import base64
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from PIL import Image

from edge.testing import WornGlasses
from firmware_bridge.catalog import supported
from firmware_bridge.models import Model, Pairing
from firmware_bridge.sides import Side
from firmware_bridge.sim.options import SIMULATED
from tests.scenarios.families.story import drop_and_return, glassd

LEFT_OUT: Final = Path(__file__).with_name("left-out.txt")
SENTENCE: Final = "What time is it?"
CONFIG: Final = """
[microphone]
recogniser = "{server}"
push_to_talk = "off"
"""
TOOLS: Final = """
name = "story:door"
description = "Open the door"
executionType = "external"
requiresConfirmation = "always"
"""
"""A tool that asks the wearer each time, of whatever glasses."""
PAIRED: Final = {
    Pairing.NONE: "these glasses know no pairing",
    Pairing.JUST_WORKS: "encrypted; without a code",
    Pairing.CODE: "a code was typed",
}
LEAST_PHOTO: Final = 240
"""Pixels of the shorter side of the smallest photo."""
SOON_S: Final = 60.0
"""Longest wait for anything; only a story that fails waits so long."""
SEEN: Final = ("shown", "acknowledged")
QUIET_S: Final = 0.8
"""Seconds without sound after which nothing more is said: a sentence begins within half of it."""
AGAIN_S: Final = 1.0
"""Seconds between two gestures that are the same answer: they are not a double tap."""
CHARGE_AWAY: Final = 37
GREETED_S: Final = 10.0
"""Until a side that is back has said its charge, which is otherwise asked for once a minute."""
_CODE: Final = re.compile(r"\d{3} \d{3}")
_SQUARE: Final = (64, 32)
"""Pixels of the picture: half of it lit."""


@dataclass
class Story:
    """One model with its daemon, and which steps were told."""

    model: Model
    glasses: WornGlasses
    log: Path
    """What `glassd events` writes."""
    told: list[str] = field(default_factory=list)

    def happened(self) -> list[dict[str, Any]]:
        """Return the daemon's events so far."""
        lines = self.log.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def heard(self, since: int, event: str, **fields: Any) -> dict[str, Any]:
        """Wait for an event after the first `since`; of a nested document only the given fields
        count.
        """

        def found() -> dict[str, Any] | None:
            wanted = {"event": event, **fields}
            return next((each for each in self.happened()[since:] if _has(each, wanted)), None)

        what = lambda: f"{event} {fields} among {self.happened()[since:]}"  # noqa: E731
        answer = self.glasses.wait_for(found, what=what, within_s=SOON_S)
        assert answer is not None
        return answer

    def status(self) -> dict[str, Any]:
        return dict(self.glasses.status()["glasses"])

    def until(self, condition: Callable[[], Any], what: str, within_s: float = SOON_S) -> None:
        self.glasses.wait_for(condition, what=lambda: f"{what}; {self.status()}", within_s=within_s)

    def delivered(self, envelope: dict[str, Any]) -> None:
        """Make sure that a call's answer is on the lens, perhaps after the page before it."""
        assert envelope["ok"], envelope
        if envelope["meta"]["delivery"] not in SEEN:
            call = {"event": "delivery", "call_id": envelope["meta"]["callId"]}
            seen = lambda: any(  # noqa: E731
                _has(each, call) and each["report"] in SEEN for each in self.happened()
            )
            self.until(seen, f"the answer of {envelope}")

    def until_quiet(self) -> None:
        """Wait until the daemon has said what it had to say: it does not listen meanwhile."""
        quiet_since = time.monotonic()

        def quiet() -> bool:
            nonlocal quiet_since
            if self.glasses.mock.speaker()["playing"]:
                quiet_since = time.monotonic()
            return time.monotonic() - quiet_since > QUIET_S

        if self.model.capabilities.get("speaker"):
            self.until(quiet, "the end of what is spoken")


def _has(document: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(document, dict):
        return all(_has(document.get(key), value) for key, value in wanted.items())
    return bool(document == wanted)


# ------------------------------------------------------------------ the steps, in their order


def find(story: Story) -> None:
    assert story.model.title in glassd(story.glasses, "scan", "--seconds", "2")


def pair(story: Story) -> None:
    """Pair; a code is read from the lens, as a person does."""
    words = [sys.executable, "-m", "edge.cli", "up", "--yes"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(words, env=story.glasses.env, text=True, **pipes) as up:
        code = f"{code_on_lens(story)}\n" if story.model.pairing is Pairing.CODE else ""
        printed, _ = up.communicate(code, timeout=90)
    assert up.returncode == 0, printed
    assert f"Paired and saved ({PAIRED[story.model.pairing]}" in printed


def code_on_lens(story: Story) -> str:
    shown = lambda: _CODE.search(" ".join(story.glasses.lens))  # noqa: E731
    return story.glasses.wait_for(shown, what="a code on the lens", within_s=SOON_S)[0]


def be_ready(story: Story) -> None:
    story.until(lambda: story.status()["state"] == "ready", "ready")
    known = story.status()
    assert known["model"] == story.model.key
    assert known["firmware"], known
    assert list(known["sides"]) == (list(Side) if story.model.arms else [])


def show_text(story: Story) -> None:
    shown(story, "the car is on level three")


def shown(story: Story, text: str) -> None:
    """Let a tool answer, and read the answer on the lens."""
    assert story.glasses.call("glasses:clear")["ok"]
    story.delivered(story.glasses.call("notes:add", text=text))
    story.glasses.wait_for_lens(" ".join(text.split()[-2:]), within_s=SOON_S)


def show_picture(story: Story) -> None:
    """A picture whose right half is lit is drawn as wide and as high as it is."""
    picture = Image.new("L", _SQUARE)
    picture.paste(255, (_SQUARE[0] // 2, 0, *_SQUARE))
    out = BytesIO()
    picture.save(out, "PNG")
    image = base64.b64encode(out.getvalue()).decode()
    assert story.glasses.call("glasses:clear")["ok"]
    story.delivered(story.glasses.call("glasses:show_image", image=image, alt="a square"))
    story.until(lambda: not story.glasses.lens, "a lens without text")
    with Image.open(story.glasses.mock.lens()["png"]) as drawn:
        left, top, right, bottom = drawn.convert("L").getbbox() or (0, 0, 0, 0)
    assert (right - left, bottom - top) == (_SQUARE[0] // 2, _SQUARE[1])


def fill_dashboard(story: Story) -> None:
    """An appointment is seen on looking up, where that is reported, and the page is not lost."""
    shown(story, "the ladder is in the shed")
    looks_up = "head_up" in gestures_of(story.model)
    layout = {"layout": "full", "pane": "calendar"} if looks_up else {}
    entries = [{"title": "Dentist", "time": "14:30"}]
    answer = story.glasses.call("glasses:dashboard", **layout, calendar=entries)
    assert answer["ok"], answer
    if looks_up:
        story.glasses.mock.do("head_up")
        story.glasses.wait_for_lens("Dentist", within_s=SOON_S)
        story.glasses.mock.do("head_down")
    story.glasses.wait_for_lens("the shed", within_s=SOON_S)


def navigate(story: Story) -> None:
    """A turn is seen until it is over."""
    answer = story.glasses.call("glasses:navigate", turn="left", street="High Street")
    assert answer["ok"], answer
    story.glasses.wait_for_lens("High Street", within_s=SOON_S)
    assert story.glasses.call("glasses:navigate", end=True)["ok"]
    story.until(lambda: not story.glasses.lens, "a lens without a turn")


def translate(story: Story) -> None:
    """What was said and what it means is seen until it is over."""
    begin = {"from": "en", "to": "fr", "original": "Good morning", "translated": "Bonjour"}
    answer = story.glasses.call("glasses:translate", **begin)
    assert answer["ok"], answer
    story.glasses.wait_for_lens("Bonjour", within_s=SOON_S)
    assert "Good morning" in story.glasses.lens
    assert story.glasses.call("glasses:translate", end=True)["ok"]
    story.until(lambda: not story.glasses.lens, "a lens without a translation")


def speak(story: Story) -> None:
    """A sentence is played, and all of it arrived."""
    story.until_quiet()
    speaker = story.glasses.mock.speaker
    before = speaker()["wav"]
    assert story.glasses.call("glasses:say", text="On level three.")["ok"]
    story.until(lambda: speaker()["wav"] != before, "a sentence that is over")
    assert speaker()["seconds"] > 0.5
    assert speaker()["bad_frames"] == 0


def hear(story: Story) -> None:
    """The wearer asks, the recogniser hears speech, and a tool answers."""
    story.until_quiet()
    since = len(story.happened())
    glassd(story.glasses, "call", "voice:start", "--silent")
    story.glasses.hear(say=SENTENCE)
    story.heard(since, "glasses.event", said={"type": "Transcript", "text": SENTENCE})
    story.heard(since, "call.answered", tool="clock:now", ok=True)
    glassd(story.glasses, "call", "voice:end", "--mode", "voice")


def take_photo(story: Story) -> None:
    """The wearer says yes on the glasses; where these can ask nothing, at a terminal."""
    call = story.glasses.start_call("glasses:take_photo", size="small")
    if ASK.lacks(story.model):
        asked = lambda: call.done() and call.result()  # noqa: E731
        error = story.glasses.wait_for(asked, what="the question", within_s=SOON_S)["error"]
        envelope = json.loads(
            glassd(story.glasses, "confirm", error["confirmation_request"]["token"], "--json")
        )
    else:
        story.glasses.confirm()
        envelope = call.result(timeout=60)
    assert envelope["ok"], envelope
    assert envelope["data"]["type"] == "image/jpeg"
    (photo,) = [each for each in envelope["meta"]["content"] if each["type"] == "image"]
    with Image.open(BytesIO(base64.b64decode(photo["data"]))) as seen:
        assert (seen.format, min(seen.size) >= LEAST_PHOTO) == ("JPEG", True), seen.size


def ask(story: Story) -> None:
    """After a no the tool does not run. The yes is that to a photo, else it is given here."""
    call = story.glasses.start_call("story:door")
    no = "double_tap" if story.model.capabilities.get("display") else "button_long"
    story.until(story.glasses._asked, "the question")

    def denied() -> bool:
        """A no counts as soon as the wearer can know what is asked; until then, once more."""
        story.glasses.mock.do(no)
        return story.glasses._wait(AGAIN_S, call.done)

    story.until(denied, "a no")
    assert call.result()["error"]["code"] == "DENIED", call.result()
    if TAKE_PHOTO.lacks(story.model):
        call = story.glasses.start_call("story:door")
        story.glasses.confirm()
        assert call.result(timeout=60)["ok"], call.result()


def gesture(story: Story) -> None:
    """Each is reported as what it is."""
    for name in gestures_of(story.model):
        since = len(story.happened())
        story.glasses.mock.do(name)
        story.heard(since, "glasses.event", said={"type": "Gestured", "gesture": name})


def lose_one_side(story: Story) -> None:
    """The other side goes on, and the link with it. The lost one is greeted again when it returns:
    its charge, which changed meanwhile, is known at once.
    """
    since = len(story.happened())
    story.glasses.mock.do("away:2:left")
    side = lambda: story.status()["sides"]["left"]["state"]  # noqa: E731
    story.until(lambda: side() != "up", "the left side lost")
    assert story.status()["state"] == "ready"
    if story.model.capabilities.get("display"):
        shown(story, "the bread is in the box")
    story.glasses.mock.do(f"battery {CHARGE_AWAY}")
    story.until(lambda: side() == "up", "the left side back")
    charge = lambda: story.status()["sides"]["left"]["battery"]  # noqa: E731
    story.until(lambda: charge() == CHARGE_AWAY, "the charge of the left side", GREETED_S)
    if story.model.capabilities.get("display"):
        same = lambda: story.glasses.mock.lens()["same"]  # noqa: E731
        story.until(same, "the same on both lenses")
    assert "glasses.lost" not in [each["event"] for each in story.happened()[since:]]


def report_battery(story: Story) -> None:
    """Its charge is in the status at once."""
    story.glasses.mock.do("battery 41")
    story.until(lambda: story.status()["battery"] == 41, "the battery")


def come_back(story: Story) -> None:
    """The link is lost, and they work again when it is back."""
    story.glasses.mock.do("battery 23")
    drop_and_return(story.glasses)
    story.until(lambda: story.status()["battery"] == 23, "the battery")
    if story.model.capabilities.get("display"):
        shown(story, "the keys are in the bowl")


# ------------------------------------------------------------------ what is left out, and why


def gestures_of(model: Model) -> list[str]:
    return [each for each in str(model.capabilities.get("gestures", "")).split(",") if each]


def needs(key: str, lacking: str) -> Callable[[Model], str]:
    """Return the fact why a model cannot do a step, for one that needs this capability."""
    return lambda model: "" if model.capabilities.get(key) is True else lacking


def _no_picture(model: Model) -> str:
    if model.capabilities.get("display") is not True:
        return "it has no display"
    return "" if model.capabilities.get("display.bitmap") else "its display takes no pictures"


def _no_question(model: Model) -> str:
    on_lens, known = model.capabilities.get("display"), gestures_of(model)
    if not on_lens and not model.capabilities.get("speaker"):
        return "it has neither a display nor a speaker to ask with"
    yes_and_no = {"tap", "double_tap"} if on_lens else {"button", "button_long"}
    return "" if yes_and_no <= set(known) else "it has no gestures for yes and no"


def _no_gesture(model: Model) -> str:
    return "" if gestures_of(model) else "it reports no gesture"


def _no_side(model: Model) -> str:
    return "" if model.arms else "it has one radio"


def _always(_model: Model) -> str:
    return ""


ASKED_FOR: Final = {"even_g2": "its battery is asked for, every minute and at each return"}


@dataclass(frozen=True)
class Step:
    """`lacks`: the fact why a model leaves it out, "" where it does not. `hidden`: the tool that
    the daemon then does not offer.
    """

    name: str
    tell: Callable[[Story], None]
    lacks: Callable[[Model], str] = _always
    hidden: str = ""


TAKE_PHOTO: Final = Step(
    "photo", take_photo, needs("camera", "it has no camera"), "glasses:take_photo"
)
ASK: Final = Step("question", ask, _no_question)
STEPS: Final = (
    Step("found", find),
    Step("paired", pair),
    Step("ready", be_ready),
    Step("text", show_text, needs("display", "it has no display"), "glasses:clear"),
    Step("picture", show_picture, _no_picture),
    Step(
        "dashboard",
        fill_dashboard,
        needs("display.dashboard_content", "it has no dashboard that can be filled"),
        "glasses:dashboard",
    ),
    Step(
        "navigation",
        navigate,
        needs("display.navigation", "it shows no turns by itself"),
        "glasses:navigate",
    ),
    Step(
        "translation",
        translate,
        needs("display.translation", "it shows no translations by itself"),
        "glasses:translate",
    ),
    Step("microphone", hear, needs("microphone", "it has no microphone")),
    Step("speech", speak, needs("speaker", "it has no speaker")),
    TAKE_PHOTO,
    ASK,
    Step("gestures", gesture, _no_gesture),
    Step("one side", lose_one_side, _no_side),
    Step("battery", report_battery, lambda model: ASKED_FOR.get(model.key, "")),
    Step("return", come_back),
)


ANNOUNCED: Final = "it has what it announces: the mock: glasses announce everything"


def left_out(model: Model) -> dict[str, str]:
    """Return the steps that a model does not tell, each with the fact why."""
    lacking = {step.name: why for step in STEPS if (why := step.lacks(model))}
    return lacking if model.is_product else dict.fromkeys(lacking, ANNOUNCED)


def word(model: Model) -> str:
    """Return the word for `glassd sim`."""
    return f"{SIMULATED}{model.key}" if model.simulator else model.key


def listed() -> str:
    """Return all steps that are left out, a line each."""
    return "".join(
        f"{model.key:<12} {name:<11} {why}\n"
        for model in supported()
        for name, why in left_out(model).items()
    )


if __name__ == "__main__":
    sys.stdout.write(listed())
