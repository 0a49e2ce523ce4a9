"""The email tools as the daemon runs them: real storage, real children, real servers."""

import asyncio
import json
import re
import sqlite3
from dataclasses import replace
from datetime import datetime

import pytest

from edge.core.call_summary import lines
from edge.core.phrases import match
from edge.storage.tools.user_stores import PrivateStores
from edge.tools.worker_calls import WorkerCalls
from tests.e2e.broker import free_port
from tests.system import needs
from tests.unit.tools.compiled import shipped
from tests.unit.tools.mail.servers import PASSWORD
from tests.unit.tools.test_contacts import within
from tests.unit.tools.test_local import WALL, Rig
from tests.unit.tools.test_local_phrases import tools as phrase_tools
from tools_cache.api.tool import ErrorCode
from tools_cache.builder import compiler
from tools_cache.everyday import mail, naming

pytestmark = pytest.mark.enable_socket
TOOLS = ("unread", "search", "read", "send", "reply")
MAIL = {"to": ["eva@example.com"], "subject": "Lunch", "text": "At noon."}
ANNA = "From: Anna Berg <anna@example.com>\nTo: me@example.com\nSubject: Lunch\n\nAt noon?\n"


class Desk(Rig):
    """The shipped tools, with the settings of an account."""

    def __init__(self, path, settings):
        self.settings = settings
        self.users = path / "users"
        self.stores = PrivateStores(self.users, key=path / "tools.key")
        calls = WorkerCalls()
        configs = {f"email:{tool}": settings for tool in TOOLS}
        options = {"private": self.stores.of, "configs": configs, "workers": lambda: calls}
        super().__init__(path, shipped(), compiler.TOOLS, **options)

    async def ask(self, tool, *, key="k1", **args):
        name = f"email:{tool}"
        filled, problems = self.registry.check_args(
            self.registry.snapshot().find(name).definition, args
        )
        assert problems == []
        return await self.run(name, filled, idempotency_key=key)

    async def good(self, tool, **args):
        response = await self.ask(tool, **args)
        assert response.ok, response
        return response.data

    async def fails(self, tool, **args):
        response = await self.ask(tool, **args)
        assert not response.ok, response
        assert PASSWORD not in repr(response)
        return response.error


@pytest.fixture
async def desk(tmp_path, settings):
    found = Desk(tmp_path, settings)
    yield found
    await found.stores.close()
    await found.packages.close()


@needs("dovecot")
async def test_each_example_of_their_documents_is_true(desk, box):
    box.deliver(ANNA)
    for tool in TOOLS:
        doc = (compiler.TOOLS / f"email_{tool}" / "doc.md").read_text(encoding="utf-8")
        found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
        assert found
        for args, result in found:
            given = json.loads(args)
            if given.get("id"):
                given["id"] = (await desk.good("unread"))["messages"][0]["id"]
            data = await desk.good(tool, key=tool, **given)
            assert within(json.loads(result), data), (args, data)


@needs("dovecot")
async def test_the_lens_shows_who_wrote_about_what_and_when(desk, box):
    box.deliver(ANNA, ANNA.replace("Anna Berg", '"me@bank.example"').replace("Lunch", ""))
    desk.wall = 1_795_250_001 + 7_200
    data = await desk.good("unread")
    assert data["text"] == (
        "2 unread\n- anna@example.com: no subject (1 h ago)\n- Anna Berg: Lunch (2 h ago)"
    )
    assert (await desk.good("unread", limit=1))["text"].count("\n") == 1


@needs("dovecot")
async def test_an_age_stays_whole_beside_hebrew(desk, box):
    box.deliver(ANNA.replace("Lunch", "=?utf-8?B?16nXnNeV150=?="))
    desk.wall = 1_795_250_001 + 7_200
    assert (await desk.good("unread"))["text"].endswith(": שלום \u2066(2 h ago)\u2069")


@needs("dovecot")
async def test_blank_lines_of_a_mail_take_no_rows_of_the_lens(desk, box):
    box.deliver(ANNA.replace("At noon?", "Hi,\n\n \nat noon?\n\nAnna"))
    text = (await desk.good("read"))["text"]
    assert text == "Anna Berg: Lunch\nHi,\nat noon?\nAnna"


