"""Names of contacts in what the wearer says: real sound, a real recogniser, real stores."""

import logging

import pytest

from edge.hearing import recogniser
from tests.scenarios.voice.test_hearing import heard, microphone, press, say, wearing
from tests.scenarios.world import until

pytest.importorskip("moonshine_voice", reason="pip install 'glassd[ears]'")
pytest.importorskip("onnxruntime", reason="pip install 'glassd[ears]'")
pytest.importorskip("py_nanotts", reason="pip install 'glassd[voice]'")

NAME, PHONE = "Tobías Keller", "+49 30 99"
SPOKEN = "What is the phone number of Tobias Keller?"
"""Clear speech to the recogniser; no contact has the name as it is written here."""


async def add(place, name, **fields):
    assert (await place.call("contacts:add", {"name": name, **fields}, present=False)).ok


def names(place):
    known = place.daemon.listening.names.of_tool.get("contacts:find")
    return {} if known is None else dict(known.stored)


@pytest.mark.requirement("I14-names")
async def test_the_spoken_name_of_a_contact_finds_that_contact(tmp_path, caplog):
    async with wearing(tmp_path) as place:
        await add(place, NAME, phones=[PHONE])
        await add(place, "Tobias Webber", phones=["1"])
        caplog.clear()
        place.mark()
        with caplog.at_level(logging.DEBUG):
            await press(place)
            await say(place, SPOKEN)
            await place.heard("call.answered", tool="contacts:find", ok=True)
            assert await place.lens_shows(NAME, PHONE), heard(place)
            await microphone(place, open=False)
        status = place.daemon.status()["microphone"]
        assert (status["names"], status["names_left_out"]) == (2, 0)
    assert not [r for r in caplog.records if "keller" in r.getMessage().casefold()]


@pytest.mark.requirement("I14-names")
async def test_names_follow_the_contacts_while_it_listens(tmp_path, monkeypatch):
    expected, expect = [], recogniser._RecogniserStream.expect

    def note(stream, words):
        expected.append(words.lists)
        expect(stream, words)

    monkeypatch.setattr(recogniser._RecogniserStream, "expect", note)
    async with wearing(tmp_path) as place:
        assert "names" not in place.daemon.status()["microphone"]
        await press(place)
        assert names(place) == {}
        await add(place, NAME, phones=[PHONE])
        await until(lambda: "tobias keller" in names(place), "the name may be said")
        assert any("tobias keller" in known for lists in expected for known in lists.values())
        place.mark()
        await say(place, SPOKEN)
        await place.heard("call.answered", tool="contacts:find", ok=True)
        assert await place.lens_shows(NAME, PHONE), heard(place)
