"""Story: the tools that come with glassd, in a daemon with glasses: looked up by voice, an
event after a tap, quiet for a while.
"""

import pytest

from tests.scenarios.world import until, world
from tools_cache.api.tool import Mode

pytestmark = pytest.mark.asyncio(loop_scope="session")
EVENT = {
    "title": "Review",
    "start": "2026-11-23T15:00:00Z",
    "end": "2026-11-23T16:00:00Z",
    "attendees": ["eva@example.com"],
}
WINDOW = {"start": "2026-11-23T14:00:00Z", "end": "2026-11-23T17:00:00Z"}


@pytest.mark.requirement("S2-121")
@pytest.mark.requirement("S2-125")
@pytest.mark.requirement("S2-128")
async def test_a_wearer_looks_something_up_agrees_to_an_event_and_is_left_alone(tmp_path):
    library, state = tmp_path / "kb", tmp_path / "state"
    library.mkdir()
    for n in range(5):
        (library / f"{n}.md").write_text(f"# Policy {n}\nreturns")
    async with world(tmp_path) as place:
        await place.switch_glasses_on()
        await place.start_daemon(kb={"folder": str(library)})
        await place.ready()
        assert not (state / "knowledge.db").exists(), "nothing is opened before it is needed"

        said = await place.daemon.calls.heard("search the knowledge base for returns")
        assert (said.ok, len(said.data["results"]), said.meta["clamped"]) == (
            True,
            3,
            {"top_k": [5, 3]},
        )
        await place.lens_shows("Policy", "returns")

        backwards = await place.call(
            "calendar:create_event", {**EVENT, "start": EVENT["end"], "end": EVENT["start"]}
        )
        assert "/start must be before /end" in backwards.error.message, (
            "nobody is asked about what cannot be"
        )
        place.start_call("calendar:create_event", EVENT)
        await place.lens_shows("Add to calendar?")
        assert not (state / "calendars").exists(), "not before the yes"
        await place.answer_question()
        made = await place.answer()
        assert (made.ok, made.data["created"]) == (True, True)
        (file,) = (state / "calendars" / "primary").iterdir()
        assert b"SUMMARY:Review" in file.read_bytes()
        free = await place.call("calendar:get_availability", WINDOW)
        assert free.data["summary"] == "1 busy periods, 2 available slots (120 minutes total)"

        assert (
            await place.call(
                "session:ignore_user", {"duration": 60, "farewell": "See you"}, mode=Mode.VOICE
            )
        ).ok
        await place.lens_shows("See you")
        assert not (await place.daemon.calls.heard("what time is it")).ok
        assert (await place.call("voice:start")).ok
        assert (await place.daemon.calls.heard("what time is it")).ok
        await until(lambda: place.daemon.calls.session.snapshot().voice_active, "the session is on")
