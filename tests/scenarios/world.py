"""A whole daemon in its world: real Bluetooth host stacks on a virtual air, a real broker, the real
small cloud.

Everything above HCI and below the person is what ships; only time on the speaker runs faster.
"""

import asyncio
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from edge.config import tool_options
from edge.config.load import TOOLS, _in_zone, formed
from edge.config.model import Settings, ToolSettings
from edge.daemon.app import Daemon
from edge.devcloud.main import run_devcloud, sample_apps
from edge.devcloud.registry import InstalledApp
from edge.display.open_prompt import PromptWay
from edge.display.prompts import TOO_SOON_S
from edge.ports import Wait
from edge.runtime.bus import Listener
from edge.runtime.clock import Clock
from edge.runtime.events import DaemonEvent, as_json
from edge.runtime.ids import new_call_id
from firmware_bridge.messages import Gesture
from firmware_bridge.sim.air import Air
from firmware_bridge.sim.inproc import Mock, start_mock
from tests.scenarios import mini_app
from tests.scenarios.network import Cable, Onlooker, onlooker
from tools_cache.api.tool import CallOrigin, Mode, ToolCall, ToolResponse


def all_apps() -> list[InstalledApp]:
    """The sample mini-apps, and the stories' own."""
    script = str(Path(mini_app.__file__))
    return [
        *sample_apps(),
        InstalledApp.of_manifest(mini_app.app.manifest(), (sys.executable, script)),
    ]


SOON_S = 40.0
"""Longest wait for something that happens in milliseconds on an idle machine; only a failing
test waits it out.
"""


async def until(
    condition: Callable[[], Any], what: str | Callable[[], str], within_s: float = SOON_S
) -> Any:
    """Wait for a condition that no event tells; polls, because the thing looked at is on the
    other side.
    """
    try:
        async with asyncio.timeout(within_s):
            while not (value := condition()):
                await asyncio.sleep(0.01)
            return value
    except TimeoutError:
        raise AssertionError(
            f"not within {within_s} s: {what if isinstance(what, str) else what()}"
        ) from None


def tool_settings(tables: Mapping[str, Any], *, history: bool) -> ToolSettings:
    """Read the settings of the tools; without any, many packages are off."""
    single, wrong = tool_options.read(
        tables, TOOLS, [], enabled=lambda section: history and section == "history"
    )
    assert wrong == []
    return single


@cache
def _by_themselves(history: bool) -> ToolSettings:
    return tool_settings({}, history=history)


