"""Story: mail of chosen senders comes; the wearer sees and hears it once, at the latest when the
glasses are back. A real Dovecot, and the daemon as it ships.
"""

import asyncio
from functools import partial

import pytest

from edge.tools.announcements import mail_watch
from tests.scenarios.world import SOON_S, until, world
from tests.system import needs
from tests.unit.tools.mail.servers import PASSWORD, Dovecot

pytestmark = [pytest.mark.asyncio(loop_scope="session"), needs("dovecot")]
MAIL = "From: {}\nTo: me@example.com\nSubject: {}\n\nAt noon?\n"
ANNA = "Anna Berg <anna@example.com>"


@pytest.fixture
def account(tmp_path):
    """A mailbox, and the settings that watch it."""
    server = Dovecot()
    try:
        server.start()
        box = server.mailbox()
        password = tmp_path / "password"
        password.write_text(PASSWORD, encoding="utf-8")
        yield (
            box,
            {
                "imap_host": "localhost",
                "imap_port": server.port,
                "smtp_host": "localhost",
                "username": box.user,
                "address": "me@example.com",
                "password_file": str(password),
                "ca_file": str(server.authority.ca),
                "notify_from": ["anna@example.com"],
            },
        )
    finally:
        server.close()


def shown(place, words):
    """Return how many pages with these words the lens drew."""
    return sum(words in " ".join(page["lines"]) for page in place.drawn())


@pytest.mark.requirement("I15-mail-notice")
async def test_new_mail_is_on_the_lens_and_in_the_ear_once(tmp_path, account, monkeypatch):
    box, settings = account
    often = mail_watch.TIMES._replace(between=0.0)
    monkeypatch.setattr(mail_watch, "MailWatch", partial(mail_watch.MailWatch, times=often))
    async with world(tmp_path, "mock:full", tool={"email": settings}) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        looked = await note_after(place, None)
        box.deliver(MAIL.format("Shop <news@shop.example>", "Offers"), MAIL.format(ANNA, "Lunch"))
        await place.lens_shows("New mail from Anna Berg: Lunch")
        await until(place.spoken, "it is spoken")
        lunch = await note_after(place, looked)

        await place.switch_glasses_off()
        await until(lambda: not place.daemon.link.status().ready, "the glasses are away")
        box.deliver(MAIL.format(ANNA, "Dinner"), MAIL.format(ANNA, "Breakfast"))
        await place.stop_daemon()
        await place.start_daemon()
        await place.switch_glasses_on()
        await place.ready()
        await place.lens_shows("2 new messages, the latest from Anna Berg: Breakfast")
        await note_after(place, lunch)
        await place.call("glasses:clear")  # else the next daemon draws its last page again
        await place.stop_daemon()
        await place.start_daemon()
        await place.ready()
        box.deliver(MAIL.format(ANNA, "Supper"))
        await place.lens_shows("New mail from Anna Berg: Supper")
        assert shown(place, "2 new messages") == 1, "a restart announces nothing again"


async def note_after(place, before):
    """Wait until the daemon stored that it looked further than before."""
    async with asyncio.timeout(SOON_S):
        while (note := await place.daemon.notes.get(mail_watch.NOTE)) == before:
            await asyncio.sleep(0.01)
    return note


@pytest.mark.requirement("I15-mail-notice", "I15-mail-secrets")
async def test_the_status_says_in_a_sentence_that_the_password_is_wrong(tmp_path, account, caplog):
    _, settings = account
    (tmp_path / "password").write_text("hunter2")
    async with world(tmp_path, "mock:full", tool={"email": settings}) as place:
        await place.start_daemon()
        await until(lambda: place.daemon.status()["alarms"], "an alarm")
        status = place.daemon.status()
        assert status["alarms"] == {
            "mail": "New mail is not announced: The mail server localhost does not accept the user"
            " name or the password. Check username and password_file in [tool.email]"
        }
        assert status["next_action"] == status["alarms"]["mail"]
    assert "hunter2" not in caplog.text