@needs("dovecot")
async def test_the_lens_shows_to_whom_sent_mail_went(desk):
    await desk.good("send", **{**MAIL, "to": ["eva@example.com", "bob@example.com"]})
    data = await desk.good("search", **{"from": "", "in": "sent", "subject": "Lunch"})
    assert data["text"].startswith("1 found\n- To eva@example.com and 1 more: Lunch (")


@needs("dovecot")
@pytest.mark.requirement("I15-mail-reading")
async def test_a_long_message_is_read_page_by_page(desk, box):
    text = " ".join(f"word{n}" for n in range(1_000))
    box.deliver(ANNA.replace("At noon?", text))
    first = await desk.good("read")
    pages, page = [first["text"].removeprefix("Anna Berg: Lunch\n")], first
    while "next_offset" in page:
        page = await desk.good("read", id=first["id"], offset=page["next_offset"])
        pages.append(page["text"])
    assert ("".join(pages), len(pages)) == (text, 3)


@needs("dovecot")
async def test_a_search_for_nothing_is_refused(desk):
    assert "nothing to search for" in (await desk.fails("search")).message
    assert "nothing to search for" in (await desk.fails("search", text="  ")).message


@needs("dovecot")
@pytest.mark.requirement("I15-mail-offline")
async def test_without_a_network_the_last_list_is_given_with_its_age(desk, box):
    box.deliver(ANNA)
    there = desk.settings["imap_port"]
    desk.settings["imap_port"] = free_port()
    error = await desk.fails("unread")
    assert (error.code, error.for_wearer) == (
        ErrorCode.NETWORK_ERROR,
        "The mail server cannot be reached.",
    )
    desk.settings["imap_port"] = there
    await desk.good("unread")
    desk.settings["imap_port"] = free_port()
    desk.wall = WALL + 3 * 3_600
    data = await desk.good("unread")
    assert data["age_s"] == 3 * 3_600
    assert data["text"].startswith("1 unread (3 h ago)\n- Anna Berg: Lunch (")
    desk.settings["username"] = "somebody-else"
    assert (await desk.fails("unread")).code is ErrorCode.NETWORK_ERROR, "not another account's"


@needs("dovecot")
@pytest.mark.requirement("I15-mail-offline")
async def test_a_wrong_password_is_not_hidden_behind_an_old_list(desk, tmp_path):
    await desk.good("unread")
    (tmp_path / "password").write_text("wrong")
    assert (await desk.fails("unread")).code is ErrorCode.AUTH


@needs("dovecot")
@pytest.mark.requirement("I15-mail-offline")
async def test_what_is_kept_is_encrypted(desk, box):
    box.deliver(ANNA.replace("Lunch", "marker-in-subject"))
    await desk.good("unread")
    await desk.good("send", **{**MAIL, "subject": "marker-in-sent"})
    await desk.stores.close()
    found = b"".join(p.read_bytes() for p in desk.users.rglob("*") if p.is_file())
    for secret in (b"marker-in", b"anna@", b"eva@", PASSWORD.encode()):
        assert secret not in found


@needs("dovecot")
@pytest.mark.requirement("I15-mail-offline")
async def test_sending_without_a_network_says_that_nothing_was_sent(desk, smtp):
    there = desk.settings["smtp_port"]
    desk.settings["smtp_port"] = free_port()
    error = await desk.fails("send", **MAIL)
    assert error.for_wearer == "The mail server cannot be reached. Nothing was sent."
    assert (error.partial_side_effects, "Nothing was sent" in error.message) == (False, True)
    desk.settings["smtp_port"] = there
    await desk.good("send", **MAIL)
    assert len(smtp.received) == 1, "what is known not to have been sent may be sent"


