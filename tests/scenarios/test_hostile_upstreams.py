"""A whole daemon with an upstream server that dies, hangs, babbles and lies: one clear envelope
each, nothing else harmed.

Everything is a process of its own, as it ships: `glassd run`, its upstream child, and three servers
over stdio.
"""

import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from edge.control.client import ControlClient
from edge.runtime.errors import UserError
from tests.e2e.processes import CLI, Child
from tools_cache.api.tool import ErrorType

pytestmark = pytest.mark.timeout(120)

SOON_S = 40.0
HERE = Path(__file__).with_name("hostile_server.py")
GROWTH_KIB = 6 * 1024
"""What the daemon may grow by while it hears of an answer of 10 MB, libraries that it loads at
the first call included.
"""
SERVER = """
[[mcp.servers]]
id = "{name}"
command = "{python}"
args = ["{script}"]
allowed_tools = ["*"]
trusted = true
confirm = "never"
timeout_s = {timeout_s}
"""


class House:
    """A daemon with servers of the same kind: `hostile` and `impatient` (it has a second)
    misbehave, `steady` does not.
    """

    def __init__(self, folder):
        config, self.socket = folder / "glassd.toml", folder / "control.sock"
        text = (
            'version = 1\n[edge]\nid = "hostile"\nstate_dir = '
            f'"{folder / "state"}"\n[glasses]\nradio = "inproc"\n'
        )
        text += f'[control]\nsocket = "{self.socket}"\ngroup = ""\n'
        for name, timeout_s in (("hostile", 30.0), ("impatient", 1.0), ("steady", 30.0)):
            text += SERVER.format(
                name=name, python=sys.executable, script=HERE, timeout_s=timeout_s
            )
        config.write_text(text)
        self.child = Child([*CLI, "run", "--config", str(config)], log=folder / "daemon.log")
        self.client = ControlClient((self.socket,))

    def call(self, tool, **more):
        """Call a tool of either server; the envelope."""
        return self.client.request(
            "POST", "/v1/call", {"tool": tool, "args": {}, **more}, timeout_s=SOON_S
        )[1]

    def until_running(self, call_id):
        """Wait until a call is with its server."""
        end = time.monotonic() + SOON_S
        while time.monotonic() < end:
            with suppress(UserError):
                if self.client.request("GET", f"/v1/calls/{call_id}")[1]["state"] == "RUNNING":
                    return
            time.sleep(0.02)
        raise AssertionError(f"{call_id} does not run\n{self.child.said()}")

    def until_fine(self, tool):
        """Call until it is answered well; what it said."""
        end, told = time.monotonic() + SOON_S, None
        while time.monotonic() < end:
            try:
                told = self.call(tool)
                if told["ok"]:
                    return told
            except UserError as e:
                told = e.message
            time.sleep(0.05)
        raise AssertionError(f"{tool}: {told}\n{self.child.said()}")

    def peak_kib(self):
        """The most memory the daemon itself ever held."""
        (line,) = (
            line
            for line in Path(f"/proc/{self.child.process.pid}/status").read_text().splitlines()
            if line.startswith("VmHWM")
        )
        return int(line.split()[1])


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("h"))
    try:
        yield house
    finally:
        house.child.stop()


@pytest.fixture
def steady(house):
    """The other server's process before and after: the same."""
    house.until_fine("hostile:fine")
    before = house.until_fine("steady:fine")["data"]
    yield before
    assert house.call("steady:fine")["data"] == before


def refused(envelope):
    """One clear envelope: a type of the closed set, a sentence, and the truth about what may
    have happened.
    """
    assert envelope["ok"] is False
    error = envelope["error"]
    assert error["type"] in set(ErrorType)
    assert 10 < len(error["message"]) < 400
    assert "Traceback" not in error["message"]
    return error


def test_a_server_killed_in_the_middle_of_a_call_is_one_clear_answer_and_serves_again(
    house, steady
):
    error = refused(house.call("hostile:die"))
    assert (error["type"], error.get("partialSideEffects")) == ("TRANSIENT", True)
    house.until_fine("hostile:fine")


def test_a_server_that_hangs_costs_its_own_deadline(house, steady):
    house.until_fine("impatient:fine")
    error = refused(house.call("impatient:hang"))
    assert (error["type"], error["code"]) == ("TRANSIENT", "TIMEOUT")
    house.until_fine("impatient:fine")


def test_while_one_server_is_waited_for_the_other_answers_and_the_call_can_be_called_off(house):
    before = house.until_fine("steady:fine")["data"]
    call_id = str(uuid.uuid4())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(house.call, "steady:hang", call_id=call_id)
        house.until_running(call_id)
        house.until_fine("hostile:fine")
        assert not waiting.done()  # it has 30 s
        house.client.request("POST", f"/v1/calls/{call_id}/cancel", {"reason": "enough"})
        error = refused(waiting.result(SOON_S))
    assert error["code"] == "CANCELLED"
    assert house.call("steady:fine")["data"] == before


def test_a_server_that_sends_10_mb_is_one_clear_answer_and_the_daemon_holds_none_of_it(
    house, steady
):
    before = house.peak_kib()
    error = refused(house.call("hostile:babble"))
    assert "more than" in error["message"]
    assert house.peak_kib() - before < GROWTH_KIB
    house.until_fine("hostile:fine")


@pytest.mark.parametrize("tool", ["hostile:lie", "hostile:mumble"])
def test_a_server_that_lies_is_told_as_its_fault(house, steady, tool):
    refused(house.call(tool))
    house.until_fine("hostile:fine")
