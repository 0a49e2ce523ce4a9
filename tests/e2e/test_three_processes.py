"""Devcloud, mock glasses and daemon as three processes, a fourth asks: the same story on both
brokers (Shows 3 to 5).
"""

import json
import struct
import subprocess
import time
import zlib

import pytest

from edge.config.model import UplinkConfig
from tests.e2e.processes import WILL_DELAY_S, House
from tests.system import needs, program

needs_mosquitto = needs("mosquitto")
needs_clients = needs("mosquitto_sub")

pytestmark = pytest.mark.timeout(180)


ON_BOTH_BROKERS = [
    "embedded",
    pytest.param("mosquitto", marks=[needs_mosquitto, pytest.mark.mosquitto]),
]
ON_ONE_BROKER = pytest.mark.parametrize("kept_house", ["embedded"], indirect=True)


@pytest.fixture(scope="module", params=ON_BOTH_BROKERS)
def kept_house(request, tmp_path_factory):
    place = House(tmp_path_factory.mktemp("house"), broker=request.param)
    try:
        yield place.start()
    finally:
        place.close()


@pytest.fixture
def house(kept_house):
    """The three processes, all of them ready. A test may leave the mock or the daemon killed."""
    return kept_house.start_what_was_killed()


def subscribe(
    house: House, topic: str, seconds: float, *, messages: int = 0
) -> list[tuple[float, str, dict]]:
    """What a stock MQTT 5 client sees in `seconds`, or until it has so many messages: (after
    seconds, topic, body).
    """
    import msgpack

    host, _, port = house.cloud.announcement["mqtt"].rpartition(":")
    began = time.monotonic()
    argv = [
        program("mosquitto_sub"),
        "-V",
        "mqttv5",
        "-h",
        host,
        "-p",
        port,
        "-t",
        topic,
        "-F",
        "%t %x",
        "-W",
        str(int(seconds)),
    ]
    argv += ["-C", str(messages)] if messages else []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as client:
        seen = []
        for line in client.stdout:
            name, _, body = line.strip().partition(" ")
            seen.append((time.monotonic() - began, name, msgpack.unpackb(bytes.fromhex(body))))
    return seen


def png_size(data: bytes) -> tuple[int, int, int]:
    """Width, height and lit pixels of a 1-bit or 8-bit grey PNG, read by hand."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    body, at = b"", 8
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        if name == b"IDAT":
            body += data[at + 8 : at + 8 + size]
        at += size + 12
    raw = zlib.decompress(body)
    return width, height, sum(byte != 0 for byte in raw) if kind in (0, 3) and depth <= 8 else -1


@pytest.mark.requirement("M-three-processes")
def test_a_fourth_process_calls_and_sees_the_lens(house, tmp_path):
    called = house.glassd("call", "com.example.calc:evaluate", '{"expression": "2^10"}', "--json")
    assert called.returncode == 0, called.stderr
    envelope = json.loads(called.stdout)
    assert envelope["ok"] is True
    assert envelope["meta"]["route"] == "cloud"
    assert envelope["meta"]["delivery"] == "shown"
    assert "1024" in " ".join(house.lens())

    picture = tmp_path / "seen.png"
    shown = house.glassd("lens", "--png", str(picture), "--json")
    assert shown.returncode == 0, shown.stderr
    assert "1024" in json.dumps(json.loads(shown.stdout))
    width, height, lit = png_size(picture.read_bytes())
    assert (width, height) == (576, 136)
    assert lit > 0

    asked = house.glassd("status", "--json")
    assert asked.returncode == 0, asked.stderr
    status = json.loads(asked.stdout)
    assert status["glasses"]["model"] == "mock:display"
    assert status["glasses"]["mtu"] > 100
    assert status["next_action"] == ""


def test_a_hidden_tool_is_refused_with_exit_code_1_and_its_reason(house):
    refused = house.glassd(
        "call", "com.example.photo:inspect", '{"image": "UDEgMSAxIDE="}', "--json"
    )
    assert refused.returncode == 1
    error = json.loads(refused.stdout)["error"]
    assert error["code"] == "HARDWARE_MISSING"
    assert "CAMERA" in json.dumps(error)
    hidden = json.loads(house.glassd("tools", "--all", "--json").stdout)["tools"]
    reason = next(t["hidden"] for t in hidden if t["name"] == "com.example.photo:inspect")
    assert "camera" in reason


@pytest.mark.requirement("M-kill-glasses")
@ON_ONE_BROKER
def test_killed_glasses_come_back_and_the_scene_is_on_their_lens_again(house):
    house.glassd("call", "glasses:show_text", '{"text": "keep this in sight", "duration_s": 120}')
    house.until(lambda: house.lens() == ["keep this in sight"], "it is on the lens")
    house.mock.kill9()
    house.until(lambda: house.status()["glasses"]["state"] == "away", "the daemon notices")
    house.start_mock()
    house.until(lambda: house.status()["glasses"]["state"] == "ready", "reconnected")
    house.until(lambda: house.lens() == ["keep this in sight"], "the scene is restored")


@pytest.mark.requirement("M-kill-daemon")
@ON_ONE_BROKER
def test_a_killed_daemon_comes_back_and_the_scene_is_on_a_dark_lens_again(house):
    house.glassd("call", "glasses:show_text", '{"text": "outlive me", "duration_s": 120}')
    house.until(lambda: house.lens() == ["outlive me"], "it is on the lens")
    asked = json.loads(house.glassd("calls", "--json").stdout)["calls"]
    assert asked
    house.daemon.kill9()
    house.until(
        lambda: not house.ask_mock(do="status")["connected"],
        "the mock notices and takes a new client",
    )
    # glasses that were switched off meanwhile: only the daemon's own disk knows the scene now
    house.mock.kill9()
    house.start_mock()
    assert house.lens() == []
    house.start_daemon()
    house.until(lambda: house.lens() == ["outlive me"], "the scene is on the lens")
    history = json.loads(house.glassd("calls", "--json").stdout)["calls"]
    assert [call["call_id"] for call in history] == [call["call_id"] for call in asked]


@ON_ONE_BROKER
def test_a_killed_daemon_alone_leaves_glasses_that_take_the_next_one(house):
    house.daemon.kill9()
    house.start_daemon()
    house.until(
        lambda: house.status()["glasses"]["state"] == "ready", "the same mock serves the new daemon"
    )
    shown = house.glassd("call", "glasses:show_text", '{"text": "hello again"}', "--json")
    assert json.loads(shown.stdout)["meta"]["delivery"] == "shown"
    assert house.lens() == ["hello again"]


@needs_clients
@pytest.mark.requirement("K4-will")
def test_a_stock_client_sees_retained_state_and_the_will_of_a_killed_daemon(house):
    prefix = "glassd/v1/default/e/e2e"
    retained = {name: body for _, name, body in subscribe(house, f"{prefix}/+", 10, messages=2)}
    assert retained[f"{prefix}/presence"]["state"] == "online"
    assert retained[f"{prefix}/presence"]["glasses"] == "connected"
    report = retained[f"{prefix}/capabilities"]
    assert report["model"] == "mock:display"
    assert report["capabilities"]["display.width"]["value"] == 576
    assert report["capabilities"]["display.width"]["origin"] == "firmware"
    assert report["capabilities"]["display.width"]["ageS"] >= 0

    house.daemon.kill9()
    seen = subscribe(house, f"{prefix}/presence", 30, messages=2)
    wills = [at for at, _, body in seen if body["state"] == "offline"]
    assert len(wills) == 1, seen
    assert wills[0] >= WILL_DELAY_S - 1
    assert UplinkConfig().will_delay_s == 15
