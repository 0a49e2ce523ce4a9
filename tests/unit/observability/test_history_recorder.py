"""What is recorded of a daemon's events, and what is not: on a real bus and real SQLite."""

import asyncio
import logging
from contextlib import suppress

import pytest

from edge.observability import history_recorder
from edge.observability.history_recorder import HistoryRecorder, answer_text
from edge.runtime.bus import Bus
from edge.runtime.events import (
    CallAnswered,
    CallCompleted,
    GlassesSaid,
    LensChanged,
    PrivateWords,
)
from edge.storage.history import HistoryStore, Retention
from edge.storage.sqlite.database import DiskUnavailable
from edge.storage.tools.user_stores import PrivateStores
from firmware_bridge.messages import Transcript
from tests.unit.storage.support import Hands
from tools_cache.api.history import HistoryEntry, HistoryQuery


class Watched(HistoryStore):
    """A store on a disk that can be taken away; tells when it was swept."""

    full = False
    sweeps = 0

    async def add(self, user, entry):
        if self.full:
            raise DiskUnavailable("the disk or the store is full")
        await super().add(user, entry)

    async def sweep(self, keep):
        done = await super().sweep(keep)
        self.sweeps += 1
        self.swept.set()
        return done


class Desk:
    """A recorder that runs, with calls that were answered."""

    def __init__(self, folder):
        self.hands, self.bus, self.calls = Hands(), Bus(), {}
        self.private = PrivateStores(folder / "users", key=folder / "tools.key")
        self.store = Watched(folder / "history.db", self.private.keyring, self.hands.clock)
        self.store.swept = asyncio.Event()
        self.marks, self.reached, self.task = 0, asyncio.Event(), None

    async def start(self, **more):
        options = {"user": "eva", "keep": Retention(), "transcripts": True, **more}
        recorder = HistoryRecorder(self.store, self.find, bus=self.bus, **options)
        self.task = asyncio.create_task(recorder.run())
        async with asyncio.timeout(20):
            await self.store.swept.wait()
        return recorder

    async def find(self, call_id):
        if call_id == f"mark-{self.marks}":
            self.reached.set()
        return self.calls.get(call_id)

    async def settle(self):
        """Return when the recorder has taken all that was published."""
        self.marks += 1
        self.reached.clear()
        self.bus.publish(CallAnswered(f"mark-{self.marks}", "x:y", True, "local", "none"))
        async with asyncio.timeout(20):
            await self.reached.wait()

    def answer(self, call_id, response, tool="clock:now", *, user="eva", delivery="shown"):
        request = {"tool": tool, "user_id": user, "args": {"pin": "argument"}}
        self.calls[call_id] = {"request": request, "response": response}
        self.bus.publish(CallAnswered(call_id, tool, True, "local", delivery))

    async def entries(self, user="eva"):
        await self.settle()
        found = await self.store.search(user, HistoryQuery(limit=100))
        return [(entry.kind, entry.tool, entry.text, entry.delivery) for entry in found.entries]

    async def stop(self):
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        await self.store.close()


def good(text):
    return {"ok": True, "data": {"text": text}}


@pytest.fixture
async def desk(tmp_path):
    made = Desk(tmp_path)
    yield made
    await made.stop()


@pytest.mark.requirement("I15-history-recorded")
async def test_an_answer_is_recorded_by_its_text_and_not_by_its_arguments(desk):
    await desk.start()
    desk.answer("c1", good("10:30, Saturday"))
    assert await desk.entries() == [("called", "clock:now", "10:30, Saturday", "shown")]


async def test_a_repeated_answer_is_recorded_once(desk):
    await desk.start()
    desk.answer("c1", good("one"))
    desk.answer("c1", good("one"))
    desk.bus.publish(CallCompleted("c1", "clock:now", True, "shown"))
    assert len(await desk.entries()) == 1


async def test_an_interim_answer_waits_for_the_last_one(desk):
    await desk.start()
    desk.calls["c1"] = {"request": {"tool": "a:b", "user_id": "eva"}, "response": good("done")}
    desk.bus.publish(CallAnswered("c1", "a:b", True, "cloud", "none", final=False))
    assert await desk.entries() == []
    desk.bus.publish(CallCompleted("c1", "a:b", True, {"state": "dropped", "reason": "away"}))
    assert await desk.entries() == [("called", "a:b", "done", "dropped")]


