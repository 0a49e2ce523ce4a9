"""What the everyday tools talk to, as real as a test can have it: mail servers, a recorded weather
and map service, a gpsd, a web server, an address book server, and lights; and the settings with
which a daemon finds them.
"""

import imaplib
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from email.utils import make_msgid
from pathlib import Path
from typing import Any

from tests.e2e.broker import HOST
from tests.kasa_devices import IotCommands, KasaDevice, switched_on
from tests.system import find
from tests.unit.tools import address_book_server, recorded_services as recorded
from tests.unit.tools.mail.servers import PASSWORD, Dovecot, Maildir, SmtpServer
from tests.unit.tools.workers import local_server

ME, EVA = "me@example.com", "eva@example.com"
"""The wearer's mail address, and that of the only other person with a mailbox."""
HERE = {"latitude": 60.3972, "longitude": 5.3166}
TO_STATION = "/route/v1/foot/5.3166,60.3972;5.3333,60.3903"
PEAS = {
    "title": "Growing peas",
    "url": "https://garden.example/peas",
    "content": "Sow them in March.",
}
SCENES = [
    {
        "name": "Evening",
        "devices": [
            {"device": "Desk lamp", "on": True, "brightness": 20},
            {"device": "Fan", "on": False},
        ],
    }
]


class _Postman(SmtpServer):
    """Puts a mail for Eva into her inbox."""

    def __init__(self, dovecot: Dovecot, sender: Maildir, eva: Maildir) -> None:
        self._eva = eva
        super().__init__(dovecot.authority)
        self.user = sender.user

    def _take(self, said: Any, sender: str, recipients: list[str]) -> bool:
        count = len(self.received)
        alive = super()._take(said, sender, recipients)
        for _, to, message in self.received[count:]:
            if EVA in to:
                self._eva.deliver(message)
        return alive


class Mail:
    """A Dovecot with the mailboxes of two people, and the SMTP server between them."""

    def __init__(self, dovecot: Dovecot) -> None:
        self.dovecot = dovecot
        self.mine, self.evas = dovecot.mailbox(), dovecot.mailbox()
        self.smtp = _Postman(dovecot, self.mine, self.evas)

    def arrive(self, sender: str, subject: str, text: str) -> None:
        """Let the wearer have a new mail."""
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = sender, ME, subject
        message["Message-ID"] = make_msgid(domain="example.com")
        message.set_content(text)
        self.mine.deliver(message.as_bytes())

    def inbox_of_eva(self) -> list[tuple[str, str, str]]:
        """Return subject, text and In-Reply-To of each of her mails, read over IMAP."""
        context = ssl.create_default_context(cafile=self.dovecot.authority.ca)
        with imaplib.IMAP4_SSL("localhost", self.dovecot.port, ssl_context=context) as box:
            box.authenticate("PLAIN", lambda _: f"\0{self.evas.user}\0{PASSWORD}".encode())
            box.select("INBOX", readonly=True)
            (numbers,) = box.search(None, "ALL")[1]
            raw = [box.fetch(number, "(BODY.PEEK[])")[1][0][1] for number in numbers.split()]
        found = [BytesParser(policy=default).parsebytes(one) for one in raw]
        return [
            (one["Subject"], one.get_content().strip(), one.get("In-Reply-To", "")) for one in found
        ]


