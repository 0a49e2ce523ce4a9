"""Mails over many kills: what was accepted is not lost, nothing is done twice, and a mail of which
nobody knows whether it was sent is answered with `partialSideEffects`.
"""

import json
import re
import sqlite3
import time
from collections import Counter
from contextlib import closing
from typing import Any

import pytest

from edge.tools.announcements.mail_watch import NOTE
from tests.chaos.cast import until
from tests.chaos.places import Call, Place, is_not_sent, is_unknown, kill_moments
from tests.e2e.broker import HOST
from tests.unit.tools.mail.servers import PASSWORD, Dovecot, SmtpServer

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(120)]
LATEST_S = 1.5
"""The kill comes at most so long after the call began."""
MAILS = 12
CONFIRMS_AFTER_S = 0.3
"""How long the mail server takes to accept what it has: some kills come in this time."""
BUSY, NO_ANSWER = "busy", "drop-data"
MISBEHAVES = {0: BUSY, 4: NO_ANSWER, 9: BUSY, 10: NO_ANSWER, 11: NO_ANSWER}
"""Round → what the mail server does in it."""
FIRST_ANSWERED = 8
"""From this round on a mail's kill comes after its answer, on slow machines, too."""


def fate(answer: dict[str, Any]) -> str:
    """Return what an answer says of its mail."""
    if answer["ok"]:
        return "sent"
    return "unknown" if is_unknown(answer) else "not sent"


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
def test_waiting_for_mail_ends_with_a_killed_daemon(mail_server, writer):
    server, smtp = mail_server
    ended = rf"imap\({smtp.user}\).*Disconnected"

    def connections() -> tuple[int, int]:
        """Return how many were begun, and how many ended."""
        log = server.log()
        return log.count("Login: user="), len(re.findall(ended, log))

    assert connections() == (0, 0), "without chosen senders there is none"
    writer.stop()
    writer.sections += 'notify_from = ["bank.example"]\n'
    writer.start()
    until(lambda: _is_note_there(writer), "it looked at the mailbox")
    until(lambda: connections() == (2, 1), "the look has ended, and the wait has not")
    assert len(writer.processes()) == 1, "the daemon"
    assert not any(PASSWORD in each for each in writer.processes())
    writer.kill()
    until(lambda: connections() == (2, 2), "the server sees it")
    assert writer.children_ended()
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
