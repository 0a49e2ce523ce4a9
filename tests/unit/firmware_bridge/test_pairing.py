"""Pairing with mock glasses over real Security Managers on both sides: what is proved, what is
refused, what is kept.
"""

import asyncio
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from bleak import BleakClient
from bleak.exc import BleakError
from bumble.keys import PairingKeys

from firmware_bridge.bonding import How, PairingError, PairingReason, Witness
from firmware_bridge.catalog import CATALOG, Catalog, find
from firmware_bridge.codecs.reference.uuids import RX_UUID
from firmware_bridge.errors import RadioError, RadioReason
from firmware_bridge.messages import Gesture
from firmware_bridge.models import Pairing
from firmware_bridge.sim.air import Air
from firmware_bridge.sim.inproc import start_mock
from firmware_bridge.sim.security import PAUSE_S, PairingWay, Security, way_of
from firmware_bridge.transports.ble import open_radio, scan
from firmware_bridge.transports.ble_connection import connect
from firmware_bridge.transports.bumble import keys as bumble_keys
from firmware_bridge.transports.bumble.keys import KeyFile
from firmware_bridge.transports.pairing import pair, unpair
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear
from tests.unit.firmware_bridge.test_bumble_radio import HELLO

pytestmark = pytest.mark.enable_socket


class Person:
    """Looks at the lens and types what is there (or something else), and says yes or no to
    numbers.
    """

    def __init__(self, place, *, types=None, says=True, taps=Gesture.TAP):
        self.place, self.types, self.says, self.taps = place, types, says, taps
        self.asked = []
        self.shown = []

    async def passkey(self):
        self.asked.append("passkey")
        shown = await self.place.ear.wait("pairing", count=len(self.asked))
        self.shown.append(shown["passkey"])
        return int(shown["passkey"]) if self.types is None else self.types(int(shown["passkey"]))

    async def same(self, number):
        self.asked.append("compare")
        shown = await self.place.ear.wait("pairing")
        self.shown.append(shown["number"])
        assert self.place.mock.glasses.gesture(self.taps)
        return self.says and shown["number"] == f"{number:06d}"

    async def show(self, number):
        raise AssertionError("no mock has a keyboard")


class Place:
    """One mock and one radio of ours on an air of their own; both can be switched off and on."""

    def __init__(self, folder: Path, model: str, pairing: str | None) -> None:
        self.folder, self.model, self.pairing = folder, model, pairing
        self.air, self.ear = Air(), Ear()
        self.mock = self.radio = None

    async def glasses_on(self):
        self.mock = await start_mock(
            self.model, self.air, out_dir=self.folder, tell=self.ear, pairing=self.pairing
        )

    async def radio_on(self):
        self.radio = await open_radio("inproc", air=self.air, keys=self.folder / "ours.json")

    async def sighting(self, catalog: Catalog = CATALOG):
        return await scan(self.radio, catalog, timeout_s=DEADLINE_S)

    async def pair(self, person=None, catalog: Catalog = CATALOG):
        self.person = person or Person(self)
        return await pair(
            self.radio, await self.sighting(catalog), self.person, timeout_s=DEADLINE_S
        )

    async def connects(self):
        """A whole connection with its subscription, as the daemon makes it; gives whether it
        was encrypted.
        """
        transport = await connect(self.radio, await self.sighting(), timeout_s=DEADLINE_S)
        try:
            (link,) = (await self.radio.bonding._window.adapter()).device.connections.values()
            return bool(link.encryption)
        finally:
            await transport.close()

    async def refused(self):
        with pytest.raises(RadioError) as error:
            await self.connects()
        return error.value.reason


@asynccontextmanager
async def opened(folder: Path, model: str = "mock:display", pairing: str | None = "passkey"):
    place = Place(folder, model, pairing)
    await place.glasses_on()
    await place.radio_on()
    try:
        yield place
    finally:
        await place.radio.close()
        await place.mock.close()


# ------------------------------------------------------------------ ways of pairing


