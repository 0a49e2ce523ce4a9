"""Kasa and Tapo devices: the real library against devices that speak the real protocols."""

import asyncio
import json
import re
import struct
import subprocess
import sys

import pytest
from pydantic import TypeAdapter, ValidationError

from edge.config import tool_options
from edge.core import phrases
from edge.storage.tools.user_stores import PrivateStores
from edge.tools.context import Context
from edge.tools.workers import kasa, kasa_library
from tests.kasa_devices import (
    LOOPBACK_BROADCAST,
    IotCommands,
    KasaDevice,
    KlapDevice,
    SmartCommands,
    new_address,
    scramble,
    switched_on,
)
from tests.unit.tools.compiled import shipped
from tests.unit.tools.test_contacts import within
from tests.unit.tools.test_local import Rig
from tools_cache.builder import compiler
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.kasa_devices import KnownDevice, is_at_home, matches
from tools_cache.everyday.kasa_settings import Hosts, Scenes

pytestmark = pytest.mark.enable_socket
USER, PASSWORD = "eva@example.com", "Pass word ä"
ORDER = ("discover", "state", "switch", "dim", "scene", "set")
EVENING = {
    "name": "Evening",
    "devices": [
        {"device": "Desk lamp", "on": True, "brightness": 20},
        {"device": "Fan", "on": False},
    ],
}


class Workers:
    """Runs the worker's function in a thread, where it has an event loop of its own."""

    def __init__(self):
        self.requests = []

    async def ask(self, name, request, *, deadline_s, writes):
        assert name == "kasa"
        assert deadline_s >= 2 * kasa_library.DEVICE_S + kasa_library.SEARCH_S
        self.requests.append((request["action"], writes))
        return await asyncio.to_thread(kasa.answer, json.loads(json.dumps(request)))


class Desk(Rig):
    """The shipped tools with a user's own storage, and the worker."""

    def __init__(self, path):
        self.stores = PrivateStores(path / "users", key=path / "tools.key")
        self.settings = {}
        names = [f"kasa:{tool}" for tool in ORDER]
        configs = dict.fromkeys(names, self.settings)
        super().__init__(path, shipped(), compiler.TOOLS, private=self.stores.of, configs=configs)

    async def ask(self, tool, **args):
        return (await self.good(f"kasa:{tool}", args)).data

    async def fails(self, tool, **args):
        response = await self.run(f"kasa:{tool}", args)
        assert not response.ok
        return response.error


@pytest.fixture
async def desk(tmp_path, monkeypatch):
    workers = Workers()
    monkeypatch.setattr(Context, "workers", workers, raising=False)
    monkeypatch.setattr(kasa_library, "SEARCH_S", 1)
    found = Desk(tmp_path)
    found.workers = workers
    (tmp_path / "secret").write_text(PASSWORD + "\n", encoding="utf-8")
    found.settings |= {"username": USER, "password_file": str(tmp_path / "secret")}
    yield found
    await found.stores.close()
    await found.packages.close()


def lamp(**more):
    return KasaDevice(IotCommands("Desk lamp", kind="bulb", **more))


def klap(commands, **more):
    return KlapDevice(commands, USER, PASSWORD, **more)


def asked(*devices, **more):
    return {"action": "discover", "hosts": [device.host for device in devices], **more}


@pytest.fixture
async def pair(desk):
    """A lamp and a fan with the old protocol."""
    devices = (lamp(), KasaDevice(IotCommands("Fan")))
    async with switched_on(*devices):
        desk.settings["hosts"] = [device.host for device in devices]
        yield devices


# ------------------------------------------------------------------ the tools


async def test_each_example_of_their_documents_is_true(desk, pair):
    desk.settings["scenes"] = [EVENING]
    for tool in ORDER:
        doc = (compiler.TOOLS / f"kasa_{tool}" / "doc.md").read_text(encoding="utf-8")
        found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
        assert found
        for args, result in found:
            data = await desk.ask(tool, **json.loads(args))
            assert within(json.loads(result), data), (args, data)


