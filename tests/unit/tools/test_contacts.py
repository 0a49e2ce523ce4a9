"""A user's contacts: unique names, found in a fixed order, removed by their whole name."""

import asyncio
import json
import re

import pytest

from edge.storage.tools.user_stores import PrivateStores
from tests.unit.tools.compiled import shipped
from tests.unit.tools.desk import PackageDesk
from tests.unit.tools.test_local import call
from tools_cache.api.tool import ErrorCode, ToolFailure
from tools_cache.builder import compiler
from tools_cache.everyday import contact_book

ORDER = ("add", "add_all", "find", "list", "update", "remove")
NAMES = ("Bob", "Bobby Lund", "Anna Bober", "Carl")


class Desk(PackageDesk):
    """The shipped tools with a user's own storage."""

    package = "contacts"

    def __init__(self, path):
        self.users = path / "users"
        self.stores = PrivateStores(self.users, key=path / "tools.key")
        super().__init__(path, shipped(), compiler.TOOLS, private=self.stores.of)

    async def names(self, query):
        return [contact["name"] for contact in (await self.ask("find", query=query))["contacts"]]


@pytest.fixture
async def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    await found.stores.close()
    await found.packages.close()


@pytest.fixture
async def full(desk):
    for name in NAMES:
        await desk.ask("add", name=name)
    return desk


def within(told, whole):
    if isinstance(told, dict):
        return all(key in whole and within(value, whole[key]) for key, value in told.items())
    if isinstance(told, list):
        return len(told) == len(whole) and all(map(within, told, whole))
    return told == whole


@pytest.mark.requirement("S4-38")
async def test_each_example_of_their_documents_is_true(desk):
    for tool in ORDER:
        doc = (compiler.TOOLS / f"contacts_{tool}" / "doc.md").read_text(encoding="utf-8")
        found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
        assert found
        for args, result in found:
            data = await desk.ask(tool, **json.loads(args))
            assert within(json.loads(result), data), (args, data)


async def test_a_birthday_says_what_it_is(desk):
    await desk.ask("add", name="Bob", birthday="1981-05-04")
    assert (await desk.ask("find", query="Bob"))["text"] == "Bob\nBorn 4 May 1981"


@pytest.mark.requirement("S4-38")
async def test_one_bad_contact_of_a_list_does_not_stop_the_others(desk):
    cards = [{"name": "A"}, {"name": "  "}, {"note": "x"}, {"name": "a"}, {"name": "B"}]
    results = (await desk.ask("add_all", contacts=cards))["results"]
    assert [result.get("error", "added") for result in results] == [
        "added",
        "VALIDATION",
        "VALIDATION",
        "CONFLICT",
        "added",
    ]
    assert "/name" in results[1]["message"]
    assert (await desk.ask("list"))["total"] == 2


@pytest.mark.requirement("S4-39")
@pytest.mark.parametrize("name", ["BOB", "bob", " Bob "])
async def test_a_name_is_used_once_whatever_its_capitals(full, name):
    error = await full.fails("add", name=name)
    assert error.code is ErrorCode.CONFLICT
    assert error.for_wearer == "There is a contact “Bob” already."
    assert (await full.fails("update", contact="Carl", name=name)).code is ErrorCode.CONFLICT
    assert (await full.ask("update", contact="Bob", name="BOB"))["contact"]["name"] == "BOB"


async def test_of_two_contacts_of_a_name_at_once_one_is_stored(desk):
    answers = await asyncio.gather(*(desk.run("contacts:add", {"name": "Eva"}) for _ in range(4)))
    assert sum(answer.ok for answer in answers) == 1
    assert (await desk.ask("list"))["total"] == 1


@pytest.mark.requirement("S4-40")
async def test_id_then_name_then_beginning_then_part_is_looked_for(full):
    ids = {contact["name"]: contact["id"] for contact in (await full.ask("list"))["contacts"]}
    await full.ask("add", name=f"Eve {ids['Carl']}")
    assert await full.names(ids["Carl"].upper()) == ["Carl"]
    assert await full.names("bob") == ["Bob"]
    assert await full.names("BOBB") == ["Bobby Lund"]
    assert await full.names("bo") == ["Bob", "Bobby Lund"]
    assert await full.names("ober") == ["Anna Bober"]
    assert await full.names("nobody") == []


@pytest.mark.requirement("S4-41")
async def test_of_many_matches_ten_are_named_and_the_id_is_required(desk):
    await desk.ask("add_all", contacts=[{"name": f"Ann {n:02}"} for n in range(11)])
    found = await desk.ask("find", query="ann")
    assert (len(found["contacts"]), found["total"]) == (10, 11)
    assert found["text"].startswith("11 contacts\n- Ann 00\n")
    error = await desk.fails("update", contact="ann", note="x")
    assert "'ann' could be 11 contacts: Ann 00 (" in error.message
    assert error.message.count("Ann ") == 10
    assert error.message.endswith(", and 1 more")
    assert error.suggestion == "Give the id of one of them"
    chosen = found["contacts"][3]["id"]
    changed = await desk.ask("update", contact=chosen, note="x")
    assert changed["contact"] == {"id": chosen, "name": "Ann 03", "note": "x"}


