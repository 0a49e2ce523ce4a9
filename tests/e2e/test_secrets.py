"""No password, key or token is in the log, the bundle, a command line, an environment, an answer,
or a file of the state directory, whether a server takes it or repeats it in its refusal.
"""

import asyncio
import base64
import json
import os
import stat
import subprocess
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from edge.storage.tools.user_stores import PrivateStores
from tests.chaos.places import Place
from tests.e2e.processes import CLI
from tests.e2e.secret_traces import EchoBroker, EchoServer, ProcessWatch, Secrets, contents
from tests.kasa_devices import KlapDevice, SmartCommands
from tests.unit.tools import address_book_server
from tests.unit.tools.mail.servers import PASSWORD, Dovecot, SmtpServer, token

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(240)]
MAIL = {"to": ["anna@example.com"], "subject": "Hello", "text": "See you"}
DAY = {"start": "2026-11-23T09:00:00+01:00", "end": "2026-11-23T14:00:00+01:00"}
OWNER = "eva@example.com"
KASA, MQTT, CALENDAR = "kasa-Geheimnis-7", "mqtt-Losung-99", "calendar-Losung-3"
WEB, CLOUD = "BSAwebkey0815", "cloudtoken4711"
SETTINGS = """
[uplink]
host = "127.0.0.1"
port = {broker}
tls = false
username = "mq-user"
password_file = "{mqtt}"
[cloud]
url = "{echo}"
token_file = "{cloud}"
[log]
level = "debug"
[audit]
args = true
[calendar]
url = "{echo}/dav/eva/"
username = "eva"
password_file = "{calendar}"
[tool.email]
imap_host = "localhost"
imap_port = {imap}
smtp_host = "127.0.0.1"
smtp_port = {smtp}
username = "{user}"
address = "me@example.com"
ca_file = "{ca}"
{mail}
[tool.web]
enabled = true
search_url = "{echo}"
search_form = "brave"
key_file = "{web}"
[tool.kasa]
enabled = true
hosts = ["{plug}"]
username = "{owner}"
password_file = "{files}/kasa"
[tool.contacts]
url = "{book}"
username = "{reader}"
password_file = "{files}/contacts"
[tool.pager]
enabled = true
"""


