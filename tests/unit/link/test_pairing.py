"""The pairing desk over real Security Managers: its window, its questions, its bonds."""

import asyncio
from contextlib import aclosing, asynccontextmanager

import pytest

from edge.core.pairing_state import PairingRefused, PairingState as S, PairingTimes
from edge.link.bonds import Bonds
from edge.link.pairing import PairingService
from edge.ports import GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from firmware_bridge.errors import RadioError
from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from firmware_bridge.sim.air import Air
from firmware_bridge.sim.inproc import start_mock
from firmware_bridge.sim.security import PairingWay
from firmware_bridge.transports.ble import open_radio
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear

pytestmark = pytest.mark.enable_socket

QUICK = PairingTimes(window_s=40.0, scan_s=20.0, settle_s=0.15)
"""A scan ends when nothing new came for a while after whole glasses: of one pair at once,
however long it may take.
"""
TWO = PairingTimes(window_s=40.0, scan_s=20.0, settle_s=0.8)
"""Where two have to be heard, the second may take a moment."""


class Link:
    """The link manager, as far as the desk knows it: counts who holds the radio."""

    def __init__(self):
        self.paused_for, self.held, self.glasses, self.stuck = [], 0, GlassesStatus(), False

    @asynccontextmanager
    async def paused(self, why):
        self.paused_for.append(why)
        if self.stuck:
            raise TimeoutError
        self.held += 1
        try:
            yield
        finally:
            self.held -= 1


class Place:
    def __init__(self, folder, limits):
        self.folder, self.limits = folder, limits
        self.air, self.link, self.bus, self.mocks, self.ears = Air(), Link(), Bus(), {}, {}

    async def glasses_on(self, model, pairing=None):
        folder = self.folder / model.replace(":", "-")
        folder.mkdir(exist_ok=True)
        ear = self.ears[model] = Ear()
        self.mocks[model] = mock = await start_mock(
            model, self.air, out_dir=folder, tell=ear, pairing=pairing
        )
        return mock

    async def radio_on(self):
        self.radio = await open_radio("inproc", air=self.air, keys=self.folder / "radio-keys.json")
        self.bonds = Bonds(self.folder / "bonds.json")
        self.bonds.load()
        self.desk = PairingService(
            self._radio,
            bonds=self.bonds,
            paused=self.link.paused,
            glasses=lambda: self.link.glasses,
            bus=self.bus,
            clock=Clock.system(),
            limits=self.limits,
        )

    async def _radio(self):
        return self.radio

    async def types(self, model="mock:display"):
        told = await self.ears[model].wait("pairing")
        self.desk.answer(passkey=int(told["passkey"]))

    async def steps(self, wanted=None, *, typing=True, seconds=None):
        """Go through a window; gives every step."""
        for ear in self.ears.values():
            ear.events.clear()
        seen = []
        async with (
            asyncio.timeout(DEADLINE_S * 2),
            aclosing(self.desk.window(wanted, seconds=seconds)) as window,
        ):
            async for step in window:
                seen.append(step)
                if step.ask == "passkey" and typing:
                    await self.types()
                if step.ask == "compare":
                    self.desk.answer(same=True)
        return seen


@asynccontextmanager
async def place_of(folder, *models, limits=QUICK, **pairing):
    place = Place(folder, limits)
    for model in models:
        await place.glasses_on(model, **pairing)
    await place.radio_on()
    try:
        yield place
    finally:
        await place.radio.close()
        for mock in place.mocks.values():
            await mock.close()


