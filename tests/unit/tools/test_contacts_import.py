"""Contacts from vCards and from a CardDAV server: the real Radicale, real children, real SQLite."""

import asyncio
import json
import re
import time

import pytest

from edge.config import tool_options
from edge.storage.tools.user_stores import PrivateStores
from edge.tools.worker_calls import WorkerCalls
from edge.tools.workers import address_book, contacts
from edge.tools.workers.contact_cards import read_cards
from tests.e2e.certificates import Authority
from tests.unit.tools import address_book_server
from tests.unit.tools.address_book_server import LOOPBACK, PASSWORD, USER
from tests.unit.tools.compiled import shipped
from tests.unit.tools.test_contacts import within
from tests.unit.tools.test_local import Rig
from tests.unit.tools.workers import local_server
from tools_cache.builder import compiler
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday import contact_book
from tools_cache.everyday.contact_cards import merge

pytestmark = pytest.mark.enable_socket
ENABLE = "set enabled = true in [tool.contacts]"


def vcard(name, *lines, uid="", version="3.0"):
    lines = (f"UID:{uid}", *lines) if uid else lines
    return "\r\n".join(["BEGIN:VCARD", f"VERSION:{version}", f"FN:{name}", *lines, "END:VCARD", ""])


def one(*lines):
    """Return what the only card of these lines gives."""
    (found,) = read_cards("\n".join(["BEGIN:VCARD", *lines, "END:VCARD"]))
    return found


class Thread:
    """Runs the child's part in a thread, so that a test can see what it is asked."""

    def __init__(self):
        self.requests = []

    async def ask(self, worker, request, *, deadline_s):
        assert worker == "contacts"
        assert deadline_s > address_book.TIMEOUT_S
        self.requests.append(json.loads(json.dumps(request)))
        return await asyncio.to_thread(contacts.answer, self.requests[-1])


class Desk(Rig):
    """The shipped tools with a user's own storage."""

    def __init__(self, path, workers, **settings):
        self.users = path / "users"
        self.stores = PrivateStores(self.users, key=path / "tools.key")
        self.settings = settings
        super().__init__(
            path,
            shipped(),
            compiler.TOOLS,
            private=self.stores.of,
            configs={"contacts:sync": self.settings},
            workers=lambda: workers,
        )

    async def ask(self, tool, **args):
        return (await self.good(f"contacts:{tool}", args)).data

    async def fails(self, tool, **args):
        response = await self.run(f"contacts:{tool}", args)
        assert not response.ok
        return response.error

    async def takes(self, *cards):
        found = await self.ask("import", vcard="".join(cards))
        return [result["result"] for result in found["results"]]

    async def person(self, name):
        (found,) = (await self.ask("find", query=name))["contacts"]
        return {key: value for key, value in found.items() if key != "id"}

    async def names(self):
        return [contact["name"] for contact in (await self.ask("list", limit=100))["contacts"]]


@pytest.fixture
def workers():
    return Thread()


@pytest.fixture
async def desk(tmp_path, workers):
    found = Desk(tmp_path, workers)
    yield found
    await found.stores.close()
    await found.packages.close()


@pytest.fixture
def server(tmp_path):
    with address_book_server.serving(tmp_path) as found:
        yield found


@pytest.fixture
def synced(desk, server, tmp_path):
    """The desk, with the settings of the server."""
    (tmp_path / "secret").write_text(f"{PASSWORD}\n", encoding="utf-8")
    desk.settings |= {
        "url": server.url,
        "username": USER,
        "password_file": str(tmp_path / "secret"),
        "ca_file": "",
    }
    return desk


async def check_examples(desk, tool):
    doc = (compiler.TOOLS / f"contacts_{tool}" / "doc.md").read_text(encoding="utf-8")
    found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
    assert found
    for args, result in found:
        data = await desk.ask(tool, **json.loads(args))
        assert within(json.loads(result), data), (args, data)


# ------------------------------------------------------------------ cards


async def test_each_example_of_the_import_is_true(desk):
    await check_examples(desk, "import")


