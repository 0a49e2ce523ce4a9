"""Show 2: a thousand calls taken while the broker is away survive a kill -9, and each is
answered once.
"""

import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos import judge
from tests.chaos.callers import Callers, request
from tests.chaos.cast import Cast, until
from tests.chaos.miniapp import PACKAGE
from tests.chaos.records import Record, lines
from tests.system import needs

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.mosquitto,
    needs("mosquitto"),
]
CALLS = 1000
CALLERS = 8


@pytest.fixture
def cast(tmp_path):
    made = Cast(tmp_path, glasses=False)
    try:
        yield made.start()
    finally:
        made.close()


@pytest.mark.requirement("K3-backlog")
def test_a_thousand_queued_calls_survive_a_kill_and_are_answered_once(cast, tmp_path):
    with Record(tmp_path / "callers.jsonl") as record:
        _story(cast, Callers(cast.socket, record))
    _judge(tmp_path)


def _story(cast: Cast, callers: Callers) -> None:
    cast.start_daemon()
    cast.await_daemon()
    cast.await_ready()
    cast.end_broker(wiped=False, hard=False)
    until(lambda: cast.status()["uplink"]["state"] == "down", "the uplink is known to be down")
    told = _admit(cast, callers)
    assert len(callers.open) == CALLS
    waiting = [outbox["waiting"] for outbox in told]
    assert waiting == sorted(waiting), "nothing is delivered while the broker is away"
    assert waiting[-1] > CALLS // 2, "status tells the depth while it grows"
    before = until(
        lambda: (found := cast.status()["outbox"])["waiting"] == CALLS and found,
        "the last that was taken is in the outbox, too",
    )
    cast.kill_daemon()
    cast.start_daemon()
    cast.await_daemon()
    after = until(
        lambda: (found := cast.status().get("outbox", {})).get("waiting") == CALLS and found,
        "the depth after the kill",
    )
    assert after["oldest_s"] >= before["oldest_s"] > 0, "the age goes on over the kill"
    cast.start_broker()
    until(
        lambda: cast.status()["outbox"]["waiting"] == 0,
        "the outbox is drained",
        within_s=150,
        every_s=0.2,
    )
    until(
        lambda: callers.look_up(most=CALLS) == 0, "every call is answered", within_s=60, every_s=0.5
    )


def _admit(cast: Cast, callers: Callers) -> list[dict]:
    """From several callers at once, as fast as they are taken; what `status` said of the outbox
    meanwhile.
    """
    tokens = iter([f"B{n:04d}" for n in range(CALLS)])
    lock = threading.Lock()

    def admit() -> None:
        while True:
            with lock:
                token = next(tokens, None)
            if token is None:
                return
            body = {
                "tool": f"{PACKAGE}:mark",
                "args": {"token": token, "delay": 0.0},
                "wait": False,
            }
            callers.record.say(ev="asked", token=token, kind="mark", key=None)
            status, answer = request(cast.socket, "POST", "/v1/call", body)
            assert status == 202, (token, status, answer)
            callers.promise(answer["call_id"], token)

    threads = [threading.Thread(target=admit) for _ in range(CALLERS)]
    told = []
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        told.append(cast.status()["outbox"])
        time.sleep(0.05)
    return [*told, cast.status()["outbox"]]


def _judge(folder: Path) -> None:
    """By the mini-app's and the witness's records, and by what the callers were told."""
    found = judge.verdict(folder, None)
    assert (found["lost"], found["doubled"], found["untold"]) == (0, 0, 0), found["offences"][:5]
    assert found["answers_by_code"] == {"ok": CALLS}
    done = Counter(
        line["token"] for line in lines(folder / "effects.jsonl") if line["ev"] == "effect"
    )
    assert len(done) == CALLS
    assert set(done.values()) == {1}
    results = {
        line["body"]["id"]
        for line in lines(folder / "cloud.jsonl")
        if line["ev"] == "heard" and line["topic"] == "result" and line["k"] == "result"
    }
    assert len(results) == CALLS, "the witness heard a result for every call"