@pytest.mark.requirement("I4-pair-passkey")
async def test_a_passkey_is_shown_on_the_lens_and_typed_here(tmp_path):
    async with opened(tmp_path) as place:
        assert await place.refused() is RadioReason.NOT_PAIRED
        proof = await place.pair()
        assert (proof.how, proof.proved, proof.address) == (How.PASSKEY, True, place.mock.address)
        told = await place.ear.wait("pairing")
        code = told["passkey"]
        assert told["lines"] == ["Pairing", "", f"{code[:3]} {code[3:]}", "", "type this code"]
        assert told["lit"] > 500
        async with asyncio.timeout(DEADLINE_S):
            while (
                place.mock.glasses.lens.text()
            ):  # the code goes from the lens: theirs may be the later end of it
                await asyncio.sleep(0.005)
        assert await place.connects(), "the link is encrypted"


@pytest.mark.requirement("I4-pair-compare")
async def test_numbers_are_compared_on_both_sides(tmp_path):
    async with opened(tmp_path, pairing="compare") as place:
        proof = await place.pair()
        assert (proof.how, place.person.asked) == (How.COMPARED, ["compare"])
        assert await place.connects()


@pytest.mark.requirement("I4-pair-just-works")
async def test_just_works_is_for_glasses_that_have_nothing_else(tmp_path):
    async with opened(tmp_path, "mock:audio", None) as place:
        assert place.mock.security.way is PairingWay.JUST_WORKS
        proof = await place.pair()
        assert (proof.how, proof.proved, place.person.asked) == (How.JUST_WORKS, False, [])
        assert await place.connects()


@pytest.mark.requirement("I4-pair-proof")
async def test_just_works_with_glasses_that_show_codes_is_undone(
    tmp_path,
):
    async with opened(tmp_path, pairing="just_works") as place:
        with pytest.raises(PairingError) as error:
            await place.pair()
        assert error.value.reason is PairingReason.UNPROVEN
        assert "without a code" in str(error.value)
        assert "glassd pair" in error.value.hint
        assert not KeyFile(place.folder / "ours.json").bonded
        await place.mock.security.forget()
        place.mock.security.required = False
        assert await place.connects() is False, "no key of it is used"


async def test_glasses_that_know_no_pairing_are_only_met(tmp_path):
    from msgspec.structs import replace

    plain = Catalog((replace(find("mock:display"), pairing=Pairing.NONE),))
    async with opened(tmp_path, pairing="none") as place:
        proof = await place.pair(catalog=plain)
        assert (proof.how, place.person.asked) == (How.NONE, [])
        assert await place.connects() is False


# ------------------------------------------------------------------ refusals


@pytest.mark.requirement("I4-pair-wrong-code")
async def test_a_wrong_code_is_reported_and_the_next_code_differs(tmp_path):
    async with opened(tmp_path) as place:
        with pytest.raises(PairingError) as error:
            await place.pair(Person(place, types=lambda code: (code + 1) % 1_000_000 or 1))
        assert error.value.reason is PairingReason.WRONG_CODE
        assert "glassd pair" in error.value.hint
        assert await place.refused() is RadioReason.NOT_PAIRED
        first = (await place.ear.wait("pairing"))["passkey"]
        again = Person(place)
        again.asked.append("passkey")  # the first code was shown before
        assert (await place.pair(again)).how is How.PASSKEY
        assert again.shown[0] != first


async def test_three_wrong_codes_in_a_row_make_the_glasses_wait(tmp_path):
    async with opened(tmp_path) as place:
        security = place.mock.security
        for number in range(1, 4):
            person = Person(place, types=lambda code: (code + 1) % 1_000_000 or 1)
            person.asked += ["passkey"] * (number - 1)
            with pytest.raises(PairingError) as error:
                await place.pair(person)
            assert error.value.reason is PairingReason.WRONG_CODE
        person = Person(place)
        with pytest.raises(PairingError) as error:
            await place.pair(person)
        assert (error.value.reason, person.asked) == (PairingReason.REFUSED, [])
        security._clock = lambda now=security._clock: now() + PAUSE_S
        person.asked += ["passkey"] * 3
        assert (await place.pair(person)).proved


