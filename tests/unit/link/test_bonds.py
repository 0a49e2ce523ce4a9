"""bonds.json: what is kept, what is put aside, and whom the link may connect to because of it."""

import asyncio
import json
import threading
from types import MappingProxyType

import pytest

from edge.core.pairing_state import STEPS, Bond, IllegalPairingStep, PairingState as S, check
from edge.link import bonds as edge_bonds
from edge.link.bonds import MAX_BONDS, Bonds, DamagedBonds, allowed, encoded, parsed


def bond(number=1, **more):
    address = f"F0:00:00:00:00:{number:02X}"
    kept = {
        "id": address,
        "model": "mock:display",
        "name": "MOCK-DSP",
        "addresses": MappingProxyType({"": address}),
        "how": "passkey",
        "paired_at": 1.5,
    }
    return Bond(**{**kept, **more})


PAIR = bond(
    id="G1_45",
    model="even_g1",
    addresses=MappingProxyType({"left": "F0:00:00:00:00:0A", "right": "F0:00:00:00:00:0B"}),
)


def loaded(path):
    bonds = Bonds(path)
    bonds.load()
    return bonds


@pytest.mark.requirement("I4-bonds-file")
async def test_a_bond_is_on_disk_private_and_found_again(tmp_path):
    path = tmp_path / "new" / "bonds.json"
    bonds = loaded(path)
    assert (bonds.all(), bonds.put_aside) == ((), "")
    await bonds.add(bond())
    await bonds.add(PAIR)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    again = loaded(path)
    assert again.all() == (bond(), PAIR)
    assert again.find("f0:00:00:00:00:0b") == again.find("g1_45") == PAIR
    assert again.find("F0:00:00:00:00:99") is None
    assert again.addresses() == {"F0:00:00:00:00:01", "F0:00:00:00:00:0A", "F0:00:00:00:00:0B"}
    assert [p.name for p in path.parent.iterdir()] == ["bonds.json"]


async def test_pairing_again_replaces_whatever_shares_an_address(tmp_path):
    bonds = loaded(tmp_path / "bonds.json")
    await bonds.add(bond())
    await bonds.add(PAIR)
    await bonds.add(
        bond(id="F0:00:00:00:00:0B", addresses=MappingProxyType({"": "F0:00:00:00:00:0b"}))
    )
    assert [b.id for b in bonds.all()] == ["F0:00:00:00:00:01", "F0:00:00:00:00:0B"]
    await bonds.remove("F0:00:00:00:00:01")
    await bonds.remove("nobody")
    assert [b.id for b in loaded(tmp_path / "bonds.json").all()] == ["F0:00:00:00:00:0B"]


async def test_glasses_of_a_long_name_are_ours_after_a_restart_too(tmp_path):
    bonds = loaded(tmp_path / "bonds.json")
    await bonds.add(bond(name="ä" * 248))
    again = loaded(tmp_path / "bonds.json")
    assert (again.put_aside, again.all()) == ("", bonds.all())


async def test_the_oldest_goes_when_there_are_too_many(tmp_path):
    bonds = loaded(tmp_path / "bonds.json")
    for number in range(MAX_BONDS + 1):
        await bonds.add(bond(number))
    assert len(bonds.all()) == len(loaded(tmp_path / "bonds.json").all()) == MAX_BONDS
    assert bonds.all()[0].id.endswith(":01")


async def test_changes_at_the_same_time_lose_nothing(tmp_path):
    bonds = loaded(tmp_path / "bonds.json")
    await asyncio.gather(*(bonds.add(bond(number)) for number in range(8)))
    assert {b.id for b in loaded(tmp_path / "bonds.json").all()} == {
        bond(number).id for number in range(8)
    }


async def test_a_bond_that_cannot_be_written_is_none(tmp_path):
    (tmp_path / "file").write_text("")
    bonds = Bonds(tmp_path / "file" / "bonds.json")
    with pytest.raises(OSError, match="file"):
        await bonds.add(bond())
    assert bonds.all() == ()


GOOD = json.loads(encoded([bond()]))


def spoiled(**more):
    return json.dumps({**GOOD, "bonds": [{**GOOD["bonds"][0], **more}]}).encode()


