"""One world with simulated glasses, and what a situation can do in it."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from edge.devcloud.registry import InstalledApp
from edge.ports import Wait
from edge.tools.user_tools import read
from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from tests.lens_sheet import app
from tests.lens_sheet.everyday.services import Services
from tests.lens_sheet.film import Film
from tests.scenarios.world import World, all_apps, until
from tools_cache.api.tool import CallOrigin, ToolResponse

TOOLS = """
[[tools]]
name = "town:weather"
title = "Weather"
description = "The weather of a town."
inputSchema = {{ type = "object", properties = {{ town = {{ type = "string" }} }} }}
[tools.execution]
method = "GET"
url = "{url}/{{{{input.town}}}}"

[[tools]]
name = "photos:delete"
title = "Delete photos"
description = "Delete photos of an album."
requiresConfirmation = "always"
inputSchema = {{ type = "object", properties = {{ album = {{ type = "string" }}, before = {{ type = "string", format = "date-time" }}, copies = {{ type = "integer" }}, recipients = {{ type = "array", items = {{ type = "string" }} }}, note = {{ type = "string" }}, keep_favourites = {{ type = "boolean" }}, folder = {{ type = "string" }}, limit = {{ type = "integer" }} }} }}
[tools.execution]
method = "POST"
url = "{url}/deleted"
"""  # noqa: E501
ANSWERS: Mapping[str, Any] = {
    "Rome": {"text": "Sunny in Rome: 21 °C, light wind from the west."},
    "slow": {"text": "Sunny in Oslo: 4 °C."},
    "deleted": {"text": "14 photos deleted."},
    "markdown": {
        "text": "# Today\n\n- **Milk** and *bread*\n- [Tickets](https://rail.example/t/1)\n\n"
        "| Train | Leaves |\n|---|---|\n| Oxford | 15:30 |\n| Bath | 16:05 |\n\n`code` stays."
    },
    "json": {
        "town": "Rome",
        "observed_at": "2026-11-23T08:15:00Z",
        "temperature_c": -3.25,
        "wind": {"speed_kmh": 12, "from": "west"},
        "hours": [{"time": f"2026-11-23T{h:02}:00:00Z", "temperature": h} for h in range(24)],
    },
    "program": {
        "text": "## Steps\n\n1. Open *settings*\n2. Run:\n\n```sh\nsudo apt update\n```\n\n"
        "> Mind the gap\n\n<b>Bold</b> &amp; done ~~not~~ ![map](https://a.example/m.png)"
    },
    "wide": {
        "text": "| Stop | Line | Platform | Leaves |\n|---|---|---|---|\n"
        "| Hauptbahnhof Nord | S41 Ringbahn | 12 tief | 15:30 |\n"
        "| Alexanderplatz | U5 Hönow | 2 | 15:41 |"
    },
    "people": [
        {"name": "Eva Olsen", "age": 41, "email": "eva@example.org", "active": True},
        {"name": "אבא", "age": 70, "email": None, "active": False},
    ],
    "numbers": {"total": 1234567.891, "share": 0.25, "count": 12000, "none": None, "ok": True},
    "empty": {"results": [], "next": None},
    "table": {"rows": [{"item": "Milk", "price": 1.2}, {"item": "Bread", "price": 3.45}]},
    "html": "<html><body><h1>502 Bad Gateway</h1></body></html>",
}
SLOW_S = 4.0


class Station:
    """An HTTP server whose answers the tools show."""

    def __init__(self) -> None:
        self.url = ""

    async def open(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked = head.split()[1].strip("/")
        if asked in ("slow", "deleted"):
            await asyncio.sleep(SLOW_S if asked == "slow" else 1.5)
        answer = ANSWERS.get(asked)
        body = json.dumps(answer).encode() if asked != "html" else str(answer).encode()
        status = b"200 OK" if answer and asked != "html" else b"502 Bad Gateway"
        writer.write(
            b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (status, len(body), body)
        )
        await writer.drain()
        writer.close()


@asynccontextmanager
async def small_cloud(folder: Path) -> AsyncIterator[dict[str, Any]]:
    """A cloud with the sample apps and the bakery."""
    world = World(folder)
    bakery = InstalledApp.of_manifest(app.app.manifest(), (sys.executable, str(app.__file__)))
    try:
        yield await world.start_cloud(apps=[*all_apps(), bakery])
    finally:
        await world.close()


class Stage:
    """What a situation can do: call tools, act as the wearer, wait."""

    def __init__(self, world: World, *, pace: float = 1.0) -> None:
        """`pace`: the part of each pause that is waited for."""
        self.world = world
        self._pace = pace
        self._services: Services | None = None
        self.film = Film(lambda: world.mock.glasses)
        world.shown = self.film

    @property
    def services(self) -> Services:
        """Those of the everyday tools."""
        assert self._services is not None, "a part without `everyday`"
        return self._services

    async def open(self, station: Station, cloud: dict[str, Any]) -> None:
        """Switch everything on."""
        folder = self.world.folder
        if cloud:
            self.world.cloud = cloud
            await self.world.lay_cable()
        for name in ("tools.d", "kb", "calendars"):
            (folder / name).mkdir(parents=True)
        if self._services is None:  # else these packages are glassd's own
            (folder / "tools.d" / "all.toml").write_text(TOOLS.format(url=station.url))
        (folder / "kb" / "boiler.md").write_text(
            "# The boiler\n\nTurn the red valve left. Pressure: 1.2 to 1.8 bar.\n"
        )
        self.world.sections |= {
            "kb": {"folder": str(folder / "kb")},
            "calendar": {"folder": str(folder / "calendars")},
        }
        speaks = self.world.model == "mock:full"
        await self.world.switch_glasses_on(speed=8.0 if speaks else 1.0, mtu=251)
        daemon = await self.world.start_daemon()
        self.film.drawn.watch(daemon.stage._drawn)
        self.world.daemon.own_tools.use(read([folder / "tools.d"]))
        await self.world.ready()

    async def play(self, name: str, act: Any) -> None:
        """Play one situation on a dark lens."""
        take = self.film.cut(name)
        try:
            async with asyncio.timeout(60):
                await act(self)
        except Exception as e:  # noqa: BLE001 - the others are played, and this one is listed
            take.failed = f"could not be played: {type(e).__name__}: {str(e)[:150]}"
        take.acts.append(time.monotonic())
        with suppress(Exception):
            async with asyncio.timeout(20):
                await self.world.call("glasses:clear", {}, wait=Wait.ANSWER)
                await until(lambda: not self.world.lens(), "a dark lens")
                await self.spoken()
        take.judge()

    async def call(self, tool: str, /, **args: Any) -> ToolResponse:
        """Call a tool as a person at the terminal does; its delivery is written down."""
        answer = await self.world.call(tool, args, wait=Wait.ANSWER)
        told = answer.meta.get("delivery", "none")
        parts = {"state": told} if isinstance(told, str) else told
        said = ": ".join(parts[key] for key in ("state", "reason") if parts.get(key))
        more = f" ({parts['downgrade']})" if "downgrade" in parts else ""
        if answer.error is not None and said == "none":
            more = f" ({answer.error.message})"
        self.note(said + more)
        return answer

    def note(self, delivery: str) -> None:
        self.film.takes[-1].deliveries.append(delivery)

    async def look_up(self, tool: str, /, *, present: bool | None = None, **args: Any) -> None:
        """Call a tool as an agent does for itself."""
        more = {"origin": CallOrigin.MCP, "present": present}
        answer = await self.world.call(tool, args, wait=Wait.ANSWER, **more)
        self.note(f"for the agent: {answer.meta.get('delivery')}")

    async def has(self, facts: Mapping[str, Any]) -> None:
        """Change what the glasses can do: they show their page again."""
        self.film.takes[-1].acts.append(time.monotonic())
        self.world.mock.glasses.set_capabilities(facts)

        def known() -> bool:
            found = self.world.daemon.link.status().capabilities
            return found is not None and all(found.get(key) == facts[key] for key in facts)

        await until(known, f"glasses with {dict(facts)}")

    def begin(self, tool: str, /, **args: Any) -> "asyncio.Task[ToolResponse]":
        return asyncio.create_task(self.call(tool, **args))

    def does(self, gesture: Gesture, side: Side | None = None) -> None:
        self.film.takes[-1].acts.append(time.monotonic())
        self.world.mock.glasses.gesture(gesture, side=side)

    async def shows(self, *words: str) -> None:
        await self.world.lens_shows(*words)

    async def spoken(self) -> None:
        """Wait until a text that is being spoken is over."""
        speech = self.world.daemon.stage._speech
        await until(lambda: speech.speaking is None, "silence")
        await self.rest(0.1)

    async def rest(self, seconds: float = 0.4) -> None:
        await asyncio.sleep(self._pace * seconds)

    async def turn_pages(self, most: int = 5) -> None:
        """Tap through a text of several pages."""
        for _ in range(most - 1):
            await self.rest(0.8)
            before = len(self.film.takes[-1].frames)
            page = self.world.daemon.stage.lens()
            if page["page"] >= page["pages"]:
                return
            await self.tap_on()
            await until(lambda: len(self.film.takes[-1].frames) > before, "the next page")  # noqa: B023 - awaited here

    async def tap_on(self) -> None:
        """Tap; once more if the first one was for the voice."""
        before = len(self.film.takes[-1].frames)
        self.does(Gesture.TAP)
        await self.rest(1.2)
        if len(self.film.takes[-1].frames) == before:
            self.does(Gesture.TAP)

    async def answers(self, gesture: Gesture = Gesture.TAP) -> None:
        """Answer the question on the lens, page by page."""
        prompter = self.world.daemon.stage._prompter
        await until(lambda: prompter.active, "a question")
        while prompter.active:
            if self.world._may_answer():
                self.does(gesture)
                await self.rest(0.3)
            await self.rest(0.05)


async def opened(
    folder: Path,
    model: str,
    station: Station,
    about: dict[str, dict[str, Any]],
    *,
    cloud: dict[str, Any] | None = None,
    services: Services | None = None,
    pace: float = 1.0,
) -> Stage:
    """A stage with these glasses on; `about`: sections of the configuration."""
    key = "even_g1" if model == "sim:even_g1" else model
    sections = {"glasses": {"model": key}, **about}
    more = services.sections if services is not None else {}
    clock = services.wall.clock if services is not None and not cloud else None
    stage = Stage(World(folder, model, sections={**sections, **more}, clock=clock), pace=pace)
    stage._services = services
    await stage.open(station, cloud or {})
    return stage