@pytest.mark.parametrize(
    ("says", "taps"),
    [(False, Gesture.TAP), (True, Gesture.DOUBLE_TAP)],
    ids=["here", "on the glasses"],
)
async def test_a_no_on_either_side_is_no_bond(tmp_path, says, taps):
    async with opened(tmp_path, pairing="compare") as place:
        with pytest.raises(PairingError) as error:
            await place.pair(Person(place, says=says, taps=taps))
        assert error.value.reason is (
            PairingReason.WRONG_CODE if says else PairingReason.NOT_ANSWERED
        )
        assert not place.mock.security.keys.bonded
        assert not KeyFile(place.folder / "ours.json").bonded


async def test_a_code_that_nobody_types_is_reported(tmp_path):
    async with opened(tmp_path) as place:
        with pytest.raises(PairingError) as error:
            await place.pair(Person(place, types=lambda _code: None))
        assert error.value.reason is PairingReason.NOT_ANSWERED


async def test_an_answer_that_never_comes_ends_with_its_deadline():
    class Asleep:
        async def passkey(self):
            await asyncio.Event().wait()

        same = show = lambda self, _number: asyncio.Event().wait()

    witness = Witness(Asleep(), answer_s=0.01)
    assert await witness.passkey() is None
    assert witness.declined
    assert witness.how is How.JUST_WORKS
    assert await Witness(Asleep(), answer_s=0.01).same(1) is False


@pytest.mark.requirement("I4-pair-refused")
async def test_glasses_that_refuse_are_reported_with_a_hint(tmp_path):
    async with opened(tmp_path) as place:
        place.mock.security.refuse()
        with pytest.raises(PairingError) as error:
            await place.pair()
        assert (error.value.reason, place.person.asked) == (PairingReason.REFUSED, [])
        assert "pairing mode" in error.value.hint
        place.mock.security.refuse(on=False)
        assert (await place.pair()).proved


async def test_bonded_glasses_accept_strangers_only_in_pairing_mode(tmp_path):
    async with opened(tmp_path, "mock:audio", "just_works") as place:
        await place.pair()
        await place.radio.close()
        (tmp_path / "ours.json").unlink()  # another machine
        await place.radio_on()
        with pytest.raises(PairingError) as error:
            await place.pair()
        assert error.value.reason is PairingReason.REFUSED
        place.mock.security.invite()
        assert (await place.pair()).how is How.JUST_WORKS


async def test_who_walks_off_while_the_code_is_typed_is_no_bond(tmp_path):
    async with opened(tmp_path) as place:

        def leaves(_code):
            assert place.mock.mount.drop()
            return 1

        with pytest.raises(PairingError) as error:
            await place.pair(Person(place, types=leaves))
        assert error.value.reason is PairingReason.LOST
        person = Person(place)
        person.asked.append("passkey")
        assert (await place.pair(person)).proved, "nothing is left over of it"


async def test_pairing_that_is_called_off_hangs_up_and_leaves_the_glasses_free(tmp_path):
    async with opened(tmp_path) as place:
        asked = asyncio.Event()

        class Slow(Person):
            async def passkey(self):
                asked.set()
                await asyncio.Event().wait()

        pairing = asyncio.ensure_future(place.pair(Slow(place)))
        async with asyncio.timeout(DEADLINE_S):
            await asked.wait()
        pairing.cancel()
        await asyncio.wait([pairing])
        assert pairing.cancelled()
        await place.ear.wait("disconnected")
        person = Person(place)
        person.asked.append("passkey")
        assert (await place.pair(person)).proved


# ------------------------------------------------------------------ who may write