@pytest.mark.requirement("I4-bonds-file")
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        encoded([bond()])[:-9],
        b'{"version": 2, "bonds": []}',
        b'{"version": 1}',
        b"[" * 100_000,
        json.dumps({"version": 1, "bonds": [1]}).encode(),
        json.dumps({"version": 1, "bonds": GOOD["bonds"] * 40}).encode(),
        spoiled(id=5),
        spoiled(name="x" * 65),
        spoiled(how=None),
        spoiled(addresses=[]),
        spoiled(addresses={}),
        spoiled(addresses={"": 1}),
        spoiled(addresses={"a": "b", "c": "d", "e": "f"}),
        spoiled(paired_at="now"),
        spoiled(paired_at=True),
        encoded([bond()]) + b" " * 65536,
    ],
    ids=range(20),
)
async def test_a_damaged_file_is_moved_aside_until_the_next_pairing(tmp_path, caplog, raw):
    with pytest.raises(DamagedBonds):
        parsed(raw)
    path = tmp_path / "bonds.json"
    path.write_bytes(raw)
    bonds = loaded(path)
    assert bonds.all() == ()
    assert "bonds.json was damaged" in bonds.put_aside
    assert "glassd up" in bonds.put_aside
    assert "damaged" in caplog.text
    assert (tmp_path / "bonds.json.bad-1").read_bytes() == raw
    path.write_bytes(raw)
    assert loaded(path).put_aside.count("bad-2") == 1
    await bonds.add(bond())
    assert bonds.put_aside == ""


def test_an_unreadable_file_is_reported_and_not_changed(tmp_path):
    path = tmp_path / "bonds.json"
    path.mkdir()
    assert "cannot be read" in loaded(path).put_aside
    assert path.is_dir()


@pytest.mark.requirement("I4-only-ours")
@pytest.mark.parametrize(
    ("connect", "radio", "address", "before", "after"),
    [
        ("auto", "bluez", "", frozenset(), frozenset({"F0:00:00:00:00:01"})),
        ("auto", "usb:0", "", frozenset(), frozenset({"F0:00:00:00:00:01"})),
        ("auto", "tcp:h:1", "", None, frozenset({"F0:00:00:00:00:01"})),
        ("auto", "inproc", "", None, frozenset({"F0:00:00:00:00:01"})),
        ("paired", "inproc", "", frozenset(), frozenset({"F0:00:00:00:00:01"})),
        ("any", "bluez", "", None, None),
        ("any", "inproc", "", None, None),
        ("auto", "bluez", "F0:00:00:00:00:09", None, None),
    ],
)
async def test_whom_the_link_may_connect_to(tmp_path, connect, radio, address, before, after):
    bonds = loaded(tmp_path / "bonds.json")
    ours = allowed(bonds, connect=connect, radio=radio, address=address)
    assert ours() == before
    await bonds.add(bond())
    assert ours() == after


def test_the_table_of_a_window():
    assert set(STEPS) == set(S)
    assert check(S.SCANNING, S.CHOSEN) is S.CHOSEN
    for old, new in [
        (S.IDLE, S.PAIRED),
        (S.SCANNING, S.PAIRED),
        (S.CHOSEN, S.ASKING),
        (S.FAILED, S.PAIRED),
        (S.ASKING, S.PAIRED),
        (S.PAIRED, S.FAILED),
    ]:
        with pytest.raises(IllegalPairingStep):
            check(old, new)


@pytest.mark.requirement("I4-bonds-file")
async def test_a_cancelled_change_is_written_before_the_next(tmp_path, monkeypatch):
    bonds = loaded(tmp_path / "bonds.json")
    writing, may_go_on, at_work = threading.Event(), threading.Event(), []

    def slow(path, content):
        at_work.append(content)
        assert len(at_work) == 1, "two threads write one file"
        writing.set()
        may_go_on.wait(10)
        write(path, content)
        at_work.clear()

    write = edge_bonds._write
    monkeypatch.setattr(edge_bonds, "_write", slow)
    called_off = asyncio.ensure_future(bonds.add(bond(1)))
    await asyncio.to_thread(writing.wait, 10)
    called_off.cancel()
    second = asyncio.ensure_future(bonds.add(bond(2)))
    await asyncio.sleep(0.02)
    may_go_on.set()
    await asyncio.wait([called_off, second])
    assert called_off.cancelled()
    assert second.exception() is None
    assert bonds.all() == loaded(tmp_path / "bonds.json").all() == (bond(1), bond(2))
