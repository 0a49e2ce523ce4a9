"""The mock's control channel and the mock as a program."""

import asyncio
import base64
import json
import os
import signal
import sys
import wave
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from firmware_bridge.catalog import find
from firmware_bridge.errors import RadioError
from firmware_bridge.messages import ShowPage, TextLine
from firmware_bridge.models import UnknownModel
from firmware_bridge.sim import control as module
from firmware_bridge.sim.control import ControlChannel, MockControlError, MockFeed
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.main import run_sim
from firmware_bridge.sim.time import SimTime
from firmware_bridge.sim.wearer import ScriptedWearer, ScriptError
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear, noting

pytestmark = pytest.mark.enable_socket


class Desk:
    def __init__(self, glasses: MockGlasses, feed: MockFeed, control: ControlChannel) -> None:
        self.glasses, self.feed, self.control = glasses, feed, control
        self.did: list[str] = []

    @asynccontextmanager
    async def line(self):
        if self.control.where.startswith("tcp:"):
            _, host, port = self.control.where.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
        else:
            reader, writer = await asyncio.open_unix_connection(self.control.where)
        try:
            async with asyncio.timeout(DEADLINE_S):
                yield reader, writer
        finally:
            writer.close()
            with suppress(ConnectionError):  # the other end may have had enough
                await writer.wait_closed()

    async def ask(self, request) -> dict:
        async with self.line() as (reader, writer):
            writer.write(
                (request if isinstance(request, bytes) else json.dumps(request).encode()) + b"\n"
            )
            return json.loads(await reader.readline())


@pytest.fixture(params=["unix", "tcp"])
async def desk(request, tmp_path: Path):
    feed = MockFeed()
    glasses = MockGlasses(find("mock:full"), out_dir=tmp_path, time=SimTime(100), tell=feed.tell)
    did: list[str] = []
    wearer = ScriptedWearer(glasses, inject=noting(did), leave=lambda: did.append("leave"))
    where = str(tmp_path / "c.sock") if request.param == "unix" else "tcp:127.0.0.1:0"
    control = ControlChannel(where, glasses, wearer, feed)
    await control.open()
    desk = Desk(glasses, feed, control)
    desk.did = did
    yield desk
    await control.close()
    await control.close()


async def test_the_lens_can_be_read(desk: Desk) -> None:
    desk.glasses.lens.show(ShowPage("list", 2, 3, (TextLine(0, "Milch"), TextLine(1, "Brot"))))
    reply = await desk.ask({"do": "lens"})
    assert reply["ok"] is True
    assert (reply["scene"], reply["page"], reply["pages"], reply["lines"]) == (
        "list",
        2,
        3,
        ["Milch", "Brot"],
    )
    assert Path(reply["png"]).read_bytes().startswith(b"\x89PNG")


async def test_the_speaker_can_be_read(desk: Desk) -> None:
    assert await desk.ask({"do": "speaker"}) == {
        "ok": True,
        "playing": False,
        "seconds": 0.0,
        "samples": 0,
        "wav": None,
    }


async def test_the_wearer_can_be_led(desk: Desk) -> None:
    assert await desk.ask({"do": "battery", "value": 33}) == {"ok": True, "noticed": False}
    assert await desk.ask({"do": "worn", "value": False}) == {"ok": True, "noticed": False}
    assert await desk.ask({"do": "say", "text": "what's on my list?"}) == {
        "ok": True,
        "noticed": False,
    }
    assert await desk.ask({"do": "caps", "set": {"camera": False}}) == {
        "ok": True,
        "noticed": False,
    }
    assert await desk.ask({"do": "drop"}) == {"ok": True, "noticed": False}
    assert await desk.ask({"do": "quit"}) == {"ok": True, "noticed": True}
    status = await desk.ask({"do": "status"})
    assert (status["battery"], status["worn"], status["capabilities"]["camera"]) == (
        33,
        False,
        False,
    )
    assert desk.did == ["drop", "leave"]


