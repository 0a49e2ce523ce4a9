"""What `glassd record` makes of the stream: a real control server, a link that a test plays."""

import asyncio
import errno
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from edge.commands.shared import packet_recorder
from edge.commands.shared.packet_recorder import PacketRecorder, check_file, save
from edge.ports import TapTaken
from edge.runtime.errors import UserError
from firmware_bridge.catalog import find
from firmware_bridge.driver import Passing
from firmware_bridge.recording import files
from firmware_bridge.recording.make import RecordingMaker
from tests.unit.control.house import DEADLINE_S, open_house
from tests.unit.control.test_packets import Link

pytestmark = pytest.mark.enable_socket
BOND = {"id": "G1_47", "name": "Even G1_47", "addresses": {"left": "AA:BB:CC:00:11:22"}}
PAIRING = SimpleNamespace(describe=lambda: {"bonds": [BOND]})
CONNECTED = (find("mock:full"), SimpleNamespace(max_packet=244, address="F0:5A:00:11:22:33"))


def house(tmp_path, link):
    return open_house(tmp_path, packets=link.tapped, pairing=PAIRING)


def recorder_of(house):
    return PacketRecorder(SimpleNamespace(socket=str(house.path)))


async def test_names_and_addresses_of_the_bond_and_the_link_are_replaced(tmp_path):
    link = Link()
    async with asyncio.timeout(DEADLINE_S), house(tmp_path, link) as where:
        recorder = recorder_of(where)
        await asyncio.to_thread(recorder.start)
        await link.listened.wait()
        link.tap(1.0, Passing.CONNECTED, CONNECTED)
        link.tap(1.1, Passing.IN, b"\x01Even G1_47\xaa\xbb\xcc\x00\x11\x22\xf0\x5a\x00\x11\x22\x33")
        await asyncio.to_thread(recorder.connect)
        while not recorder.maker.packets:
            await asyncio.to_thread(recorder.collect, 0.1)
        recorder.stop()
    assert link.reconnects == [True]
    [packet] = [line for line in recorder.maker.recording().lines if line.is_packet]
    assert packet.content == b"\x01XXXX X0_00" + bytes(12)


async def test_glasses_that_do_not_connect_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(packet_recorder, "CONNECT_S", 0.3)
    async with asyncio.timeout(DEADLINE_S), house(tmp_path, Link()) as where:
        recorder = recorder_of(where)
        await asyncio.to_thread(recorder.start)
        with pytest.raises(UserError, match="no glasses connected") as refused:
            await asyncio.to_thread(recorder.connect)
        recorder.stop()
    assert refused.value.exit_code == 4


async def test_a_second_recording_is_refused_with_the_reason(tmp_path):
    async with asyncio.timeout(DEADLINE_S), house(tmp_path, Link(TapTaken("taken"))) as where:
        recorder = recorder_of(where)
        await asyncio.to_thread(recorder.start)
        with pytest.raises(UserError, match="taken") as refused:
            await asyncio.to_thread(recorder.connect)
    assert (refused.value.code, refused.value.fix) == ("CONFLICT", "end the other recording first")


async def test_a_daemon_that_ends_leaves_what_was_recorded(tmp_path):
    link = Link()
    async with asyncio.timeout(DEADLINE_S), house(tmp_path, link) as where:
        recorder = recorder_of(where)
        await asyncio.to_thread(recorder.start)
        await link.listened.wait()
        link.tap(1.0, Passing.CONNECTED, CONNECTED)
        await asyncio.to_thread(recorder.connect)
    await asyncio.to_thread(recorder.collect, DEADLINE_S)
    assert recorder.ended
    assert recorder.maker.recording() is not None


# ------------------------------------------------------------------ where it is written


def arguments(path):
    return SimpleNamespace(file=str(path), yes=True)


def full_disk(*folders):
    """Return `write_atomic` for a machine on which these folders take nothing."""

    def write(path, recording):
        if path.parent in folders:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        files.write(path, recording)

    return write


class Said:
    """A screen that remembers."""

    def __init__(self):
        self.lines = ()

    def result(self, _facts, *lines):
        self.lines = lines
        return 0


def recorded():
    maker = RecordingMaker()
    event = {"event": "connected", "at": 1.0, "session": 244, "names": []}
    maker.add({**event, "model": "mock:full", "mtu": 247, "glassd": "1"})
    return SimpleNamespace(maker=maker, ended="")


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_folder_that_takes_no_file_is_refused_before_anything_is_recorded(tmp_path, folder):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="no folder"):
        check_file(arguments(tmp_path / folder / "new.jsonl"))


@pytest.mark.parametrize(("code", "why"), [(errno.ENOSPC, "no space"), (errno.EROFS, "read-only")])
def test_a_folder_without_room_is_refused_before_anything_is_recorded(
    tmp_path, monkeypatch, code, why
):
    def refuse(**_options):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(packet_recorder.tempfile, "TemporaryFile", refuse)
    with pytest.raises(UserError, match=why) as refused:
        check_file(arguments(tmp_path / "new.jsonl"))
    assert refused.value.fix == "name a file in another folder"


def test_a_full_disk_is_noticed_before_anything_is_recorded(tmp_path, monkeypatch):
    open_full = partial(Path("/dev/full").open, "wb")
    monkeypatch.setattr(packet_recorder.tempfile, "TemporaryFile", lambda **_where: open_full())
    with pytest.raises(UserError, match="no space left"):
        check_file(arguments(tmp_path / "new.jsonl"))


def test_where_there_is_room_nothing_is_left_behind(tmp_path):
    assert check_file(arguments(tmp_path / "new.jsonl")) == tmp_path / "new.jsonl"
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_cannot_be_written_there_is_written_elsewhere(tmp_path, monkeypatch):
    there, spare = tmp_path / "there", tmp_path / "spare"
    there.mkdir()
    spare.mkdir()
    monkeypatch.setattr(packet_recorder, "write", full_disk(there))
    monkeypatch.setattr(packet_recorder.tempfile, "tempdir", str(spare))
    screen = Said()
    save(recorded(), there / "new.jsonl", screen, sound=False, photos=False)
    [found] = spare.rglob("new.jsonl")
    assert screen.lines[0].startswith(f"{found}: ")
    assert "it is not where you wanted it" in screen.lines[1]
    assert "no space left" in screen.lines[1]
    assert files.read(found).header.model == "mock:full"


def test_a_file_that_came_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    spare = tmp_path / "spare"
    spare.mkdir()
    monkeypatch.setattr(packet_recorder.tempfile, "tempdir", str(spare))
    path, screen = tmp_path / "new.jsonl", Said()
    path.write_text("mine")
    save(recorded(), path, screen, sound=False, photos=False)
    assert path.read_text() == "mine"
    assert "there is such a file by now" in screen.lines[1]


def test_a_recording_that_can_be_written_nowhere_is_an_error(tmp_path, monkeypatch):
    def refuse(path, _recording):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(packet_recorder, "write", refuse)
    monkeypatch.setattr(packet_recorder.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(UserError, match=r"no space left.*; and .*no space left"):
        save(recorded(), tmp_path / "new.jsonl", Said(), sound=False, photos=False)