def test_the_fields_of_a_card_are_read_and_others_ignored():
    found = one(
        "VERSION:3.0",
        "N:Lund;Eva;Maria;Dr.;",
        "FN:Eva Lund\\, Dr.",
        "item1.TEL;type=CELL;type=pref:+49 30 1",
        "TEL;VALUE=uri:tel:+49-30-2",
        "EMAIL;TYPE=INTERNET:eva@exam",
        " ple.com",
        "ADR;TYPE=HOME:;;Weg 1\\, links;Berlin;;10115;Germany",
        "BDAY;VALUE=date:19900517",
        "NOTE:first\\nline\\; end",
        "PHOTO;ENCODING=b:AAAA",
        " BBBB",
        "ORG:Firm",
        "UID:urn:uuid:4fbe8971",
    )
    assert found == {
        "uid": "4fbe8971",
        "left_out": [],
        "card": {
            "name": "Eva Lund, Dr.",
            "phones": ["+49 30 1", "+49-30-2"],
            "emails": ["eva@example.com"],
            "addresses": ["Weg 1, links, 10115 Berlin, Germany"],
            "birthday": "1990-05-17",
            "note": "first line; end",
        },
    }
    assert one("VERSION:4.0", "N:Lund;Eva;;Dr.;")["card"] == {"name": "Dr. Eva Lund"}


def test_cards_of_old_phones_are_read():
    found = one(
        "VERSION:2.1",
        "N;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:M=FCller;J=F6rg=",
        ";;;",
        "TEL;HOME;VOICE:1",
        "NOTE;QUOTED-PRINTABLE;CHARSET=UTF-8:=C3=84pfel=",
        "saft",
    )
    card = {"name": "Jörg Müller", "phones": ["1"], "note": "Äpfelsaft"}
    assert found == {"uid": "", "card": card, "left_out": []}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["VERSION:3.0", "TEL:1"], "The card has no name (FN or N)"),
        (["FN:\u202e\u200b "], "The card has no name (FN or N)"),
        (["FN:" + "x" * 121], "The name is longer than 120 characters"),
        (["FN:Friends", "X-ADDRESSBOOKSERVER-KIND:group"], "It is a group, not a person"),
        (["VERSION:5.0", "FN:Eva"], "VERSION: '5.0' is none of 2.1, 3.0 and 4.0"),
        (["FN;X=\x00:Eva"], "FN: it cannot be read"),
        (["FN:Eva\ufffd"], "FN: it was read with a wrong charset"),
        (
            ["N;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:M=FCller"],
            "N: it is not written in UTF-8",
        ),
        (
            ["N;ENCODING=QUOTED-PRINTABLE;CHARSET=rot13:Eva"],
            "N: its charset 'rot13' is not known",
        ),
        (["FN:Eva", *["TEL:1"] * 200], "The card has more than 200 properties of a contact"),
    ],
)
def test_a_card_that_cannot_be_a_contact_is_refused_with_the_reason(lines, why):
    assert one(*lines)["refused"] == why


def test_what_a_contact_cannot_have_is_left_out_and_told():
    found = one(
        "FN:Eva",
        *(f"TEL:{n}" for n in range(11)),
        "TEL:" + "9" * 41,
        "EMAIL:no address",
        "ADR:;;" + "x" * 301,
        "BDAY:1990-02-30",
        "BDAY:--0517",
        "BDAY;X-APPLE-OMIT-YEAR=1604:1604-05-17",
        "NOTE:" + "y" * 1001,
    )
    assert (found["card"]["phones"], found["card"]["note"]) == (
        [str(n) for n in range(10)],
        "y" * 999 + "…",
    )
    assert found["card"].keys() == {"name", "phones", "note"}
    assert found["left_out"] == [
        "TEL: a contact has at most 10",
        "TEL: it is longer than 40 characters",
        "EMAIL: it is no e-mail address",
        "ADR: it is longer than 300 characters",
        "BDAY: there is no such day",
        "BDAY: it is no date with a year",
        "BDAY: it is no date with a year",
        "NOTE: what follows 1000 characters",
    ]


