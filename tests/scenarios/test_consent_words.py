"""Story: the wearer agrees in words, reads what became of it, and takes it back with a tap."""

import pytest

from edge.runtime.ids import new_call_id
from tests.scenarios.test_two_sides import G1
from tests.scenarios.world import until, world
from tools_cache.api.tool import CallOrigin, ToolCall

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODELS = ["mock:display", "sim:even_g1"]
LUNCH = {
    "title": "Lunch",
    "start": "2026-12-01T12:00:00Z",
    "end": "2026-12-01T13:00:00Z",
}


def on(tmp_path, model, **more):
    return world(tmp_path, model, **(G1 if model == "sim:even_g1" else {}), **more)


async def started(place, **sections):
    await place.switch_glasses_on()
    await place.start_daemon(**sections)
    await place.ready()


async def begin(place, tool, args, **more):
    call = ToolCall(
        call_id=new_call_id(place.daemon.clock.wall()),
        tool=tool,
        args=args,
        origin=CallOrigin.CLI,
        **more,
    )
    return call, await place.daemon.calls.begin(call)


async def notes(place):
    found = await place.call("notes:list", {}, present=False)
    return [note["text"] for note in found.data["notes"]]


async def undo_when_it_counts(place):
    """Tap as soon as a tap is more than the end of the one before."""
    page = lambda: place.daemon.stage._current.now  # noqa: E731
    await until(
        lambda: page() and page().offers and page().offered_for_s(place.daemon.clock.boot()) > 0.8,
        lambda: f"an offer to undo; on the lens: {place.lens()}",
    )
    place.mark()
    place.tap()


@pytest.mark.requirement("I13-undo")
@pytest.mark.parametrize("model", MODELS)
async def test_a_tap_takes_a_note_back_once(tmp_path, model):
    async with on(tmp_path, model) as place:
        await started(place)
        await place.call("notes:add", {"text": "eggs"})
        await place.call("notes:add", {"text": "milk"})
        assert await notes(place) == ["milk", "eggs"]
        place.mark()
        await begin(place, "notes:add", {"text": "bread"})
        await place.lens_shows("Noted: bread", "tap to undo")
        await undo_when_it_counts(place)
        place.tap()
        await place.lens_shows("Removed: bread")
        assert await notes(place) == ["milk", "eggs"]