@pytest.mark.requirement("I14-sim-microphone")
async def test_sound_can_be_played_to_the_microphone(desk: Desk, tmp_path: Path) -> None:
    samples = b"\x05\x00" * 8000
    with wave.open(str(tmp_path / "a b.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples)
    whole = (tmp_path / "a b.wav").read_bytes()
    played = {"ok": True, "noticed": False, "seconds": 0.5}
    for number, request in enumerate(
        (
            {"path": str(tmp_path / "a b.wav")},
            {"data": base64.b64encode(whole).decode()},
            {"data": base64.b64encode(samples).decode()},
        ),
        1,
    ):
        assert await desk.ask({"do": "hear", **request}) == {**played, "over_in": 0.5 * number}
    with desk.glasses.microphone.recording() as hear:
        assert (await desk.ask({"do": "hear", "data": "AAAAAA=="}))["noticed"] is True
        assert hear(24000) == samples * 3


async def test_a_minute_of_sound_fits_into_one_request(desk: Desk) -> None:
    data = base64.b64encode(bytes(2 * 16000 * 60)).decode()
    assert (await desk.ask({"do": "hear", "data": data}))["seconds"] == 60


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({"do": "hear"}, 'hear needs "path"'),
        ({"do": "hear", "path": "/none.wav"}, "/none.wav: No such file"),
        ({"do": "hear", "data": "!"}, '"data" is no base64'),
        ({"do": "hear", "data": "UklGRg=="}, "sound: it ends too early"),
        ({"do": "hear", "data": "AAAA", "name": "x"}, "x: samples of 16 bits have an even number"),
        (b"not json", "one JSON object"),
        (b"[1]", "one JSON object"),
        (b"\xff\xfe", "one JSON object"),
        ({"x": 1}, '"do" is missing'),
        ({"do": 5}, '"do" is missing'),
        ({"do": "dance"}, "lens, speaker, status, watch"),
        ({"do": "battery", "value": 500}, "0 to 100"),
        ({"do": "caps"}, '"set"'),
        ({"do": "caps", "set": {"x": [1]}}, "true, false"),
        ({"do": "say"}, "text"),
        ({"do": "caps", "set": {"display.width": 10**9}}, "4096"),
        ({"do": "caps", "set": {"display.lines": "five"}}, "whole number"),
        (b"[" * 30000, "one JSON object"),
    ],
)
async def test_a_wrong_request_gets_the_reason(desk: Desk, request_, told: str) -> None:
    reply = await desk.ask(request_)
    assert reply["ok"] is False
    assert told in reply["error"]
    assert (await desk.ask({"do": "status"}))["ok"] is True


async def test_several_requests_on_one_line_of_talk(desk: Desk) -> None:
    async with desk.line() as (reader, writer):
        writer.write(b'{"do":"status"}\n\n{"do":"nope"}\n{"do":"speaker"}\n')
        replies = [json.loads(await reader.readline()) for _ in range(3)]
    assert [r["ok"] for r in replies] == [True, False, True]


async def test_an_endless_line_is_cut_off(desk: Desk) -> None:
    async with desk.line() as (reader, writer):
        writer.write(b"x" * (module.MAX_LINE_BYTES * 2))
        reply = json.loads(await reader.readline())
    assert "a line over" in reply["error"]


async def test_watching_streams_what_happens(desk: Desk) -> None:
    async with desk.line() as (reader, writer):
        writer.write(b'{"do":"watch"}\n')
        assert json.loads(await reader.readline()) == {"ok": True, "watching": True}
        desk.glasses.set_capabilities({"camera": False})
        desk.feed.tell({"event": "connected"})
        assert [json.loads(await reader.readline())["event"] for _ in range(2)] == [
            "capabilities",
            "connected",
        ]
    async with asyncio.timeout(DEADLINE_S):
        while desk.feed._watchers:
            await asyncio.sleep(0)


async def test_a_slow_watcher_hears_how_much_it_missed() -> None:
    feed = MockFeed()
    with feed.watch() as queue:
        for number in range(module.MAX_WATCHED + 5):
            feed.tell({"event": "e", "n": number})
        assert feed.missed(queue) == 5
        assert feed.missed(queue) == 0
        assert queue.get_nowait()["n"] == 5