def test_signs_that_turn_or_hide_text_are_removed_and_letters_stay():
    found = one("FN:E\u202eva\u2066\x07 دانش\u200cجو", "TEL:\u200e+1", "NOTE:a\\n\u2028b")["card"]
    assert found == {"name": "Eva دانش\u200cجو", "phones": ["+1"], "note": "a b"}


@pytest.mark.parametrize(
    "line",
    [
        "TEL" + ";a" * 30_000 + "x",
        "TEL;" + "a=," * 30_000,
        "TEL" + ";a=b" * 30_000 + ":1",
        "TEL;a" + '=""' * 30_000,
        "NOTE:" + "\\" * 100_000,
        "EMAIL:" + "a@" * 40_000,
        "NOTE;QUOTED-PRINTABLE:" + "=\n" * 40_000,
        "ADR:" + ";" * 100_000,
        "FN:" + " " * 100_000,
        "\n " * 40_000,
        "BEGIN:VCARD\n" * 10_000,
    ],
)
def test_a_hostile_line_takes_no_long_time(line):
    begun = time.process_time()
    list(read_cards(f"BEGIN:VCARD\nFN:Eva\n{line}\nEND:VCARD"))
    assert time.process_time() - begun < 2


def test_a_card_within_a_card_is_no_card_of_its_own():
    inner = vcard("Inner", "TEL:2")
    found = list(read_cards(vcard("Outer", "AGENT:", inner, "TEL:1") + vcard("Next")))
    assert [each["card"] for each in found] == [
        {"name": "Outer", "phones": ["1"]},
        {"name": "Next"},
    ]


# ------------------------------------------------------------------ the import


@pytest.mark.requirement("I15-vcard")
async def test_a_wrong_card_does_not_stop_the_others(desk):
    text = vcard("A") + vcard(" ") + vcard("a", uid="x") + vcard("B") + "BEGIN:VCARD\nFN:C"
    found = await desk.ask("import", vcard=text)
    assert [result["result"] for result in found["results"]] == [
        "added",
        "refused",
        "refused",
        "added",
        "refused",
    ]
    assert [result.get("error") for result in found["results"] if "error" in result] == [
        "VALIDATION",
        "CONFLICT",
        "VALIDATION",
    ]
    assert found["results"][4]["message"] == "The card has no END:VCARD"
    assert found["text"] == "Imported: 2 added, 3 refused"
    assert await desk.names() == ["A", "B"]


@pytest.mark.requirement("I15-vcard")
async def test_a_card_is_known_by_its_uid_and_by_its_name(desk):
    assert await desk.takes(vcard("Eva", "TEL:1", uid="u")) == ["added"]
    assert await desk.takes(vcard("Eva", "TEL:1", uid="u")) == ["unchanged"]
    assert await desk.takes(vcard("Eva Lund", "TEL:2", uid="u")) == ["updated"]
    assert await desk.person("eva") == {"name": "Eva Lund", "phones": ["2"]}
    assert await desk.takes(vcard("EVA LUND", "TEL:3")) == ["updated"]
    assert await desk.person("eva") == {"name": "Eva Lund", "phones": ["2", "3"]}


async def test_an_import_only_adds_to_what_was_entered_here(desk):
    await desk.ask("add", name="Eva", phones=["1"], note="mine", birthday="1990-05-17")
    card = vcard("eva", "TEL:2", "NOTE:theirs", "EMAIL:e@example.com", "BDAY:1991-01-01")
    assert await desk.takes(card) == ["updated"]
    assert await desk.person("eva") == {
        "name": "Eva",
        "phones": ["1", "2"],
        "emails": ["e@example.com"],
        "birthday": "1990-05-17",
        "note": "mine",
    }


