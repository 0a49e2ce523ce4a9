"""Story: what an Even G1 shows and does by itself: dashboard, navigation, translation, spoken
notes, preferences, restart; each as its wearer sees it.
"""

import base64
import wave
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from io import BytesIO

import pytest
from PIL import Image

from edge.core.hearing.expected import ExpectedWords
from edge.runtime.clock import Clock
from firmware_bridge.messages import AudioFormat, Gesture
from firmware_bridge.sides import Side
from tests.scenarios.world import until, world
from tests.system import needs
from tests.unit.hearing.children import loud

KEY = "even_g1"
NOON = Clock(wall=datetime(2026, 11, 28, 12, tzinfo=UTC).timestamp, synced=lambda: True)

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def worn(folder, *, speed=20.0, quirks=(), clock=None):
    """A daemon that is ready to use a simulated G1."""
    sections = {"glasses": {"model": KEY}, "wearer": {"timezone": "Europe/Oslo"}}
    async with world(folder, f"sim:{KEY}", **sections) as place:
        place.clock = clock
        await place.switch_glasses_on(speed=speed, quirks=quirks)
        await place.start_daemon()
        await place.ready()
        status = place.daemon.link.status
        up = lambda: [how.state for how in status().sides.values()] == ["up", "up"]  # noqa: E731
        await until(up, "both arms up")
        yield place


async def does(place, tool, **args):
    """Call a tool and return the text of its answer."""
    response = await place.call(tool, args)
    assert response.ok, response.error
    return response.data["text"]


async def both_show(place, *rows):
    """Wait until both lenses show these rows and nothing else."""

    def seen():
        return [place.mock.glasses.lenses[side].text() for side in Side]

    await until(lambda: seen() == [list(rows)] * 2, lambda: f"{rows} on both; they show {seen()}")


@pytest.mark.requirement("I4-sim-g1")
async def test_the_wearer_looks_up_and_sees_clock_weather_and_appointments(tmp_path):
    async with worn(tmp_path, speed=1.0, clock=NOON) as place:
        await does(place, "glasses:show_text", text="The page below")
        await both_show(place, "The page below")
        place.wearer_does(Gesture.HEAD_UP)
        await both_show(place, "13:00")
        place.wearer_does(Gesture.HEAD_DOWN)
        await both_show(place, "The page below")

        parts = {"layout": "dual", "pane": "calendar", "weather": {"sky": "rain", "celsius": -3}}
        entry = {"title": "Dentist", "time": "14:30", "place": "Main St 4"}
        said = await does(place, "glasses:dashboard", **parts, calendar=[entry])
        assert said == "Dashboard: layout, weather, calendar"
        place.mark()
        place.wearer_does(Gesture.HEAD_UP)
        await place.heard("glasses.event")
        await both_show(place, "13:00  -3 °C  rain", "Dentist  14:30  Main St 4")
        covered = lambda: place.daemon.link.status().covered  # noqa: E731
        await until(covered, "a page that is covered")
        place.wearer_does(Gesture.HEAD_DOWN)
        await both_show(place, "The page below")
        await until(lambda: not covered(), "a page that is seen")

        await does(place, "glasses:preferences", head_up="nothing", head_up_angle=40)
        place.mark()
        place.wearer_does(Gesture.HEAD_UP)
        await place.heard("glasses.event")
        await both_show(place, "The page below")
        assert covered() == ""
        settings = place.mock.glasses.settings
        assert (settings["head_up"], settings["head_up_angle"]) == ("nothing", 40)

        for server in place.mock.servers.values():
            server.drop()
        await until(lambda: place.daemon.link.status().link == 2, "another link")
        await until(lambda: place.daemon.link.status().ready, "ready again")
        place.mark()
        place.wearer_does(Gesture.HEAD_UP)
        await place.heard("glasses.event")
        assert covered() == "", "they prefer it still"