async def test_refused_calls_and_those_of_the_history_are_not_recorded(desk):
    await desk.start()
    desk.bus.publish(CallAnswered("gone", "a:b", False, "", "none", "FORBIDDEN"))
    desk.answer("c1", good("x"), tool="continuum:search")
    desk.answer("c2", good("x"), tool="context:recent")
    desk.answer("c3", good("x"), tool="registry:invoke")
    assert await desk.entries() == []


async def test_a_call_belongs_to_its_user(desk):
    await desk.start()
    desk.answer("c1", good("for ben"), user="ben")
    assert await desk.entries() == []
    assert [text for _, _, text, _ in await desk.entries("ben")] == ["for ben"]


@pytest.mark.requirement("I15-history-recorded")
async def test_words_are_recorded_only_where_that_is_switched_on(desk):
    await desk.start(transcripts=False)
    desk.bus.publish(GlassesSaid(Transcript("my words")))
    desk.answer("c1", good("one"))
    assert [kind for kind, *_ in await desk.entries()] == ["called"]


@pytest.mark.requirement("I15-history-recorded")
async def test_final_words_are_recorded_and_private_ones_never(desk):
    await desk.start()
    desk.bus.publish(GlassesSaid(Transcript("when does", final=False)))
    desk.bus.publish(GlassesSaid(Transcript(" When does the train leave? ")))
    desk.bus.publish(PrivateWords(Transcript("a secret")))
    assert await desk.entries() == [("said", "", "When does the train leave?", "")]


async def test_alarms_and_pages_of_handlers_are_recorded_and_captions_are_not(desk):
    await desk.start()
    for scene in ("captions", "c1", "alarm-4", "alarm-4", "reminder-2", "c1/shown-1", "question-1"):
        desk.bus.publish(LensChanged(scene, 1, 1, (f"On {scene}",)))
    desk.bus.publish(LensChanged("alarm-4", 1, 1, ()))
    texts = [(kind, text) for kind, _, text, _ in await desk.entries()]
    assert texts == [
        ("shown", "On c1/shown-1"),
        ("shown", "On reminder-2"),
        ("shown", "On alarm-4"),
    ]


async def test_a_full_disk_costs_one_log_line_and_its_end_another(desk, caplog):
    caplog.set_level(logging.INFO, logger=history_recorder.__name__)
    recorder = await desk.start()
    desk.store.full = True
    for number in range(3):
        desk.answer(f"c{number}", good("lost"))
    await desk.settle()
    assert recorder.trouble == "the disk or the store is full"
    assert [r.getMessage() for r in caplog.records] == [
        "the history is not recorded: the disk or the store is full"
    ]
    desk.store.full = False
    desk.answer("c9", good("kept"))
    assert [text for _, _, text, _ in await desk.entries()] == ["kept"]
    assert [r.levelname for r in caplog.records] == ["WARNING", "INFO"]


async def test_a_lost_key_stops_recording_and_not_the_service(desk, tmp_path, caplog):
    await desk.store.add("eva", HistoryEntry(0.0, "said", "before"))
    (tmp_path / "tools.key").unlink()
    desk.private = PrivateStores(tmp_path / "users", key=tmp_path / "tools.key")
    desk.store._keyring = desk.private.keyring
    await desk.start()
    desk.answer("c1", good("one"))
    await desk.settle()
    assert not desk.task.done()
    assert "The key of the encrypted values is gone" in caplog.text


async def test_too_many_entries_are_swept_while_recording(desk, monkeypatch):
    monkeypatch.setattr(history_recorder, "SWEEP_EVERY", 4)
    await desk.start(keep=Retention(max_entries=2))
    for number in range(8):
        desk.answer(f"c{number}", good(f"n {number}"))
    assert [text for _, _, text, _ in await desk.entries()] == ["n 7", "n 6"]
    assert desk.store.sweeps == 3


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (
            {"ok": False, "error": {"code": "NOT_FOUND", "message": "no argument"}},
            "failed: NOT_FOUND",
        ),
        ({"ok": True, "data": None}, ""),
        ({"ok": True, "data": {"count": 3, "name": "x"}}, "count: 3\nname: x"),
        (
            {"data": {"a": 1}, "render": {"display": {"title": "Gate", "text": "B12"}}},
            "Gate\nB12",
        ),
        ({"data": {"a": 1}, "render": {"display": {"pages": ["one", 2, "three"]}}}, "one\nthree"),
    ],
)
def test_an_answer_without_text_is_recorded_by_what_was_shown(response, text):
    assert answer_text(response) == text