def test_what_was_changed_here_stays():
    base = {"name": "A", "phones": ["1", "2"], "note": "old", "birthday": "1990-01-01"}
    now = {"name": "A", "phones": ["2", "mine"], "note": "mine", "birthday": "1990-01-01"}
    new = {"name": "B", "phones": ["1", "3"], "note": "new"}
    assert merge(now, base, new) == ({"name": "B", "phones": ["mine", "3"], "note": "mine"}, [])
    many = {"phones": [str(n) for n in range(10)]}
    assert merge(many, {}, {"phones": ["x"]}) == (many, ["phones: a contact has at most 10"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hello", "/vcard has no card"),
        ("ä" * 65_537, "/vcard is larger than 128 KiB"),
        ("\ud800", "/vcard is not text in Unicode"),
        (vcard("A") * 501, "/vcard has more than 500 cards"),
    ],
)
async def test_a_text_that_is_none_of_cards_is_refused(desk, text, why):
    error = await desk.fails("import", vcard=text)
    assert (error.code, error.message) == (
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: {why}",
    )
    assert await desk.names() == []


async def test_a_full_list_of_contacts_takes_updates_and_no_more(desk, monkeypatch):
    monkeypatch.setattr(contact_book, "MAX_CONTACTS", 1)
    assert await desk.takes(vcard("A"), vcard("B"), vcard("C")) == ["added", "refused", "refused"]
    assert await desk.takes(vcard("A", "TEL:1")) == ["updated"]


async def test_a_whole_file_is_read_in_a_child(tmp_path):
    desk = Desk(tmp_path, WorkerCalls())
    text = "".join(vcard(f"Имя {n}", "NOTE:" + "ж" * 60) for n in range(500))
    assert (await desk.ask("import", vcard=text))["added"] == 500
    await desk.stores.close()
    await desk.packages.close()
    stored = b"".join(file.read_bytes() for file in desk.users.rglob("*") if file.is_file())
    assert stored
    assert "Имя".encode() not in stored


# ------------------------------------------------------------------ the server


async def test_each_example_of_the_sync_is_true(synced, server):
    server.put("a", vcard("Anna", uid="a"))
    server.put("b", vcard("Ben", uid="b"))
    await check_examples(synced, "sync")


@pytest.mark.requirement("I15-carddav")
async def test_only_what_changed_is_read_and_the_server_is_not_written_to(synced, server, workers):
    server.fill(vcard(f"Name {n:03}", f"TEL:{n}", uid=f"u{n}") for n in range(450))
    assert (await synced.ask("sync"))["text"] == "Contacts: 450 added"
    assert len(workers.requests) == 3
    server.seen.clear()
    assert (await synced.ask("sync"))["text"] == "The contacts are up to date"
    assert server.seen == ["PROPFIND"]
    server.put("new", vcard("New", uid="new"))
    server.seen.clear()
    assert (await synced.ask("sync"))["text"] == "Contacts: 1 added"
    assert server.seen == ["PROPFIND", "PROPFIND", "REPORT"]
    assert (await synced.ask("list"))["total"] == 451


@pytest.mark.requirement("I15-carddav")
async def test_changed_and_removed_cards_are_changed_and_removed_here(synced, server):
    for name in ("Anna", "Ben", "Carl"):
        server.put(name, vcard(name, "TEL:1", uid=name))
    await synced.ask("sync")
    server.put("Anna", vcard("Anna Berg", "TEL:2", uid="Anna"))
    server.delete("Ben")
    assert (await synced.ask("sync"))["text"] == "Contacts: 1 updated, 1 removed"
    assert await synced.names() == ["Anna Berg", "Carl"]
    assert (await synced.person("anna"))["phones"] == ["2"]


@pytest.mark.requirement("I15-carddav-own")
async def test_what_is_of_the_wearer_stays(synced, server):
    await synced.ask("add", name="Mine", note="x")
    for name in ("Mine", "Anna", "Ben", "Carl", "Dora"):
        server.put(name, vcard(name, "TEL:1", uid=name))
    await synced.ask("sync")
    await synced.ask("update", contact="Anna", phones=["1", "7"])
    await synced.ask("remove", contact="Carl")
    server.put("Anna", vcard("Anna", "TEL:2", uid="Anna"))
    await synced.ask("sync")
    assert (await synced.person("anna"))["phones"] == ["7", "2"]
    assert "Carl" not in await synced.names()
    for name in ("Mine", "Anna", "Ben"):
        server.delete(name)
    assert (await synced.ask("sync"))["text"] == "Contacts: 1 removed, 2 kept"
    assert await synced.names() == ["Anna", "Dora", "Mine"]
    assert await synced.person("mine") == {"name": "Mine", "phones": ["1"], "note": "x"}
    server.put("Carl", vcard("Carl", "TEL:5", uid="Carl"))
    await synced.ask("sync")
    assert (await synced.person("carl"))["phones"] == ["5"]