@pytest.mark.parametrize("quirks", [(), ("functions-answered=no",)], ids=["answered", "silent"])
async def test_turns_and_translations_are_seen_and_a_page_takes_their_place(tmp_path, quirks):
    async with worn(tmp_path, quirks=quirks) as place:
        turn = {"turn": "left", "street": "High St", "distance": "50 m", "trip_time": "5 min"}
        assert await does(place, "glasses:navigate", **turn) == "Navigation: left, High St, 50 m"
        await both_show(place, "left: 50 m", "High St", "5 min")
        await does(place, "glasses:show_text", text="A page")
        await both_show(place, "A page")
        await does(place, "glasses:navigate", **turn)
        await both_show(place, "left: 50 m", "High St", "5 min")
        await does(place, "glasses:navigate", end=True)
        await both_show(place)

        await does(place, "glasses:translate", **{"from": "en", "to": "fr"})
        await both_show(place, "en → fr")
        await does(place, "glasses:translate", original="Hello", translated="Bonjour")
        await both_show(place, "Hello", "Bonjour")
        await does(place, "glasses:translate", translated="Salut")
        await both_show(place, "Hello", "Salut")
        await does(place, "glasses:translate", end=True)
        await both_show(place)


async def test_a_map_is_drawn_beside_the_turn_and_kept_for_the_dashboard(tmp_path):
    square = Image.new("L", (40, 20), 255)
    out = BytesIO()
    square.save(out, "PNG")
    image = base64.b64encode(out.getvalue()).decode()
    async with worn(tmp_path) as place:
        await does(place, "glasses:navigate", turn="left", map=image)
        lit = lambda: [place.mock.glasses.lenses[side].lit for side in Side]  # noqa: E731
        await until(lambda: lit() == [800, 800], lambda: f"a map of 40 × 20; lit: {lit()}")
        said = await does(place, "glasses:dashboard", layout="full", pane="map", map=image)
        assert said == "Dashboard: layout, map"
        assert place.mock.glasses.settings["map"] == ["picture"]
        wrong = await place.call("glasses:navigate", {"turn": "left", "map": "iVBORw0KGgoAAAAN"})
        assert wrong.error.message == "image: the image is neither a PNG nor a JPEG"


@needs("liblc3")
async def test_a_note_that_was_spoken_is_listed_read_and_deleted_after_a_yes(tmp_path):
    async with worn(tmp_path) as place:
        place.daemon.recognisers.command = loud()
        assert (await place.call("glasses:voice_notes")).data["known"] is False
        place.mark()
        place.mock.glasses.say("buy some milk")
        assert place.mock.glasses.gesture(Gesture.BUTTON_LONG, side=Side.RIGHT)
        await until(lambda: place.daemon.link.status().voice_notes, "a spoken note")
        listed = (await place.call("glasses:voice_notes")).data["notes"]
        assert [each["note"] for each in listed] == [1]

        words = (await place.call("glasses:voice_notes", {"note": 1})).data
        assert words["seconds"] == 1.0
        assert words["words"].endswith("s of []"), "the words of a recogniser in a test"
        busy = await place.daemon.recognisers.make()
        stream = await busy.begin(AudioFormat.PCM16, ExpectedWords())
        sound = await place.call("glasses:voice_notes", {"note": 1})
        await stream.close()
        assert "something else" in sound.data["why_no_words"]
        with wave.open(BytesIO(base64.b64decode(sound.meta["content"][1]["data"]))) as file:
            assert (file.getframerate(), file.getnframes()) == (8000, 8000)
            assert max(file.readframes(8000)) > 0
        missing = await place.call("glasses:voice_notes", {"note": 2})
        assert missing.error.message == "The glasses keep no spoken note 2"

        place.start_call("glasses:remove_voice_note", {"note": 1})
        await place.lens_shows("Delete this spoken note?")
        await place.answer_question()
        gone = await place.answer()
        assert gone.ok, gone.error
        assert gone.data == {"known": True, "notes": [], "text": "Spoken note 1 is deleted"}
        again = await place.call("glasses:voice_notes", {"note": 1})
        assert again.error.message == "The glasses keep no spoken note 1"


async def test_glasses_restart_after_a_yes_and_come_back(tmp_path):
    async with worn(tmp_path) as place:
        place.start_call("glasses:restart")
        await place.lens_shows("Restart the glasses?")
        place.mark()
        await place.answer_question()
        response = await place.answer()
        assert response.ok, response.error
        await until(lambda: place.daemon.link.status().link == 2, "another link")
        await until(lambda: place.daemon.link.status().ready, "ready again")
        restarts = [each["side"] for each in place.shown if each["event"] == "restart"]
        assert sorted(restarts) == [Side.LEFT, Side.RIGHT]