@needs("dovecot")
@pytest.mark.requirement("I15-mail-once")
async def test_one_key_sends_one_message(desk, box, smtp):
    answers = await asyncio.gather(*(desk.good("send", **MAIL) for _ in range(3)))
    assert sorted(answer["repeated"] for answer in answers) == [False, True, True]
    assert (len(smtp.received), len(box.sent())) == (1, 1)
    assert (await desk.fails("send", **{**MAIL, "text": "Other."})).code is ErrorCode.CONFLICT
    await desk.good("send", key="k2", **MAIL)
    assert len(smtp.received) == 2
    ids = {re.search(rb"Message-ID: (\S+)", raw)[1] for _, _, raw in smtp.received}
    assert len(ids) == 2


@needs("dovecot")
@pytest.mark.requirement("I15-mail-once")
async def test_an_unknown_fate_is_looked_for_and_never_sent_again(desk, box, smtp, dovecot):
    smtp.misbehave = "drop-data"
    for _ in range(3):
        error = await desk.fails("send", **MAIL)
        assert (error.code, error.partial_side_effects, error.retryable) == (
            ErrorCode.NETWORK_ERROR,
            True,
            False,
        )
        assert error.for_wearer == "Nobody knows whether the mail was sent."
        smtp.misbehave = ""
    assert len(smtp.received) == 1
    there = desk.settings["imap_port"]
    desk.settings["imap_port"] = free_port()
    assert (await desk.fails("send", **MAIL)).partial_side_effects
    desk.settings["imap_port"] = there
    store_as_sent(box, smtp.received[0][2])
    data = await desk.good("send", **MAIL)
    assert (data["repeated"], data["stored"], len(smtp.received)) == (True, True, 1)


def store_as_sent(box, message):
    """Do what a server does that keeps sent messages by itself."""
    folder = next(path for path in box.folder.glob(".*") if path.is_dir())
    path = folder / "new" / "1.M1.test"
    path.write_bytes(message)


@needs("dovecot")
@pytest.mark.requirement("I15-mail-once")
async def test_a_daemon_that_ends_while_it_sends_does_not_send_again(desk, smtp):
    class Ends:
        async def ask(self, worker, request, **_):
            if request["do"] == "send":
                await WorkerCalls().ask(worker, request, deadline_s=20)
                raise asyncio.CancelledError
            return await WorkerCalls().ask(worker, request, deadline_s=20)

    ends = Ends()
    desk.local._services = replace(desk.local._services, workers=lambda: ends)
    desk.settings["imap_port"], there = free_port(), desk.settings["imap_port"]
    with pytest.raises(asyncio.CancelledError):
        await desk.ask("send", **MAIL)
    desk.settings["imap_port"] = there
    assert (await desk.fails("send", **MAIL)).partial_side_effects
    assert len(smtp.received) == 1


@needs("dovecot")
async def test_old_records_of_sent_mail_are_forgotten(desk, smtp, monkeypatch):
    monkeypatch.setattr(mail, "MAX_RECORDS", 2)
    for n in range(4):
        await desk.good("send", key=f"k{n}", **MAIL)
    await desk.stores.close()
    [file] = [p for p in desk.users.rglob("*") if p.is_file() and p.read_bytes()[:6] == b"SQLite"]
    with sqlite3.connect(file) as db:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master")]
        sent = next(table for table in tables if "sent" in table)
        assert db.execute(f'SELECT count(*) FROM "{sent}"').fetchone() == (2,)
    db.close()


# ------------------------------------------------------------------ without servers


def definition(tool):
    return next(each for each in phrase_tools() if each.name == f"email:{tool}")


@pytest.mark.requirement("I15-mail-once")
def test_the_wearer_sees_all_of_a_mail_before_it_is_sent():
    longest = {
        "id": "1-1",
        "to": [f"{'a' * 60}{n:04}@{'b' * 60}.example.com" for n in range(20)],
        "subject": "s" * 200,
        "text": "word " * 4_000,
    }
    for tool in ("send", "reply"):
        about = definition(tool)
        assert about.requires_confirmation == "always"
        args = {key: longest[key] for key in about.input_schema["properties"]}
        shown = "\n".join(lines(about, args))
        for address in longest["to"]:
            assert address in shown
        assert longest["subject"] in shown
        assert longest["text"].strip() in shown


