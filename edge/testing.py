"""Mock glasses and a daemon that wears them, for the tests of app developers. What the pytest
fixture `glassd_mock` gives.

Two processes on a virtual radio: the mock is a real Bluetooth peripheral, the daemon the one that
users run. Everything here blocks, with a deadline, so that plain tests need no event loop.
"""

import base64
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from edge.control.client import ControlClient
from edge.demo.mock_pair import CONFIG, DEFAULT_MODEL
from edge.demo.processes import SIMULATED, glassd, without_settings
from edge.runtime.control_api import list_tools
from edge.runtime.errors import UserError
from edge.runtime.paths import SOCKET_NAME, owner_beside
from edge.runtime.subprocesses import bound_to_us

START_S: Final = 60.0
"""Each process: a busy Raspberry Pi needs several seconds to import a Bluetooth stack."""
STOP_S: Final = 10.0
WAIT_S: Final = 20.0
CALL_S: Final = 120.0
"""Longest answer waited for: a call lives 40 s, and its longest text takes as long to say."""
LOOK_S: Final = 0.03
READ_S: Final = 1.0
"""Before each answer: glasses take none before the wearer can have read, or heard, what is
asked.
"""
SPEAK_S: Final = 3.0
"""How long a question may take until it is heard."""
DECIDE_S: Final = 60.0
"""A question with all its particulars takes half a minute to be spoken."""
MAX_SOCKET_PATH: Final = 107
"""Bytes of a path that a unix socket can have on Linux."""
CALLERS: Final = 16

T = TypeVar("T")


class MockFailed(Exception):
    """Mock or daemon did not start, or answered with an error; the text says what, and what to
    do.
    """