@dataclass
class World:
    """What a story can do and see."""

    folder: Path
    model: str = "mock:display"
    edge_id: str = field(default_factory=lambda: f"edge-{uuid.uuid4().hex[:10]}")
    air: Air = field(default_factory=Air)
    cloud: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    mock: Mock | None = None
    daemon: Daemon | None = None
    cable: Cable | None = None
    clock: Clock | None = None
    """The daemon's; None: the machine's."""
    happened: list[dict[str, Any]] = field(default_factory=list)
    shown: list[dict[str, Any]] = field(default_factory=list)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _daemon: AsyncExitStack = field(default_factory=AsyncExitStack)
    _mark: int = 0
    _listener: Listener | None = None
    _asked: "asyncio.Future[ToolResponse] | None" = None

    # -------------------------------------------------------------- the cast

    async def switch_glasses_on(
        self,
        *,
        speed: float = 8.0,
        mtu: int = 247,
        radio: str = "inproc",
        pairing: str | None = None,
        quirks: Sequence[str] = (),
    ) -> Mock:
        folder = self.folder / "glasses"
        folder.mkdir(exist_ok=True)
        self.mock = await start_mock(
            self.model,
            self.air,
            radio=radio,
            out_dir=folder,
            tell=self.shown.append,
            speed=speed,
            mtu=mtu,
            pairing=pairing,
            quirks=quirks,
        )
        return self.mock

    async def switch_glasses_off(self) -> None:
        if self.mock is not None:
            mock, self.mock = self.mock, None
            await mock.close()

    async def start_cloud(self, broker: str = "embedded", **options: Any) -> dict[str, Any]:
        ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        state = self.folder / "cloud"
        running = asyncio.ensure_future(
            run_devcloud(broker=broker, state_dir=state, announce=ready.set_result, **options)
        )
        self._stack.push_async_callback(_end, running)
        await asyncio.wait({running, ready}, timeout=SOON_S, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        self.cloud = ready.result()
        return self.cloud

    async def lay_cable(self) -> Cable:
        """Put a TCP cable that can be pulled between the daemon (started later) and its broker."""
        self.cable = Cable(int(str(self.cloud["mqtt"]).rpartition(":")[2]))
        await self.cable.plug_in()
        self._stack.push_async_callback(self.cable.pull_out)
        return self.cable

    @asynccontextmanager
    async def onlooker(self) -> AsyncIterator[Onlooker]:
        """A bare MQTT client at the cloud's broker that hears everything about this edge."""
        host, _, port = str(self.cloud["mqtt"]).rpartition(":")
        async with onlooker(host, int(port), self.edge_id) as client:
            yield client

    async def cloud_status(self) -> dict[str, Any]:
        return await self.ask_cloud("GET", "/devcloud/status")

    async def ask_cloud(self, method: str, path: str, body: Any = None) -> Any:
        async with httpx.AsyncClient(
            base_url=self.cloud["http"], timeout=20, trust_env=False
        ) as http:
            return (await http.request(method, path, json=body)).json()

    async def runs(self, call_id: str) -> int | None:
        """How often the cloud really ran a call; None when it never heard of it."""
        recent = (await self.cloud_status())["calls"]["recent"]
        return next((c["runs"] for c in recent if c["id"] == call_id), None)

    async def start_daemon(self, **sections: Mapping[str, Any]) -> Daemon:
        """Start a daemon on this world's state; `sections` overrule keys of the configuration."""
        self.daemon = Daemon(self._settings(sections), {}, air=self.air, clock=self.clock)
        await self.daemon.open(self._daemon)
        self._listener = self._daemon.enter_context(self.daemon.bus.listen())
        hearing = asyncio.ensure_future(self._hear(self._listener))
        self._daemon.push_async_callback(_end, hearing)
        running = asyncio.ensure_future(self.daemon.run())
        self._daemon.push_async_callback(_end, running)
        return self.daemon

    async def stop_daemon(self) -> None:
        await self._daemon.aclose()
        self._daemon = AsyncExitStack()
        self.daemon = self._listener = None

    async def _hear(self, listener: Listener) -> None:
        async for happening in listener:
            assert isinstance(happening, DaemonEvent)
            self.happened.append(as_json(happening))

    def _settings(self, sections: Mapping[str, Mapping[str, Any]]) -> Settings:
        document: dict[str, dict[str, Any]] = {
            "edge": {"id": self.edge_id, "state_dir": str(self.folder / "state")},
            "glasses": {
                "radio": "inproc",
                "model": self.model,
                "backoff_min_s": 0.05,
                "backoff_max_s": 0.2,
                "scan_s": 5.0,
            },
            "control": {"socket": str(self.socket), "group": ""},
            "uplink": {
                "reconnect_min_s": 0.05,
                "reconnect_max_s": 0.2,
                "stable_s": 1.0,
                "tls": False,
            },
        }
        if self.cloud:
            host, _, port = str(self.cloud["mqtt"]).rpartition(":")
            document["uplink"] |= {
                "host": host,
                "port": self.cable.port if self.cable else int(port),
            }
            document["cloud"] = {"url": self.cloud["http"]}
        for name, keys in {**self.sections, **sections}.items():
            document.setdefault(name, {}).update(keys)
        tables = document.pop("tool", None)
        history = document.get("history", {}).get("enabled") is True
        single = tool_settings(tables, history=history) if tables else _by_themselves(history)
        settings = formed(document)
        zoned = _in_zone(single.values, settings.wearer.timezone)
        return replace(settings, tool=replace(single, values=zoned))

    # -------------------------------------------------------------- acts

    async def call(
        self, tool: str, args: Mapping[str, Any] | None = None, **more: Any
    ) -> ToolResponse:
        """One call through the whole pipeline, as the CLI makes it; waits until its delivery is
        final.
        """
        assert self.daemon is not None
        self.mark()
        wait = more.pop("wait", Wait.DELIVERY)
        call = ToolCall(
            call_id=more.pop("call_id", None) or new_call_id(self.daemon.clock.wall()),
            tool=tool,
            args=args or {},
            origin=more.pop("origin", CallOrigin.CLI),
            mode=more.pop("mode", Mode.TEXT),
            **more,
        )
        async with asyncio.timeout(25):
            return await self.daemon.calls.call(call, wait=wait, live=True)

    def start_call(self, tool: str, args: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Begin a call whose answer is looked at later, by `answer()`."""
        assert self._asked is None
        self._asked = asyncio.ensure_future(self.call(tool, args, **more))

    async def answer(self) -> ToolResponse:
        assert self._asked is not None
        asked, self._asked = self._asked, None
        return await asked

    async def wearer_says(self, text: str) -> None:
        assert self.mock is not None
        self.mark()
        self.mock.glasses.say(text)

    def wearer_does(self, gesture: Gesture) -> None:
        assert self.mock is not None
        assert self.mock.glasses.gesture(gesture), "nobody is connected to notice"

    def tap(self) -> None:
        self.wearer_does(Gesture.TAP)

    async def answer_question(self, gesture: Gesture = Gesture.TAP) -> None:
        """Answer what the daemon asks: a gesture for each page, after the time in which none
        counts.
        """
        prompter = self.daemon.stage._prompter
        await until(lambda: prompter.active, "a question")
        async with asyncio.timeout(3 * SOON_S):  # a question is spoken as slowly as people listen
            while prompter.active:
                if self._may_answer():
                    self.mock.glasses.gesture(gesture)
                await asyncio.sleep(0.05)

    async def answer_page(self, gesture: Gesture) -> None:
        """Answer the page of a question that is on the lens now, after the time in which no
        gesture counts.
        """
        await until(self._may_answer, "a page that takes an answer")
        self.wearer_does(gesture)

    def _may_answer(self) -> bool:
        prompter = self.daemon.stage._prompter
        if not prompter.active:
            return False
        asked = prompter._queue[0]
        return (
            asked.way is not PromptWay.NOWHERE
            and self.daemon.clock.boot() - asked.since > TOO_SOON_S
        )

    @property
    def marked(self) -> int:
        return self._mark

    def mark(self) -> None:
        """From here on: `heard` looks only at what comes after the last act, not at what was
        said and is still unread.
        """
        self._mark = len(self.happened) + (len(self._listener._queue) if self._listener else 0)

    # -------------------------------------------------------------- sights

    async def heard(self, event: str, within_s: float = SOON_S, **fields: Any) -> dict[str, Any]:
        """Wait for something on the daemon's bus since the last act."""

        def found() -> dict[str, Any] | None:
            return next(
                (
                    h
                    for h in self.happened[self._mark :]
                    if h["event"] == event and fields.items() <= h.items()
                ),
                None,
            )

        return await until(
            found,
            lambda: (
                f"{event} {fields}; happened: {[h['event'] for h in self.happened[self._mark :]]}"
            ),
            within_s,
        )

    async def ready(self) -> None:
        """Wait until glasses, cloud (if any) and registry are all there."""
        assert self.daemon is not None
        await until(lambda: self.daemon.link.status().ready, "glasses ready")
        if self.cloud:
            await until(lambda: self.daemon.uplink.status().up, "uplink up")
            await until(
                lambda: self.daemon.registry.describe()["origin"] == "cloud",
                "registry from the cloud",
            )
        self.mark()

    @property
    def socket(self) -> Path:
        """Where the control API is; short, because a unix socket's path has 108 bytes."""
        return Path(tempfile.gettempdir()) / f"glassd-{self.edge_id}.sock"

    def spoken(self) -> list[dict[str, Any]]:
        """Everything the speaker played, one entry a stream."""
        return [s for s in self.shown if s["event"] == "speaker"]

    def drawn(self) -> list[dict[str, Any]]:
        """Every page the lens drew, in order (darkness left out)."""
        return [s for s in self.shown if s["event"] == "lens" and s["scene"]]

    def lens(self) -> list[str]:
        """What is on the lens, decoded by the mock from what came over the air."""
        assert self.mock is not None
        return self.mock.glasses.lens.text()

    async def lens_shows(self, *words: str, within_s: float = SOON_S) -> list[str]:
        def there() -> bool:
            text = " ".join(self.lens())
            return all(word in text for word in words)

        await until(there, lambda: f"{words} on the lens; it shows {self.lens()}", within_s)
        return self.lens()

    async def close(self) -> None:
        if self._asked is not None:
            self._asked.cancel()
        await self._daemon.aclose()
        await self.switch_glasses_off()
        await self._stack.aclose()
        for left in self.socket.parent.glob(f"{self.socket.stem}*"):
            left.unlink()


async def _end(task: "asyncio.Future[Any]") -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=SOON_S)
    assert task.done(), f"{task} did not end when it was cancelled"
    if not task.cancelled() and task.exception() is not None:
        raise task.exception()


@asynccontextmanager
async def world(
    folder: Path, model: str = "mock:display", **sections: dict[str, Any]
) -> AsyncIterator[World]:
    """An empty world: switch on what the story needs."""
    place = World(folder, model, sections=sections)
    try:
        yield place
    finally:
        await place.close()


@asynccontextmanager
async def whole_world(
    folder: Path,
    model: str = "mock:display",
    *,
    cloud: dict[str, Any] | None = None,
    cable: bool = False,
    speed: float = 8.0,
    **sections: dict[str, Any],
) -> AsyncIterator[World]:
    """Glasses, cloud and daemon, all ready. `cloud`: one that runs already; `cable`: one that
    can be pulled is laid.
    """
    async with world(folder, model, **sections) as place:
        await place.switch_glasses_on(speed=speed)
        place.cloud = cloud or await place.start_cloud()
        if cable:
            await place.lay_cable()
        await place.start_daemon()
        await place.ready()
        yield place