def test_the_question_about_an_answer_begins_with_who_gets_it():
    args = {"id": "1-1", "to": ["eva@example.com"], "subject": "Re: Lunch", "text": "Yes."}
    shown = lines(definition("reply"), args)
    assert shown[:3] == ("Send this answer?", "to (1):", "1. eva@example.com")
    assert "id: 1-1" in shown


def test_email_is_not_offered_before_its_account_is_named():
    for tool in TOOLS:
        about = definition(tool)
        assert dict(about.available_when) == {"configured": True}
        needed = about.raw["_meta"]["io.glassd/build"]["needs"]
        assert needed == ["imap_host", "smtp_host", "username", "address"]


@pytest.mark.parametrize(
    ("language", "sentence", "tool", "args"),
    [
        ("en", "Any new mail?", "unread", {}),
        ("en", "Do I have any new emails?", "unread", {}),
        ("en", "Please check my mail.", "unread", {}),
        ("en", "Is there any mail from Anna Berg?", "search", {"from": "Anna Berg"}),
        ("en", "any email from Anna", "search", {"from": "Anna"}),
        ("en", "Read my mail.", "read", {}),
        ("de", "Habe ich neue Mails?", "unread", {}),
        ("de", "Gibt es Mails von Anna?", "search", {"from": "Anna"}),
        ("de", "Lies meine Mails.", "read", {}),
        ("es", "¿Tengo correo nuevo?", "unread", {}),
        ("es", "¿Hay correo de Ana?", "search", {"from": "Ana"}),
        ("es", "Lee mi correo", "read", {}),
        ("fr", "Ai-je de nouveaux mails ?", "unread", {}),
        ("fr", "Y a-t-il un mail de Anne?", "search", {"from": "Anne"}),
        ("fr", "Lis mes mails", "read", {}),
        ("it", "Ho nuove email?", "unread", {}),
        ("it", "Ci sono email da Anna?", "search", {"from": "Anna"}),
        ("it", "Leggi la mia posta", "read", {}),
    ],
)
def test_a_sentence_asks_for_mail(language, sentence, tool, args):
    found = match(sentence, phrase_tools(), language)
    assert found is not None
    assert (found.tool.name, found.args) == (f"email:{tool}", args)


@pytest.mark.parametrize(
    ("sentence", "tool"),
    [
        ("what is the email address of Anna", "contacts:find"),
        ("read my notes", "notes:list"),
        ("read the document garden", "domaindoc:read"),
        ("take a note any new mail goes to Anna", "notes:add"),
    ],
)
def test_other_sentences_stay_with_their_tools(sentence, tool):
    found = match(sentence, phrase_tools(), "en", leading=True)
    assert found is not None
    assert found.tool.name == tool


@needs("dovecot")
@pytest.mark.requirement("I11-consent-complete")
async def test_a_question_names_a_mail_that_was_listed(desk, box, monkeypatch):
    async def named(number):
        return await desk.named("email:reply", id=number)

    box.deliver(ANNA)
    assert await named("1-1") == []
    first = (await desk.good("unread"))["messages"][0]
    at = datetime.fromisoformat(first["date"]).astimezone()
    words = f"id = mail: Anna Berg, Lunch, {at:%a} {at.day} {at:%b %Y, %H:%M}"
    assert await named(first["id"]) == [words]
    box.deliver(ANNA.replace("Lunch", "Dinner"))
    other = (await desk.good("search", subject="Dinner"))["messages"][0]["id"]
    assert "Dinner" in (await named(other))[0]
    assert await named(first["id"]) == [words]
    assert b"Anna" not in b"".join(f.read_bytes() for f in desk.users.rglob("*") if f.is_file())
    monkeypatch.setattr(mail, "_words", lambda _: "the same")
    await desk.good("read", id=first["id"])
    await desk.good("read", id=other)
    assert await named(first["id"]) == await named(other) == []


@needs("dovecot")
async def test_only_the_latest_mails_are_known_by_words(desk, box, monkeypatch):
    monkeypatch.setattr(naming, "MOST", 1)
    box.deliver(ANNA, ANNA.replace("Lunch", "Dinner"))
    messages = (await desk.good("unread"))["messages"]
    known = [bool(await desk.named("email:reply", id=each["id"])) for each in messages]
    assert sum(known) == 1