@pytest.mark.requirement("S4-42")
async def test_only_a_whole_name_or_an_id_removes_after_a_yes(full):
    error = await full.fails("remove", contact="bobby")
    assert error.for_wearer == "Say the whole name: “Bobby Lund”."
    assert (await full.ask("list"))["total"] == len(NAMES)
    assert (await full.ask("remove", contact=" bobby  LUND"))["text"] == "Removed: Bobby Lund"
    carl = (await full.ask("find", query="carl"))["contacts"][0]["id"]
    await full.ask("remove", contact=carl)
    assert await full.names("bobby") == []
    assert (await full.ask("list"))["total"] == 2
    definition = full.registry.snapshot().find("contacts:remove").definition
    assert definition.requires_confirmation == "always"


async def test_fields_that_are_not_given_stay_and_empty_ones_go(desk):
    await desk.ask(
        "add", name=" Eva  Berg ", phones=["1 1", "1  1"], birthday="1990-05-17", note="x"
    )
    changed = (await desk.ask("update", contact="eva", emails=["e@example.com"], note=""))[
        "contact"
    ]
    del changed["id"]
    assert changed == {
        "name": "Eva Berg",
        "phones": ["1 1"],
        "emails": ["e@example.com"],
        "birthday": "1990-05-17",
    }
    changed = (await desk.ask("update", contact="eva", phones=[]))["contact"]
    assert "phones" not in changed
    assert "nothing to change" in (await desk.fails("update", contact="eva")).message
    assert "only blanks" in (await desk.fails("update", contact="eva", name=" ")).message


@pytest.mark.parametrize(
    ("card", "field"),
    [
        ({"name": "A", "emails": ["no address"]}, "/emails/0"),
        ({"name": "A", "birthday": "1990-13-01"}, "/birthday"),
        ({"name": "A" * 121}, "/name"),
        ({"name": "A", "phones": ["1"] * 11}, "/phones"),
        ({"phones": ["1"]}, "name"),
    ],
)
async def test_a_wrong_field_is_named(desk, card, field):
    definition = desk.registry.snapshot().find("contacts:add").definition
    _, problems = desk.registry.check_args(definition, card)
    assert any(field in str(problem) for problem in problems)


@pytest.mark.requirement("I15-contacts-private")
async def test_no_word_of_a_contact_is_on_disk_in_plain_text(desk):
    await desk.ask("add", name="Eva Berg", phones=["+49 30 901820"], note="allergic")
    theirs = await desk.go(call("contacts:list", {}, user_id="other"))
    assert theirs.data["total"] == 0
    await desk.stores.close()
    stored = b"".join(file.read_bytes() for file in desk.users.rglob("*") if file.is_file())
    assert stored
    for word in (b"Eva", b"Berg", b"901820", b"allergic"):
        assert word not in stored


async def test_a_long_list_is_read_in_parts(desk, monkeypatch):
    monkeypatch.setattr(contact_book, "_PAGE", contact_book._PAGE.replace("1000", "2"))
    await desk.ask("add_all", contacts=[{"name": f"N{n}"} for n in range(5)])
    names, after = [], {}
    while True:
        part = await desk.ask("list", limit=2, **after)
        names += [contact["name"] for contact in part["contacts"]]
        if "next" not in part:
            break
        after = {"after": part["next"]}
    assert names == ["N0", "N1", "N2", "N3", "N4"]
    assert part["total"] == 5


async def test_no_more_than_the_limit_of_contacts_is_stored(desk, monkeypatch):
    monkeypatch.setattr(contact_book, "MAX_CONTACTS", 1)
    await desk.ask("add", name="A")
    error = await desk.fails("add", name="B")
    assert error.code is ErrorCode.CONFLICT
    assert "stored already" in error.message


async def test_a_contact_that_was_removed_meanwhile_is_not_changed(full):
    book = contact_book.ContactBook(full.stores.of(call("x").user_id, "contacts").db)
    (carl,) = await book.matches("carl")
    await book.remove(carl)
    with pytest.raises(ToolFailure, match="removed meanwhile"):
        await book.change(carl, {"note": "x"})


@pytest.mark.requirement("I11-consent-complete")
async def test_a_question_names_the_contact_that_is_meant(full, monkeypatch):
    ids = {contact["name"]: contact["id"] for contact in (await full.ask("list"))["contacts"]}
    for word in (ids["Carl"], "car", "CARL"):
        found = await full.named("contacts:update", contact=word)
        assert found == ["contact = contact: Carl"]
        if word == "car":
            with pytest.raises(ToolFailure, match="only a part"):
                await full.named("contacts:remove", contact=word)
        else:
            assert await full.named("contacts:remove", contact=word) == found
    for tool in ("contacts:update", "contacts:remove"):
        with pytest.raises(ToolFailure, match="could be"):
            await full.named(tool, contact="b")
    monkeypatch.setattr(contact_book, "check_free", lambda *_: None)  # as an import may bring it
    await full.ask("add", name="Carl")
    assert await full.named("contacts:remove", contact=ids["Carl"]) == []
