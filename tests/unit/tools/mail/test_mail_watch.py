"""New mail of chosen senders is announced once: over restarts, lost connections, absent glasses."""

import asyncio
import json
import logging
import os
import subprocess
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from edge.config.model import Settings, ToolSettings
from edge.core.backoff import Backoff
from edge.daemon.tool_services import ToolServices
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import Alarmed, GlassesReady
from edge.runtime.first_completed import race
from edge.storage.migrations import MIGRATIONS
from edge.storage.notes import Notes
from edge.storage.sqlite.database import SqliteDatabase
from edge.tools.announcements import mail_watch
from edge.tools.announcements.alarm_notifier import AlarmNotifier
from edge.tools.announcements.mail_watch import COMMAND, NOTE, MailWatch
from edge.tools.workers.mail_account import Account
from edge.tools.workers.mail_imap import mailbox
from edge.tools.workers.mail_watch import HEADER_BYTES, is_chosen, sole_sender
from tests.system import needs
from tests.unit.tools.mail.servers import PASSWORD, Dovecot, token
from tests.unit.tools.test_alarm_notifier import AWAY, READY, Glasses, Stage
from tools_cache.everyday.mail_settings import Config

SENDERS = ["anna@example.com", "bank.example"]
LATEST_S = 40.0
"""A Dovecot that misses a change looks again after 30 s."""


def mail(subject="Lunch", sender="Anna Berg <anna@example.com>", more=""):
    return f"From: {sender}\nTo: me@example.com\nSubject: {subject}\n{more}\nAt noon?\n"


OTHER = mail("Offers", "Shop <news@shop.example>")


class Place:
    """The daemon's side: what is stored, and what the wearer gets."""

    def __init__(self, database, settings):
        self.notes, self.bus = Notes(database), Bus()
        self.config = {**settings, "notify_from": SENDERS}
        self.glasses = Glasses(READY)
        self.stage = Stage(self.glasses)
        self.alarms = []

    @property
    def told(self):
        return [text for _, text in self.stage.told]

    @asynccontextmanager
    async def watching(self, *, first=False, **more):
        """Run the watch; with `first`, from the moment on at which the first look is stored."""
        self.watch = watch = MailWatch(
            self.config,
            notes=self.notes,
            bus=self.bus,
            clock=Clock.system(),
            backoff=Backoff(lambda: 1.0, first_s=0.05, most_s=0.1),
            pause_s=more.pop("pause_s", 0.0),
            more=more,
        )
        ringing = AlarmNotifier(
            watch, stage=self.stage, glasses=self.glasses, bus=self.bus, clock=Clock.system()
        )
        running = asyncio.ensure_future(race(watch.run(), ringing.run(), self._listen()))
        try:
            if first:
                await until(lambda: self.notes.get(NOTE), running)
            yield running
        finally:
            running.cancel()
            await asyncio.wait([running])

    async def _listen(self):
        with self.bus.listen(calls=False) as events:
            async for event in events:
                if isinstance(event, Alarmed):
                    self.alarms.append(event)

    async def tells(self, running, *texts):
        """Wait for these texts, and no others, to be told in this order."""
        await until(lambda: len(self.stage.told) >= len(texts), running)
        assert self.told == list(texts)

    async def waits(self, running, count):
        """Wait until so many new messages were found and not announced."""
        await until(lambda: (w := self.watch._waiting) and w.count == count, running)

    async def stored(self, running):
        """Wait until nothing waits, and that is on disk."""
        await until(lambda: self.watch._waiting is None, running)
        await until(lambda: self.watch._stored == (self.watch._looked or ()), running)

    def come_back(self):
        self.glasses.now = replace(READY)
        self.bus.publish(GlassesReady("m", "1", "a", 247, "tcp"))


async def until(condition, running=None):
    """Poll until true; another process makes it so."""
    async with asyncio.timeout(LATEST_S):
        while True:
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            assert running is None or not running.done(), running
            await asyncio.sleep(0.01)


