"""A pending message: shown and spoken once when the session starts, whatever happens to daemon
and glasses before.
"""

import asyncio
import re

import pytest

from edge.calls.voice_session import NOTE, VoiceSession, restore
from edge.core.session import SessionController
from edge.storage.notes import Notes
from tests.unit.calls.orchestrator_house import FakeTools, house
from tests.unit.display.fakes import DISPLAY, FULL
from tools_cache.api.tool import Delivery, DeliveryReport, ToolResponse

START = {"type": "START_VOICE_SESSION", "sessionId": "voice-1"}
END = {"type": "END_VOICE_SESSION"}
WISH = "find a room for Friday"


def message(text):
    return {"type": "SET_PENDING_MESSAGE", "message": text}


def tools(*intents, text="done"):
    """Every call is answered with these intents, and the answer is read in a moment."""
    found = FakeTools()
    shown = {"layout": "text_wall", "text": text, "durationMs": 100}

    async def answer(_call, _progress):
        return ToolResponse(data={"text": text}, intents=intents, render={"display": shown})

    found.handler = answer
    return found


async def shown(h, text=WISH):
    await h.glasses.until(lambda: text in h.glasses.texts())
    async with asyncio.timeout(40):
        while h.orchestrator.session.snapshot().pending_message is not None:
            await asyncio.sleep(0)
    await asyncio.wait({h.orchestrator.voice._showing})


def times(h, text=WISH):
    return h.glasses.texts().count(text)


@pytest.mark.requirement("I12-pending-message")
async def test_a_pending_message_is_shown_and_spoken_once_after_the_answer(
    tmp_path,
):
    async with house(
        tmp_path, facts=FULL, tools=tools(START, message(WISH), text="Voice session started")
    ) as h:
        assert (await h.call("notes:list")).ok
        await shown(h)
        assert h.glasses.texts().index("Voice session started") < h.glasses.texts().index(WISH)
        await h.glasses.until(lambda: h.glasses.frames() > 0)
        h.tools.handler = tools(END, START).handler
        assert (await h.call("notes:list")).ok
        await h.orchestrator.heard("my notes")
        assert times(h) == 1


@pytest.mark.requirement("I12-pending-message")
async def test_a_message_waits_for_the_wearers_session_and_follows_the_answer(
    tmp_path,
):
    async with house(tmp_path, tools=tools(message(WISH))) as h:
        assert (await h.call("notes:list")).ok
        assert times(h) == 0
        h.tools.handler = tools(text="your notes").handler
        assert (await h.orchestrator.heard("my notes")).ok
        await shown(h)
        assert h.glasses.texts().index("your notes") < h.glasses.texts().index(WISH)


@pytest.mark.requirement("I12-pending-message")
async def test_a_message_set_within_a_session_waits_for_the_next_one(tmp_path):
    async with house(tmp_path, tools=tools(message(WISH))) as h:
        assert (await h.orchestrator.heard("my notes")).ok
        assert (await h.orchestrator.heard("my notes")).ok
        assert h.orchestrator.session.snapshot().pending_message == WISH
        h.tools.handler = tools(END).handler
        assert (await h.orchestrator.heard("my notes")).ok
        assert times(h) == 0
        h.tools.handler = tools(START).handler
        assert (await h.call("notes:list")).ok
        await shown(h)


@pytest.mark.requirement("I12-pending-message")
async def test_a_message_outlives_the_daemon_and_is_shown_by_one_daemon_only(tmp_path):
    async with house(tmp_path, tools=tools(message(WISH))) as h:
        assert (await h.call("notes:list")).ok
    async with house(tmp_path, tools=tools()) as h:
        assert times(h) == 0
        assert (await h.orchestrator.heard("my notes")).ok
        await shown(h)
    async with house(tmp_path, tools=tools()) as h:
        assert (await h.orchestrator.heard("my notes")).ok
        assert h.orchestrator.session.snapshot().pending_message is None
        assert h.orchestrator.voice._showing is None


@pytest.mark.requirement("I12-pending-message")
async def test_a_message_not_shown_before_a_crash_is_shown_afterwards(tmp_path):
    async with house(tmp_path, tools=tools(START, message(WISH))) as h:
        h.glasses.leave()
        assert (await h.call("notes:list")).ok
    async with house(tmp_path, tools=tools()) as h:
        assert (await h.orchestrator.heard("my notes")).ok
        await shown(h)
        assert times(h) == 1


