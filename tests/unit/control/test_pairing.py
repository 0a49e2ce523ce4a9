"""The pairing paths of the control API: streams that end with their client, answers, errors."""

import asyncio
import json
from types import MappingProxyType

import pytest

from edge.core.pairing_state import (
    Bond,
    HeardGlasses,
    PairingRefused,
    PairingState as S,
    PairingStep,
)
from firmware_bridge.errors import RadioError, RadioReason
from tests.unit.control.house import DEADLINE_S, open_house

pytestmark = pytest.mark.enable_socket

HEARD = HeardGlasses(
    "F0:00:00:00:00:01",
    "mock:display",
    "Mock display glasses",
    "MOCK-DSP",
    "F0:00:00:00:00:01",
    -50,
)
BOND = Bond(
    HEARD.id, HEARD.model, HEARD.name, MappingProxyType({"": HEARD.address}), "passkey", 1.0
)


class Desk:
    """A `PairingPort` whose window yields what it is given, and then waits for an answer."""

    def __init__(self):
        self.steps = [PairingStep(S.SCANNING), PairingStep(S.ASKING, HEARD, ask="passkey")]
        self.wanted, self.answers, self.closed = [], [], asyncio.Event()
        self.answered = asyncio.Event()
        self.broken = None
        self.unpaired = BOND

    async def scan(self, seconds, *, settle_s=None):
        self.wanted.append((seconds, settle_s))
        if self.broken:
            raise self.broken
        yield HEARD

    async def window(self, wanted, *, seconds=None):
        self.wanted.append((wanted, seconds))
        try:
            if self.broken:
                raise self.broken
            for step in self.steps:
                yield step
            await self.answered.wait()
            yield PairingStep(S.PAIRED, HEARD, how="passkey")
        finally:
            self.closed.set()

    def answer(self, *, passkey=None, same=None):
        if self.broken:
            raise self.broken
        self.answers.append((passkey, same))
        self.answered.set()

    async def close(self):
        return True

    async def unpair(self, wanted):
        self.wanted.append(wanted)
        if self.broken:
            raise self.broken
        return self.unpaired

    def bonds(self):
        return (BOND,)

    def describe(self):
        return {"state": "IDLE", "closes_in_s": None, "bonds": []}


class Reader:
    """A client that reads a stream, event by event."""

    def __init__(self, house, method, path, body=None):
        self.house, self.payload = house, b"" if body is None else json.dumps(body).encode()
        self.head = (
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(self.payload)}\r\n\r\n"
        ).encode()

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_unix_connection(str(self.house.owners))
        self.writer.write(self.head + self.payload)
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    async def event(self):
        """The next event; None at the end of the stream."""
        async with asyncio.timeout(DEADLINE_S):
            while line := await self.reader.readline():
                if line.startswith(b"data: "):
                    return json.loads(line[6:])
        return None


@pytest.mark.requirement("I4-pair-window")
async def test_a_window_is_a_stream_that_another_connection_answers(tmp_path):
    desk = Desk()
    async with (
        open_house(tmp_path, pairing=desk) as house,
        Reader(house, "POST", "/v1/pairing", {"glasses": HEARD.id, "seconds": 60}) as client,
    ):
        assert await client.event() == {"event": "step", "state": "SCANNING"}
        asked = await client.event()
        assert (asked["state"], asked["ask"], asked["glasses"]["title"]) == (
            "ASKING",
            "passkey",
            "Mock display glasses",
        )
        assert await house.ask_as_owner("POST", "/v1/pairing/answer", {"passkey": "012 345"}) == (
            204,
            None,
        )
        paired = await client.event()
        assert (paired["state"], paired["how"]) == ("PAIRED", "passkey")
        assert await client.event() is None, "the stream ends, and the connection with it"
        assert (desk.wanted, desk.answers) == ([(HEARD.id, 60.0)], [(12345, None)])


@pytest.mark.requirement("I4-pair-window")
async def test_hanging_up_closes_the_window(tmp_path):
    desk = Desk()
    async with open_house(tmp_path, pairing=desk) as house:
        async with Reader(house, "POST", "/v1/pairing", {}) as client:
            await client.event()
            assert house.server.streams == 1
            assert not desk.closed.is_set()
        async with asyncio.timeout(DEADLINE_S):
            await desk.closed.wait()
            while house.server.streams:
                await asyncio.sleep(0)
        assert desk.wanted == [(None, 120.0)]