class MockControl:
    """The mock's own control channel (`glassd sim --control`): the wearer's acts, faults, what
    was drawn and played.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def do(self, verb: str, **words: Any) -> dict[str, Any]:
        """Do one step of a script, for example `do("tap")`, `do("drop:left@2s")` or `do("caps",
        set={"camera": False})`.

        Raises `MockFailed` for a step that there is not.
        """
        with socket.socket(socket.AF_UNIX) as wire:
            wire.settimeout(WAIT_S)
            wire.connect(str(self.path))
            wire.sendall(json.dumps({"do": verb, **words}).encode() + b"\n")
            with wire.makefile("rb") as answers:
                answer: dict[str, Any] = json.loads(answers.readline())
        if not answer.get("ok"):
            raise MockFailed(str(answer.get("error")))
        return answer

    def lens(self) -> dict[str, Any]:
        """Describe what the mock decoded from the air and drew: lines, page of pages, pixels
        lit, the PNG.
        """
        return self.do("lens")

    def speaker(self) -> dict[str, Any]:
        """Describe the last sound: seconds, samples, the WAV."""
        return self.do("speaker")


class WornGlasses:
    """One mock and the daemon that wears it. `close()` ends both; the fixture does that."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self.model = model
        self.socket = folder / SOCKET_NAME
        self.mock = MockControl(folder / "mock.sock")
        self._client = ControlClient((owner_beside(self.socket),))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._callers = ThreadPoolExecutor(CALLERS, thread_name_prefix="glassd-call")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -------------------------------------------------------------- what the wearer sees and does

    @property
    def lens(self) -> list[str]:
        """Lines on the lens now, as the mock decoded them from the air."""
        return [str(line) for line in self.mock.lens()["lines"] if line]

    def wait_for_lens(self, *texts: str, within_s: float = WAIT_S) -> list[str]:
        """Wait until all these texts are on the lens, and return its lines. Raises
        AssertionError at the deadline.
        """
        return self.wait_for(
            lambda: self._lens_with(texts),
            within_s=within_s,
            what=lambda: f"{' and '.join(map(repr, texts))} on the lens; it shows {self.lens}",
        )

    def _lens_with(self, texts: tuple[str, ...]) -> list[str]:
        lines = self.lens
        shown = " ".join(lines)
        return lines if all(text in shown for text in texts) else []

    def tap(self) -> None:
        """Tap the temple: the next page, or an answer."""
        self.mock.do("tap")

    def say(self, text: str) -> None:
        """Speak. Where the glasses recognise no speech, the daemon is given the words, as
        another recogniser would.
        """
        if not self.mock.do("say", text=text)["noticed"]:
            self._callers.submit(self._ask, "POST", "/v1/say", {"text": text})

    def hear(self, sound: "str | os.PathLike[str] | bytes" = b"", *, say: str = "") -> float:
        """Play sound to the microphone: a WAV file, its bytes, or samples (16 kHz, mono, 16 bits);
        or a text in the machine's own voice (extra `voice`). Return the seconds until it is over.

        It waits up to 10 s until the microphone is open. Raises `MockFailed`.
        """
        if say:
            sound = self._callers.submit(_speak, say).result()
        if isinstance(sound, bytes):
            data = base64.b64encode(sound).decode()
            answer = self.mock.do("hear", data=data, name=say or "sound")
        else:
            answer = self.mock.do("hear", path=str(Path(sound).resolve()))
        return float(answer["over_in"])

    def confirm(self, *, within_s: float = DECIDE_S) -> None:
        """Answer yes on the glasses: wait for the question, then tap (or press) through its
        pages until it is decided.
        """
        self._decide("tap", "button", within_s)

    def deny(self, *, within_s: float = DECIDE_S) -> None:
        """Answer no on the glasses: wait for the question, then double tap (or press long)."""
        self._decide("double_tap", "button_long", within_s)

    def _decide(self, on_lens: str, on_button: str, within_s: float) -> None:
        end = time.monotonic() + within_s
        asked = self.wait_for(self._asked, within_s=within_s, what="a question to the wearer")
        has_lens = self.mock.do("status")["capabilities"].get("display")
        gesture = on_lens if has_lens else on_button
        while True:
            if not has_lens and self._wait(SPEAK_S, self._speaking):
                self._wait(
                    end - time.monotonic(), lambda: not self._wait(READ_S, self._speaking)
                )  # to its end
            if self._wait(READ_S, lambda: not asked & self._asked()):
                return
            if time.monotonic() > end:
                raise AssertionError(
                    f"not decided by {gesture} within {within_s:g} s; the lens shows {self.lens}"
                )
            self.mock.do(gesture)

    def _speaking(self) -> bool:
        return bool(self.mock.speaker()["playing"])

    def _wait(self, seconds: float, condition: Callable[[], Any]) -> bool:
        """Wait until it is true, but not longer than this; return whether it is."""
        end = time.monotonic() + seconds
        while not (true := bool(condition())) and time.monotonic() < end:
            time.sleep(LOOK_S)
        return true

    def _asked(self) -> set[str]:
        """Calls whose question the wearer has not answered."""
        calls = self._ask("GET", "/v1/calls?pending=1")["calls"]
        return {str(call["call_id"]) for call in calls if call["state"] == "AWAITING_CONFIRMATION"}

    # -------------------------------------------------------------- what an app does

    def call(
        self, tool: str, args: Mapping[str, Any] | None = None, /, **more: Any
    ) -> dict[str, Any]:
        """Call a tool through the whole pipeline and return its envelope: `call("notes:add",
        text="milk")`.
        """
        return dict(
            self._ask(
                "POST",
                "/v1/call",
                {"tool": tool, "args": {**(args or {}), **more}, "wait": "answer"},
                CALL_S,
            )
        )

    def start_call(
        self, tool: str, args: Mapping[str, Any] | None = None, /, **more: Any
    ) -> "Future[dict[str, Any]]":
        """Call a tool in the background, for one that asks the wearer; `result(timeout)` of
        what this returns is the envelope.
        """
        return self._callers.submit(self.call, tool, args, **more)

    def tools(self) -> list[str]:
        """Names of the tools that can be called with these glasses now."""
        return [str(tool["name"]) for tool in self._tools() if not tool.get("hidden")]

    def hidden_tools(self) -> dict[str, str]:
        """Tools that cannot be called now, each with its reason."""
        return {tool["name"]: str(tool["hidden"]) for tool in self._tools() if tool.get("hidden")}

    def _tools(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = list_tools(partial(self._ask, "GET"), {"all": "1"})["tools"]
        return listed

    def status(self) -> dict[str, Any]:
        """The document of `glassd status --json`."""
        return dict(self._ask("GET", "/v1/status"))

    @property
    def env(self) -> dict[str, str]:
        """Environment in which `glassd VERB` talks to this daemon."""
        return {
            **without_settings(os.environ),
            "GLASSD_SOCKET": str(self.socket),
            "GLASSD_CONFIG": str(self.folder / "glassd.toml"),
        }

    def wait_for(
        self, condition: Callable[[], T], *, what: str | Callable[[], str], within_s: float = WAIT_S
    ) -> T:
        """Wait until `condition()` is true, and return it. Raises AssertionError, with `what`,
        at the deadline.
        """
        end = time.monotonic() + within_s
        while not (value := condition()):
            if time.monotonic() > end:
                raise AssertionError(
                    f"not within {within_s:g} s: {what() if callable(what) else what}"
                )
            time.sleep(LOOK_S)
        return value

    def _ask(self, method: str, path: str, body: Any = None, timeout_s: float = WAIT_S) -> Any:
        try:
            return self._client.request(method, path, body, timeout_s=timeout_s)[1]
        except UserError as e:
            raise MockFailed(f"{e.message}. {e.fix}".rstrip(". ")) from None

    # -------------------------------------------------------------- start and end

    def start(self, config: str, tools: str) -> None:
        """Start the mock, then the daemon, and wait until the glasses are ready. Raises
        `MockFailed`.
        """
        radio = self._announced(
            self._spawn(
                "mock",
                "sim",
                self.model,
                "--radio",
                "tcp:127.0.0.1:0",
                "--control",
                str(self.mock.path),
                "--out",
                str(self.folder),
                "--json",
            )
        )["radio"]
        if tools:
            (self.folder / "tools.d").mkdir()
            (self.folder / "tools.d" / "test.toml").write_text(tools, encoding="utf-8")
        file = self.folder / "glassd.toml"
        model = self.model.removeprefix(SIMULATED)
        own = CONFIG.format(
            state=self.folder / "state", radio=radio, model=model, socket=self.socket
        )
        file.write_text(f"{own}\n{config}\n", encoding="utf-8")
        daemon = self._spawn("daemon", "run", "--config", str(file))
        end = time.monotonic() + START_S
        while self._state() != "ready":
            if daemon.poll() is not None or time.monotonic() > end:
                raise MockFailed(f"the daemon does not wear {self.model}: {self._log('daemon')}")
            time.sleep(LOOK_S)

    def _state(self) -> str:
        try:
            return str(self._client.request("GET", "/v1/status")[1]["glasses"]["state"])
        except UserError:
            return ""

    def _spawn(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                bound_to_us(glassd(*words), by=signal.SIGTERM),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if name == "mock" else log,
                stderr=log,
                env={**without_settings(os.environ), "NO_COLOR": "1"},
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def _announced(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """Read the line that a mock prints once it is on the air."""
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_S)
        line = process.stdout.readline() if ready else b""
        try:
            facts: dict[str, Any] = json.loads(line)
        except ValueError:
            raise MockFailed(f"{self.model} did not start: {self._log('mock')}") from None
        if isinstance(error := facts.get("error"), dict):
            raise MockFailed(f"{error.get('message')}; {error.get('fix') or ''}".rstrip("; "))
        return facts

    def _log(self, name: str) -> str:
        text = (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip()
        return text[-1500:] or "it printed nothing"

    def close(self) -> None:
        """End the daemon, then the mock, and remove their folder. Idempotent."""
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_S)
            if process.stdout is not None:
                process.stdout.close()
        self._processes.clear()
        self._callers.shutdown(cancel_futures=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def wear(model: str = DEFAULT_MODEL, *, config: str = "", tools: str = "") -> WornGlasses:
    """Start mock glasses of `model` and a daemon that wears them; `close()` them, or use `with`.
    Raises `MockFailed`.

    `config` is more of `glassd.toml`; `tools` is the text of a file of own tools, as in `tools.d`.
    """
    worn = WornGlasses(_folder(), model)
    try:
        worn.start(config, tools)
    except BaseException:
        worn.close()
        raise
    return worn


def _speak(text: str) -> bytes:
    from edge.demo.speech import NoSpeech, speak  # noqa: PLC0415 - a voice is only for `say`

    try:
        return speak(text)
    except NoSpeech as e:
        raise MockFailed(f"{e}; {e.fix}".rstrip("; ")) from None


def _folder() -> Path:
    """A new folder whose path leaves room for a socket's name."""
    folder = tempfile.mkdtemp(prefix="glassd-test-")
    if len(os.fsencode(folder)) + len("/control.sock") > MAX_SOCKET_PATH:
        Path(folder).rmdir()
        folder = tempfile.mkdtemp(prefix="glassd-test-", dir="/tmp")
    return Path(folder)
