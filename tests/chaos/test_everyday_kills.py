"""Mails and pages over many kills: what was accepted is not lost, nothing is done twice, and a mail
of which nobody knows whether it was sent is answered with `partialSideEffects`.
"""

import json
import random
import re
import sqlite3
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from edge.tools.mail_watch import NOTE
from tests.chaos.callers import BrokeOff, NotThere, is_pending, request
from tests.chaos.cast import until
from tests.e2e.broker import HOST
from tests.e2e.processes import CLI, Child
from tests.unit.tools.mail.servers import PASSWORD, Dovecot, SmtpServer

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(120)]
SEED = 15
LATEST_S = 1.5
"""The kill comes at most so long after the call began."""
QUICK_S = 0.08
"""Half of the kills of pages come as early as this: sending one takes no longer."""
MAILS = 12
PAGES = 16
CONFIRMS_AFTER_S = 0.3
"""How long the mail server takes to accept what it has: some kills come in this time."""
BUSY, NO_ANSWER = "busy", "drop-data"
MISBEHAVES = {0: BUSY, 4: NO_ANSWER, 9: BUSY, 10: NO_ANSWER, 11: NO_ANSWER}
"""Round → what the mail server does in it."""
FIRST_ANSWERED = 8
"""From this round on a mail's kill comes after its answer, on slow machines, too."""
FIRST_OFFLINE = 12
"""The first round in which the cloud is away: pages wait on disk."""
BOTH_EVERY = 3
"""In each round of so many the recipient is killed, too."""
AGAIN_S = 0.05
FINAL_S = 30.0


def kill_moments(part: str, rounds: int, latest_s: float) -> list[float]:
    """Return when each round's kill comes, early ones first: one in each slice of the time, so that
    some come before, some during, and some after the work on slow and on fast machines.
    """
    chance = random.Random(f"{SEED} {part}")
    return [(number + chance.random()) * latest_s / rounds for number in range(rounds)]


class Place:
    """One daemon process without glasses, which is killed and restarted on the same state."""

    def __init__(self, folder: Path, name: str, sections: str) -> None:
        folder.mkdir()
        self.folder, self.name, self.sections = folder, name, sections
        self.socket = folder / "control.sock"
        self.kills = 0
        self.child: Child | None = None

    def start(self, cloud: dict[str, Any] | None = None) -> None:
        """Start the process, and wait until it answers; with a cloud, until it is connected."""
        config = self.folder / "glassd.toml"
        config.write_text(self._settings(cloud), encoding="utf-8")
        env = {"GLASSD_SOCKET": str(self.socket), "NO_COLOR": "1"}
        argv = [*CLI, "run", "--config", str(config)]
        self.child = Child(argv, log=self.folder / "daemon.log", env=env)
        until(self.status, f"{self.name} answers: {self.child.said()}", every_s=AGAIN_S)

    def await_cloud(self) -> None:
        def connected() -> bool:
            found = self.status()
            return bool(found) and (found["uplink"]["state"], found["registry"]["origin"]) == (
                "up",
                "cloud",
            )

        until(connected, f"{self.name} is connected", every_s=AGAIN_S)

    def _settings(self, cloud: dict[str, Any] | None) -> str:
        uplink = ""
        if cloud is not None:
            host, _, port = cloud["mqtt"].rpartition(":")
            uplink = f"""
[uplink]
host = "{host}"
port = {port}
tls = false
reconnect_max_s = 1.0
[cloud]
url = "{cloud["http"]}"
"""
        return f"""
version = 1
[edge]
id = "{self.name}"
state_dir = "{self.folder / "state"}"
[glasses]
radio = "inproc"
connect = "paired"
[audio]
speech = "off"
[control]
socket = "{self.socket}"
group = ""
{uplink}{self.sections}"""

    def kill(self) -> None:
        assert self.child is not None
        self.child.kill9()
        self.kills += 1

    def stop(self) -> None:
        if self.child is not None:
            self.child.stop()

    def status(self) -> dict[str, Any]:
        with suppress(NotThere, BrokeOff):
            return request(self.socket, "GET", "/v1/status", timeout_s=10)[1]
        return {}

    def allow(self, tool: str) -> None:
        """The owner says once that this tool need not ask any more; it holds over the kills."""
        order = {"tool": tool, "grant": "always"}
        status, answer = request(self.socket.with_name("owner.sock"), "PUT", "/v1/grants", order)
        assert status == 200, answer

    def ask(self, tool: str, args: dict[str, Any], key: str | None = None) -> dict[str, Any]:
        """Ask once. Raises NotThere, BrokeOff."""
        body = {"tool": tool, "args": args, **({"idempotency_key": key} if key else {})}
        status, answer = request(self.socket, "POST", "/v1/call", body)
        assert status == 200, (status, answer)
        return answer

    def ask_until_final(self, tool: str, args: dict[str, Any], key: str) -> dict[str, Any]:
        """Ask with the same key until the answer says what became of the call."""
        end = time.monotonic() + FINAL_S
        while not is_final(answer := self.ask(tool, args, key)):
            assert answer["ok"] or answer["error"]["retryable"], answer
            assert time.monotonic() < end, answer
            time.sleep(AGAIN_S)
        return answer

    def promise(self, tool: str, args: dict[str, Any], key: str) -> str:
        """Have a call accepted, without waiting for its answer; return its id."""
        body = {"tool": tool, "args": args, "idempotency_key": key, "wait": False}
        status, answer = request(self.socket, "POST", "/v1/call", body)
        assert status == 202, (status, answer)
        return answer["call_id"]

    def outcome(self, call_id: str) -> dict[str, Any]:
        """Return the answer of a call that was accepted, which nobody asks for again."""
        path = f"/v1/calls/{call_id}?wait={FINAL_S:.0f}"
        status, found = request(self.socket, "GET", path)
        assert (status, bool(found.get("response"))) == (200, True), (status, found)
        return found["response"]

    def children_ended(self) -> bool:
        """Whether no process is left that the daemon, or one that was killed, started."""
        return not self.processes()

    def processes(self) -> list[str]:
        """Return the command line of each process of this place, the daemon's too."""
        mark, found = f"GLASSD_SOCKET={self.socket}".encode(), []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_text(encoding="utf-8"))
        return found