@pytest.mark.parametrize(
    "make",
    [
        lambda: KasaDevice(IotCommands("Heater")),
        lambda: klap(IotCommands("Heater"), version=1),
        lambda: klap(IotCommands("Heater"), version=2),
        lambda: klap(SmartCommands("Heater")),
    ],
    ids=["xor", "klap-1", "klap-2", "tapo"],
)
async def test_a_plug_is_switched_over_each_protocol(desk, make):
    async with switched_on(make()) as (plug,):
        desk.settings["hosts"] = [plug.host]
        assert (await desk.ask("switch", device="heater", on=True))["text"] == "Heater: on"
        assert plug.commands.on
        assert "before" not in await desk.ask("switch", device="heater", on=True), "no undo"
        assert (await desk.ask("state", device="heater"))["text"] == "Heater: on"
        assert (await desk.ask("switch", device="heater", on=False))["was_on"] is True
        assert not plug.commands.on


@pytest.mark.parametrize(
    "make",
    [lamp, lambda: klap(SmartCommands("Desk lamp", kind="bulb"))],
    ids=["xor", "tapo"],
)
async def test_a_light_is_dimmed_and_switched_on_for_that(desk, make):
    async with switched_on(make()) as (light,):
        desk.settings["hosts"] = [light.host]
        assert (await desk.ask("dim", device="desk", brightness=30))["text"] == "Desk lamp: 30 %"
        assert (light.commands.on, light.commands.brightness) == (True, 30)
        assert (await desk.ask("state"))["text"] == "Desk lamp: on, 30 %"
        assert (await desk.ask("dim", device="desk", brightness=0))["text"] == "Desk lamp: off"
        assert not light.commands.on


async def test_the_state_that_it_has_is_no_error_and_nothing_is_sent(desk, pair):
    assert (await desk.ask("switch", device="fan", on=False))["changed"] is False
    await desk.ask("dim", device="desk", brightness=30)
    assert (await desk.ask("dim", device="desk", brightness=30))["changed"] is False
    assert [len(device.commands.changes) for device in pair] == [1, 0]


@pytest.mark.parametrize("family", [IotCommands, SmartCommands])
async def test_one_plug_of_a_strip_is_switched_alone(desk, family):
    commands = family("Strip", plugs=("Radio", "Screen"))
    device = KasaDevice(commands) if family is IotCommands else klap(commands)
    async with switched_on(device):
        desk.settings["hosts"] = [device.host]
        assert (await desk.ask("switch", device="screen", on=True))["text"] == "Screen: on"
        lines = (await desk.ask("state"))["text"].splitlines()
        assert lines[1:] == ["- Screen: on", "- Strip: on", "- Radio: off"]
        await desk.ask("switch", device="strip", on=False)
        assert "on" not in (await desk.ask("state"))["text"].replace("- Screen", "").split()


async def test_what_was_before_comes_back(desk, pair):
    desk.settings["scenes"] = [EVENING]
    await desk.ask("dim", device="desk", brightness=70)
    await desk.ask("switch", device="fan", on=True)
    before = (await desk.ask("scene", scene="even"))["before"]
    assert [(d.commands.on, d.commands.brightness) for d in pair] == [(True, 20), (False, 50)]
    await desk.ask("set", states=before)
    assert [(d.commands.on, d.commands.brightness) for d in pair] == [(True, 70), (True, 50)]
    for tool in ("switch", "dim", "scene"):
        undo = desk.registry.snapshot().find(f"kasa:{tool}").definition.wearer.undo
        assert undo.tool == "kasa:set"


async def test_a_scene_with_a_silent_device_sets_the_others(desk, pair):
    desk.settings["scenes"] = [EVENING]
    await desk.ask("discover")
    await pair[1].stop()
    error = await desk.fails("scene", scene="evening")
    assert error.message == "1 of 2 devices are set. Fan does not answer"
    assert error.partial_side_effects
    assert pair[0].commands.brightness == 20


async def test_a_scene_is_found_by_name(desk):
    scenes = [{**EVENING, "name": f"Night {n:02}"} for n in range(11)]
    assert "there is none" in (await desk.fails("scene", scene="x")).message
    desk.settings["scenes"] = scenes
    error = await desk.fails("scene", scene="night")
    assert "'night' could be 11 scenes" in error.message
    assert error.message.count("Night ") == 10
    assert "there is no scene 'day'" in (await desk.fails("scene", scene="day")).message