@pytest.mark.parametrize(
    "reached", [Delivery.DROPPED, Delivery.EXPIRED, Delivery.SUPERSEDED, Delivery.NONE]
)
async def test_a_message_that_reached_nobody_is_shown_when_it_can_be(tmp_path, reached):
    async with house(tmp_path, tools=tools(message(WISH))) as h:
        assert (await h.call("notes:list")).ok
        voice: VoiceSession = h.orchestrator.voice
        present, said = h.stage.present, []

        async def nowhere(name, response, **_more):
            said.append(name)
            return DeliveryReport(reached, "the glasses are away")

        voice._stage.present = nowhere
        voice.started()
        await asyncio.wait({voice._showing})
        assert h.orchestrator.session.snapshot().pending_message == WISH
        voice._stage.present = present
        h.glasses.leave()
        h.glasses.come_back()
        await shown(h)
        assert re.fullmatch(r"pending-message-\d+", said[0])


@pytest.mark.requirement("I12-pending-message")
async def test_a_message_that_was_shown_and_not_struck_off_is_shown_again(
    tmp_path,
):
    async with house(tmp_path, tools=tools(START, message(WISH))) as h:
        voice: VoiceSession = h.orchestrator.voice
        kept = asyncio.Event()
        keep, h.orchestrator.voice.keep = (
            voice.keep,
            lambda: keep() if voice.controller.snapshot().pending_message else kept.wait(),
        )
        assert (await h.call("notes:list")).ok
        await h.glasses.until(lambda: WISH in h.glasses.texts())
    async with house(tmp_path, tools=tools()) as h:
        assert h.orchestrator.session.snapshot().pending_message == WISH
        assert (await h.orchestrator.heard("my notes")).ok
        await shown(h)


@pytest.mark.parametrize("text", [None, "", "  ", 5, ["x"]])
async def test_what_is_no_text_takes_the_message_back(tmp_path, text):
    async with house(tmp_path, tools=tools(message(WISH), message(text))) as h:
        assert (await h.call("notes:list")).ok
        assert h.orchestrator.session.snapshot().pending_message is None


async def test_a_message_is_cut_to_a_few_pages(tmp_path):
    async with house(tmp_path, tools=tools(message("x" * 50_000))) as h:
        assert (await h.call("notes:list")).ok
        assert len(h.orchestrator.session.snapshot().pending_message) == 2000


@pytest.mark.requirement("I12-transcripts-suppressed")
async def test_suppressed_transcripts_stay_suppressed_over_a_restart_and_over_the_wearers_words(
    tmp_path,
):
    async with house(tmp_path, tools=tools({"type": "SUPPRESS_TRANSCRIPT", "value": True})) as h:
        assert (await h.call("notes:list")).ok
    async with house(tmp_path, facts=DISPLAY) as h:
        assert h.orchestrator.session.snapshot().suppress_transcript
        answer = await h.orchestrator.heard("sing me a song")
        assert answer.error.message == "Nothing here answers to that"
        assert h.orchestrator.session.snapshot().suppress_transcript
        h.tools.handler = tools(END).handler
        assert (await h.orchestrator.heard("my notes")).ok
        assert not h.orchestrator.session.snapshot().suppress_transcript
    async with house(tmp_path) as h:
        assert not h.orchestrator.session.snapshot().suppress_transcript


@pytest.mark.parametrize(
    ("note", "suppressed"),
    [
        (5, True),
        ([], True),
        ("x", True),
        ({"pending_message": 7, "suppress_transcript": "yes"}, True),
        ({"pending_message": ""}, False),
        ({"pending_message": 7, "suppress_transcript": False}, False),
    ],
)
@pytest.mark.requirement("I12-suppressed-first")
async def test_a_note_that_cannot_be_read_suppresses_transcripts(
    tmp_path, note, suppressed, caplog
):
    async with house(tmp_path) as h:
        notes: Notes = h.orchestrator.voice._notes
        await notes.put(NOTE, note)
    async with house(tmp_path) as h:
        state = h.orchestrator.session.snapshot()
        assert (state.pending_message, state.suppress_transcript) == (None, suppressed)
        assert ("transcripts are suppressed until" in caplog.text) is suppressed
        assert (await h.call("notes:list")).ok


async def test_a_disk_that_reads_nothing_suppresses_transcripts(caplog):
    class Broken:
        async def get(self, _name):
            raise OSError("input/output error")

    session = SessionController()
    await restore(session, Broken())
    assert session.snapshot().suppress_transcript
    assert "transcripts are suppressed until" in caplog.text
    assert "cannot be read: input/output error" in caplog.text