@pytest.fixture
async def place(tmp_path, settings):
    database = await SqliteDatabase.open(tmp_path / "glassd.db", MIGRATIONS, reserve=False)
    yield Place(database, settings)
    await database.close()


def with_dovecot(test):
    return needs("dovecot")(pytest.mark.enable_socket(test))


# ------------------------------------------------------------------ announcing


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_only_mail_that_comes_later_and_of_chosen_senders_is_announced(place, box):
    box.deliver(mail("old"))
    async with place.watching(first=True) as running:
        box.deliver(OTHER, mail())
        await place.tells(running, "New mail from Anna Berg: Lunch")
        box.deliver(mail("", "alerts@mail.bank.example"))
        lunch = "New mail from Anna Berg: Lunch"
        await place.tells(running, lunch, "New mail from alerts@mail.bank.example")
    assert len({scene for scene, _ in place.stage.told}) == 2, "one does not replace the other"
    assert box.flags() == [""] * 4, "nothing is marked as read"


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_each_mail_is_announced_once_over_restarts(place, box):
    async with place.watching(first=True) as running:
        box.deliver(mail("one"))
        await place.tells(running, "New mail from Anna Berg: one")
        await place.stored(running)
    box.deliver(mail("two"), OTHER, mail("three"))
    box.deliver(mail("read elsewhere"), read=True)
    several = "2 new messages, the latest from Anna Berg: three"
    async with place.watching() as running:
        await place.tells(running, "New mail from Anna Berg: one", several)
        await place.stored(running)
    async with place.watching() as running:
        box.deliver(mail("four"))
        four = "New mail from Anna Berg: four"
        await place.tells(running, "New mail from Anna Berg: one", several, four)


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_what_came_while_the_glasses_were_away_is_told_once_when_they_are_back(place, box):
    async with place.watching(first=True) as running:
        at_first = await place.notes.get(NOTE)
        place.glasses.now = AWAY
        box.deliver(mail("one"))
        await place.waits(running, 1)
    place.stage.told.clear()
    async with place.watching() as running:  # a restart meanwhile loses nothing
        await until(lambda: place.told, running)
        box.deliver(mail("two"), OTHER)
        await place.waits(running, 2)
        assert await place.notes.get(NOTE) == at_first, "nobody got it yet"
        place.come_back()
        both = "2 new messages, the latest from Anna Berg: two"
        await place.tells(running, "New mail from Anna Berg: one", both)
        await place.stored(running)
    [waited, shown] = [scene for scene, _ in place.stage.told]
    assert waited == shown, "the notice that waits is replaced"


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_many_messages_at_once_are_one_notice(place, box):
    async with place.watching(first=True):
        pass
    box.deliver(*(mail(f"number {n}") for n in range(120)))
    async with place.watching(pause_s=3600.0) as running:
        await place.tells(running, "120 new messages, the latest from Anna Berg: number 119")
        box.deliver(mail("soon after"))
        await place.waits(running, 1)
        box.deliver(mail("and one more"))
        await place.waits(running, 2)
        assert len(place.told) == 1, "they wait for the pause to end"


@with_dovecot
async def test_a_mailbox_that_was_made_again_is_looked_at_from_now_on(place, box):
    async with place.watching(first=True):
        pass
    note = await place.notes.get(NOTE)
    await place.notes.put(NOTE, {**note, "at": [note["at"][0] - 1, 0]})
    box.deliver(mail("old"))
    async with place.watching() as running:
        await until(lambda: place.watch._stored == (note["at"][0], 1), running)
        box.deliver(mail("new"))
        await place.tells(running, "New mail from Anna Berg: new")


@with_dovecot
async def test_another_account_begins_with_what_comes_later(place, box):
    async with place.watching(first=True):
        pass
    note = await place.notes.get(NOTE)
    await place.notes.put(NOTE, {"account": "another", "at": [note["at"][0], 0]})
    box.deliver(mail("old"))
    async with place.watching() as running:
        await place.stored(running)
        box.deliver(mail("new"))
        await place.tells(running, "New mail from Anna Berg: new")