async def test_known_devices_need_no_search(desk, pair):
    await desk.ask("discover")
    for device in pair:
        device.found_as = b""
    await desk.ask("switch", device="fan", on=True)
    assert desk.workers.requests == [("discover", False), ("apply", True)]


async def test_devices_are_encrypted_on_disk(desk, pair, tmp_path):
    await desk.ask("discover")
    files = [path.read_bytes() for path in (tmp_path / "users").rglob("*") if path.is_file()]
    assert files
    assert not any(b"Desk lamp" in data or pair[0].host.encode() in data for data in files)


async def test_a_device_with_a_new_address_is_found_again(desk, pair):
    await desk.ask("discover")
    fan = pair[1]
    await fan.stop()
    fan.host = new_address()
    desk.settings["hosts"] = [pair[0].host, fan.host]
    async with switched_on(fan):
        assert (await desk.ask("switch", device="fan", on=True))["changed"]
        requests = len(desk.workers.requests)
        fan.found_as = b""
        assert (await desk.ask("switch", device="fan", on=False))["changed"]
        assert len(desk.workers.requests) == requests + 1


async def test_another_device_at_the_address_is_not_switched(desk, pair):
    await desk.ask("discover")
    fan = pair[1]
    await fan.stop()
    async with switched_on(KasaDevice(IotCommands("Freezer", on=True), host=fan.host)) as (other,):
        error = await desk.fails("switch", device="fan", on=False)
        assert error.message == "Fan does not answer"
        assert other.commands.on


async def test_a_device_that_misses_three_searches_is_forgotten(desk, pair):
    await desk.ask("discover")
    await pair[1].stop()
    for _ in range(2):
        await desk.ask("discover")
        assert (await desk.ask("state"))["text"].endswith("- Fan does not answer")
    await desk.ask("discover")
    assert (await desk.ask("state"))["text"] == "Desk lamp: off"


# ------------------------------------------------------------------ what goes wrong


async def test_a_device_that_is_gone_is_named_in_one_sentence(desk, pair):
    await desk.ask("discover")
    await pair[0].stop()
    error = await desk.fails("switch", device="desk", on=True)
    assert (error.code, error.message) == (
        ErrorCode.NETWORK_ERROR,
        "Desk lamp does not answer",
    )
    assert error.for_wearer == "Desk lamp does not answer."
    assert not error.partial_side_effects


async def test_a_change_that_was_on_its_way_is_reported(desk, pair):
    await desk.ask("discover")
    pair[1].commands.refuses = True
    error = await desk.fails("switch", device="fan", on=True)
    assert error.message == "Fan does not answer"
    assert error.partial_side_effects
    assert pair[1].commands.changes


async def test_what_cannot_be_dimmed_says_so(desk, pair):
    error = await desk.fails("dim", device="fan", brightness=10)
    assert (error.code, error.message) == (ErrorCode.UNSUPPORTED, "Fan cannot be dimmed")
    assert not pair[1].commands.changes


@pytest.mark.parametrize("version", [1, 2])
async def test_a_wrong_password_is_reported(desk, tmp_path, version):
    (tmp_path / "secret").write_text("wrong")
    async with switched_on(klap(IotCommands("Heater"), version=version)) as (device,):
        desk.settings["hosts"] = [device.host]
        found = await desk.ask("discover")
        assert found["devices"] == []
        assert found["text"] == f"{device.host} does not accept the account"
        assert found["problems"][0]["code"] == "AUTH"
        desk.settings["username"] = ""
        assert (await desk.ask("discover"))["text"] == f"{device.host} needs your account"


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "cannot be read"), (b"x" * 5000, "is larger than 4 KiB"), (b"\xff\xfe", "is not text")],
)
def test_a_password_file_that_cannot_be_used_is_named(tmp_path, content, problem):
    if content is not None:
        (tmp_path / "p").write_bytes(content)
    with pytest.raises(ToolFailure) as caught:
        kasa.answer({"action": "discover", "password_file": str(tmp_path / "p")})
    assert problem in caught.value.error.message
    assert caught.value.error.code is ErrorCode.AUTH