class Call:
    """One call that the kill interrupts. With `promised` it was accepted before, and nobody asks
    again; else its caller waits for the answer, and asks again with the same key.
    """

    def __init__(
        self, place: Place, tool: str, args: dict[str, Any], key: str, *, promised: bool
    ) -> None:
        self._place, self._asked = place, (tool, args, key)
        self.early: dict[str, Any] | None = None
        """The answer that came before the kill."""
        self._call_id = place.promise(*self._asked) if promised else ""
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        if not promised:
            self._waiter.start()

    def _wait(self) -> None:
        with suppress(NotThere, BrokeOff):
            self.early = self._place.ask(*self._asked)

    def await_answer(self) -> None:
        """Wait for the answer of the daemon that is not killed yet."""
        if self._call_id:
            self.early = self._place.outcome(self._call_id)
        else:
            self._waiter.join(FINAL_S)
        assert self.early is not None, "no answer in time"

    def broken_off(self) -> bool:
        """Whether a caller waited in vain."""
        if self._call_id:
            return False
        self._waiter.join(10)
        return self.early is None

    def final(self) -> dict[str, Any]:
        """Return what the daemon that was restarted says."""
        if self._call_id:
            return self._place.outcome(self._call_id)
        return self._place.ask_until_final(*self._asked)


def is_unknown(answer: dict[str, Any]) -> bool:
    return answer["ok"] is False and answer["error"].get("partialSideEffects") is True


def is_not_sent(answer: dict[str, Any]) -> bool:
    """Whether the answer says in words that nothing was sent."""
    return (
        answer["ok"] is False
        and not is_unknown(answer)
        and ("nothing was sent" in answer["error"]["message"].lower())
    )


def is_final(answer: dict[str, Any]) -> bool:
    done = answer["ok"] is True and not is_pending(answer)
    return done or is_unknown(answer) or is_not_sent(answer)


def fate(answer: dict[str, Any]) -> str:
    """Return what an answer says of its mail."""
    if answer["ok"]:
        return "sent"
    return "unknown" if is_unknown(answer) else "not sent"


# ------------------------------------------------------------------ mails


@pytest.fixture
def mail_server():
    server = Dovecot()
    try:
        server.start()
        box = server.mailbox()
        smtp = SmtpServer(server.authority)
        smtp.user, smtp.confirms_after_s = box.user, CONFIRMS_AFTER_S
        try:
            yield server, smtp
        finally:
            smtp.close()
    finally:
        server.close()