# ------------------------------------------------------------------ connections


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_a_lost_connection_is_made_again_and_loses_no_mail(tmp_path, place, caplog):
    caplog.set_level(logging.INFO)
    server = Dovecot()
    try:
        server.start()
        box = server.mailbox()
        place.config |= {
            "imap_port": server.port,
            "username": box.user,
            "ca_file": str(server.authority.ca),
        }
        async with place.watching(first=True) as running:
            await asyncio.to_thread(server.stop)
            await until(lambda: "not watched now" in caplog.text, running)
            box.deliver(mail("meanwhile"))
            await asyncio.to_thread(server.start)
            await place.tells(running, "New mail from Anna Berg: meanwhile")
            box.deliver(mail("later"))
            told = ("New mail from Anna Berg: meanwhile", "New mail from Anna Berg: later")
            await place.tells(running, *told)
        assert place.alarms == [], "a server that is away is nothing that a person must act on"
    finally:
        server.close()


class Child:
    """The child process alone."""

    def __init__(self, settings, after=None, **more):
        request = {"settings": settings, "senders": SENDERS, "after": after, **more}
        self.process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def line(self):
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.kill()
        self.process.communicate(timeout=10)


@pytest.fixture
def child(settings):
    children = []

    def start(**more):
        children.append(Child({**settings, **more.pop("settings", {})}, **more))
        return children[-1]

    yield start
    for each in children:
        each.close()


@with_dovecot
def test_a_wait_is_begun_again_before_the_server_would_end_it(child, box):
    one = child(idle_s=0.2)
    at_first = one.line()
    assert [one.line() for _ in range(3)] == [at_first] * 3
    box.deliver(mail())
    while (found := one.line())["count"] == 0:
        pass
    assert (found["count"], found["latest"]["subject"]) == (1, "Lunch")


@with_dovecot
def test_the_server_says_by_itself_that_there_is_new_mail(child, box):
    one = child(idle_s=3600.0)
    one.line()
    for subject in ("one", "two"):
        box.deliver(mail(subject))
        while (found := one.line())["count"] == 0:
            pass
        assert found["latest"]["subject"] == subject


@with_dovecot
def test_a_server_that_cannot_idle_is_looked_at_now_and_then(child):
    server = Dovecot("imap_capability = IMAP4rev1 SASL-IR AUTH=PLAIN\n")
    try:
        server.start()
        box = server.mailbox()
        more = {"imap_port": server.port, "username": box.user}
        more["ca_file"] = str(server.authority.ca)
        one = child(settings=more, idle_s=3600.0, poll_s=0.1)
        at_first = one.line()
        assert [one.line() for _ in range(3)] == [at_first] * 3
        box.deliver(mail())
        while (found := one.line())["count"] == 0:
            pass
        assert found["latest"]["subject"] == "Lunch"
    finally:
        server.close()


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
def test_the_child_ends_with_the_daemon(child):
    one = child(idle_s=3600.0)
    one.line()
    one.process.stdin.close()
    one.process.stdin = None
    assert one.process.wait(10) == 0


@with_dovecot
def test_mail_that_comes_during_a_look_is_noticed(settings, box):
    with mailbox(Account(settings)) as opened:
        opened.open()
        assert not opened.grew()
        box.deliver(mail())
        opened._imap.noop()
        assert opened.grew()


# ------------------------------------------------------------------ signing in