async def test_an_old_firmware_gets_no_password_unless_it_is_listed(desk, monkeypatch):
    monkeypatch.setattr(kasa_library, "BROADCAST", LOOPBACK_BROADCAST)
    device = klap(SmartCommands("Heater"), encryption="AES")
    async with switched_on(device, broadcast=True):
        answer = await asyncio.to_thread(kasa.answer, {"action": "discover", "username": USER})
        texts = {one["host"]: one["text"] for one in answer["problems"]}
        assert "which would get your password" in texts[device.host]
        assert device.connections == 0
        await asyncio.to_thread(kasa.answer, asked(device, username=USER))
        assert device.connections > 0


async def test_a_broadcast_finds_devices_of_both_kinds(monkeypatch, tmp_path):
    monkeypatch.setattr(kasa_library, "BROADCAST", LOOPBACK_BROADCAST)
    (tmp_path / "p").write_text(PASSWORD, encoding="utf-8")
    devices = (lamp(), klap(SmartCommands("Heater")))
    request = {"action": "discover", "username": USER, "password_file": str(tmp_path / "p")}
    async with switched_on(*devices, broadcast=True):
        answer = await asyncio.to_thread(kasa.answer, request)
    found = {one["host"]: one["name"] for one in answer["devices"]}
    assert [found.get(device.host) for device in devices] == ["Desk lamp", "Heater"]


