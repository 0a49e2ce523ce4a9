"""Documents in sections: stored encrypted, with their versions."""

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
from tools_cache.everyday import domain_documents as documents

ORDER = ("create", "list", "read", "edit", "restore", "search", "remove")
PLAN = "Before\n# Beds\nBeans\n## North\nFern\n### Shade\nMoss\n## South\nRoses\n# Tools\nSpade"


class Desk(PackageDesk):
    """The shipped tools with a user's own storage."""

    package = "domaindoc"

    def __init__(self, path):
        self.users = path / "users"
        self.stores = PrivateStores(self.users, key=path / "tools.key")
        super().__init__(path, shipped(), compiler.TOOLS, private=self.stores.of)


@pytest.fixture
async def desk(tmp_path):
    found = Desk(tmp_path)
    yield found
    await found.stores.close()
    await found.packages.close()


@pytest.fixture
async def plan(desk):
    await desk.ask("create", title="Garden plan", text=PLAN, labels=["Garden"])
    return desk


def within(told, whole):
    if isinstance(told, dict):
        return all(key in whole and within(value, whole[key]) for key, value in told.items())
    if isinstance(told, list):
        return len(told) == len(whole) and all(map(within, told, whole))
    return told == whole


async def test_a_document_without_text_and_one_that_is_not_there_are_said_plainly(desk):
    assert (await desk.ask("create", title="Recipes"))["text"] == "Created: Recipes"
    error = await desk.fails("read", document="garden")
    assert error.for_wearer == "There is no document “garden”."


@pytest.mark.requirement("I15-documents")
async def test_each_example_of_their_documents_is_true(desk):
    for tool in ORDER:
        doc = (compiler.TOOLS / f"domaindoc_{tool}" / "doc.md").read_text(encoding="utf-8")
        found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
        assert found
        for args, result in found:
            data = await desk.ask(tool, **json.loads(args))
            assert within(json.loads(result), data), (args, data)


async def test_headings_divide_a_text_but_not_those_in_code():
    text = "intro\n# A #\none\n```\n# no heading\n```\n####### no\n## B\n# "
    sections = documents.read_sections(text)
    assert [(s.heading, s.level) for s in sections] == [("Start", 1), ("A", 1), ("B", 2)]
    assert sections[0].text == "intro"
    assert sections[1].text == "one\n```\n# no heading\n```\n####### no"
    assert documents.read_sections("") == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# h\n" * (documents.MAX_SECTIONS + 1), "at most 100 sections, not 101"),
        ("x" * (documents.MAX_CHARACTERS + 1), "at most 49152 characters"),
    ],
)
async def test_a_document_that_is_too_large_is_refused(text, problem):
    with pytest.raises(ToolFailure, match=problem) as refused:
        documents.read_sections(text)
    assert refused.value.error.suggestion == "Divide it into two documents"


@pytest.mark.requirement("I15-documents-private")
async def test_no_word_of_a_document_is_on_disk_in_plain_text(plan):
    await plan.ask("edit", document="garden", section="Tools", text="Wheelbarrow")
    await plan.stores.close()
    stored = b"".join(file.read_bytes() for file in plan.users.rglob("*") if file.is_file())
    for word in (b"Garden", b"Beds", b"Beans", b"Wheelbarrow", b"Spade"):
        assert word not in stored
    assert stored


async def test_another_user_sees_no_document(plan):
    theirs = await plan.go(call("domaindoc:list", {}, user_id="eva"))
    assert theirs.data["documents"] == []
    assert len((await plan.ask("list"))["documents"]) == 1


async def test_a_title_is_used_once_whatever_its_capitals(plan):
    error = await plan.fails("create", title="GARDEN  plan")
    assert error.code is ErrorCode.CONFLICT
    assert error.for_wearer == "There is a document “Garden plan” already."


async def test_of_two_documents_of_a_title_at_once_one_is_stored(desk):
    new = ({"title": "A"} for _ in range(4))
    answers = await asyncio.gather(*(desk.run("domaindoc:create", args) for args in new))
    assert sum(answer.ok for answer in answers) == 1


@pytest.mark.parametrize(
    ("word", "title"),
    [("garden", "Garden"), ("garden p", "Garden plan"), ("plan", "Garden plan"), ("#2", "Garden")],
)
async def test_a_document_is_found_by_number_title_beginning_or_part(plan, word, title):
    await plan.ask("create", title="Garden")
    assert (await plan.ask("read", document=word))["title"] == title


async def test_several_documents_of_a_name_are_named(plan):
    await plan.ask("create", title="Garden furniture")
    error = await plan.fails("read", document="garden")
    assert "could be 2: 2: Garden furniture, 1: Garden plan" in error.message
    assert error.suggestion == "Give its number"
    assert "no document 'kitchen'" in (await plan.fails("read", document="kitchen")).message


async def test_a_section_is_read_with_those_below_it(plan):
    found = await plan.ask("read", document="garden", section="north")
    assert [(s["heading"], s.get("text")) for s in found["sections"]] == [
        ("North", "Fern"),
        ("Shade", None),
    ]
    assert found["text"] == "North\nFern\n4 Shade: Moss"
    whole = await plan.ask("read", document="garden", section="2", expand=True)
    assert [s["text"] for s in whole["sections"]] == ["Beans", "Fern", "Moss", "Roses"]
    error = await plan.fails("read", document="garden", section="west")
    assert error.suggestion.startswith("It has 1: Start, 2: Beds")
    assert "could be 3" in (await plan.fails("read", document="garden", section="o")).message


