"""Daemons without glasses that are killed and restarted on the same state, their cloud, the network
between them, and a call that a kill interrupts.
"""

import json
import random
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.chaos import cast
from tests.chaos.callers import BrokeOff, NotThere, is_pending, request
from tests.chaos.cast import until
from tests.chaos.records import lines
from tests.e2e.broker import HOST
from tests.e2e.processes import CLI, Child

SEED = 15
AGAIN_S = 0.05
FINAL_S = 30.0


def kill_moments(part: str, rounds: int, latest_s: float) -> list[float]:
    """Return when each round's kill comes, early ones first: one in each slice of the time, so that
    some come before, some during, and some after the work on slow and on fast machines.
    """
    chance = random.Random(f"{SEED} {part}")
    return [(number + chance.random()) * latest_s / rounds for number in range(rounds)]


class Place:
    """One daemon process without glasses, which is killed and restarted on the same state."""

    def __init__(self, folder: Path, name: str, sections: str) -> None:
        folder.mkdir()
        self.folder, self.name, self.sections = folder, name, sections
        self.socket = folder / "control.sock"
        self.kills = 0
        self.child: Child | None = None

    def start(self, cloud: dict[str, Any] | None = None) -> None:
        """Start the process, and wait until it answers; with a cloud, until it is connected."""
        config = self.folder / "glassd.toml"
        config.write_text(self._settings(cloud), encoding="utf-8")
        env = {"GLASSD_SOCKET": str(self.socket), "NO_COLOR": "1"}
        argv = [*CLI, "run", "--config", str(config)]
        self.child = Child(argv, log=self.folder / "daemon.log", env=env)
        until(self.status, f"{self.name} answers: {self.child.said()}", every_s=AGAIN_S)

    def await_cloud(self) -> None:
        def connected() -> bool:
            found = self.status()
            return bool(found) and (found["uplink"]["state"], found["registry"]["origin"]) == (
                "up",
                "cloud",
            )

        until(connected, f"{self.name} is connected", every_s=AGAIN_S)

    def _settings(self, cloud: dict[str, Any] | None) -> str:
        uplink = ""
        if cloud is not None:
            host, _, port = cloud["mqtt"].rpartition(":")
            uplink = f"""
[uplink]
host = "{host}"
port = {port}
tls = false
reconnect_max_s = 1.0
[cloud]
url = "{cloud["http"]}"
"""
        return f"""
version = 1
[edge]
id = "{self.name}"
state_dir = "{self.folder / "state"}"
[glasses]
radio = "inproc"
connect = "paired"
[audio]
speech = "off"
[control]
socket = "{self.socket}"
group = ""
{uplink}{self.sections}"""

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill9()
        self.kills += 1

    def stop(self) -> None:
        if self.child is not None:
            self.child.stop()

    def status(self) -> dict[str, Any]:
        with suppress(NotThere, BrokeOff):
            return request(self.socket, "GET", "/v1/status", timeout_s=10)[1]
        return {}

    def allow(self, tool: str) -> None:
        """The owner says once that this tool need not ask any more; it holds over the kills."""
        order = {"tool": tool, "grant": "always"}
        status, answer = request(self.socket.with_name("owner.sock"), "PUT", "/v1/grants", order)
        assert status == 200, answer

    def ask(
        self, tool: str, args: dict[str, Any], key: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Ask once. Raises NotThere, BrokeOff."""
        body = {"tool": tool, "args": args, **({"idempotency_key": key} if key else {}), **more}
        status, answer = request(self.socket, "POST", "/v1/call", body)
        assert status == 200, (status, answer)
        return answer

    def ask_until_final(self, tool: str, args: dict[str, Any], key: str) -> dict[str, Any]:
        """Ask with the same key until the answer says what became of the call."""
        end = time.monotonic() + FINAL_S
        while not is_final(answer := self.ask(tool, args, key)):
            assert answer["ok"] or answer["error"]["retryable"], answer
            assert time.monotonic() < end, answer
            time.sleep(AGAIN_S)
        return answer

    def promise(self, tool: str, args: dict[str, Any], key: str) -> str:
        """Have a call accepted, without waiting for its answer; return its id."""
        body = {"tool": tool, "args": args, "idempotency_key": key, "wait": False}
        status, answer = request(self.socket, "POST", "/v1/call", body)
        assert status == 202, (status, answer)
        return answer["call_id"]

    def outcome(self, call_id: str) -> dict[str, Any]:
        """Return the answer of a call that was accepted, which nobody asks for again."""
        path = f"/v1/calls/{call_id}?wait={FINAL_S:.0f}"
        status, found = request(self.socket, "GET", path)
        assert (status, bool(found.get("response"))) == (200, True), (status, found)
        return found["response"]

    def children_ended(self) -> bool:
        """Whether no process is left that the daemon, or one that was killed, started."""
        return not self.processes()

    def processes(self) -> list[str]:
        """Return the command line of each process of this place, the daemon's too."""
        mark, found = f"GLASSD_SOCKET={self.socket}".encode(), []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_text(encoding="utf-8"))
        return found