@pytest.fixture
def writer(mail_server, tmp_path):
    server, smtp = mail_server
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n", encoding="utf-8")
    place = Place(
        tmp_path / "writer",
        "writer",
        f"""
[tool.email]
imap_host = "localhost"
imap_port = {server.port}
smtp_host = "{HOST}"
smtp_port = {smtp.port}
username = "{smtp.user}"
address = "me@example.com"
password_file = "{secret}"
ca_file = "{server.authority.ca}"
""",
    )
    try:
        place.start()
        yield place
    finally:
        place.stop()


def mail(number: int) -> dict[str, Any]:
    return {"to": ["eva@example.com"], "subject": f"mail {number}", "text": "At noon."}


def subjects(smtp: SmtpServer) -> Counter[str]:
    """Return how often the server took each mail."""
    found = [re.search(rb"^Subject: (.*)\r$", body, re.MULTILINE) for _, _, body in smtp.received]
    return Counter(match[1].decode() for match in found if match)


@pytest.mark.requirement("I15-mail-once")
def test_a_mail_is_sent_once_or_its_fate_is_told_over_many_kills(mail_server, writer):
    _, smtp = mail_server
    writer.allow("email:send")
    broken_off, answers = 0, []
    for number, moment_s in enumerate(kill_moments("mail", MAILS, LATEST_S)):
        smtp.misbehave = MISBEHAVES.get(number, "")
        key, promised = f"mail-{number}", number % 2 == 1
        call = Call(writer, "email:send", mail(number), key, promised=promised)
        time.sleep(moment_s)
        if number >= FIRST_ANSWERED:
            call.await_answer()
        writer.kill()
        broken_off += call.broken_off()
        writer.start()
        answers.append(call.final())
        if call.early is not None:
            assert fate(answers[-1]) == fate(call.early), (number, call.early, answers[-1])
    smtp.misbehave = ""
    _ask_for_all_again(writer, answers)
    writer.stop()
    until(writer.children_ended, "no process is left that still sends")

    taken = subjects(smtp)
    for number, answer in enumerate(answers):
        _judge(number, answer, taken)
    fates = Counter(map(fate, answers))
    told = json.dumps([fates, answers])
    print(f"mails: {dict(fates)}, {broken_off} callers broken off")
    assert writer.kills == MAILS
    assert sum(taken.values()) == len(smtp.received), "each mail that was taken is one of these"
    assert broken_off >= 1, "kills came during calls"
    assert min(fates[one] for one in ("sent", "unknown", "not sent")) >= 1, told


@pytest.mark.requirement("I15-mail-once")
def test_a_mail_cut_off_by_a_kill_is_found_among_the_sent_ones(mail_server, writer):
    _, smtp = mail_server
    writer.allow("email:send")
    call = Call(writer, "email:send", mail(1), "cut-off", promised=False)
    until(lambda: smtp.received, "the server has the mail and has not confirmed it", every_s=0.01)
    writer.kill()
    assert call.broken_off()
    writer.start()
    answer = call.final()
    assert is_unknown(answer), answer
    assert "email:search with in: sent" in answer["error"]["suggestion"]
    look = {"from": "", "in": "sent", "subject": "mail 1"}
    until(lambda: writer.ask("email:search", look)["data"]["messages"], "it is found", every_s=0.1)
    [found] = writer.ask("email:search", look)["data"]["messages"]
    assert (found["subject"], found["to"][0]["address"]) == ("mail 1", "eva@example.com")
    again = writer.ask("email:send", mail(1), "cut-off")
    assert (again["error"], len(smtp.received)) == (answer["error"], 1), "it is not sent again"


@pytest.mark.requirement("I15-mail-notice", "I15-mail-secrets")
def test_the_process_that_waits_for_mail_ends_with_a_killed_daemon(writer):
    def waiting() -> list[str]:
        return [each for each in writer.processes() if "workers.mail_watch" in each]

    assert waiting() == [], "without chosen senders there is none"
    writer.stop()
    writer.sections += 'notify_from = ["bank.example"]\n'
    writer.start()
    until(lambda: _is_note_there(writer), "it looked at the mailbox")
    assert len(waiting()) == 1
    assert not any(PASSWORD in each for each in writer.processes())
    writer.kill()
    until(writer.children_ended, "it ended, too")
    log = (writer.folder / "daemon.log").read_text(encoding="utf-8")
    assert PASSWORD not in log


def _is_note_there(place: Place) -> bool:
    with closing(sqlite3.connect(place.folder / "state" / "glassd.db")) as database:
        sql = "SELECT count(*) FROM notes WHERE name = ?"
        return bool(database.execute(sql, (NOTE,)).fetchone()[0])


