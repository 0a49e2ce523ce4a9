"""The storm: carries a plan out. Starts the daemon, lets callers call and faults happen, kills it,
and starts it again.

One state directory for all lives, never wiped: what one daemon was killed over, the next must bring
to its end.
"""

import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.chaos import schedule, smallfs
from tests.chaos.callers import BrokeOff, Callers, NotThere, request, tool_and_args
from tests.chaos.cast import Cast, until
from tests.chaos.proxy import ORDERS
from tests.chaos.records import Record, lines
from tests.chaos.schedule import Call, Fault, Life

DAY_S = 86400.0
LOOK_EVERY_S = 0.5
AIM_S = 2.5
"""How long a killer that waits for a running call waits longer than planned."""
INVOKE_TTL_S = 30.0
RESTARTS = 20
FULL_LATELY_S = 10.0
"""A daemon that ends by itself may do so only while the disk is full, or was when it began."""


class Storm:
    """`run` carries the plan out and drains; what happened is in the records in `folder`."""

    def __init__(
        self,
        folder: Path,
        *,
        drain_s: float = 180.0,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.small = smallfs.mount(self.state)
        self.cast = Cast(folder, self.state)
        self.record = Record(folder / "storm.jsonl")
        self.callers = Callers(self.cast.socket, Record(folder / "callers.jsonl"))
        self._drain_s = drain_s
        self._say = say
        self._repairs = threading.Lock()
        self._disk = threading.Lock()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.kills = self.running_kills = self.own_ends = 0
        self.met: Counter[str] = Counter()
        self._full_at = float("-inf")
        self.confirms = False

    def run(self, lives: list[Life]) -> None:
        """All lives, then quiet until everything is answered (or the drain's time is over)."""
        try:
            self.cast.start()
            self.cast.start_daemon()
            self.cast.await_daemon()
            self.cast.await_ready()
            self.confirms = self._asks_for_confirmation()
            self._beside(self._keep_looking)
            for life in lives:
                self.live(life)
            self.drain()
        finally:
            self._over.set()
            self.callers.over.set()
            for thread in self._threads:  # a broker being restarted must not be left behind
                thread.join(30)
            self.cast.close()
            self.callers.join()
            self.record.close()
            self.callers.record.close()
            self._keep_state()

    # -------------------------------------------------------------- one life

    def live(self, life: Life) -> None:
        if not self.cast.children["daemon"].alive:
            self.cast.start_daemon()
        if life.aim != schedule.STARTING:
            self._await_daemon()
        began = time.monotonic()
        self._beside(self._play, life, began)
        if life.aim == schedule.STARTING:
            time.sleep(life.jitter_s * 6)  # somewhere between exec and the first answers
        else:
            time.sleep(max(0.0, began + life.up_s - 0.02 - time.monotonic()))
        if life.aim == schedule.RUNNING:
            self._aim(life)
        running = self._running()
        if life.aim == schedule.RANDOM:
            time.sleep(max(0.0, min(0.1, began + life.up_s + life.jitter_s / 4 - time.monotonic())))
        self.cast.kill_daemon()
        self.kills += 1
        self.running_kills += bool(running)
        self.record.say(ev="killed", life=life.number, aim=life.aim, running=running)
        if self.kills % 20 == 0:
            self._say(
                f"{self.kills} kills, {self.running_kills} while RUNNING, "
                f"{len(self.callers.open)} calls open"
            )

    def _await_daemon(self) -> None:
        """Until it answers; one that cannot start on a full disk ends with a clear error, and
        systemd starts it again.
        """
        for _ in range(RESTARTS):
            try:
                self.cast.await_daemon()
            except RuntimeError as e:
                if not self._disk.locked() and time.monotonic() - self._full_at > FULL_LATELY_S:
                    raise
                self.record.say(ev="ended_by_itself", why=str(e)[-200:])
                self.own_ends += 1
                time.sleep(0.5)
                self.cast.start_daemon()
            else:
                return
        raise TimeoutError("the daemon does not stay up")

    def _aim(self, life: Life) -> None:
        """Wait until a call is being worked on, then a moment longer."""
        end = time.monotonic() + AIM_S
        while time.monotonic() < end:
            if self._running():
                time.sleep(life.jitter_s)
                if self._running():
                    return
            time.sleep(0.01)

    def _running(self) -> list[str]:
        """What is running by the mini-app's word, else by the daemon's."""
        with suppress(OSError):
            if found := self.cast.running():
                return found
        with suppress(NotThere, BrokeOff):
            rows = request(self.cast.socket, "GET", "/v1/calls?pending=1&limit=50", timeout_s=1)[
                1
            ].get("calls", [])
            return [row["call_id"] for row in rows if row["state"] == "RUNNING"]
        return []

    def _play(self, life: Life, began: float) -> None:
        """Calls and faults at their moments."""
        events: list[tuple[float, Call | Fault]] = [(c.at_s, c) for c in life.calls] + [
            (f.at_s, f) for f in life.faults
        ]
        for at_s, event in sorted(events, key=lambda pair: pair[0]):
            if self._over.wait(max(0.0, began + at_s - time.monotonic())):
                return
            if isinstance(event, Fault):
                self._beside(self._hurt, event)
            else:
                self._begin(event)

    def _begin(self, call: Call) -> None:
        if not call.kind.endswith("_invoked"):
            self.callers.begin(call)
            return
        tool, args = tool_and_args(call)
        call_id = str(uuid.uuid5(uuid.NAMESPACE_OID, call.token))
        self.callers.record.say(ev="invoke", token=call.token, kind=call.kind, id=call_id)
        self.cast.invoke(id=call_id, tool=tool, args=args, ttl_s=INVOKE_TTL_S)

    # -------------------------------------------------------------- faults

    def _hurt(self, fault: Fault) -> None:
        try:
            if fault.kind in ORDERS:
                self.cast.network(do=fault.kind, lasts_s=fault.lasts_s, share=fault.share)
                return  # counted by the network when it really happens
            done = getattr(self, f"_{fault.kind}")(fault)
        except (OSError, RuntimeError, TimeoutError) as e:
            self.record.say(ev="fault_failed", fault=fault.kind, why=str(e))
            return
        if done is not False:
            self.met[fault.kind] += 1
            self.record.say(ev="fault", fault=fault.kind)

    def _broker_restart(self, fault: Fault, *, wiped: bool = False) -> None:
        with self._repairs:
            self.cast.end_broker(wiped=wiped, hard=fault.share > 0.5)
            time.sleep(fault.lasts_s)
            self.cast.start_broker()

    def _broker_wiped(self, fault: Fault) -> None:
        self._broker_restart(fault, wiped=True)

    def _worker_kill(self, fault: Fault) -> None:
        with self._repairs:
            self.cast.children["cloud"].kill9()
            time.sleep(fault.lasts_s / 3)
            self.cast.start_cloud()

    def _clock_forward(self, _fault: Fault) -> None:
        self.cast.step_clock(DAY_S)

    def _clock_back(self, _fault: Fault) -> None:
        self.cast.step_clock(-DAY_S)

    def _disk_full(self, fault: Fault) -> bool:
        if not self.small:
            return False
        with self._disk:
            smallfs.fill(self.state, fault.lasts_s, greedy=fault.share > 0.5)
            self._full_at = time.monotonic()
        return True

    def _glasses_drop(self, _fault: Fault) -> None:
        self.cast.wearer(do="drop")

    def _glasses_off(self, fault: Fault) -> None:
        self.cast.children["tap"].tell(f"off {fault.lasts_s}")

    def _mid_confirmation(self, fault: Fault) -> bool:
        """The glasses are lost while they ask: just after the wearer allowed it, or before, and
        a tap when they are back.
        """
        if not self.confirms:
            return False
        self.callers.begin(Call(0.0, f"S{uuid.uuid4().hex[:8]}", "sign", fault.share))
        time.sleep(fault.lasts_s / 3)
        if fault.share > 0.5:
            self.cast.wearer(do="tap")
        self.cast.wearer(do="drop")
        time.sleep(fault.lasts_s)
        self.cast.wearer(do="double_tap" if fault.share < 0.2 else "tap")
        return True

    def _asks_for_confirmation(self) -> bool:
        """Does a tool with `requiresConfirmation` wait for a yes? Otherwise there is no
        confirmation to lose.
        """
        tool, args = tool_and_args(Call(0.0, "S-probe", "sign", 0.0))
        try:
            answer = self.cast.control(
                "POST", "/v1/call", {"tool": tool, "args": args, "wait": False}, timeout_s=3.0
            )
        except (NotThere, BrokeOff):
            return False
        return bool((answer.get("error") or {}).get("code") == "CONFIRMATION_REQUIRED")

    # -------------------------------------------------------------- the end

    def drain(self) -> None:
        """No more harm; everybody back on stage; wait until every promise is kept."""
        self.cast.network(do="calm")
        with self._repairs, self._disk:
            self.cast.step_clock(0.0)
        self.cast.start_daemon()
        self.cast.await_daemon()
        self.cast.await_ready()
        with suppress(TimeoutError):
            until(self._quiet, "every call is answered", within_s=self._drain_s, every_s=0.3)
        self.callers.over.set()
        self.callers.look_up(most=10_000)
        self.callers.look_up(most=10_000)
        self._say("drained")

    def _quiet(self) -> bool:
        left = self.cast.children["witness"].ask('{"do": "open"}')["open"]
        return not (self.callers.busy() or self.callers.open or left or self.cast.running())

    def _keep_looking(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self.callers.look_up()

    def _keep_state(self) -> None:
        """What the daemon left, for whoever looks into a verdict; a mounted state goes with its
        namespace.
        """
        kept = self.folder / "state-at-the-end"
        if self.state.exists():
            shutil.copytree(
                self.state,
                kept,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("lost+found", "*.ballast"),
            )

    @property
    def notes(self) -> Path:
        return self.folder / "state-at-the-end" / "packages" / "notes.db"

    def faults(self) -> dict[str, int]:
        """By kind, as they really happened."""
        met = Counter(self.met)
        met.update(line["fault"] for line in lines(self.folder / "network.jsonl"))
        return dict(sorted(met.items()))

    def _beside(self, work: Callable[..., Any], *args: Any) -> threading.Thread:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads = [t for t in self._threads if t.is_alive()]
        self._threads.append(thread)
        thread.start()
        return thread
