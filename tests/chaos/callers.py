"""Who asks: callers on the control socket, each writing down what it was told, and a clerk who
looks every call up again.

Knows the control API's paths and nothing of the daemon's insides. Standard library only.
"""

import http.client
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

from tests.chaos.miniapp import PACKAGE
from tests.chaos.records import Record
from tests.chaos.schedule import Call

PATIENCE_S = 60.0
"""A caller with a key asks for this long; the storm's drain is longer."""
PAUSE_S = 0.5
TOOLS = {
    "mark": f"{PACKAGE}:mark",
    "note": f"{PACKAGE}:note",
    "look": f"{PACKAGE}:look",
    "say": f"{PACKAGE}:look",
    "sign": f"{PACKAGE}:sign",
    "jot": "notes:add",
    "show": "glasses:show_text",
}


class NotThere(Exception):
    """Nobody listens on the socket: nothing was asked."""


class BrokeOff(Exception):
    """The question left, no whole answer came: nobody can know whether it was taken."""


def request(
    path: Path, method: str, where: str, body: Any = None, *, timeout_s: float = 75.0
) -> tuple[int, Any]:
    """One exchange over the control socket. Raises NotThere, BrokeOff."""
    wire = socket.socket(socket.AF_UNIX)
    wire.settimeout(timeout_s)
    try:
        wire.connect(str(path))
    except OSError as e:
        wire.close()
        raise NotThere(str(e)) from None
    connection = http.client.HTTPConnection("control")
    connection.sock = wire
    try:
        connection.request(
            method,
            where,
            None if body is None else json.dumps(body),
            {"Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as e:
        raise BrokeOff(f"{type(e).__name__}: {e}") from None
    finally:
        connection.close()


def tool_and_args(call: Call) -> tuple[str, dict[str, Any]]:
    base = call.kind.split("_")[0]
    if base == "jot":
        return TOOLS[base], {"text": call.token}
    if base == "show":
        return TOOLS[base], {"text": f"show {call.token}", "duration_s": 2}
    return TOOLS[base], {
        "token": call.token,
        "delay": call.delay_s,
        **({"sound": True} if base == "say" else {}),
    }


class Callers:
    """Carries calls out, each in a thread of its own; `accepted` are the ids somebody was
    promised an answer for.
    """

    def __init__(self, path: Path, record: Record) -> None:
        self._path = path
        self.record = record
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.open: dict[str, str] = {}
        """Accepted and not yet answered: call id → token."""
        self.again: dict[str, str] = {}
        """Answered once; looked at once more in a later life."""
        self.over = threading.Event()

    def begin(self, call: Call) -> None:
        work = threading.Thread(target=self._ask, args=(call,), daemon=True)
        self._threads = [t for t in self._threads if t.is_alive()]
        self._threads.append(work)
        work.start()

    def busy(self) -> int:
        return sum(t.is_alive() for t in self._threads)

    def join(self) -> None:
        """Wait for callers that were told that it is over, and whose daemon has ended."""
        for thread in self._threads:
            thread.join(10)

    # -------------------------------------------------------------- one caller

    def _ask(self, call: Call) -> None:
        tool, args = tool_and_args(call)
        body: dict[str, Any] = {"tool": tool, "args": args, "ttl_s": 40}
        if call.kind in ("mark", "note", "jot"):
            body["wait"] = False
        if call.key:
            body["idempotency_key"] = call.key
        self.record.say(ev="asked", token=call.token, kind=call.kind, key=call.key)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and not self.over.is_set():
            again_s = self._once(call, body)
            if again_s is None:
                return
            self.over.wait(again_s)
        self.record.say(ev="gave_up", token=call.token)

    def _once(self, call: Call, body: dict[str, Any]) -> float | None:
        """Ask once: None when there is nothing more to do, else the pause before asking again."""
        try:
            status, answer = request(self._path, "POST", "/v1/call", body)
        except NotThere:
            return 0.05
        except BrokeOff as e:
            self.record.say(ev="broken", token=call.token, why=str(e))
            return 0.1 if call.key else None
        return self._told(call, status, answer)

    def _told(self, call: Call, status: int, answer: dict[str, Any]) -> float | None:
        if status == 202:
            self.promise(answer["call_id"], call.token)
            return None
        if status != 200:
            self.record.say(ev="refused", token=call.token, status=status, answer=answer)
            return PAUSE_S if call.key else None
        call_id = str(answer.get("meta", {}).get("callId", ""))
        if is_pending(answer):
            self.promise(str(answer["data"].get("pendingToolCallId", call_id)), call.token)
            return PAUSE_S if call.key else None
        self.record.say(ev="answer", token=call.token, id=call_id, by="call", body=answer)
        error = answer.get("error")
        if call.key and error and error.get("retryable") and not error.get("partialSideEffects"):
            return PAUSE_S
        return None

    def promise(self, call_id: str, token: str) -> None:
        with self._lock:
            self.open.setdefault(call_id, token)
        self.record.say(ev="accepted", token=token, id=call_id)

    # -------------------------------------------------------------- the clerk

    def look_up(self, *, most: int = 400) -> int:
        """Ask the daemon what became of every promise, and of what was answered before; how
        many are still open.
        """
        with self._lock:
            asked = list(self.open.items())[:most]
            again, self.again = self.again, {}
        try:
            for call_id, token in asked:
                self._look_at(call_id, token, first=True)
            for call_id, token in again.items():
                self._look_at(call_id, token, first=False)
        except (NotThere, BrokeOff):
            pass  # it was killed meanwhile; next time
        with self._lock:
            return len(self.open)

    def _look_at(self, call_id: str, token: str, *, first: bool) -> None:
        status, row = request(self._path, "GET", f"/v1/calls/{call_id}", timeout_s=10)
        if status == 404 and first:
            self.record.say(ev="unknown", token=token, id=call_id)
            return
        body = row.get("response") if status == 200 else None
        if body is None:
            return
        self.record.say(
            ev="answer", token=token, id=call_id, by="look", state=row.get("state"), body=body
        )
        with self._lock:
            self.open.pop(call_id, None)
            if first:
                self.again[call_id] = token


def is_pending(answer: dict[str, Any]) -> bool:
    data = answer.get("data")
    return answer.get("ok") is True and isinstance(data, dict) and data.get("status") == "pending"
