"""The world of a link story: glasses on an air, a daemon in its own process, and ways to do harm to
what is between them.

One class on two radios: a story never asks which, only what harm exists here (`can`). The glasses
and the air are always in this process; where the daemon runs, and what its radio is made of, is the
place's business (here.py, guest.py).
"""

import asyncio
import json
import random
import shutil
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol

from firmware_bridge.sim.air import Air
from firmware_bridge.sim.inproc import Mock, start_mock

SOON_S = 40.0
"""Longest wait for what takes milliseconds on an idle machine; `World.soon` stretches it for
emulated ones.
"""
POLL_S = 0.02


class Place(Protocol):
    """Where the daemon lives, and the radio it has."""

    name: str
    can: frozenset[str]
    """Harm that exists here: bluetoothd, power."""
    slowness: float
    """How many times longer than on a plain machine everything may take."""

    async def open(self, air: Air) -> None: ...
    async def close(self) -> None: ...
    async def start(self, sections: Mapping[str, Mapping[str, Any]]) -> None: ...
    async def stop(self) -> None: ...
    async def kill(self) -> None: ...
    async def forget(self) -> None: ...
    async def ask(
        self, method: str, path: str, body: Any = None, *, within_s: float = 30.0
    ) -> tuple[int, Any]: ...
    async def stream(self, method: str, path: str, body: Any, *, within_s: float) -> str: ...
    async def glassd(
        self, *words: str, give: str = "", within_s: float = 60.0
    ) -> tuple[int, str]: ...
    async def log(self) -> str: ...
    async def adapter_out(self) -> None: ...
    async def adapter_in(self) -> None: ...