@pytest.mark.requirement("I15-carddav-own")
async def test_a_contact_that_was_here_before_its_equal_card_stays(synced, server):
    await synced.ask("add", name="Twin", phones=["1"])
    server.put("twin", vcard("Twin", "TEL:1", uid="twin"))
    server.put("other", vcard("Other", uid="other"))
    assert (await synced.ask("sync"))["text"] == "Contacts: 1 added"
    server.delete("twin")
    assert (await synced.ask("sync"))["text"] == "Contacts: 1 kept"
    assert await synced.names() == ["Other", "Twin"]


@pytest.mark.requirement("I15-carddav-own")
async def test_an_empty_address_book_removes_nothing(synced, server):
    server.put("a", vcard("Anna", uid="a"))
    await synced.ask("sync")
    server.delete("a")
    for _ in range(2):
        assert (await synced.ask("sync"))["text"] == "Contacts: 1 kept"
    assert await synced.names() == ["Anna"]


async def test_of_two_cards_of_one_name_the_second_is_told_until_it_has_another(synced, server):
    server.put("a", vcard("Eva", "TEL:1", uid="a"))
    await synced.ask("sync")
    server.put("b", vcard("EVA", "TEL:2", uid="b"))
    for _ in range(2):
        found = await synced.ask("sync")
        assert found["text"].startswith("Contacts: 1 refused\n- EVA: There is a contact 'Eva'")
        assert found["problems"][0]["error"] == "CONFLICT"
    server.put("a", vcard("Eva Berg", "TEL:1", uid="a"))
    await synced.ask("sync")
    await synced.ask("sync")
    assert await synced.names() == ["EVA", "Eva Berg"]


async def test_another_address_book_removes_nothing_of_the_first(synced, server):
    server.put("a", vcard("Anna", uid="a"))
    await synced.ask("sync")
    server.do("MKCOL", "/eva/other/", address_book_server._MAKE, "application/xml")
    server.do("PUT", "/eva/other/b.vcf", vcard("Ben", uid="b"), "text/vcard")
    synced.settings["url"] = server.url.replace("contacts", "other")
    assert (await synced.ask("sync"))["text"] == "Contacts: 1 added"
    assert await synced.names() == ["Anna", "Ben"]


async def test_a_card_with_a_strange_address_is_read(synced, server):
    server.put("a b@c&ä%41", vcard("Anna", uid="a"))
    assert (await synced.ask("sync"))["added"] == 1
    assert (await synced.ask("sync"))["unchanged"] == 0


async def test_a_wrong_password_names_its_setting(tmp_path, server):
    (tmp_path / "secret").write_text("wrong", encoding="utf-8")
    desk = Desk(
        tmp_path,
        WorkerCalls(),
        url=server.url,
        username=USER,
        password_file=str(tmp_path / "secret"),
        ca_file="",
    )
    error = await desk.fails("sync")
    assert (error.code, error.suggestion) == (
        ErrorCode.AUTH,
        "Check username and password_file in [tool.contacts.sync]",
    )
    assert error.for_wearer == "The address book does not accept the password."
    await desk.stores.close()
    await desk.packages.close()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "must hold one line of text, 1 to 4096 bytes"),
        (b"hunter2\nline", "must hold one line of text, 1 to 4096 bytes"),
        (b"\xff", "is not text in UTF-8"),
    ],
)
async def test_a_password_file_that_cannot_be_used_is_told_without_it(
    synced, server, tmp_path, content, why
):
    synced.settings["password_file"] = str(tmp_path / "other")
    if content is not None:
        (tmp_path / "other").write_bytes(content)
    error = await synced.fails("sync")
    assert (error.code, error.message) == (ErrorCode.AUTH, f"The file of password_file {why}")
    assert server.seen == []


