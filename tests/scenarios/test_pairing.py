"""Story: glasses become ours. Somebody types `glassd up`, reads the code on the lens, and from
then on nobody else is connected to.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

import pytest

from firmware_bridge.sim.inproc import start_mock
from tests.scenarios.world import SOON_S, until, world

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Typed:
    """One CLI command in a process of its own, with somebody at its keyboard."""

    def __init__(self, process) -> None:
        self.process = process

    async def types(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()

    async def ended(self):
        async with asyncio.timeout(SOON_S * 2):
            out, err = await self.process.communicate()
        assert b"Traceback" not in err, err.decode()
        self.out, self.err, self.code = out.decode(), err.decode(), self.process.returncode
        return self

    async def answered(self, wanted):
        await self.ended()
        assert self.code == 0, self.err
        assert wanted in self.out, self.out
        return self


@asynccontextmanager
async def typed(place, *words, stdin=asyncio.subprocess.PIPE):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "edge.cli",
        *words,
        "--socket",
        str(place.socket),
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    try:
        yield Typed(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def glassd(place, *words):
    async with typed(place, *words, stdin=asyncio.subprocess.DEVNULL) as command:
        return await command.ended()


def codes(place):
    return [shown["passkey"] for shown in place.shown if shown["event"] == "pairing"]


async def code_on_lens(place, *, after=0):
    await until(lambda: len(codes(place)) > after, "a code on the lens")
    return codes(place)[after]


@asynccontextmanager
async def up(place, *words, verb="up"):
    """The whole of `glassd up` (or pair), with the code typed as soon as it is on the lens;
    gives what it printed.
    """
    seen = len(codes(place))
    async with typed(place, verb, *words) as command:
        code = await code_on_lens(place, after=seen)
        await place.lens_shows(f"{code[:3]} {code[3:]}", "type this code")
        await command.types(code)
        yield await command.ended()


def glasses(place):
    return place.daemon.status()["glasses"]


def encrypted(place):
    return [bool(c.encryption) for c in place.mock.servers[None]._device.connections.values()]


@pytest.mark.requirement("I4-pair-up")
@pytest.mark.requirement("I4-pair-passkey")
@pytest.mark.requirement("I4-write-bonded")
async def test_up_finds_asks_for_the_code_on_the_lens_connects_and_saves(tmp_path):
    async with world(tmp_path) as place:
        await place.switch_glasses_on(pairing="passkey")
        await place.start_daemon()
        await until(
            lambda: place.daemon.status()["link"]["issue"] == "not_paired",
            "strangers may not write",
        )
        assert "glassd pair" in place.daemon.status()["next_action"]
        async with up(place) as command:
            assert command.code == 0, command.err
        lines = command.out.splitlines()
        assert lines[0] == "Looking for glasses …"
        assert lines[1].split() == [
            "1",
            "Mock",
            "display",
            "glasses",
            "MOCK-DSP",
            place.mock.address,
            "-50",
            "dBm",
            "new",
        ]
        assert lines[2:4] == [
            "Listening for the glasses …",
            f"Found Mock display glasses  MOCK-DSP  {place.mock.address}  -50 dBm",
        ]
        assert lines[4:7] == ["Pairing …", "Paired and saved (a code was typed).", "Connecting …"]
        assert lines[7].startswith(
            f"Ready: mock:display at {place.mock.address}, "
            "firmware 1.0.0, MTU 247, paired (passkey)"
        )
        assert lines[-1].startswith("Next: ")
        assert (glasses(place)["bond"], encrypted(place)) == ("passkey", [True])
        (bond,) = json.loads((tmp_path / "state" / "bonds.json").read_text())["bonds"]
        assert (bond["id"], bond["how"]) == (place.mock.address, "passkey")
        again = await glassd(place, "up", "--json")
        assert json.loads(again.out)["glasses"]["bond"] == "passkey"
        assert len(codes(place)) == 1, "who is up already is asked nothing"
        assert (await place.call("glasses:show_text", {"text": "ours now"})).meta[
            "delivery"
        ] == "shown"


@pytest.mark.requirement("I4-bond-kept")
@pytest.mark.requirement("I4-bond-lost")
async def test_a_bond_survives_restarts_and_one_that_the_glasses_lost_is_cured_by_pair(tmp_path):
    async with world(tmp_path) as place:
        await place.switch_glasses_on(pairing="passkey")
        await place.start_daemon()
        async with up(place, "--address", place.mock.address) as command:
            assert command.code == 0, command.err
        await place.stop_daemon()
        await until(lambda: not place.mock.glasses.connected, "the link was closed")
        await place.start_daemon()
        await place.ready()
        assert (encrypted(place), len(codes(place))) == ([True], 1), "nobody was asked again"

        await place.mock.security.forget()
        place.mock.mount.drop()
        await until(lambda: glasses(place)["bond"] == "lost", "the lost bond is named")
        await until(
            lambda: "glassd pair" in place.daemon.status()["next_action"], "and what to do about it"
        )
        assert len(codes(place)) == 1, "nothing is paired in silence"
        place.mark()
        async with up(place, place.mock.address, verb="pair") as command:
            assert command.code == 0, command.err
        assert "a code was typed" in command.out
        await place.heard("glasses.ready")
        assert glasses(place)["bond"] == "passkey"


@pytest.mark.requirement("I4-only-ours")
async def test_only_our_glasses_are_connected_to(tmp_path):
    async with world(tmp_path) as place:
        await place.switch_glasses_on()
        await place.start_daemon(glasses={"connect": "paired"})
        await until(
            lambda: place.daemon.status()["link"]["issue"] == "not_paired", "nobody is ours"
        )
        assert "glassd up" in place.daemon.status()["next_action"]
        heard = json.loads((await glassd(place, "scan", "--seconds", "2", "--json")).out)["glasses"]
        assert [(g["id"], g["ours"], g["connected"]) for g in heard] == [
            (place.mock.address, False, False)
        ]
        assert not [s for s in place.shown if s["event"] == "connected"]

        async with up(place, "--address", place.mock.address) as command:
            assert command.code == 0, command.err
        other = await start_mock("mock:full", place.air, out_dir=tmp_path / "glasses")
        try:
            await place.switch_glasses_off()
            await place.heard("glasses.lost")
            listed = (await glassd(place, "scan", "--seconds", "2")).out.split()
            assert other.address in listed
            await until(
                lambda: place.daemon.status()["link"]["state"] in ("SEEKING", "RESTING"),
                "looked for",
            )
            assert not other.glasses.connected
            place.mark()
            await place.switch_glasses_on()
            await place.heard("glasses.ready")
            assert not other.glasses.connected
            gone = await glassd(place, "unpair")
            assert gone.code == 0, gone.err
            assert place.mock.address in gone.out
            await until(
                lambda: place.daemon.status()["link"]["issue"] == "not_paired",
                "nobody is ours again",
            )
            assert json.loads((tmp_path / "state" / "bonds.json").read_text())["bonds"] == []
        finally:
            await other.close()


@pytest.mark.requirement("I4-pair-wrong-code")
@pytest.mark.requirement("I4-pair-window")
async def test_what_goes_wrong_is_an_exit_code_and_a_sentence(tmp_path):
    async with world(tmp_path) as place:
        await place.start_daemon(glasses={"connect": "paired"})
        nothing = await glassd(place, "scan", "--seconds", "0.2", "--json")
        assert (nothing.code, json.loads(nothing.out)["error"]["code"]) == (4, "NOT_FOUND")
        assert (await glassd(place, "unpair")).code == 4
        await place.switch_glasses_on(pairing="passkey")

        wrong = await glassd(place, "pair", place.mock.address, "--code", "000001")
        assert (wrong.code, "the code was wrong" in wrong.err) == (1, True)

        async with typed(place, "pair", place.mock.address) as hung:
            await code_on_lens(place, after=1)
            busy = await glassd(place, "pair")
            assert (busy.code, "somebody else" in busy.err) == (1, True)
            hung.process.kill()
            await hung.process.communicate()
        await until(
            lambda: place.daemon.pairing.describe()["state"] == "IDLE",
            "the window closed with its client",
        )
        assert place.daemon.bonds.all() == ()

        silent = await glassd(place, "pair", place.mock.address)
        assert (silent.code, "no terminal is there to type it" in silent.err) == (1, True)
        place.mock.security.refuse()
        refused = await glassd(place, "pair", place.mock.address)
        assert (refused.code, "pairing mode" in refused.err) == (1, True)
        assert [
            s["name"] for s in place.daemon.status()["services"] if s["state"] != "running"
        ] == []


@pytest.mark.requirement("I4-pair-compare")
@pytest.mark.requirement("I4-pair-up")
async def test_of_several_glasses_one_is_chosen_and_its_number_compared(tmp_path):
    async with world(tmp_path, "mock:full") as place:
        await place.switch_glasses_on(pairing="compare")
        (tmp_path / "other").mkdir()
        other = await start_mock("mock:audio", place.air, out_dir=tmp_path / "other")
        try:
            await place.start_daemon(glasses={"connect": "paired", "model": ""})
            async with typed(place, "up") as command:
                await command.types(place.mock.address.lower())
                number = await until(
                    lambda: next((s["number"] for s in place.shown if "number" in s), ""),
                    "a number on the lens",
                )
                place.tap()
                await command.types("y")
                await command.answered("Paired and saved (numbers were compared).")
            assert "Which ones? [1-2]" in command.err
            assert f"Do the glasses show {number}?" in command.err
            assert not other.glasses.connected
        finally:
            await other.close()


@pytest.mark.requirement("I4-pair-wrong-code")
async def test_a_person_who_mistypes_is_asked_again_with_the_new_code(tmp_path):
    keyboard, terminal = os.openpty()
    async with world(tmp_path) as place:
        try:
            await place.switch_glasses_on(pairing="passkey")
            await place.start_daemon(glasses={"connect": "paired"})
            async with typed(place, "pair", place.mock.address, stdin=terminal) as command:
                first = await code_on_lens(place)
                os.write(keyboard, f"{int(first) ^ 1:06d}\n".encode())
                second = await code_on_lens(place, after=1)
                assert second != first
                os.write(keyboard, f"{second}\n".encode())
                await command.answered("a code was typed")
            assert "the code was wrong; the glasses show a new one" in command.err
        finally:
            os.close(keyboard)
            os.close(terminal)