class World:
    """What a story can do and see."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.air = Air()
        self._memory = folder / "glasses"
        self.mock: Mock | None = None
        self.shown: list[dict[str, Any]] = []
        self.running: dict[str, Any] | None = None
        self.chance = random.Random(4)
        self.notes: list[str] = []
        """What the story measured, for the table."""

    async def open(self) -> None:
        await self.place.open(self.air)

    async def close(self) -> None:
        await self.place.close()
        await self.glasses_off()

    # -------------------------------------------------------------- the cast

    async def glasses_on(
        self, model: str = "mock:display", *, mtu: int = 247, pairing: str | None = None
    ) -> Mock:
        await self.glasses_off()
        self._memory.mkdir(exist_ok=True)
        self.mock = await start_mock(
            model,
            self.air,
            out_dir=self._memory,
            tell=self.shown.append,
            mtu=mtu,
            speed=8.0,
            pairing=pairing,
        )
        return self.mock

    async def glasses_off(self) -> None:
        mock, self.mock = self.mock, None
        if mock is not None:
            await mock.close()

    async def daemon_on(self, **sections: Mapping[str, Any]) -> None:
        """Start the daemon, or leave it alone when it runs with these very settings."""
        if self.running != sections:
            await self.daemon_off()
            await self.place.start(_settings(sections))
            self.running = dict(sections)
            await self.until(self._answers, "the daemon answers", 60)

    async def daemon_off(self) -> None:
        if self.running is not None:
            self.running = None
            await self.place.stop()

    async def daemon_killed(self) -> None:
        """Kill -9; whoever keeps it alive (systemd, or this line) starts it again."""
        sections = self.running
        await self.place.kill()
        if sections is not None:
            await self.place.start(_settings(sections))
        await self.until(self._answers, "the daemon is back", 60)

    async def linked(self, model: str = "mock:display", *, mtu: int = 247) -> None:
        """Fresh glasses that know nothing, a daemon that runs, and a link between them."""
        await self.glasses_on(model, mtu=mtu)
        await self.daemon_on()
        await self.ready()

    async def afresh(self) -> None:
        """Let nobody remember anybody: no bonds on either side, no state of the daemon."""
        await self.daemon_off()
        await self.glasses_off()
        await self.place.forget()
        shutil.rmtree(self._memory, ignore_errors=True)
        self.shown.clear()

    # -------------------------------------------------------------- acts

    async def meanwhile(
        self, aside: Coroutine[Any, Any, None], main: Coroutine[Any, Any, str]
    ) -> str:
        """Do something beside what is waited for; when that is over, or fails, so is this."""
        async with asyncio.TaskGroup() as both:
            helper = both.create_task(aside)
            said = both.create_task(main)
            await asyncio.wait({helper, said}, return_when=asyncio.FIRST_COMPLETED)
            if said.done():
                helper.cancel()
        return said.result()

    async def accepts(self, path: str, body: Any) -> bool:
        return 200 <= (await self.place.ask("POST", path, body))[0] < 300

    def drop(self) -> bool:
        """Lose the link as if the wearer had walked off; True when there was one."""
        assert self.mock is not None
        return self.mock.mount.drop()

    async def show(self, text: str, within_s: float = SOON_S, *, delivery: str = "shown") -> str:
        """Put a text on the lens; gives its scene. Some glasses say only that they took it:
        `acknowledged`.
        """
        body = {
            "tool": "glasses:show_text",
            "args": {"text": text, "duration_s": 3600},
            "wait": "delivery",
        }
        status, answer = await self.place.ask(
            "POST", "/v1/call", body, within_s=within_s * self.place.slowness
        )
        assert status == 200, answer
        assert answer["meta"]["delivery"] == delivery, answer
        return str(answer["meta"]["callId"])

    # -------------------------------------------------------------- sights

    async def status(self) -> dict[str, Any]:
        _, document = await self.place.ask("GET", "/v1/status")
        return document if isinstance(document, dict) else {}

    async def ready(self, within_s: float = SOON_S) -> dict[str, Any]:
        """Wait for a link that both sides know of; gives what `status` says of the glasses."""

        async def both() -> dict[str, Any] | None:
            glasses = (await self.status()).get("glasses", {})
            here = self.mock is not None and self.mock.glasses.connected
            return glasses if here and glasses.get("state") == "ready" else None

        return await self.until(both, "glasses ready", within_s)

    async def away(self, within_s: float = SOON_S) -> dict[str, Any]:
        """Wait until the daemon knows that there is no link; gives its status."""

        async def gone() -> dict[str, Any] | None:
            document = await self.status()
            return (
                document
                if document.get("glasses", {}).get("state") not in {"ready", None}
                else None
            )

        return await self.until(gone, "the daemon noticed", within_s)

    async def lens_shows(self, text: str, within_s: float = SOON_S) -> None:
        async def there() -> bool:
            return self.mock is not None and text in " ".join(self.mock.glasses.lens.text())

        await self.until(there, f"{text!r} on the lens", within_s)

    async def noticed(self, event: str, key: str) -> Any:
        """Give `key` of the last such event of the mock that has it; None when there was none
        since `shown` was cleared.
        """
        return next(
            (told[key] for told in reversed(self.shown) if told["event"] == event and key in told),
            None,
        )

    def note(self, text: str) -> None:
        self.notes.append(text)

    async def until(self, condition: Callable[[], Any], what: str, within_s: float = SOON_S) -> Any:
        """Wait for what no event tells; polls, because what is looked at is in another process."""
        limit = within_s * self.place.slowness
        try:
            async with asyncio.timeout(limit):
                while not (value := await condition()):
                    await asyncio.sleep(POLL_S)
                return value
        except TimeoutError:
            log = (await self.place.log())[-3000:]
            raise AssertionError(
                f"not within {limit:g} s: {what}; "
                f"{json.dumps((await self.status()).get('link'))}\n{log}"
            ) from None

    async def _answers(self) -> bool:
        return (await self.place.ask("GET", "/v1/status"))[0] == 200


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def s(self) -> float:
        return time.monotonic() - self._began


def percentiles(times: list[float]) -> str:
    ranked = sorted(times)
    return "p50 {:.2f} s, p95 {:.2f} s, max {:.2f} s".format(
        *(ranked[min(len(ranked) - 1, int(len(ranked) * p))] for p in (0.5, 0.95, 1))
    )


def toml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Write plain values as TOML."""
    lines = ["version = 1"]
    for name, keys in sections.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


def _settings(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    document: dict[str, dict[str, Any]] = {
        "edge": {"id": "link"},
        "glasses": {"connect": "any", "scan_s": 5.0, "backoff_min_s": 0.1, "backoff_max_s": 1.0},
        "audio": {"speech": "off"},
    }
    for name, keys in sections.items():
        document.setdefault(name, {}).update(keys)
    return document