async def test_a_server_that_is_away_changes_nothing(synced, server):
    server.put("a", vcard("Anna", uid="a"))
    await synced.ask("sync")
    synced.settings["url"] = f"http://{LOOPBACK}:1/eva/contacts/"
    error = await synced.fails("sync")
    assert error.code is ErrorCode.NETWORK_ERROR
    assert re.fullmatch(
        r"127\.0\.0\.1 cannot be reached: .*; the contacts stay as they are", error.message
    )
    assert error.for_wearer == "The address book cannot be reached."
    assert await synced.names() == ["Anna"]


async def test_what_was_read_before_the_server_went_away_is_kept(synced, server, workers):
    server.fill(vcard(f"Name {n:03}", uid=f"u{n}") for n in range(250))
    real = workers.ask

    async def once(worker, request, *, deadline_s):
        if workers.requests:
            raise ToolFailure.of(ErrorCode.NETWORK_ERROR, "away")
        return await real(worker, request, deadline_s=deadline_s)

    workers.ask = once
    assert (await synced.fails("sync")).message == "away"
    assert (await synced.ask("list"))["total"] == 200
    workers.ask = real
    assert (await synced.ask("sync"))["text"] == "Contacts: 50 added"


async def test_an_address_that_is_no_address_book_is_told(synced, server):
    for path, why in (
        ("/eva/", "is that of no address book"),
        ("/eva/nothing/", "is status 404: there is no address book"),
    ):
        synced.settings["url"] = f"http://{LOOPBACK}:{server.port}{path}"
        error = await synced.fails("sync")
        assert error.code is ErrorCode.HTTP_ERROR
        assert error.message == f"The answer of the address book server 127.0.0.1 {why}"
        assert error.suggestion.startswith("Set url in [tool.contacts.sync]")


# ------------------------------------------------------------------ a hostile server

HEAD = (
    '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav">'
)


def listing(*names):
    items = "".join(
        f"<D:response><D:href>/book/{name}</D:href><D:propstat><D:prop><D:getetag>1</D:getetag>"
        "</D:prop></D:propstat></D:response>"
        for name in names
    )
    book = (
        "<D:response><D:href>/book/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/>"
        "<C:addressbook/></D:resourcetype></D:prop></D:propstat></D:response>"
    )
    return f"{HEAD}{book}{items}</D:multistatus>".encode()


@pytest.fixture
def hostile(desk, monkeypatch):
    """Answers of a server that is no real one: `answers[method]` is the body of a 207."""
    answers = {}
    with local_server.serving() as local:

        def answer(request):
            body = answers[request.command]
            request.send_response(207)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)

        local.answers["/book/"] = answer
        desk.settings |= {
            "url": local.url("/book/"),
            "username": "",
            "password_file": "",
            "ca_file": "",
        }
        yield answers


@pytest.mark.parametrize(
    "body",
    [
        b"not xml",
        b"",
        b"<html/>",
        b'<!DOCTYPE x [<!ENTITY a "b">]>' + listing(),
        listing().decode().encode("utf-16"),
        listing("ä").decode().encode("latin-1"),
        listing("ä").decode().replace("?>", ' encoding="latin-1"?>', 1).encode("latin-1"),
    ],
)
async def test_an_answer_that_is_not_understood_changes_nothing(desk, hostile, body):
    hostile["PROPFIND"] = body
    error = await desk.fails("sync")
    assert error.message == "The answer of the address book server 127.0.0.1 is not understood"
    assert await desk.names() == []


async def test_cards_that_are_too_large_are_refused_and_the_others_read(desk, hostile, monkeypatch):
    def data(name, text):
        return (
            f"<D:response><D:href>/book/{name}</D:href><D:propstat><D:prop><C:address-data>{text}"
            "</C:address-data></D:prop></D:propstat></D:response>"
        )

    hostile["PROPFIND"] = listing("a", "b", "c", "gone")
    cards = data("a", vcard("A\u202e")) + data("b", "no card") + data("elsewhere", vcard("E"))
    hostile["REPORT"] = f"{HEAD}{cards}{data('c', vcard('C', 'PHOTO:' + 'A' * 9000))}".encode()
    hostile["REPORT"] += b"</D:multistatus>"
    found = await desk.ask("sync")
    assert found["text"] == "Contacts: 2 added, 1 refused\n- a card: It is no vCard or is too large"
    assert await desk.names() == ["A", "C"]
    monkeypatch.setattr(address_book, "MAX_ANSWER", 8000)
    hostile["PROPFIND"] = listing("a", "c", "a2", "c2")
    found = await desk.ask("sync")
    assert (found["refused"], found["text"].count("It is no vCard or is too large")) == (2, 2)
    assert await desk.names() == ["A", "C"]