async def test_a_scan_streams_what_is_heard_and_its_end(tmp_path):
    desk = Desk()
    async with (
        open_house(tmp_path, pairing=desk) as house,
        Reader(house, "GET", "/v1/scan?seconds=2&settle=0.5") as client,
    ):
        heard = await client.event()
        assert (heard["event"], heard["id"], heard["rssi"], heard["ours"]) == (
            "heard",
            HEARD.id,
            -50,
            False,
        )
        assert await client.event() == {"event": "done"}
        assert await client.event() is None
        assert desk.wanted == [(2.0, 0.5)]


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (PairingRefused("BUSY", "somebody else", "wait"), "BUSY"),
        (RadioError(RadioReason.NO_ADAPTER, "no adapter", "plug it in"), "RADIO"),
        (RadioError(RadioReason.NOT_FOUND, "nobody", "switch on"), "NOT_FOUND"),
    ],
)
@pytest.mark.parametrize("path", ["POST /v1/pairing", "GET /v1/scan"])
async def test_a_failure_is_the_last_event_of_the_stream(tmp_path, broken, code, path):
    desk = Desk()
    desk.broken = broken
    method, _, path = path.partition(" ")
    async with (
        open_house(tmp_path, pairing=desk) as house,
        Reader(house, method, path, {} if method == "POST" else None) as client,
    ):
        failed = await client.event()
        assert (failed["event"], failed["code"], failed["text"]) == ("failed", code, str(broken))
        assert failed["fix"]
        assert await client.event() is None


async def test_a_bug_in_pairing_affects_this_client_only(tmp_path, caplog):
    desk = Desk()
    desk.broken = RuntimeError("a bug of ours")
    async with open_house(tmp_path, pairing=desk) as house:
        async with Reader(house, "POST", "/v1/pairing", {}) as client:
            assert await client.event() is None
        assert "unexpected error while serving" in caplog.text
        assert (await house.ask("GET", "/v1/pairing"))[1]["state"] == "IDLE"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"passkey": ""},
        {"passkey": "12a456"},
        {"passkey": "1234567"},
        {"passkey": -1},
        {"passkey": True},
        {"same": "yes"},
        {"passkey": 1.5},
        {"passkey": "٣٤٥"},
        {"answer": 1},
    ],
)
async def test_a_malformed_answer_is_refused(tmp_path, body):
    desk = Desk()
    async with open_house(tmp_path, pairing=desk) as house:
        status, error = await house.ask_as_owner("POST", "/v1/pairing/answer", body)
        assert (status, error["error"]["code"]) == (400, "INVALID_REQUEST")
        assert desk.answers == []


@pytest.mark.parametrize(
    "body",
    [
        {"seconds": 0},
        {"seconds": 121},
        {"seconds": True},
        {"glasses": "x" * 65},
        {"glasses": 5},
        {"who": 1},
    ],
)
async def test_an_impossible_window_is_refused(tmp_path, body):
    async with open_house(tmp_path, pairing=Desk()) as house:
        assert (await house.ask_as_owner("POST", "/v1/pairing", body))[0] == 400


async def test_an_answer_without_a_question_is_a_conflict(tmp_path):
    desk = Desk()
    async with open_house(tmp_path, pairing=desk) as house:
        for same in (True, False):
            assert (await house.ask_as_owner("POST", "/v1/pairing/answer", {"same": same}))[
                0
            ] == 204
        assert desk.answers == [(None, True), (None, False)]
        desk.broken = PairingRefused("NOTHING_ASKED", "nothing is asked")
        assert (await house.ask_as_owner("POST", "/v1/pairing/answer", {"same": True}))[0] == 409


async def test_a_bond_is_deleted_by_name_or_as_the_only_one(tmp_path):
    desk = Desk()
    async with open_house(tmp_path, pairing=desk) as house:
        assert (await house.ask_as_owner("DELETE", "/v1/bonds"))[1] == {
            "unpaired": {"id": HEARD.id, "model": "mock:display", "name": "MOCK-DSP"}
        }
        desk.unpaired = None
        assert (await house.ask_as_owner("DELETE", "/v1/bonds/F0%3A00"))[1] == {
            "unpaired": {"id": "F0:00"}
        }
        assert desk.wanted == [None, "F0:00"]
        for broken, status in (
            (PairingRefused("NOT_FOUND", "none"), 404),
            (PairingRefused("BUSY", "busy"), 409),
            (RadioError(RadioReason.OTHER, "radio"), 502),
        ):
            desk.broken = broken
            answered, error = await house.ask_as_owner("DELETE", "/v1/bonds/x")
            assert (answered, error["error"]["message"]) == (status, str(broken))
        assert (await house.ask_as_owner("DELETE", "/v1/pairing"))[1] == {"closed": True}


async def test_without_pairing_the_paths_are_a_404(tmp_path):
    async with open_house(tmp_path) as house:
        for method, path in (("GET", "/v1/scan"), ("GET", "/v1/pairing"), ("DELETE", "/v1/bonds")):
            assert (await house.ask_as_owner(method, path))[0] == 404
