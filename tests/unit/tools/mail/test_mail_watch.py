"""New mail of chosen senders is announced once: over restarts, lost connections, absent glasses."""

import asyncio
import logging
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

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
from edge.tools import worker_calls
from edge.tools.announcements import mail_watch
from edge.tools.announcements.alarm_notifier import AlarmNotifier
from edge.tools.announcements.mail_idle import MailIdle
from edge.tools.announcements.mail_watch import NOTE, MailWatch, Times
from edge.tools.workers.new_mail import HEADER_BYTES, is_chosen, sole_sender
from tests.system import needs
from tests.unit.tools.mail.servers import PASSWORD, Dovecot, token
from tests.unit.tools.test_alarm_notifier import AWAY, READY, Glasses, Stage
from tools_cache.everyday.mail_settings import Config

SENDERS = ["anna@example.com", "bank.example"]
TIMES = Times(pause=0.0, between=0.0)
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
    async def watching(self, *, first=False, **times):
        """Run the watch; with `first`, from the moment on at which the first look is stored."""
        self.watch = watch = MailWatch(
            self.config,
            notes=self.notes,
            bus=self.bus,
            clock=Clock.system(),
            backoff=Backoff(lambda: 1.0, first_s=0.05, most_s=0.1),
            times=TIMES._replace(**times),
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
        await until(lambda: (w := self.watch._waiting) and w.number == count, running)

    async def stored(self, running):
        """Wait until nothing waits, and that is on disk."""
        await until(lambda: self.watch._waiting is None, running)
        await until(lambda: self.watch._stored == (self.watch._looked or ()), running)

    def move_to(self, server):
        """Use a mailbox of another server, and return it."""
        box = server.mailbox()
        self.config |= {
            "imap_port": server.port,
            "username": box.user,
            "ca_file": str(server.authority.ca),
        }
        return box

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
    async with place.watching(pause=3600.0) as running:
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
        box = place.move_to(server)
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


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_a_server_that_cannot_idle_is_looked_at_now_and_then(place):
    server = Dovecot("imap_capability = IMAP4rev1 SASL-IR AUTH=PLAIN\n")
    try:
        box = place.move_to(server.start())
        async with place.watching(first=True, idle=3600.0, poll=0.1) as running:
            await until(lambda: not waiting_threads(), running)
            for subject in ("one", "two"):
                box.deliver(mail(subject))
                text = f"New mail from Anna Berg: {subject}"
                await until(lambda text=text: place.told[-1:] == [text], running)
            await until(lambda: server.log().count("Disconnected") >= 4, running)
        assert place.told == ["New mail from Anna Berg: one", "New mail from Anna Berg: two"]
    finally:
        server.close()


@with_dovecot
async def test_a_look_now_and_then_finds_what_the_server_did_not_say(place, box, monkeypatch):
    monkeypatch.setattr(MailIdle, "_take", lambda *_: None)
    async with place.watching(first=True, idle=0.2) as running:
        box.deliver(mail())
        await place.tells(running, "New mail from Anna Berg: Lunch")


@with_dovecot
async def test_mail_that_comes_during_a_look_is_noticed(place, box, monkeypatch):
    ask, looks = mail_watch.WorkerCalls.ask, []

    async def slow(*args, **options):
        found = await ask(*args, **options)
        if not looks:
            looks.append(found)
            box.deliver(mail())
            await until(place.watch._may_be_new.is_set)
        return found

    monkeypatch.setattr(mail_watch.WorkerCalls, "ask", slow)
    async with place.watching(first=True, idle=3600.0) as running:
        await place.tells(running, "New mail from Anna Berg: Lunch")


@with_dovecot
async def test_looks_have_a_pause_between_them(place, box, monkeypatch):
    looks = count(monkeypatch, mail_watch.WorkerCalls, "ask")
    async with place.watching(first=True, between=3600.0, idle=0.05) as running:
        waits = count(monkeypatch, MailIdle, "_wait")
        box.deliver(mail())
        await until(lambda: len(waits) >= 3, running)
        assert place.watch._may_be_new.is_set()
    assert len(looks) == 1


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_nothing_stays_of_a_watch_that_ends(place, box, dovecot):
    async with place.watching(first=True) as running:
        await until(waiting_threads, running)
        assert not place.watch._may_be_new.is_set(), "one look is enough"
    await until(lambda: not waiting_threads())
    of_this = f"imap({box.user})"
    await until(lambda: sum(of_this in line for line in disconnections(dovecot)) == 2)


def disconnections(server):
    return [line for line in server.log().splitlines() if "Disconnected" in line]


def waiting_threads():
    return [thread for thread in threading.enumerate() if thread.name == mail_watch.THREAD]


@with_dovecot
async def test_a_look_that_cannot_begin_is_tried_again(place, box, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    async with place.watching(first=True) as running:
        with monkeypatch.context() as broken:
            broken.setattr(worker_calls.sys, "executable", "/nonexistent")
            box.deliver(mail())
            await until(lambda: "No process could be started" in caplog.text, running)
        await place.tells(running, "New mail from Anna Berg: Lunch")
    assert place.alarms == [], "nothing that a person must act on"


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
    attempts = count(monkeypatch, MailIdle, "run")
    looks = count(monkeypatch, mail_watch.WorkerCalls, "ask")
    async with place.watching() as running:
        await until(lambda: len(attempts) >= 3, running)
        assert looks == [], "one refusal at a time"
        [alarm] = place.alarms
        assert alarm.text.startswith("New mail is not announced: The mail server localhost does")
        assert f"{setting} in [tool.email]" in alarm.text
        assert caplog.text.count("new mail is not announced") == 1
        (tmp_path / "good").write_text(good, encoding="utf-8")
        (tmp_path / "good").replace(file)  # nobody sees half of it
        await until(lambda: len(place.alarms) == 2, running)
        assert place.alarms[1].over
        box.deliver(mail())
        await until(lambda: place.told, running)
    for secret in (wrong, good):
        assert secret not in caplog.text + repr(place.alarms)


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_a_look_that_is_refused_ends_the_wait_too(place, box, tmp_path, monkeypatch):
    file = tmp_path / "secret"
    file.write_text(PASSWORD, encoding="utf-8")
    place.config["password_file"] = str(file)
    pauses = count(monkeypatch, Backoff, "after")
    async with place.watching(first=True) as running:
        await until(waiting_threads, running)
        (tmp_path / "wrong").write_text("hunter2")
        (tmp_path / "wrong").replace(file)
        box.deliver(mail())
        await until(lambda: place.alarms, running)
        assert "password_file in [tool.email]" in place.alarms[0].text
        await until(lambda: not waiting_threads(), running)
    assert pauses == [{"at_least_s": mail_watch.REFUSED_S}]


def count(monkeypatch, owner, name):
    """Return the options of each call of a method from now on."""
    calls, method = [], getattr(owner, name)

    def counted(*args, **options):
        calls.append(options)
        return method(*args, **options)

    monkeypatch.setattr(owner, name, counted)
    return calls


# ------------------------------------------------------------------ settings


@with_dovecot
@pytest.mark.requirement("I15-mail-notice")
async def test_the_settings_switch_it_on_and_off_while_the_daemon_runs(
    place, box, tmp_path, monkeypatch
):
    def chosen(senders):
        values = {"email:unread": {**place.config, "notify_from": senders}}
        return Settings(tool=ToolSettings(values))

    monkeypatch.setattr(mail_watch, "MailWatch", partial(MailWatch, times=TIMES))
    attempts = count(monkeypatch, MailIdle, "run")
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
    await until(lambda: len(waiting_threads()) == 1, running)
    services.use(chosen([]))
    await until(lambda: not waiting_threads(), running)
    running.cancel()
    await asyncio.wait([running])


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