@pytest.mark.requirement("I15-mail-notice", "I15-mail-secrets")
@with_dovecot
@pytest.mark.parametrize("setting", ["password_file", "token_file"])
async def test_a_refused_secret_is_reported_once_until_another_is_there(
    place, box, tmp_path, monkeypatch, caplog, setting
):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(mail_watch, "REFUSED_S", 0.01)
    good = PASSWORD if setting == "password_file" else token(box.user)
    wrong = "hunter2" if setting == "password_file" else token("somebody")
    file = tmp_path / "secret"
    file.write_text(wrong, encoding="utf-8")
    place.config[setting] = str(file)
    attempts = count_attempts(monkeypatch)
    async with place.watching() as running:
        await until(lambda: len(attempts) >= 3, running)
        [alarm] = place.alarms
        assert alarm.text.startswith("New mail is not announced: The mail server localhost does")
        assert f"{setting} in [tool.email]" in alarm.text
        assert caplog.text.count("new mail is not announced") == 1
        file.write_text(good, encoding="utf-8")
        await until(lambda: len(place.alarms) == 2, running)
        assert place.alarms[1].over
        box.deliver(mail())
        await until(lambda: place.told, running)
    for secret in (wrong, good):
        assert secret not in caplog.text + repr(place.alarms)


def count_attempts(monkeypatch):
    """Return the commands of the children that are started from now on."""
    started, start = [], asyncio.create_subprocess_exec

    async def counted(*command, **options):
        started.append(command)
        return await start(*command, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", counted)
    return started


# ------------------------------------------------------------------ settings


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_the_settings_switch_it_on_and_off_while_the_daemon_runs(
    place, box, tmp_path, monkeypatch
):
    def chosen(senders):
        values = {"email:unread": {**place.config, "notify_from": senders}}
        return Settings(tool=ToolSettings(values))

    attempts = count_attempts(monkeypatch)
    services = ToolServices(
        chosen([]), state=tmp_path, clock=Clock.system(), secret=lambda *_: None, notes=None
    )
    running = asyncio.ensure_future(
        services.watch_mail(
            notes=place.notes, bus=place.bus, stage=place.stage, glasses=place.glasses
        )
    )
    services.use(chosen([]))
    services.use(chosen(SENDERS))
    await until(lambda: place.notes.get(NOTE), running)
    box.deliver(mail())
    await place.tells(running, "New mail from Anna Berg: Lunch")
    assert len(attempts) == 1
    services.use(chosen(SENDERS))
    services.use(chosen(["bank.example"]))
    await until(lambda: len(attempts) == 2, running)
    box.deliver(mail("not chosen any more"), mail("Statement", "x@bank.example"))
    told = ("New mail from Anna Berg: Lunch", "New mail from x@bank.example: Statement")
    await place.tells(running, *told)
    assert len(running_children()) == 1
    services.use(chosen([]))
    await until(lambda: not running_children(), running)
    running.cancel()
    await asyncio.wait([running])


def running_children():
    """Return the children that watch mail."""
    listed = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "args="],
        check=False,  # it fails where there is none
        capture_output=True,
        text=True,
    )
    return [line for line in listed.stdout.splitlines() if "workers.mail_watch" in line]


ACCOUNT = {"imap_host": "a", "smtp_host": "b", "username": "c", "address": "d"}


def test_chosen_senders_are_addresses_and_domains():
    assert Config(**ACCOUNT).notify_from == []
    given = ["Anna@Example.com", "bank.example", "o'neil+x@mail.example.co.uk"]
    assert Config(**ACCOUNT, notify_from=given).notify_from == [each.lower() for each in given]
    wrong = ["", "com", "@example.com", "a b@example.com", "a@", "Anna <a@b.example>", "*.example"]
    for each in (*wrong, "müller.example", "a\n@b.example", "x" * 250 + ".example", "a@b@c.de"):
        with pytest.raises(ValueError, match=r"must be an address like anna@example\.com"):
            Config(**ACCOUNT, notify_from=[each])
    with pytest.raises(ValueError, match="at most 50"):
        Config(**ACCOUNT, notify_from=[f"n{n}.example" for n in range(51)])


# ------------------------------------------------------------------ senders