async def test_a_left_over_socket_is_replaced_but_a_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    glasses = MockGlasses(find("mock:full"), out_dir=tmp_path, tell=lambda _: None)
    wearer = ScriptedWearer(glasses, inject=noting([]), leave=lambda: None)
    import socket

    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    control = ControlChannel(str(path), glasses, wearer, MockFeed())
    await control.open()
    assert path.stat().st_mode & 0o777 == 0o600
    await control.close()
    assert not path.exists()
    path.write_text("precious")
    with pytest.raises(OSError, match="in use"):
        await ControlChannel(str(path), glasses, wearer, MockFeed()).open()
    assert path.read_text() == "precious"
    with pytest.raises(MockControlError, match="there is no such directory"):
        await ControlChannel("/nonexistent/m.sock", None, None, MockFeed()).open()
    with pytest.raises(MockControlError, match="tcp:HOST:PORT"):
        await ControlChannel("tcp:nowhere", glasses, wearer, MockFeed()).open()


# ------------------------------------------------------------------ the program


async def test_a_script_runs_and_quit_ends_the_mock(tmp_path: Path) -> None:
    script = tmp_path / "s.txt"
    script.write_text("battery 5\nwait 0.5\nquit\n")
    ear = Ear()
    async with asyncio.timeout(DEADLINE_S):
        await run_sim(
            "mock:display",
            radio="tcp:127.0.0.1:0",
            control="tcp:127.0.0.1:0",
            out_dir=tmp_path / "out",
            script=script,
            mtu=247,
            announce=ear,
            speed=10,
        )
    (ready,) = ear.events
    assert ready["event"] == "ready"
    assert not ready["radio"].endswith(":0")
    assert not ready["control"].endswith(":0")
    assert (tmp_path / "out" / "lens.png").is_file()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model": "mock:nope"}, UnknownModel),
        ({"radio": "smoke"}, RadioError),
        ({"radio": "tcp:nowhere"}, RadioError),
        ({"radio": "usb:99"}, RadioError),
        ({"mtu": 22}, ValueError),
        ({"mtu": 518}, ValueError),
        ({"control": "tcp:x"}, MockControlError),
        ({"script": "dance\n"}, ScriptError),
    ],
)
async def test_a_wrong_start_says_why_and_leaves_nothing_open(
    tmp_path: Path, change: dict, error: type[Exception]
) -> None:
    wanted = {
        "model": "mock:display",
        "radio": "tcp:127.0.0.1:0",
        "control": None,
        "mtu": 247,
        "script": None,
        **change,
    }
    if wanted["script"]:
        path = tmp_path / "s.txt"
        path.write_text(wanted["script"])
        wanted["script"] = path
    ear = Ear()
    with pytest.raises(error):
        await run_sim(wanted.pop("model"), out_dir=tmp_path, announce=ear, **wanted)
    assert ear.events == []


async def test_a_port_in_use_is_a_radio_error_with_a_hint(tmp_path: Path) -> None:
    async with await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(RadioError) as error:
            await run_sim(
                "mock:display",
                radio=f"tcp:127.0.0.1:{port}",
                control=None,
                out_dir=tmp_path,
                script=None,
                announce=lambda _: None,
            )
    assert "port 0" in error.value.hint


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_signals_end_it_cleanly(tmp_path: Path, how: signal.Signals) -> None:
    code = (
        "import asyncio, json, sys\nfrom pathlib import Path\nfrom "
        "firmware_bridge.sim.main import run_sim\n"
        "say = lambda e: print(json.dumps(e), flush=True)\n"
        "asyncio.run(run_sim('mock:full', radio='tcp:127.0.0.1:0', "
        f"control={str(tmp_path / 'c.sock')!r}, out_dir=Path({str(tmp_path)!r}), script=None, "
        "announce=say))\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-X",
        "dev",
        "-W",
        "error",
        "-c",
        code,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ},
    )
    async with asyncio.timeout(30):
        assert json.loads(await process.stdout.readline())["event"] == "ready"
        process.send_signal(how)
        _, errors = await process.communicate()
    assert not (tmp_path / "c.sock").exists()
    if how is signal.SIGTERM:
        assert process.returncode == 0
        # A machine with much to do makes debug mode complain about steps of more than 0.1 s.
        assert [line for line in errors.splitlines() if not line.startswith(b"Executing <")] == []
    else:
        assert b"KeyboardInterrupt" in errors