@pytest.mark.requirement("I15-documents-versions")
async def test_each_change_keeps_the_version_before(plan):
    await plan.ask("edit", document="1", section="beds", text="Peas")
    await plan.ask("edit", document="1", section="beds", action="append", text="Leeks")
    await plan.ask("edit", document="1", section="south", action="remove")
    await plan.ask("edit", document="1", section="East", action="add", text="Ivy", after="beds")
    newest = await plan.ask("read", document="1", expand=True)
    assert newest["version"] == 5
    assert [s["heading"] for s in newest["sections"]] == [
        "Start",
        "Beds",
        "East",
        "North",
        "Shade",
        "Tools",
    ]
    assert newest["sections"][1]["text"] == "Peas\n\nLeeks"
    first = await plan.ask("read", document="1", section="beds", version=1)
    assert first["sections"][0]["text"] == "Beans"
    assert (await plan.ask("restore", document="1", version=1))["version"] == 6
    back = await plan.ask("read", document="1", expand=True)
    assert [s["text"] for s in back["sections"]] == [
        "Before",
        "Beans",
        "Fern",
        "Moss",
        "Roses",
        "Spade",
    ]
    assert (await plan.ask("restore", document="1", version=6))["version"] == 6


async def test_the_last_twenty_versions_are_kept(plan):
    for number in range(documents.KEPT_VERSIONS + 2):
        await plan.ask("edit", document="1", section="beds", text=f"{number}")
    error = await plan.fails("read", document="1", version=2)
    assert error.suggestion == "It has versions 3 to 23"
    third = await plan.ask("read", document="1", version=3, section="beds")
    assert third["sections"][0]["text"] == "1"


async def test_a_change_of_an_older_version_is_refused(plan):
    await plan.ask("edit", document="1", section="beds", text="Peas", version=1)
    error = await plan.fails("edit", document="1", section="beds", text="Kale", version=1)
    assert error.code is ErrorCode.CONFLICT
    assert "changed meanwhile" in error.message
    kept = await plan.ask("read", document="1", section="beds")
    assert kept["sections"][0]["text"] == "Peas"


async def test_of_two_changes_at_once_one_is_refused_and_leaves_no_version(plan):
    store = documents.DomainDocuments(plan.stores.of("u", "domaindoc").db)
    new = documents.DomainDocument("A", (), (), 0.0)
    old = await store.create(new)
    await store.replace(old, new)
    with pytest.raises(ToolFailure, match="changed meanwhile"):
        await store.replace(old, new)
    rows = await plan.stores.of("u", "domaindoc").db.select("versions")
    assert [row["version"] for row in rows] == [1]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"action": "remove", "text": "x"}, "/text remove has no text"),
        ({"action": "append"}, "/text append needs text"),
        ({"text": "  \n"}, "/text replace needs text"),
    ],
)
async def test_a_change_without_its_text_is_refused(plan, args, problem):
    assert problem in (await plan.fails("edit", document="1", section="beds", **args)).message


async def test_documents_are_listed_by_title_and_label(plan):
    await plan.ask("create", title="bills", labels=["home"])
    assert (await plan.ask("list"))["text"] == "- bills\n- Garden plan"
    assert (await plan.ask("list", label="garden"))["text"] == "- Garden plan"
    assert "only blanks" in (await plan.fails("create", title="  ")).message


async def test_a_search_names_the_section_and_the_line(plan):
    await plan.ask("create", title="Forest", text="# Ground\nmoss and fern\n# Trees\nfern")
    found = await plan.ask("search", query="MOSS fern")
    assert [(r["title"], r["heading"], r["line"], r["score"]) for r in found["results"]] == [
        ("Forest", "Ground", "moss and fern", 1.0),
        ("Garden plan", "North", "Fern", 0.5),
        ("Garden plan", "Shade", "Moss", 0.5),
        ("Forest", "Trees", "fern", 0.5),
    ]
    assert (await plan.ask("search", query="moss fern", limit=1))["total"] == 4
    assert "no word" in (await plan.fails("search", query="?!")).message


async def test_only_a_whole_title_or_a_number_removes(plan):
    error = await plan.fails("remove", document="garden")
    assert error.for_wearer == "Say the whole title: “Garden plan”."
    await plan.ask("edit", document="1", section="beds", text="Peas")
    assert (await plan.ask("remove", document="garden PLAN"))["text"] == "Removed: Garden plan"
    assert (await plan.ask("list"))["documents"] == []
    db = plan.stores.of(call("x").user_id, "domaindoc").db
    assert await db.select("versions") == []


async def test_no_more_than_the_limit_of_documents_is_stored(desk, monkeypatch):
    monkeypatch.setattr(documents, "MAX_DOCUMENTS", 1)
    await desk.ask("create", title="A")
    error = await desk.fails("create", title="B")
    assert (error.code, error.message) == (ErrorCode.CONFLICT, "1 documents are stored already")


@pytest.mark.requirement("I11-consent-complete")
async def test_a_question_names_the_document_that_is_meant(desk):
    number = (await desk.ask("create", title="Garden plan", text="# North\nIvy"))["id"]
    for word in (str(number), f"#{number}", "garden PLAN"):
        found = await desk.named("domaindoc:remove", document=word)
        assert found == ["document = document: Garden plan"]
    for word in ("77", "garden"):
        with pytest.raises(ToolFailure):
            await desk.named("domaindoc:remove", document=word)