@pytest.mark.parametrize(
    ("address", "chosen"),
    [
        ("anna@example.com", True),
        ("ANNA@Example.COM", True),
        ("bob@example.com", False),
        ("anna@mail.example.com", False),
        ("x@bank.example", True),
        ("x@Mail.Bank.example", True),
        ("x@notbank.example", False),
        ("x@bank.example.net", False),
        ("bank.example@evil.net", False),
    ],
)
def test_an_address_is_chosen_as_a_whole_or_by_its_domain(address, chosen):
    assert is_chosen(address, SENDERS) is chosen


CHEATS = [
    '"anna@example.com" <x@evil.net>',
    "anna@example.com <x@evil.net>",
    "<anna@example.com> <x@evil.net>",
    "x@evil.net <anna@example.com>, y@evil.net",
    "anna@example.com, x@evil.net",
    "x@evil.net, anna@example.com",
    "=?utf-8?q?anna=40example.com?= <x@evil.net>",
    "=?utf-8?q?anna=40example.com?=",
    "anna@example.com(x@evil.net)",
    "x@evil.net (anna@example.com)",
    "anna@example.com)x@evil.net",
    '"<anna@example.com>" <x@evil.net>',
    "<x@evil.net> <anna@example.com",
    "anna@ex\u0430mple.com",
    "anna@example.com\u202e <x@evil.net>",
    "Anna <anna@example.com>\nFrom: x@evil.net",
    "x@evil.net\nFrom : Anna <anna@example.com>",
    "x@evil.net\nFROM: Anna <anna@example.com>",
    "group: anna@example.com, x@evil.net;",
    "Anna",
    "",
]


@pytest.mark.requirement("I15-mail-notice")
@pytest.mark.parametrize("sender", CHEATS)
def test_nobody_passes_for_a_chosen_sender_by_the_form_of_the_header(sender):
    person = sole_sender(f"From: {sender}\nSubject: x\n\n".encode())
    assert person is None or not is_chosen(person[1], SENDERS)


@pytest.mark.parametrize(
    ("sender", "name"),
    [
        ("anna@example.com", ""),
        ("<anna@example.com>", ""),
        ("Anna Berg <anna@example.com>", "Anna Berg"),
        ('"Berg, Anna" <anna@example.com>', "Berg, Anna"),
        ("=?utf-8?q?M=C3=BCller?=\n <anna@example.com>", "Müller"),
        ("=?utf-8?q?=E2=80=AEgpj?= <anna@example.com>", "gpj"),
    ],
)
def test_usual_forms_of_a_sender_are_read(sender, name):
    raw = f"Subject: x\nFrom: {sender}\n\n".encode()
    assert sole_sender(raw) == (name, "anna@example.com")
    assert sole_sender(raw.ljust(HEADER_BYTES)) is None, "it may have been cut"


@with_dovecot
@pytest.mark.requirement("I15-mail-notice", "I15-mail-hostile")
async def test_hostile_messages_are_not_announced_and_hide_no_others(place, box):
    async with place.watching(first=True) as running:
        box.deliver(
            *(mail("cheat", sender) for sender in CHEATS),
            mail("large", f"anna@example.com,{' ' * 10_000_000}x@evil.net"),
            mail("large", f"{'x' * 10_000_000} <anna@example.com>"),
            mail("many", more="X-Filler: " + "x" * 900 + "\n" * 1),
            "no header at all",
        )
        box.deliver(mail("=?utf-8?q?=E2=80=AEgpj.exe=0D=0Ax?=" + "y" * 500))
        await until(lambda: place.told and "gpj.exe" in place.told[-1], running)
        assert sum(announced(text) for text in place.told) == 2
        assert not any(word in "".join(place.told) for word in ("cheat", "large", "evil"))
        assert "\u202e" not in place.told[-1]
        assert len(place.told[-1]) < 180


def announced(text):
    first = text.partition(" ")[0]
    return int(first) if first.isdigit() else 1