class Plug:
    """A smart plug on a loop of its own; it knows its owner's password."""

    def __init__(self, password: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.device = KlapDevice(SmartCommands("Lamp"), OWNER, password)
        self._do(self.device.start())

    def close(self) -> None:
        self._do(self.device.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)


class World:
    """A daemon that logs everything it can, its servers, and its files with secrets."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.secrets, self._stack = Secrets(), stack
        self.files = folder / "secrets"
        for made in (self.files, folder / "books"):
            made.mkdir()
        self.dovecot = stack.enter_context(closing(Dovecot().start()))
        self.box = self.dovecot.mailbox()
        self.smtp = stack.enter_context(closing(SmtpServer(self.dovecot.authority)))
        self.smtp.user = self.box.user
        self.echo = stack.enter_context(closing(EchoServer()))
        self.broker = stack.enter_context(closing(EchoBroker()))
        self.book = stack.enter_context(address_book_server.serving(folder / "books"))
        self.plug = stack.enter_context(closing(Plug(KASA)))
        self.folder = folder / "daemon"
        self.said: dict[str, bytes] = {}
        """What the daemon answered, and what commands printed."""

    def put(self, name: str, secret: str, user: str = "") -> str:
        """Write a secret into its file; each that was ever in one counts."""
        path = self.files / name
        path.write_text(f"{secret}\n", encoding="utf-8")
        path.chmod(0o600)
        self.secrets.add(f"{name} {len(self.said)}", secret, user)
        return str(path)

    def start(self, mail: str, book: str, journal: pytest.MonkeyPatch | None = None) -> None:
        """`mail`: the setting that names its secret; `book`: the address book. With `journal` the
        daemon takes its log for that of systemd.
        """
        self.synced = book == self.book.url
        settings = SETTINGS.format(
            broker=self.broker.port,
            mqtt=self.put("mqtt", MQTT, "mq-user"),
            echo=self.echo.url,
            cloud=self.put("cloud", CLOUD),
            calendar=self.put("calendar", CALENDAR, "eva"),
            imap=self.dovecot.port,
            smtp=self.smtp.port,
            user=self.box.user,
            ca=self.dovecot.authority.ca,
            mail=f'{mail} = "{self.files / "mail"}"',
            web=self.put("web", WEB),
            plug=self.plug.device.host,
            files=self.files,
            owner=OWNER,
            book=book,
            reader=address_book_server.USER,
        )
        self.place = Place(self.folder, "secrets", settings)
        self._stack.callback(self.place.stop)
        if journal is not None:
            (log := self.folder / "daemon.log").touch()
            journal.setenv("JOURNAL_STREAM", f"{log.stat().st_dev}:{log.stat().st_ino}")
        self.place.start()
        child = self.place.child
        assert child is not None
        self.watch = self._stack.enter_context(closing(ProcessWatch(child.process.pid)))
        self.place.allow("email:send")
        self.place.allow("pager:send")

    def ask(self, tool: str, *, ok: bool, **args: Any) -> dict[str, Any]:
        answer = self.place.ask(tool, args)
        self.said[f"answer {len(self.said)}, {tool}"] = json.dumps(answer).encode()
        assert answer["ok"] is ok, (tool, answer)
        return answer

    def syncs(self, status: int) -> bool:
        """Change the password of the address book; return whether it is right."""
        right = address_book_server.PASSWORD
        self.put("contacts", right if status == 200 else f"{right}x9", address_book_server.USER)
        return status == 200 and self.synced

    def run(self, *words: str) -> bytes:
        """Run a command of glassd; what it prints is looked at as well."""
        env = {**os.environ, "GLASSD_SOCKET": str(self.place.socket), "NO_COLOR": "1"}
        ran = subprocess.run([*CLI, *words], capture_output=True, timeout=60, env=env, check=False)
        self.said[" ".join(words)] = ran.stdout + ran.stderr
        return ran.stdout

    def texts(self) -> dict[str, bytes]:
        """Return everything in which no secret may be."""
        bundle = self.folder.parent / "bundle.tar.gz"
        config = str(self.folder / "glassd.toml")
        self.run("doctor", "--config", config, "--bundle", str(bundle))
        for command in ("status", "tools --all", "tools show email:send", "servers", "grants"):
            self.run(*command.split(), "--json")
        for call in json.loads(self.run("calls", "--json"))["calls"]:
            self.run("calls", call["call_id"], "--json")
        self.place.stop()  # what is left in memory is written now
        return {**contents(self.folder), **contents(bundle), **self.said, **self.watch.seen}

    def add_stored(self) -> None:
        """Read the keys that the daemon made itself: the pager's, and that of encrypted tables."""
        key = self.folder / "state" / "tools.key"

        async def pager_keys() -> list[str]:
            stores = PrivateStores(self.folder / "state" / "users", key=key)
            rows = await stores.of("local", "pager").db.select("pagers")
            await stores.close()
            return [row["encrypted__facts"]["private_key"] for row in rows]

        (private,) = asyncio.run(pager_keys())
        self.secrets.add("pager", private)
        self.secrets.add_bytes("pager", base64.b64decode(private))
        self.secrets.add_bytes("tools.key", bytes.fromhex(key.read_text()))


def ask_everything(world: World) -> None:
    """Use each secret where it is right, and where it is refused and repeated."""
    for password in (f"{KASA} falsch", KASA):
        world.put("kasa", password, OWNER)
        (device,) = world.ask("kasa:state", ok=True)["data"]["devices"]
        assert ("problem" in device) is (password != KASA)
    for status in (401, 500, 429, 200):
        world.echo.status = status
        world.ask("contacts:sync", ok=world.syncs(status))
        world.ask("web:search", ok=False, query="peas")
        world.ask("calendar:get_availability", ok=False, **DAY)
    world.ask("pager:create", ok=True, name="Mine")
    world.place.ask("pager:send", {"to": "PAGER-AB12", "text": "Hello"})


def ask_mail(world: World, wrong: str, right: str) -> None:
    for secret, how in ((wrong, "echo"), (right, "echo-later"), (right, "")):
        world.put("mail", secret, world.box.user)
        world.smtp.misbehave = how
        world.ask("email:unread", ok=secret == right)
        world.ask("email:send", ok=not how, **MAIL)


def check(world: World) -> None:
    """Fail if a secret is anywhere but in its file; and if the test looked at nothing."""
    texts = world.texts()
    world.add_stored()
    key = texts.pop("daemon/state/tools.key")
    assert world.secrets.found({"key": key}), "the key of encrypted tables is in its own file"
    assert world.secrets.found(contents(world.files))
    assert world.secrets.found({"broker": world.broker.received})
    for secret in (WEB, CLOUD, base64.b64encode(f"eva:{CALENDAR}".encode()).decode()):
        assert world.echo.got(secret.encode())
    assert {"mail", "web", "kasa", "contacts"} <= world.watch.workers
    assert {"daemon/daemon.log", "daemon/state/audit/calls.jsonl"} <= set(texts)
    assert b"email:send" in texts["bundle.tar.gz/glassd-doctor/audit.jsonl"]
    assert world.secrets.found(texts) == []
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (world.folder / "state",)}
    assert set(modes.values()) == {0o700}
    assert stat.S_IMODE((world.folder / "state" / "tools.key").stat().st_mode) == 0o600


@pytest.fixture
def world(tmp_path):
    with ExitStack() as stack:
        yield World(tmp_path, stack)


@pytest.mark.requirement("I15-secrets-kept")
def test_no_password_or_key_is_anywhere_but_in_its_file(world):
    world.start("password_file", world.book.url)
    ask_mail(world, "falsch battery ß 3", PASSWORD)
    ask_everything(world)
    assert " DEBUG " in (world.folder / "daemon.log").read_text(errors="replace")
    check(world)


@pytest.mark.requirement("I15-secrets-kept")
def test_no_token_is_in_the_journal_or_anywhere_else(world, monkeypatch):
    world.start("token_file", f"{world.echo.url}/eva/", monkeypatch)
    ask_mail(world, token("somebody-else"), token(world.box.user))
    ask_everything(world)
    assert "\n<7>" in (world.folder / "daemon.log").read_text(errors="replace")
    check(world)
