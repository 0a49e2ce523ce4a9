"""The services that everyday tools reach: servers on loopback, each behind a cable that can be
pulled, and a wall clock on a Saturday morning in Bergen.
"""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from edge.runtime.clock import Clock
from tests.kasa_devices import IotCommands, KasaDevice, switched_on
from tests.lens_sheet.everyday import texts
from tests.scenarios.network import Cable
from tests.unit.tools import address_book_server as address_book, recorded_services as recorded
from tests.unit.tools.mail.servers import PASSWORD, Dovecot, SmtpServer
from tests.unit.tools.workers.local_server import serving

NOW = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
"""When the recorded services were asked: Saturday, half past eleven in Bergen."""
WEARER = {"locale": "en-GB", "timezone": "Europe/Oslo"}
HOME = {"latitude": 60.3972, "longitude": 5.3166}
ROUTE = "/route/v1/{}/5.3166,60.3972;{}"
TARGETS = {"Bergen stasjon": "5.3333,60.3903", "Klinikk": "5.3414,60.3738"}
HTML = {"Content-Type": "text/html; charset=utf-8"}


class Wall:
    """A wall clock that goes on from `NOW`, and forward when it is told to."""

    def __init__(self) -> None:
        self._start = NOW.timestamp() - time.time()

    def __call__(self) -> float:
        return time.time() + self._start

    def later(self, seconds: float) -> None:
        self._start += seconds

    def iso(self, seconds: float = 0) -> str:
        """Return a moment so many seconds from now, as a program names it."""
        return datetime.fromtimestamp(self() + seconds, UTC).isoformat(timespec="seconds")

    @property
    def clock(self) -> Clock:
        return replace(Clock.system(), wall=self)


@dataclass
class Services:
    """`sections` of the configuration lead to them. Without a `dovecot` there is no mail."""

    wall: Wall = field(default_factory=Wall)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    page: str = ""
    """Address of a web page."""
    devices: list[KasaDevice] = field(default_factory=list)
    _cables: list[Cable] = field(default_factory=list)

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """No network, until the end."""
        for cable in self._cables:
            await cable.pull_out()
        for device in self.devices:
            await device.stop()
        try:
            yield
        finally:
            for cable in self._cables:
                await cable.plug_in()
            for device in self.devices:
                await device.start()

    async def _reached(self, stack: AsyncExitStack, port: int) -> int:
        """Lay a cable to a port; return the port at its other end."""
        cable = Cable(port)
        await cable.plug_in()
        stack.push_async_callback(cable.pull_out)
        self._cables.append(cable)
        return cable.port


@asynccontextmanager
async def services(folder: Path, dovecot: Dovecot | None) -> AsyncIterator[Services]:
    """Run all of them until the end; `folder` takes the password of the mail account."""
    found = Services()
    tools: dict[str, dict[str, Any]] = {name: {"enabled": True} for name in texts.BY_THEMSELVES}
    async with AsyncExitStack() as stack:
        outside = stack.enter_context(_outside())
        port = await found._reached(stack, urlsplit(outside.url).port or 0)
        url = f"http://127.0.0.1:{port}"
        tools["weather"] = {"url": url, "geocoding_url": url, **HOME}
        tools["maps"] = {"search_url": url, "route_url": url, **HOME}
        web = stack.enter_context(_web())
        port = await found._reached(stack, web.port)
        found.page = f"http://localhost:{port}"
        tools["web"] = {"enabled": True, "search_url": f"http://127.0.0.1:{port}"}
        tools["web"] |= {"hosts": ["localhost"]}
        if dovecot is not None:
            tools["email"] = await _mail(found, stack, folder, dovecot)
        tools["contacts"] = {"enabled": True, "sync": await _address_book(found, stack, folder)}
        found.devices = _devices()
        await stack.enter_async_context(switched_on(*found.devices))
        hosts = [device.host for device in found.devices]
        tools["kasa"] = {"enabled": True, "hosts": hosts, "scenes": texts.SCENES}
        found.sections = {"tool": tools, "history": {"enabled": True}}
        yield found


def _devices() -> list[KasaDevice]:
    lamp = IotCommands("Desk lamp", kind="bulb", on=True, brightness=60)
    strip = IotCommands("Television corner", plugs=("TV", "Games", "Christmas star"))
    return [KasaDevice(lamp), KasaDevice(IotCommands("Fan")), KasaDevice(strip)]


@contextmanager
def _outside() -> Iterator[recorded.Service]:
    """Weather and maps."""
    service = recorded.Service()
    service.answers = {
        "/v1/forecast": recorded.forecast(),
        "/v1/search": recorded.geocoding,
        "/search": _places,
    }
    for by in ("foot", "bike", "car"):
        for target in TARGETS.values():
            service.answers[ROUTE.format(by, target)] = recorded.osrm(texts.STEPS[target])
    try:
        yield service
    finally:
        service.close()


def _places(query: dict[str, str]) -> list[dict[str, Any]]:
    more = {"Klinikk": [recorded.place(*texts.LONG_PLACE, "60.3738", "5.3414")]}
    return more.get(query["q"]) or list(recorded.places(query))


@contextmanager
def _web() -> Iterator[Any]:
    def search(handler: Any) -> None:
        query = parse_qs(urlsplit(handler.path).query)["q"][0]
        body = json.dumps({"results": texts.FOUND.get(query, [])}).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with serving() as local:
        local.answers["/search"] = search
        local.answers["/peas"] = (200, HTML, texts.PAGE.encode())
        local.answers["/doorbell"] = (200, {"Content-Type": "text/plain"}, b"The bell rings.")
        local.answers["/beds"] = (
            *(200, {"Content-Type": "application/json"}),
            b'{"beds":[{"id":"3f2a9c1e-6c55-4e0b-9d3a-0b7f1c2d3e4f","peas":true,"at":"2026-11-21T10:29:58Z"}]}',
        )
        yield local


async def _address_book(found: Services, stack: AsyncExitStack, folder: Path) -> dict[str, str]:
    """Fill an address book; return the settings of its account."""
    data = folder / "book"
    data.mkdir()
    book = stack.enter_context(address_book.serving(data))
    book.fill(texts.CARDS)
    (folder / "book-password").write_text(address_book.PASSWORD, encoding="utf-8")
    port = await found._reached(stack, book.port)
    return {
        "url": f"http://127.0.0.1:{port}{address_book.BOOK}",
        "username": address_book.USER,
        "password_file": str(folder / "book-password"),
    }


async def _mail(
    found: Services, stack: AsyncExitStack, folder: Path, dovecot: Dovecot
) -> dict[str, Any]:
    """Fill a mailbox; return the settings of its account."""
    box = dovecot.mailbox()
    smtp = SmtpServer(dovecot.authority)
    smtp.user = box.user
    stack.callback(smtp.close)
    box.deliver(*texts.READ_MAILS, read=True)
    box.deliver(*texts.MAILS)
    (folder / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    return {
        "imap_host": "127.0.0.1",
        "imap_port": await found._reached(stack, dovecot.port),
        "smtp_host": "127.0.0.1",
        "smtp_port": await found._reached(stack, smtp.port),
        "username": box.user,
        "address": "maria@example.com",
        "password_file": str(folder / "password"),
        "ca_file": str(dovecot.authority.ca),
    }