def _ask_for_all_again(writer: Place, answers: list[dict[str, Any]]) -> None:
    """With a server that does what it should: no mail of known or unknown fate goes out again."""
    for number, before in enumerate(answers):
        if not is_not_sent(before):
            again = writer.ask("email:send", mail(number), f"mail-{number}")
            assert again["ok"] or is_unknown(again), again
            assert again["ok"] or not before["ok"], "what was sent stays sent"


def _judge(number: int, answer: dict[str, Any], taken: Counter[str]) -> None:
    """Hold one answer against what the server took."""
    times = taken[f"mail {number}"]
    allowed = {"sent": {1}, "unknown": {0, 1}, "not sent": {0}}[fate(answer)]
    assert times in allowed, (number, times, answer)
    if MISBEHAVES.get(number) == BUSY:
        assert not answer["ok"], "the server took none"


# ------------------------------------------------------------------ pages


class Cloud:
    """The small cloud, which can be away and comes back on the same state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.where: dict[str, Any] = {}
        self._child: Child | None = None

    def start(self) -> None:
        state = str(self._folder / "cloud")
        self._child = Child(
            [*CLI, "devcloud", "--http", f"{HOST}:0", "--state", state, "--json"],
            log=self._folder / "cloud.log",
            announces=True,
        )
        self.where = self._child.announcement

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None


@pytest.fixture
def cloud(tmp_path):
    made = Cloud(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def pagers(cloud, tmp_path):
    """Anna, who sends, and Ben."""
    places = [
        Place(tmp_path / name, name, "\n[tool.pager]\nenabled = true\n") for name in ("a", "b")
    ]
    try:
        for place in places:
            place.start(cloud.where)
        for place in places:
            place.await_cloud()
        yield places
    finally:
        for place in places:
            place.stop()


def created(place: Place) -> str:
    answer = place.ask("pager:create", {"name": place.name})
    assert answer["ok"], answer
    assert answer["data"]["registered"] is True
    return answer["data"]["pager"]


@pytest.mark.requirement("I15-pager-relay")
def test_each_page_arrives_once_over_many_kills_of_both_sides(cloud, pagers):
    anna, ben = pagers
    created(anna)
    to = created(ben)
    anna.allow("pager:send")
    quick = iter(kill_moments("quick", PAGES // 2, QUICK_S))
    slow = iter(kill_moments("slow", PAGES // 2, LATEST_S))
    broken_off, waited = 0, 0
    for number in range(PAGES):
        if number == FIRST_OFFLINE:
            cloud.stop()
            until(lambda: anna.status()["uplink"]["state"] != "up", "it knows that it is offline")
        call = Call(
            anna, "pager:send", page(number, to), f"page-{number}", promised=number % 2 == 1
        )
        time.sleep(next(quick if number % 4 < 2 else slow))
        killed = pagers if number % BOTH_EVERY == 0 else [anna]
        for place in killed:
            place.kill()
        broken_off += call.broken_off()
        for place in killed:
            place.start(cloud.where)
        if number < FIRST_OFFLINE:
            anna.await_cloud()
        answer = call.final()
        assert answer["ok"], (number, answer)
        waited += answer["data"]["waits"]
    print(f"pages: {waited} waited, {broken_off} callers broken off")
    assert anna.kills == PAGES
    assert waited >= PAGES - FIRST_OFFLINE, "those of the rounds without a cloud waited"
    assert broken_off >= 1, "kills came during calls"

    for place in pagers:
        place.kill()
    cloud.start()
    for place in pagers:
        place.start(cloud.where)
    pages = sorted(f"page {number}" for number in range(PAGES))
    until(lambda: set(pages) <= set(inbox(ben)), "each has arrived", within_s=40, every_s=0.2)
    for number in range(PAGES):
        again = anna.ask("pager:send", page(number, to), f"page-{number}")
        assert again["ok"], again
    last = anna.ask("pager:send", page(PAGES, to), f"page-{PAGES}")
    assert last["ok"], last
    until(lambda: f"page {PAGES}" in inbox(ben), "the last has arrived", every_s=0.2)
    assert sorted(inbox(ben)) == sorted([*pages, f"page {PAGES}"])


def page(number: int, to: str) -> dict[str, Any]:
    return {"to": to, "text": f"page {number}"}


def inbox(place: Place) -> list[str]:
    return [one["message"] for one in place.ask("pager:inbox", {})["data"]["messages"]]
