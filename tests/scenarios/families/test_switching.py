"""Story: on a running daemon an Even G1 is taken off, a Mentra Live is put on, then a Frame. Tools,
pages and photos follow, and each change is announced once.
"""

import pytest

from firmware_bridge.messages import Gesture
from tests.scenarios.test_hardware import hides, list_changes, none_of, told_clients, wear
from tests.scenarios.world import until, world

pytestmark = pytest.mark.asyncio(loop_scope="session")

ON_A_LENS = (
    *("captions", "clear", "dashboard", "dismiss", "notify"),
    *("navigate", "preferences", "restart", "translate"),
)
NOT_OF_A_LIVE = {f"glasses:{tool}": "a display" for tool in ON_A_LENS}
NOT_OF_A_G1 = {
    "glasses:take_photo": "a camera",
    "glasses:gallery": "a camera",
    "glasses:record_video": "a camera",
    "glasses:end_video": "a camera",
    "glasses:hotspot": "Wi-Fi",
    "glasses:wifi": "Wi-Fi",
    "glasses:join_wifi": "Wi-Fi",
    "glasses:leave_wifi": "Wi-Fi",
    "glasses:light": "a light",
    "glasses:motion": "a motion sensor",
}


GAIN = {"glasses:set_microphone": "lets its gain be set"}
NOTES = dict.fromkeys(("glasses:voice_notes", "glasses:remove_voice_note"), "keeps spoken notes")


def lacking(glasses, parts, microphone):
    """Return why each tool is hidden: these `parts` are missing, and what the microphone cannot."""
    unknown = f"these glasses ({glasses}) do not report this about their microphone"
    cannot = {
        tool: f"needs a microphone that {what}; {unknown}" for tool, what in microphone.items()
    }
    still = f"needs glasses that vibrate; these glasses ({glasses}) do not say that they do"
    return {**none_of(glasses, **parts), **cannot, "glasses:vibrate": still}


async def photo(place, answer):
    """Take a photo after a yes, given by `answer`; return how many bytes it has."""
    place.start_call("glasses:take_photo", {"size": "small"})
    await answer
    response = await place.answer()
    assert response.ok, response.error
    assert place.mock.glasses.camera.photos == 1
    return response.data["bytes"]


async def reads(place, text):
    """Show a text, and find it on the lens of the glasses that are worn."""
    response = await place.call("glasses:show_text", {"text": text})
    assert response.ok, response.error
    lens = place.mock.glasses.lens
    await until(lambda: text in " ".join(lens.text()), lambda: f"{text!r} in {lens.text()}")


@pytest.mark.timeout(180)
async def test_even_g1_then_mentra_live_then_frame(tmp_path, capsys):
    async with world(tmp_path, glasses={"model": ""}, tools={"offered_max": 80}) as place:
        await place.start_daemon()

        await wear(place, "sim:even_g1")
        await hides(place, capsys, lacking("Even Realities G1", NOT_OF_A_G1, GAIN))
        await reads(place, "Read on a G1")
        await told_clients(place, 1)

        await wear(place, "sim:mentra_live")
        await hides(place, capsys, lacking("Mentra Live", NOT_OF_A_LIVE, GAIN | NOTES))
        assert await photo(place, place.answer_question()) > 1000
        await told_clients(place, 2)

        await wear(place, "sim:frame")
        hidden = {
            entry.definition.name
            for entry in place.daemon.registry.snapshot().entries()
            if entry.hidden
        }
        assert "glasses:take_photo" not in hidden
        assert "glasses:show_text" not in hidden
        await reads(place, "Read on a Frame")
        # one tap: two within 0.3 s are a double tap there, which says no
        assert await photo(place, place.answer_page(Gesture.TAP)) > 1000
        await told_clients(place, 3)
        assert len(list_changes(place)) == 3, "once a change"