@pytest.mark.requirement("I4-write-bonded")
@pytest.mark.parametrize("response", [True, False], ids=["request", "command"])
async def test_a_write_before_encryption_is_never_applied(tmp_path, response):
    """Even who was bonded may not write in clear; the caller of a request hears it at once."""
    async with opened(tmp_path, pairing=None) as place:
        assert place.mock.security.protected is False
        await place.pair()
        assert place.mock.security.protected
        place.radio.bonding._window.keys._bonds.clear()  # we have forgotten, the glasses have not
        async with BleakClient(
            (await place.sighting()).device, backend=place.radio.client, timeout=DEADLINE_S
        ) as client:
            server = place.mock.servers[None]
            applied = []
            server._current = type(
                "Visit", (), {"received": applied.append, "end": lambda self: None}
            )()
            async with asyncio.timeout(DEADLINE_S):
                if response:
                    with pytest.raises(BleakError, match=r"(?i)encryption"):
                        await client.write_gatt_char(RX_UUID, HELLO, response=True)
                else:
                    await client.write_gatt_char(RX_UUID, HELLO, response=False)
                    with pytest.raises(BleakError, match=r"(?i)encryption"):
                        await client.write_gatt_char(RX_UUID, HELLO, response=True)
            assert applied == []


async def test_an_unproven_key_is_not_enough_where_a_code_is_required(tmp_path):
    """bumble calls every encrypted link authenticated; the mock asks the key."""
    async with opened(tmp_path) as place:
        await place.pair()
        (keys,) = place.mock.security.keys._bonds.values()
        keys.ltk.authenticated = False
        assert await place.refused() is RadioReason.NOT_PAIRED


# ------------------------------------------------------------------ bonds


@pytest.mark.requirement("I4-bond-kept")
async def test_a_bond_survives_both_sides_being_switched_off(tmp_path):
    async with opened(tmp_path) as place:
        await place.pair()
        await place.ear.wait("paired")
        for side in (place.radio, place.mock):
            await side.close()
        await place.glasses_on()
        await place.radio_on()
        place.person = None
        assert await place.connects(), "encrypted, and nobody was asked"


@pytest.mark.requirement("I4-bond-lost")
async def test_a_bond_forgotten_by_the_glasses_needs_pairing_again(tmp_path):
    async with opened(tmp_path) as place:
        await place.pair()
        await place.mock.security.forget()
        assert await place.refused() is RadioReason.BOND_LOST
        assert await unpair(place.radio, place.mock.address)
        person = Person(place)
        person.asked.append("passkey")
        assert (await place.pair(person)).proved
        assert await place.connects()


async def test_a_bond_forgotten_here_needs_pairing_again(tmp_path):
    async with opened(tmp_path) as place:
        await place.pair()
        assert await unpair(place.radio, place.mock.address.lower())
        assert await unpair(place.radio, place.mock.address) is False
        assert await place.refused() is RadioReason.NOT_PAIRED
        person = Person(place)
        person.asked.append("passkey")
        assert (await place.pair(person)).proved, "a central they know may prove itself anew"


async def test_who_is_forgotten_while_connected_is_asked_at_the_next_visit(tmp_path):
    async with opened(tmp_path) as place:
        await place.pair()
        transport = await connect(place.radio, await place.sighting(), timeout_s=DEADLINE_S)
        await place.mock.security.forget()
        await transport.write(HELLO)
        async with asyncio.timeout(DEADLINE_S):
            assert await anext(transport.packets())
        await transport.close()
        assert await place.refused() is RadioReason.BOND_LOST


def test_keys_are_private_and_a_damaged_file_is_put_aside(tmp_path, caplog):
    path = tmp_path / "keys.json"
    keys = KeyFile(path, at_once=True)
    asyncio.run(
        keys.update(
            "F0:00:00:00:00:01", PairingKeys(ltk=PairingKeys.Key(bytes(16), authenticated=True))
        )
    )
    assert path.stat().st_mode & 0o777 == 0o600
    again = KeyFile(path)
    assert (again.address, again.irk) == (keys.address, keys.irk)
    assert again.known("F0:00:00:00:00:01").ltk.authenticated
    for damaged in (
        b"{",
        b"[]",
        b"\xff",
        b'{"version": 2}',
        path.read_bytes()[:-40],
        b" " * (256 * 1024 + 1),
        b"[" * 100_000,
    ):
        path.write_bytes(damaged)
        caplog.clear()
        fresh = KeyFile(path)
        assert not fresh.bonded
        assert "put aside" in caplog.text
        assert not path.exists()