@dataclass
class Services:
    """All of them, running."""

    folder: Path
    weather: recorded.Service
    maps: recorded.Service
    web: local_server.LocalServer
    book: address_book_server.AddressBookServer
    gpsd: str
    lamp: KasaDevice
    fan: KasaDevice
    mail: Mail | None = None

    def settings(self) -> dict[str, Any]:
        """Return `[tool]` of a configuration with all twelve packages switched on."""
        on = {"enabled": True}
        book = {
            "url": self.book.url,
            "username": address_book_server.USER,
            "password_file": self._secret("book", address_book_server.PASSWORD),
        }
        settings = {
            "contacts": {"import": on, "sync": book},
            "domaindoc": on,
            "kasa": {**on, "hosts": [self.lamp.host, self.fan.host], "scenes": SCENES},
            "maps": {"search_url": self.maps.url, "route_url": self.maps.url, **HERE},
            "pager": on,
            "punchclock": on,
            "weather": {
                "url": self.weather.url,
                "geocoding_url": self.weather.url,
                "gpsd": self.gpsd,
            },
            "web": {
                "search": {"search_url": self.web.url("")},
                "fetch": {**on, "hosts": [HOST]},
                "request": {**on, "hosts": [HOST], "methods": ["GET", "POST"]},
            },
        }
        if self.mail is not None:
            settings["email"] = {
                "imap_host": "localhost",
                "imap_port": self.mail.dovecot.port,
                "smtp_host": HOST,
                "smtp_port": self.mail.smtp.port,
                "username": self.mail.mine.user,
                "address": ME,
                "password_file": self._secret("mail", PASSWORD),
                "ca_file": str(self.mail.dovecot.authority.ca),
            }
        return settings

    def _secret(self, name: str, word: str) -> str:
        path = self.folder / f"{name}-password"
        path.write_text(f"{word}\n", encoding="utf-8")
        return str(path)


@asynccontextmanager
async def running_services(folder: Path) -> AsyncIterator[Services]:
    """Run all services; without a Dovecot on this machine, all but the mail servers."""
    lamp, fan = KasaDevice(IotCommands("Desk lamp", kind="bulb")), KasaDevice(IotCommands("Fan"))
    with ExitStack() as stack:
        weather, maps = (stack.enter_context(closing(recorded.Service())) for _ in range(2))
        weather.answers = {"/v1/forecast": _forecast, "/v1/search": recorded.geocoding}
        maps.answers = {"/search": recorded.places, TO_STATION: recorded.osrm()}
        web = stack.enter_context(local_server.serving())
        _fill(web)
        (folder / "book").mkdir()
        services = Services(
            folder,
            weather,
            maps,
            web,
            stack.enter_context(address_book_server.serving(folder / "book")),
            stack.enter_context(recorded.gpsd(recorded.TPV)),
            lamp,
            fan,
            stack.enter_context(_mail()) if find("dovecot") else None,
        )
        async with switched_on(lamp, fan):
            yield services


@contextmanager
def _mail() -> Iterator[Mail]:
    with closing(Dovecot()) as dovecot:
        mail = Mail(dovecot.start())
        with closing(mail.smtp):
            yield mail


def _forecast(_query: dict[str, str]) -> dict[str, Any]:
    """Return the recorded forecast as if it had been made now, not on its morning."""
    found = recorded.forecast()
    now = datetime.now(timezone(timedelta(seconds=found["utc_offset_seconds"])))
    hour = now.replace(minute=0) - timedelta(hours=11)
    hours, days = found["hourly"]["time"], found["daily"]["time"]
    found["current"]["time"] = f"{now:%Y-%m-%dT%H:%M}"
    hours[:] = [f"{hour + timedelta(hours=n):%Y-%m-%dT%H:%M}" for n in range(len(hours))]
    days[:] = [f"{now + timedelta(days=n):%Y-%m-%d}" for n in range(len(days))]
    return found


def _fill(web: local_server.LocalServer) -> None:
    html = {"Content-Type": "text/html; charset=utf-8"}
    text = {"Content-Type": "text/plain"}
    words = "Sow peas in March. " * 20
    page = f"<title>Peas</title><article><h1>Peas</h1><p>{words}</p></article>"
    found = json.dumps({"results": [PEAS]}).encode()
    web.answers |= {
        "/search": (200, {"Content-Type": "application/json"}, found),
        "/peas": (200, html, page.encode()),
        "/order": (200, text, b"Two bags of peas"),
    }
