"""The power goes: what the disk held at that instant is all that is left, and everything
acknowledged before is in it.

The daemon lives on a loop image. It is stopped dead at a random instant, the image is copied as the
"disk" holds it (what the kernel had not written yet is lost), and another daemon, on another boot,
starts from the copy.
"""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest

from tests.chaos.callers import BrokeOff, NotThere, request
from tests.chaos.cast import Cast, until
from tests.chaos.miniapp import PACKAGE
from tests.chaos.records import lines
from tests.system import needs

CUTS = int(os.environ.get("POWER_CUTS", "2"))
SIZE = 24 << 20


def _allowed() -> str:
    """Why this machine cannot cut the power; empty when it can."""
    if os.geteuid() != 0:
        return "only root may mount a loop image"
    if not (shutil.which("mkfs.ext4") and shutil.which("losetup")):
        return "mkfs.ext4 and losetup are needed"
    found = subprocess.run(["losetup", "-f"], capture_output=True, check=False)
    return "" if found.returncode == 0 else "there are no loop devices"


pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.mosquitto,
    needs("mosquitto"),
    pytest.mark.skipif(bool(_allowed()), reason=f"no power to cut: {_allowed()}"),
]


@contextmanager
def mounted(image: Path, folder: Path):
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-o", "loop", str(image), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"no power to cut: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class Load:
    """Callers that never stop; what each was promised, in the order of promises."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(n,)) for n in range(3)]
        self.accepted: dict[str, str] = {}
        self.noted: list[str] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(20)

    def _work(self, worker: int) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            token = f"P{os.getpid()}-{id(self):x}-{worker}-{number}"
            try:
                if number % 2:
                    body = {"tool": f"{PACKAGE}:mark", "args": {"token": token}, "wait": False}
                    status, answer = request(self._socket, "POST", "/v1/call", body, timeout_s=5)
                    if status == 202:
                        self.accepted[answer["call_id"]] = token
                else:
                    _, answer = request(
                        self._socket,
                        "POST",
                        "/v1/call",
                        {"tool": "notes:add", "args": {"text": token}},
                        timeout_s=5,
                    )
                    if answer.get("ok"):
                        self.noted.append(token)
            except (NotThere, BrokeOff):
                self._over.wait(0.02)


def _copy(image: Path, copy: Path) -> None:
    """The image as it is: copied until two copies in a row are the same, so that no write tears
    one.
    """
    before = b""
    for _ in range(20):
        now = image.read_bytes()
        if now == before:
            copy.write_bytes(now)
            return
        before = now
    raise AssertionError("the image does not come to rest")


@pytest.mark.requirement("K3-power")
@pytest.mark.parametrize("cut", range(CUTS))
def test_everything_acknowledged_before_the_power_went_is_there_after(tmp_path, cut):
    image, copy, state, second = (tmp_path / name for name in ("disk", "copy", "state", "second"))
    with image.open("wb") as file:
        file.truncate(SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-J", "size=4", str(image)], check=True)
    before = Cast(tmp_path, state, glasses=False)
    try:
        with mounted(image, state):
            before.start()
            load = _until_the_power_goes(before, image, copy, random.Random(cut).uniform(0.4, 2.0))
        with mounted(copy, second):
            _judge(before, second, load, tmp_path)
    finally:
        before.close()


def _until_the_power_goes(cast: Cast, image: Path, copy: Path, after_s: float) -> Load:
    """Calls pile up while the broker is away; in the middle of it nothing moves any more."""
    cast.start_daemon()
    cast.await_daemon()
    cast.await_ready()
    cast.end_broker(wiped=False, hard=True)
    until(lambda: cast.status()["uplink"]["state"] == "down", "the uplink is known to be down")
    with Load(cast.socket) as load:
        time.sleep(after_s)
        until(lambda: len(load.accepted) > 10 and load.noted, "there is something to lose")
        os.kill(cast.children["daemon"].process.pid, signal.SIGSTOP)
        _copy(image, copy)
        cast.kill_daemon()
    return load


def _judge(cast: Cast, state: Path, load: Load, folder: Path) -> None:
    """Another boot, the copied disk, the broker back: every promise is known and kept, and kept
    once.
    """
    cast.boot = "0f0f0f0f-0000-4000-8000-000000000001"
    cast.move_state(state)
    cast.start_daemon()
    cast.await_daemon()
    forgotten = [
        token
        for call_id, token in load.accepted.items()
        if request(cast.socket, "GET", f"/v1/calls/{call_id}")[0] != 200
    ]
    assert not forgotten, (
        f"{len(forgotten)} of {len(load.accepted)} acknowledged calls are gone: {forgotten[:5]}"
    )
    assert "database" not in cast.status()["alarms"]
    cast.start_broker()
    open_calls = list(load.accepted)

    def answered() -> bool:
        while open_calls:
            row = request(cast.socket, "GET", f"/v1/calls/{open_calls[-1]}")[1]
            if row["response"] is None:
                return False  # one that is open is enough to wait
            assert row["response"]["ok"], row["response"]
            open_calls.pop()
        return True

    until(answered, "every acknowledged call is answered", within_s=90, every_s=0.3)
    cast.children["daemon"].stop()
    done = [line["token"] for line in lines(folder / "effects.jsonl") if line["ev"] == "effect"]
    assert len(done) == len(set(done)), "nothing was done twice"
    assert set(load.accepted.values()) <= set(done)
    with sqlite3.connect(f"file:{state / 'packages' / 'notes.db'}?mode=ro", uri=True) as db:
        noted = [row[0] for row in db.execute("SELECT text FROM notes")]
    db.close()
    assert set(load.noted) <= set(noted), "an answered note is gone"
    assert len(noted) == len(set(noted))