async def test_a_card_that_went_away_meanwhile_is_not_here(desk, hostile):
    hostile["PROPFIND"] = listing("a%40x", "gone")
    hostile["REPORT"] = (
        f"{HEAD}<D:response><D:href>/book/a@x</D:href><D:propstat><D:prop><C:address-data>"
        f"{vcard('A')}</C:address-data></D:prop></D:propstat></D:response></D:multistatus>"
    ).encode()
    found = contacts.read({**desk.settings, "ctag": "", "known": {}})
    assert [card["card"]["name"] for card in found["cards"]] == ["A"]
    assert found["here"] == [found["cards"][0]["key"]]


async def test_a_request_that_failed_has_changed_nothing_on_the_server(desk):
    with local_server.serving() as local:
        local.answers["/book/"] = (207, {"Content-Encoding": "gzip"}, b"x")
        desk.settings |= {
            "url": local.url("/book/"),
            "username": "",
            "password_file": "",
            "ca_file": "",
        }
        error = await desk.fails("sync")
    assert (error.code, error.partial_side_effects) == (ErrorCode.HTTP_ERROR, False)


async def test_an_address_book_that_is_too_long_is_refused(desk, hostile, monkeypatch):
    monkeypatch.setattr(contacts, "MOST_LISTED", 2)
    hostile["PROPFIND"] = listing("a", "b", "c")
    assert (await desk.fails("sync")).message == (
        "The address book has 3 cards, at most 2 are read"
    )


async def test_a_certificate_of_the_owners_own_authority_is_trusted_if_it_is_named(desk, tmp_path):
    authority = Authority(tmp_path)
    pair = authority.sign(LOOPBACK)
    both = tmp_path / "both.pem"
    both.write_bytes(pair.cert.read_bytes() + pair.key.read_bytes())
    with local_server.serving(both) as local:
        url = f"https://{LOOPBACK}:{local.port}/book/"
        local.answers["/book/"] = (207, {}, listing())
        desk.settings |= {"url": url, "username": "", "password_file": "", "ca_file": ""}
        error = await desk.fails("sync")
        assert "its certificate is not valid" in error.message
        assert "ca_file in [tool.contacts.sync]" in error.suggestion
        for file, why in ((both.with_name("none"), "No such file"), (pair.key, "no certificates")):
            desk.settings["ca_file"] = str(file)
            error = await desk.fails("sync")
            assert error.code is ErrorCode.TOOL_UNAVAILABLE
            assert error.message.startswith("The file of ca_file cannot be used: ")
            assert why in error.message
        desk.settings["ca_file"] = str(authority.file)
        assert (await desk.ask("sync"))["text"] == "The contacts are up to date"


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("tables", "off"),
    [
        ({}, {"contacts:import": ENABLE, "contacts:sync": "set url"}),
        ({"import": {"enabled": True}}, {"contacts:sync": "set url"}),
        ({"url": "https://x.example/b"}, {"contacts:import": ENABLE}),
        ({"enabled": True, "url": "http://x.example/eva@x.example/b/"}, {}),
        (
            {"enabled": True, "sync": {"url": "https://eva:pw@x.example/"}},
            {"contacts:sync": "url: String should match"},
        ),
    ],
)
def test_both_are_off_until_they_are_wanted(tables, off):
    settings, problems = tool_options.read({"contacts": tables}, compiler.TOOLS)
    found = {name: why for name, why in settings.off.items() if name.startswith("contacts:")}
    assert problems == []
    assert found.keys() == off.keys()
    assert all(off[name] in why for name, why in found.items())
