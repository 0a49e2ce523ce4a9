"""A state directory that glassd wrote at commit aa8f91a, before its modules were moved and renamed,
is read by this one, with everything there.

`saved_state.tar.xz` is what a daemon left behind when it was killed: paired mock glasses, a note, a
timer, a call that waits for a yes, one that waits for the network, grants, a tool that is disabled,
the registry of a cloud. Its keys are made up.
"""

import json
import os
import struct
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from tests.e2e.processes import CLI, Child

SAVED = Path(__file__).with_name("saved_state.tar.xz")
SAVED_AT = 1795390259.0
"""When the daemon was killed."""
BOOT = "3653f72c-b15d-41eb-bb27-fef78dfedbc8"
"""The machine was not restarted meanwhile: a question does not outlive that."""
CLOUD = "http://127.0.0.1:37895"
"""Where its cloud was; nothing listens there now."""
WAITS_FOR_A_YES = "01a20599-11c0-7e10-8a26-6d2ccad3dcf1"
WAITS_FOR_THE_NETWORK = "01a20599-358d-7cb6-b312-f13f7ad802dd"
ROOT = Path(__file__).parents[2]
OF_THE_CLOUD = 14
"""Tools of the cloud's registry that the state has."""
NOTED = "01a20599-05c8-746b-9ad7-61d91df47626"
SOON_S = 40.0

pytestmark = pytest.mark.enable_socket

CONFIG = """
version = 1
[edge]
id = "saved"
state_dir = "{folder}/state"
[glasses]
radio = "tcp:127.0.0.1:1"
[uplink]
host = "127.0.0.1"
port = 1
tls = false
[cloud]
url = "{cloud}"
[control]
socket = "{folder}/c.sock"
group = ""
"""


class Glassd:
    """The daemon of this tree on the saved state, a few seconds after it was saved."""

    def __init__(self, folder: Path) -> None:
        with tarfile.open(SAVED) as saved:
            for member in filter(tarfile.TarInfo.isfile, saved):
                place = folder / member.name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(saved.extractfile(member).read())
                place.chmod(0o600)
        config = folder / "glassd.toml"
        config.write_text(CONFIG.format(folder=folder, cloud=CLOUD))
        offset = folder / "offset"
        offset.write_bytes(struct.pack("<d", SAVED_AT + 5.0 - time.time()))
        self.socket = folder / "c.sock"
        self.daemon = Child(
            [sys.executable, "-m", "tests.chaos.daemon", str(config), str(offset), BOOT],
            log=folder / "daemon.log",
        )
        ends = time.monotonic() + SOON_S
        while not self.socket.exists():
            assert self.daemon.process.poll() is None, self.daemon.said()
            assert time.monotonic() < ends, self.daemon.said()
            time.sleep(0.05)

    def says(self, *words: str) -> dict:
        done = subprocess.run(
            [*CLI, *words, "--json", "--socket", str(self.socket)],
            check=False,
            capture_output=True,
            text=True,
            timeout=SOON_S,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def glassd(tmp_path_factory):
    found = Glassd(tmp_path_factory.mktemp("saved"))
    yield found
    found.daemon.stop()


def data(answer):
    assert answer["ok"], answer
    return answer["data"]


def test_the_glasses_are_still_paired(glassd):
    status = glassd.says("status")
    assert (status["edge_id"], status["glasses"]["bond"]) == ("saved", "passkey")
    assert status["glasses"]["model"] == "mock:full"
    assert status["alarms"] == {}, "nothing was found damaged or lost"


def test_notes_and_timers_are_there(glassd):
    notes = data(glassd.says("call", "notes:list"))
    assert "buy milk" in json.dumps(notes)
    timers = data(glassd.says("call", "timer:list"))
    assert "bread" in json.dumps(timers)


def test_calls_stand_where_they_stood(glassd):
    calls = {c["call_id"]: c for c in glassd.says("calls")["calls"]}
    assert calls[WAITS_FOR_A_YES]["state"] == "AWAITING_CONFIRMATION"
    assert calls[WAITS_FOR_THE_NETWORK]["state"] == "PENDING"
    assert calls[NOTED]["state"] == "DELIVERED"
    assert glassd.says("status")["outbox"]["waiting"] == 1, glassd.says("status")


def test_a_key_that_was_used_gives_its_stored_answer(glassd):
    again = glassd.says("call", "notes:add", "text=buy milk", "--key", "k1")
    assert again["meta"]["_idempotent_cache_hit"] is True, again
    assert again["meta"]["callId"] == NOTED
    assert data(again) == {"id": 1, "text": "Noted: buy milk"}


def test_grants_and_switches_still_hold(glassd):
    grants = {g["tool"]: g["grant"] for g in glassd.says("grants")["grants"]}
    assert grants == {"calendar:create_event": "always", "glasses:ask": "never"}
    tools = {t["name"]: t for t in glassd.says("tools", "--all")["tools"]}
    assert "disabled" in json.dumps(tools["com.example.weather:forecast"])


def test_the_registry_of_the_cloud_serves_without_the_cloud(glassd):
    built_in = json.loads((ROOT / "tools_cache" / "tool_registry.json").read_text())["tools"]
    assert glassd.says("status")["registry"]["tools"] == len(built_in) + OF_THE_CLOUD
    tools = {t["name"] for t in glassd.says("tools")["tools"]}
    assert "com.example.calc:evaluate" in tools


def test_the_open_question_can_still_be_called_off(glassd):
    glassd.says("cancel", WAITS_FOR_A_YES)
    story = glassd.says("calls", WAITS_FOR_A_YES)
    assert story["state"] == "CANCELLED", story