@pytest.mark.requirement("I4-pair-window")
async def test_a_window_tells_each_step_and_keeps_the_bond(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        with place.bus.listen() as heard:
            steps = await place.steps()
            happened = await anext(aiter(heard))
        assert [s.state for s in steps] == [
            S.SCANNING,
            S.CHOSEN,
            S.CONNECTING,
            S.ASKING,
            S.CONNECTING,
            S.PAIRED,
        ]
        address = place.mocks["mock:display"].address
        assert (steps[1].glasses.address, steps[1].glasses.title, steps[1].glasses.ours) == (
            address,
            "Mock display glasses",
            False,
        )
        assert steps[-1].how == "passkey"
        (bond,) = place.bonds.all()
        assert (bond.id, bond.model, bond.name, dict(bond.addresses), bond.how) == (
            address,
            "mock:display",
            "MOCK-DSP",
            {"": address},
            "passkey",
        )
        assert (happened.kind, happened.id, happened.how) == ("glasses.paired", address, "passkey")
        assert place.link.paused_for == ["pairing"]
        assert place.link.held == 0
        assert place.desk.describe()["state"] == "IDLE"


@pytest.mark.requirement("I4-pair-window")
async def test_there_is_one_window_at_a_time(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        async with aclosing(place.desk.window(None)) as window:
            assert (await anext(window)).state is S.SCANNING
            assert place.desk.describe()["closes_in_s"] > 15
            for other in (place.desk.window(None), place.desk.scan(1.0)):
                with pytest.raises(PairingRefused) as refused:
                    await anext(other)
                assert refused.value.code == "BUSY"
            with pytest.raises(PairingRefused):
                await place.desk.unpair("x")
        assert (await place.steps())[-1].state is S.PAIRED, "the place is free again"


@pytest.mark.requirement("I4-pair-window")
async def test_a_window_closes_by_itself(tmp_path):
    async with place_of(
        tmp_path, "mock:display", limits=PairingTimes(window_s=0.6, scan_s=1.0, settle_s=0.1)
    ) as place:
        steps = await place.steps(typing=False)
        assert (steps[-1].state, steps[-1].code) == (S.FAILED, "TIMEOUT")
        assert "glassd pair" in steps[-1].fix
        assert (place.link.held, place.bonds.all()) == (0, ())
        if place.ears["mock:display"].count(
            "connected"
        ):  # a busy machine does not get so far in that time
            await place.ears["mock:display"].wait("disconnected")


@pytest.mark.requirement("I4-pair-window")
async def test_a_window_closes_with_its_client(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        async with aclosing(place.desk.window(None)) as window:
            async for step in window:
                if step.ask:
                    break
            assert place.link.held == 1
        assert place.link.held == 0
        assert place.desk.describe()["state"] == "IDLE"
        with pytest.raises(PairingRefused):
            place.desk.answer(passkey=1)
        await place.ears["mock:display"].wait("disconnected")
        assert place.bonds.all() == ()


@pytest.mark.requirement("I4-pair-window")
async def test_a_window_closes_while_it_still_listens(tmp_path):
    async with place_of(
        tmp_path, limits=PairingTimes(window_s=0.3, scan_s=30.0, settle_s=0.1)
    ) as place:
        async with asyncio.timeout(40):
            last = (await place.steps())[-1]
        assert (last.code, last.text) == ("TIMEOUT", "the pairing window closed after 0.3 s")


@pytest.mark.requirement("I4-pair-window")
async def test_a_client_that_disconnects_after_pairing_leaves_no_window(tmp_path):
    async with place_of(tmp_path, "mock:audio") as place:

        async def impatient():
            async with aclosing(place.desk.window(None)) as window:
                async for step in window:
                    if step.state is S.PAIRED:
                        asyncio.get_running_loop().call_soon(client.cancel)

        client = asyncio.ensure_future(impatient())
        await asyncio.wait([client], timeout=DEADLINE_S)
        assert client.cancelled()
        assert place.desk.describe()["state"] == "IDLE"
        assert [h.ours async for h in place.desk.scan(20.0, settle_s=0.1)] == [True]


async def test_a_window_closed_by_another_client_reports_it(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        assert await place.desk.close() is False
        seen = []
        async with asyncio.timeout(DEADLINE_S), aclosing(place.desk.window(None)) as window:
            async for step in window:
                seen.append(step)
                if step.ask:
                    assert await place.desk.close() is True
        assert (seen[-1].state, seen[-1].code) == (S.FAILED, "CLOSED")
        assert place.bonds.all() == ()


async def test_a_closed_window_releases_the_radio_though_its_client_reads_nothing(
    tmp_path,
):
    async with place_of(tmp_path, "mock:display") as place:
        window = place.desk.window(None)
        assert (await anext(window)).state is S.SCANNING
        assert place.link.held == 1
        assert await place.desk.close() is True
        async with asyncio.timeout(DEADLINE_S):
            while place.link.held:
                await asyncio.sleep(0.005)
        rest = [step async for step in window]
        assert [(step.state, step.code) for step in rest] == [(S.FAILED, "CLOSED")]
        assert place.bonds.all() == ()
        assert place.desk.describe()["state"] == "IDLE"


async def test_only_an_answer_to_what_is_asked_counts(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        with pytest.raises(PairingRefused):
            place.desk.answer(passkey=1)
        async with asyncio.timeout(DEADLINE_S), aclosing(place.desk.window(None)) as window:
            async for step in window:
                if step.ask:
                    with pytest.raises(PairingRefused):
                        place.desk.answer(same=True)
                    with pytest.raises(PairingRefused):
                        place.desk.answer()
                    await place.types()
                    with pytest.raises(PairingRefused):
                        place.desk.answer(passkey=1)
        assert step.state is S.PAIRED


@pytest.mark.requirement("I4-pair-wrong-code")
async def test_a_wrong_code_fails_the_window_and_the_next_one_works(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        async with asyncio.timeout(DEADLINE_S), aclosing(place.desk.window(None)) as window:
            async for step in window:
                if step.ask:
                    told = await place.ears["mock:display"].wait("pairing")
                    place.desk.answer(passkey=int(told["passkey"]) ^ 1)
        assert (step.state, step.code) == (S.FAILED, "WRONG_CODE")
        await place.ears["mock:display"].wait("pairing.failed")
        assert (await place.steps())[-1].state is S.PAIRED


async def test_numbers_are_reported_with_six_digits(tmp_path):
    async with place_of(tmp_path, "mock:full", pairing="compare") as place:
        seen = []
        async with asyncio.timeout(DEADLINE_S), aclosing(place.desk.window(None)) as window:
            async for step in window:
                seen.append(step)
                if step.ask:
                    told = await place.ears["mock:full"].wait("pairing")
                    assert told["number"] == step.number
                    assert len(step.number) == 6
                    place.mocks["mock:full"].glasses.gesture(Gesture.TAP)
                    place.desk.answer(same=True)
        assert (seen[-1].state, seen[-1].how) == (S.PAIRED, "compared")


async def test_no_glasses_and_several_glasses_are_reported(tmp_path):
    async with place_of(
        tmp_path, limits=PairingTimes(window_s=5.0, scan_s=0.2, settle_s=0.1)
    ) as place:
        assert [(s.state, s.code) for s in await place.steps()] == [
            (S.SCANNING, ""),
            (S.FAILED, "NOT_FOUND"),
        ]
        assert (await place.steps("F0:00:00:00:00:99"))[-1].code == "NOT_FOUND"
    async with place_of(tmp_path, "mock:display", "mock:audio", limits=TWO) as place:
        ambiguous = (await place.steps())[-1]
        assert ambiguous.code == "AMBIGUOUS"
        assert all(mock.address in ambiguous.text for mock in place.mocks.values())
        named = await place.steps(place.mocks["mock:audio"].address.lower())
        assert (named[-1].state, named[-1].how) == (S.PAIRED, "just_works")


@pytest.mark.requirement("I4-bond-lost")
async def test_pairing_again_forgets_the_old_bond_first(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        mock = place.mocks["mock:display"]
        await place.steps()
        await mock.security.forget()
        before = place.bonds.all()[0].paired_at
        steps = await place.steps(mock.address)
        assert steps[1].glasses.ours is True
        assert steps[-1].state is S.PAIRED
        assert [b.paired_at > before for b in place.bonds.all()] == [True]


async def test_a_bond_that_cannot_be_saved_is_reported(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        (tmp_path / "blocked").write_text("")
        place.bonds._path = tmp_path / "blocked" / "bonds.json"
        last = (await place.steps())[-1]
        assert (last.state, last.code) == (S.FAILED, "NOT_SAVED")


@pytest.mark.requirement("I4-pair-proof")
async def test_what_is_not_proved_is_not_kept(tmp_path):
    async with place_of(tmp_path, "mock:display", pairing="just_works") as place:
        last = (await place.steps())[-1]
        assert (last.state, last.code) == (S.FAILED, "UNPROVEN")
        assert place.bonds.all() == ()


# ------------------------------------------------------------------ two sides


@pytest.mark.requirement("I4-pair-just-works")
async def test_both_sides_of_a_pair_are_one_bond(tmp_path):
    async with place_of(tmp_path, "sim:even_g1") as place:
        heard = [h async for h in place.desk.scan(20.0, settle_s=0.2)]
        assert len({h.id for h in heard}) == 1
        assert heard[-1].missing == ""
        steps = await place.steps(heard[-1].id)
        assert (steps[-1].state, steps[-1].text) == (S.PAIRED, "")
        assert [s.text for s in steps if s.state is S.CONNECTING] == [
            "the left side",
            "the right side",
        ]
        (bond,) = place.bonds.all()
        mock = place.mocks["sim:even_g1"]
        assert dict(bond.addresses) == {
            side.value: who.address for side, who in mock.identities.items()
        }
        assert bond.id == heard[-1].id
        assert all(security.keys.bonded for security in mock.securities.values())
        assert (await place.desk.unpair(bond.id)).id == bond.id
        assert place.radio.bonding._window.keys.bonded is False


async def test_a_pair_is_only_as_well_proved_as_its_weaker_side(tmp_path):
    async with place_of(tmp_path, "sim:even_g1") as place:
        place.mocks["sim:even_g1"].securities[Side.LEFT].way = PairingWay.PASSKEY
        async with asyncio.timeout(DEADLINE_S * 2), aclosing(place.desk.window(None)) as window:
            async for step in window:
                if step.ask:
                    await place.types("sim:even_g1")
        assert (step.state, step.how) == (S.PAIRED, "just_works")


# ------------------------------------------------------------------ scan, unpair


async def test_a_scan_tells_what_is_heard_and_whose_it_is(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        await place.steps()
        await place.glasses_on("mock:audio")
        heard = {h.model: h async for h in place.desk.scan(20.0, settle_s=0.8)}
        assert {m: (h.ours, h.connected) for m, h in heard.items()} == {
            "mock:display": (True, False),
            "mock:audio": (False, False),
        }
        assert heard["mock:audio"].rssi < 0
        assert place.link.paused_for[-1] == "scanning"


async def test_a_scan_keeps_the_link_and_lists_its_glasses_first(tmp_path):
    async with place_of(tmp_path, "mock:display", "mock:audio") as place:
        address = place.mocks["mock:display"].address
        place.link.glasses = GlassesStatus(
            state="READY", ready=True, model="mock:display", address=address
        )
        began = asyncio.get_running_loop().time()
        first, second = [h async for h in place.desk.scan(60.0, settle_s=1.5)][:2]
        assert asyncio.get_running_loop().time() - began < 20
        assert (first.id, first.title, first.connected, first.ours, first.rssi) == (
            address,
            "Mock display glasses",
            True,
            False,
            None,
        )
        assert second.connected is False
        assert place.link.paused_for == []


async def test_a_scan_that_nobody_reads_any_more_stops_listening(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        async with aclosing(place.desk.scan(60.0)) as scan:
            await anext(scan)
        assert not place.radio.lock.locked()
        assert [h.model async for h in place.desk.scan(20.0, settle_s=0.1)] == ["mock:display"]


async def test_a_bond_that_stays_in_the_file_is_reported(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        await place.steps()
        (tmp_path / "blocked").write_text("")
        place.bonds._path = tmp_path / "blocked" / "bonds.json"
        with pytest.raises(PairingRefused, match="is still in the file") as refused:
            await place.desk.unpair(None)
        assert refused.value.code == "NOT_SAVED"
        assert place.link.held == 0


async def test_unpairing_names_what_it_needs(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        for wanted in (None, "F0:00:00:00:00:99"):
            with pytest.raises(PairingRefused) as refused:
                await place.desk.unpair(wanted)
            assert refused.value.code == "NOT_FOUND"
        await place.steps()
        assert place.desk.bond() == "passkey"
        bond = await place.desk.unpair(None)
        assert (bond.model, place.bonds.all(), place.desk.bond()) == ("mock:display", (), "")
        assert place.link.paused_for[-1] == "unpairing"


async def test_a_lost_bond_and_a_damaged_file_are_in_the_status(tmp_path):
    (tmp_path / "bonds.json").write_text("{")
    async with place_of(tmp_path, "mock:display") as place:
        assert "damaged" in place.desk.alarms()["bonds"]
        await place.steps()
        assert place.desk.alarms() == {}
        place.link.glasses = GlassesStatus(
            state="RESTING", issue="bond_lost", address=place.mocks["mock:display"].address
        )
        assert place.desk.bond() == "lost"


async def test_a_link_that_keeps_the_radio_is_reported(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        await place.steps()
        place.link.stuck = True
        (last,) = await place.steps()
        assert (last.code, "give the radio up" in last.text) == ("RADIO", True)
        for doing in (anext(place.desk.scan(1.0)), place.desk.unpair(None)):
            with pytest.raises(RadioError, match="give the radio up"):
                await doing
        place.link.stuck = False
        assert (await place.steps())[-1].state is S.PAIRED


async def test_a_lost_radio_fails_the_window_with_its_reason(tmp_path):
    async with place_of(tmp_path, "mock:display") as place:
        place.radio = await open_radio("tcp:127.0.0.1:1")
        last = (await place.steps())[-1]
        assert (last.state, last.code) == (S.FAILED, "RADIO")
        assert "glassd sim" in last.fix
        with pytest.raises(RadioError):
            await anext(place.desk.scan(1.0))