class Call:
    """One call that the kill interrupts. With `promised` it was accepted before, and nobody asks
    again; else its caller waits for the answer, and asks again with the same key.
    """

    def __init__(
        self, place: Place, tool: str, args: dict[str, Any], key: str, *, promised: bool
    ) -> None:
        self._place, self._asked = place, (tool, args, key)
        self.early: dict[str, Any] | None = None
        """The answer that came before the kill."""
        self._call_id = place.promise(*self._asked) if promised else ""
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        if not promised:
            self._waiter.start()

    def _wait(self) -> None:
        with suppress(NotThere, BrokeOff):
            self.early = self._place.ask(*self._asked)

    def await_answer(self) -> None:
        """Wait for the answer of the daemon that is not killed yet."""
        if self._call_id:
            self.early = self._place.outcome(self._call_id)
        else:
            self._waiter.join(FINAL_S)
        assert self.early is not None, "no answer in time"

    def broken_off(self) -> bool:
        """Whether a caller waited in vain."""
        if self._call_id:
            return False
        self._waiter.join(10)
        return self.early is None

    def final(self) -> dict[str, Any]:
        """Return what the daemon that was restarted says."""
        if self._call_id:
            return self._place.outcome(self._call_id)
        return self._place.ask_until_final(*self._asked)


def is_unknown(answer: dict[str, Any]) -> bool:
    return answer["ok"] is False and answer["error"].get("partialSideEffects") is True


def is_not_sent(answer: dict[str, Any]) -> bool:
    """Whether the answer says in words that nothing was sent."""
    return (
        answer["ok"] is False
        and not is_unknown(answer)
        and ("nothing was sent" in answer["error"]["message"].lower())
    )


def is_final(answer: dict[str, Any]) -> bool:
    done = answer["ok"] is True and not is_pending(answer)
    return done or is_unknown(answer) or is_not_sent(answer)


class Cloud:
    """The small cloud, which can be away and comes back on the same state and HTTP port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.state = folder / "cloud"
        self.where: dict[str, Any] = {}
        self._child: Child | None = None

    def start(self) -> None:
        http = self.where["http"].rpartition("/")[2] if self.where else f"{HOST}:0"
        self._child = Child(
            [*CLI, "devcloud", "--http", http, "--state", str(self.state), "--json"],
            log=self._folder / "cloud.log",
            announces=True,
        )
        self.where = self._child.announcement

    def kill(self) -> None:
        assert self._child is not None
        self._child.kill9()
        self._child = None

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None


class Network:
    """The way of one place to the cloud, on which messages of one kind can be lost."""

    def __init__(self, folder: Path, name: str) -> None:
        self._record = folder / f"network-{name}.jsonl"
        self._child = cast.Child(
            [sys.executable, "-m", "tests.chaos.proxy", "0", str(self._record)],
            folder / f"network-{name}.log",
            announces=True,
        )

    def to(self, cloud: Cloud) -> dict[str, Any]:
        """Lead to this cloud as it is now; return where the place finds it."""
        self._order(do="aim", port=cloud.where["mqtt_port"])
        self._order(do="calm")
        return {**cloud.where, "mqtt": f"{HOST}:{self._child.announcement['port']}"}

    def lose(self, way: str, kind: str) -> None:
        """Lose all messages of this kind from now on; `way` is up or down."""
        self._order(do=f"lose_{way}", kind=kind)

    @property
    def lost(self) -> int:
        return sum(line["fault"].startswith("lose_") for line in lines(self._record))

    def _order(self, **order: Any) -> None:
        self._child.tell(json.dumps(order))

    def stop(self) -> None:
        self._child.stop()