LONG = struct.pack(">I", 0xFFFF_FFF0) + b"x" * 4096
HOSTILE = {
    "garbage": b"\x00\x00\x00\x04abcd",
    "no length": b"\x00",
    "a length of 4 GiB": LONG,
    "a list": struct.pack(">I", 2) + bytes([171 ^ 0x5B, 171 ^ 0x5B ^ 0x5D]),
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_answer_ends_in_one_sentence(desk, pair, answer, monkeypatch):
    monkeypatch.setattr(kasa_library, "DEVICE_S", 1)
    await desk.ask("discover")
    pair[0].instead = answer
    error = await desk.fails("switch", device="desk", on=True)
    assert error.code is ErrorCode.NETWORK_ERROR
    assert error.message.startswith("Desk lamp ")
    assert (await desk.ask("switch", device="fan", on=True))["changed"]


async def test_a_length_of_four_gib_is_not_waited_for(pair):
    found = await asyncio.to_thread(kasa.answer, asked(pair[0]))
    pair[0].instead = LONG
    items = [
        {key: found["devices"][0][key] for key in ("mac", "host", "connection", "child", "name")}
    ]
    answer = await asyncio.to_thread(
        kasa.answer, asked(pair[0]) | {"action": "apply", "items": items}
    )
    assert answer["results"][0]["error"]["text"] == "gives an answer that is not understood"


HTTP = {
    "garbage": b"\x00\x01\x02\r\n\r\n",
    "a short handshake": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    "too long": b"HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n" + b"x" * 900_000,
    "an error": b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("answer", HTTP.values(), ids=HTTP)
async def test_a_hostile_http_answer_ends_in_one_sentence(answer):
    async with switched_on(klap(SmartCommands("Heater"))) as (device,):
        device.instead = answer
        found = await asyncio.to_thread(kasa.answer, asked(device, username=USER))
    assert found["devices"] == []
    assert found["problems"][0]["text"] == f"{device.host} gives an answer that is not understood"


async def test_a_redirect_leads_nowhere():
    async with switched_on(klap(SmartCommands("A")), klap(SmartCommands("B"))) as (first, other):
        place = f"Location: http://{other.host}:{other.port}/app/handshake1"
        first.instead = f"HTTP/1.1 307 X\r\n{place}\r\nContent-Length: 0\r\n\r\n".encode()
        found = await asyncio.to_thread(kasa.answer, asked(first, username=USER))
    assert found["devices"] == []
    assert other.connections == 0


@pytest.mark.parametrize("datagram", [b"", b"garbage", b"x" * 60_000, scramble(b"[]")])
async def test_a_hostile_answer_to_a_search_is_ignored(monkeypatch, datagram, caplog):
    monkeypatch.setattr(kasa_library, "SEARCH_S", 1)
    async with switched_on(lamp(), KasaDevice(IotCommands("Fan"))) as (bad, good):
        bad.found_as = datagram
        found = await asyncio.to_thread(kasa.answer, asked(bad, good))
    assert [one["name"] for one in found["devices"]] == ["Fan"]
    assert [one["text"] for one in found["problems"]] == [f"{bad.host} does not answer"]
    assert caplog.records == []


async def test_names_from_a_device_are_short_and_printable():
    alias = "A\x1b[2J\u202eB" + "x" * 500
    async with switched_on(KasaDevice(IotCommands(alias)), KasaDevice(IotCommands(""))) as devices:
        found = await asyncio.to_thread(kasa.answer, asked(*devices))
    names = {one["host"]: one["name"] for one in found["devices"]}
    assert names[devices[0].host] == ("A[2JB" + "x" * 500)[:64]
    assert names[devices[1].host].endswith(devices[1].host)


# ------------------------------------------------------------------ names, settings, words


def known(*names):
    return [
        KnownDevice({"mac": f"M{n}", "child": "", "name": name}) for n, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("LAMP", ["Lamp"]),
        ("lam", ["Lamp", "Lamp two"]),
        ("desk", ["Big desk light"]),
        ("the lamp", ["Lamp"]),
        ("die lamp aus", ["Lamp"]),
        ("big desk light to percent", ["Big desk light"]),
        ("M1", ["Lamp two"]),
        ("on", ["On air"]),
        ("nothing", []),
    ],
)
def test_whole_name_then_beginning_then_part_is_looked_for(said, found):
    devices = known("Lamp", "Lamp two", "Big desk light", "On air")
    assert [one.name for one in matches(devices, said)] == found


async def test_of_many_matches_ten_are_named(desk):
    strip = KasaDevice(IotCommands("Strip", plugs=[f"Plug {n:02}" for n in range(11)]))
    async with switched_on(strip):
        desk.settings["hosts"] = [strip.host]
        error = await desk.fails("switch", device="plug", on=True)
        assert "'plug' could be 11 devices: Plug 00 (" in error.message
        assert error.message.count("Plug ") == 10
        assert error.message.endswith(", and 1 more")
        assert not strip.commands.changes
        error = await desk.fails("switch", device="the door please", on=True)
        assert error.for_wearer == "There is no device “door”."


@pytest.mark.parametrize(
    "host", ["8.8.8.8", "localhost", "192.168.1", "::1", "100.64.0.1", "0.0.0.0"]
)
def test_only_addresses_at_home_are_taken(host):
    assert not is_at_home(host)
    with pytest.raises(ValidationError, match="IPv4 address at home"):
        TypeAdapter(Hosts).validate_python([host])
    with pytest.raises(ToolFailure, match="no private IPv4 address"):
        kasa.answer({"action": "discover", "hosts": [host]})
    item = {"mac": "m", "host": host, "connection": {}, "child": "", "name": "x"}
    with pytest.raises(ToolFailure, match="no private IPv4 address"):
        kasa.answer({"action": "apply", "items": [item]})
    assert TypeAdapter(Hosts).validate_python(["192.168.1.20", "169.254.1.1", "127.0.0.1"])


def test_settings_of_the_package_reach_each_tool():
    tables = {"kasa": {"enabled": True, "hosts": ["192.168.1.20"], "scenes": [EVENING]}}
    settings, problems = tool_options.read(tables, compiler.TOOLS)
    assert problems == []
    for tool in ORDER:
        assert settings.values[f"kasa:{tool}"]["hosts"] == ["192.168.1.20"]
        assert settings.values[f"kasa:{tool}"]["scenes"][0]["devices"][1]["on"] is False
    plain, _ = tool_options.read({}, compiler.TOOLS)
    assert {f"kasa:{tool}" for tool in ORDER} <= {*plain.off}


def test_two_scenes_of_one_name_are_refused():
    scenes = TypeAdapter(Scenes)
    assert scenes.validate_python([EVENING])[0].devices[0].brightness == 20
    with pytest.raises(ValidationError, match="same name"):
        scenes.validate_python([EVENING, {**EVENING, "name": " evening"}])
    with pytest.raises(ValidationError):
        scenes.validate_python([{"name": "x", "devices": [{"device": "y", "brightness": 101}]}])


@pytest.mark.parametrize(
    ("sentence", "language", "tool", "args"),
    [
        ("turn on the end table", "", "switch", {"device": "the end table", "on": True}),
        ("please switch off the fan", "", "switch", {"device": "the fan", "on": False}),
        ("schalte die Lampe aus", "de", "switch", {"device": "die Lampe aus", "on": False}),
        ("schalte die Lampe ein", "de", "switch", {"device": "die Lampe ein", "on": True}),
        ("apaga la luz", "es", "switch", {"device": "la luz", "on": False}),
        ("éteins la lampe", "fr", "switch", {"device": "la lampe", "on": False}),
        ("accendi la luce", "it", "switch", {"device": "la luce", "on": True}),
        (
            "dim the lamp to 30 percent",
            "",
            "dim",
            {"device": "the lamp", "brightness": 30},
        ),
        ("dimme die Lampe auf 40", "de", "dim", {"device": "die Lampe", "brightness": 40}),
        (
            "set the brightness of the lamp to 30",
            "",
            "dim",
            {"device": "the lamp", "brightness": 30},
        ),
        ("set the scene evening", "", "scene", {"scene": "evening"}),
        ("which lights are on", "", "state", {}),
    ],
)
def test_a_sentence_says_what_to_switch(desk, sentence, language, tool, args):
    tools = [entry.definition for entry in desk.registry.snapshot().entries()]
    found = phrases.match(sentence, tools, language)
    assert (found.tool.name, found.args) == (f"kasa:{tool}", args)


@pytest.mark.parametrize(
    ("sentence", "tool"),
    [
        ("turn on captions", "glasses:captions"),
        ("turn the volume up to 50", "glasses:set"),
        ("set the brightness to 50", "glasses:set"),
        ("turn off the timer", "timer:cancel"),
    ],
)
def test_sentences_for_other_tools_stay_theirs(desk, sentence, tool):
    tools = [entry.definition for entry in desk.registry.snapshot().entries()]
    assert phrases.match(sentence, tools).tool.name == tool


# ------------------------------------------------------------------ the process


@pytest.mark.parametrize(
    "change",
    [{"action": "explode"}, {"items": 3}, {"items": [{}]}, {"items": ["x"] * 65}, {"hosts": "x"}],
)
def test_a_malformed_request_is_refused(change):
    with pytest.raises(ToolFailure) as caught:
        kasa.answer({"action": "apply", **change})
    assert caught.value.error.code is ErrorCode.INVALID_ARGUMENTS


async def test_it_answers_in_a_process_of_its_own(pair):
    code = (
        "import json, sys; from edge.tools.workers import kasa;"
        "print(json.dumps(kasa.answer(json.load(sys.stdin))))"
    )
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code],
        input=json.dumps(asked(*pair)),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert sorted(one["name"] for one in json.loads(ran.stdout)["devices"]) == ["Desk lamp", "Fan"]
    assert ran.stderr == ""


def test_without_the_extra_it_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "edge.tools.workers.kasa_library", None)
    monkeypatch.delattr("edge.tools.workers.kasa_library")
    with pytest.raises(ToolFailure) as caught:
        kasa.answer({"action": "discover"})
    assert caught.value.error.code is ErrorCode.TOOL_UNAVAILABLE
    assert caught.value.error.suggestion == "Install glassd with the extra kasa"


def test_the_daemon_does_not_load_the_library():
    code = (
        "import sys; import edge.tools.workers.kasa, tools_cache.everyday.kasa_scenes;"
        "print([name for name in sys.modules if name.partition('.')[0] in ('kasa', 'aiohttp')])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert ran.stdout == "[]\n"