async def test_a_key_that_is_forgotten_while_it_is_still_written_stays_forgotten(
    tmp_path, monkeypatch
):
    write, first, may_go_on = bumble_keys.write_atomic, threading.Event(), threading.Event()

    def slow(path, content):
        if not first.is_set():
            first.set()
            may_go_on.wait(10)
        write(path, content)

    monkeypatch.setattr(bumble_keys, "write_atomic", slow)
    keys = KeyFile(tmp_path / "keys.json")
    pairing = asyncio.ensure_future(
        keys.update("F0:00:00:00:00:01", PairingKeys(ltk=PairingKeys.Key(bytes(16))))
    )
    await asyncio.to_thread(first.wait, 10)
    pairing.cancel()
    forgetting = asyncio.ensure_future(keys.delete("F0:00:00:00:00:01"))
    await asyncio.wait([forgetting], timeout=0.1)
    may_go_on.set()
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.wait([pairing, forgetting])
    assert forgetting.exception() is None
    assert not KeyFile(tmp_path / "keys.json").bonded
    assert [file.name for file in tmp_path.iterdir()] == ["keys.json"]


def test_a_mock_is_paired_as_its_model_unless_it_is_said():
    assert way_of(find("mock:display"), None) == (PairingWay.PASSKEY, False)
    assert way_of(find("mock:audio"), None) == (PairingWay.JUST_WORKS, False)
    assert way_of(find("mock:audio"), "just-works") == (PairingWay.JUST_WORKS, True)
    assert way_of(find("mock:full"), "none") == (PairingWay.NONE, False)
    with pytest.raises(ValueError, match="no lens"):
        way_of(find("mock:audio"), "passkey")
    with pytest.raises(ValueError, match="are known"):
        way_of(find("mock:full"), "magic")


def test_a_code_is_drawn_from_the_whole_range_but_zero():
    keys, bounds = KeyFile(), []
    security = Security(
        PairingWay.PASSKEY,
        required=True,
        keys=keys,
        show=lambda *_: None,
        clock=lambda: 0.0,
        below=lambda n: bounds.append(n) or 0,
    )
    assert security.passkey() == 1
    assert bounds == [999_999]


@pytest.mark.parametrize(
    ("model", "way"), [("mock:display", "passkey"), ("mock:audio", "just_works")]
)
async def test_outside_a_window_nobody_is_asked_and_nothing_is_paired(tmp_path, model, way):
    async with opened(tmp_path, model, way) as place:
        person = Person(place)
        async with place.radio.bonding.asking(place.mock.address, Witness(person)):
            pass
        async with BleakClient(
            (await place.sighting()).device, backend=place.radio.client, timeout=DEADLINE_S
        ) as client:
            async with asyncio.timeout(DEADLINE_S):
                with pytest.raises(BleakError, match=r"PASSKEY_ENTRY_FAILED|CONFIRM_VALUE_FAILED"):
                    await client.pair()
        assert person.asked == []
        assert not place.mock.security.keys.bonded


async def test_a_failed_attempt_does_not_swallow_the_next_on_the_same_link(tmp_path):
    """bumble keeps a failed session, and the next request on that link would wait for ever."""
    async with opened(tmp_path) as place:
        typed = iter([lambda code: code ^ 1, lambda code: code])

        class Twice(Person):
            async def passkey(self):
                self.types = next(typed)
                return await super().passkey()

        witness = Witness(Twice(place))
        async with (
            place.radio.bonding.asking(place.mock.address, witness),
            BleakClient(
                (await place.sighting()).device, backend=place.radio.client, timeout=DEADLINE_S
            ) as client,
        ):
            with pytest.raises(BleakError, match="CONFIRM_VALUE_FAILED"):
                await client.pair()
            await place.ear.wait("pairing.failed")
            async with asyncio.timeout(DEADLINE_S):
                await client.pair()
        assert (await place.ear.wait("paired"))["how"] == "passkey"
