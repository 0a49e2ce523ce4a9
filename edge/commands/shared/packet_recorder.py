"""Records what passes between glassd and the glasses, in a thread beside the person's answers."""

import queue
import signal
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, os_problem
from edge.commands.shared.daemon import ask, client
from edge.commands.shared.form import can_ask
from edge.commands.shared.terminal import typed
from edge.runtime.errors import UserError
from firmware_bridge.recording.files import Recording, write
from firmware_bridge.recording.make import RecordingMaker
from firmware_bridge.recording.playback import play_to_central

QUIET_S: Final = 60.0
"""The stream says something every 15 s."""
MAX_QUEUED: Final = 65536
LOOK_S: Final = 0.2
CONNECT_S: Final = 90.0
"""Real glasses take seconds to be found again, and more after they were used by a phone."""
ANSWER_S: Final = 120.0
LEAST_ROOM: Final = 64 * 1024
"""Bytes for which there must be room before it is worth to record; a minute of pages is less."""
PERSONAL: Final = (
    "A recording has every packet between glassd and the glasses. That includes the texts of all "
    "pages, notifications, calendars and notes that are shown, and what the glasses themselves "
    "understood of your words. Hardware addresses, serial numbers, the glasses' names, and names, "
    "passwords and addresses of Wi-Fi networks are replaced."
)


class PacketRecorder:
    """Collects from the daemon until `stop`, the end of the stream, or until it is full."""

    def __init__(self, args: Namespace) -> None:
        self.maker = RecordingMaker()
        self.ended = ""
        """Why it ended by itself."""
        self._args = args
        self._events: queue.Queue[Mapping[str, Any]] = queue.Queue(MAX_QUEUED)
        self._over = threading.Event()
        self._names: list[str] = []
        self._refused: UserError | None = None
        self._thread = threading.Thread(target=self._read, name="packets", daemon=True)

    def start(self) -> None:
        """Begin; the daemon opens a new connection to the glasses for it. Raise `UserError`."""
        bonds = ask(self._args, "GET", "/v1/pairing", who="owner").get("bonds") or ()
        for bond in bonds:
            addresses = (bond.get("addresses") or {}).values()
            self.maker.know(*map(str, (bond.get("id"), bond.get("name"), *addresses)))
        self._thread.start()

    def _read(self) -> None:
        path = "/v1/packets?reconnect=1"
        try:
            for event in client(self._args, "owner").stream("GET", path, quiet_s=QUIET_S):
                if self._over.is_set():
                    return
                self._events.put(event)
        except UserError as error:
            self._refused = error
        finally:
            self._over.set()

    def connect(self) -> None:
        """Wait for the new connection. Raise `UserError` if there is none in time."""
        end = time.monotonic() + CONNECT_S
        while not self.maker.model and not self.ended and time.monotonic() < end:
            self.collect(LOOK_S)
        if not self.maker.model:
            problem = f"no glasses connected within {CONNECT_S:g} s; nothing was recorded"
            raise UserError("NO_GLASSES", problem, "see: glassd status")

    def collect(self, seconds: float) -> None:
        """Collect for so long (0: what is there), or until it ended. Raise `UserError` if it never
        began.
        """
        end = time.monotonic() + seconds
        while not self.ended:
            left = max(0.0, end - time.monotonic())
            try:
                event = self._events.get(block=left > 0, timeout=min(left, LOOK_S))
            except queue.Empty:
                if self._over.is_set():
                    self.ended = str(self._refused or "glassd ended the stream")
                if left == 0:
                    break
                continue
            self._take(event)
        if self._refused is not None and not self.maker.model:
            raise self._refused

    def _take(self, event: Mapping[str, Any]) -> None:
        if event.get("event") == "failed":
            code, text, fix = (str(event.get(key)) for key in ("code", "text", "fix"))
            if not self.maker.model:
                raise UserError(code, text, fix)
            self.ended = text
            return
        self.maker.add(event)
        if self.maker.full:
            self.ended = "the recording is full"

    def stop(self) -> None:
        self._over.set()


@contextmanager
def _handled(handler: Any, *signals: signal.Signals) -> Iterator[None]:
    """Handle these signals so within; elsewhere than in the main thread they are not ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, handler) for each in signals}
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)


def ended_by_all_signals() -> AbstractContextManager[None]:
    """Let a closed terminal and the end of the system end it as Ctrl-C does: it is written."""
    return _handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP)


def agree(args: Namespace, screen: Screen, verb: str) -> None:
    """Have the owner say yes to what is in a recording. Raise `UserError`."""
    if args.yes:
        return
    fix = f"read what is in it (docs/recording.md), then: glassd {verb} --yes {args.file}"
    if not can_ask(screen):
        problem = "a recording has the texts of pages and notifications in it"
        raise UserError("USAGE", problem, fix, exit_code=2)
    screen.note(PERSONAL)
    screen.prompt(f"Record into {args.file}? Type yes, then Enter: ")
    try:
        said = typed(ANSWER_S)
    except TimeoutError:
        said = None
    if (said or "").lower() not in ("y", "yes"):
        raise UserError("CANCELLED", "nothing was recorded", "say yes, or give --yes")


def check_file(args: Namespace) -> Path:
    """Return the file to write. Raise `UserError` if it exists, or its folder does not."""
    path = Path(args.file)
    if path.exists():
        raise UserError("USAGE", f"{args.file} is there already", "name another file", exit_code=2)
    if not path.parent.is_dir():
        problem = f"there is no folder {path.parent}"
        raise UserError("USAGE", problem, "make it, or name another file", exit_code=2)
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(bytes(LEAST_ROOM))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        problem = f"no file can be written to the folder {path.parent}: {why}"
        raise UserError("FAILED", problem, "name a file in another folder") from None
    return path


def _write(path: Path, recording: Recording) -> tuple[Path, str]:
    """Write the file, or one of its name in a new folder for temporary files if that fails: what
    was recorded may not come again. Return where it is, and why not where it should be. Raise
    `UserError`.
    """
    why = f"{path}: there is such a file by now"
    if not path.exists():
        try:
            write(path, recording)
        except OSError as error:
            why = os_problem(error)
        else:
            return path, ""
    try:
        other = Path(tempfile.mkdtemp(prefix="glassd-")) / path.name
        write(other, recording)
    except OSError as error:
        problem = f"{why}; and {os_problem(error)}"
        raise UserError("FAILED", problem, "make room, and record again") from None
    return other, why


def save(recorder: PacketRecorder, path: Path, screen: Screen, *, sound: bool, photos: bool) -> int:
    """Write the recording, and say what is in it. Raise `UserError`."""
    recording = recorder.maker.recording(sound=sound, photos=photos)
    if recording is None:
        problem = "no glasses connected while it was recorded; nothing was written"
        raise UserError("NOT_FOUND", problem, "see: glassd status", exit_code=4)
    with _handled(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        path, instead = _write(path, recording)
    problems = play_to_central(recording).problems
    facts = {
        "file": str(path),
        "model": recorder.maker.model,
        "packets": recorder.maker.packets,
        "ended": recorder.ended,
        "replays": not problems,
        "problems": problems[:10],
    }
    lines = [f"{path}: {recorder.maker.packets} packets of {recorder.maker.model}"]
    lines += [f"it is not where you wanted it: {instead}"] if instead else []
    lines += [f"it ended by itself: {recorder.ended}"] if recorder.ended else []
    lines += [f"glassd does not understand all of it again: {problems[0]}"] if problems else []
    return screen.result(facts, *lines)
