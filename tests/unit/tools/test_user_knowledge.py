"""The knowledge base also finds the sections of the caller's own documents."""

import pytest

from edge.storage.tools.knowledge import KnowledgeBase
from edge.storage.tools.user_stores import PrivateStores
from edge.tools.user_knowledge import UserKnowledge
from tests.unit.storage.support import WALL, Hands
from tools_cache.api.knowledge import Question
from tools_cache.api.tool import ErrorCode, ToolFailure
from tools_cache.everyday import domain_documents as sections

PLAN = "# Beds\nBeans\n## North\nFern and moss\n## South\nRoses\n# Tools\nSpade"


def about(words, **more):
    return Question(terms=tuple(words.split()), **more)


class Place:
    """A knowledge base with a folder and the documents of two users."""

    def __init__(self, path):
        self.path, self.open_to_caller = path, True
        (path / "kb").mkdir()
        self.stores = PrivateStores(path / "users", key=path / "tools.key")
        self.shared = KnowledgeBase(
            path / "knowledge.db", folder=path / "kb", notes=self.notes, clock=Hands().clock
        )

    async def notes(self):
        return [("1", "Water the fern", WALL)]

    def documents(self, user):
        return sections.DomainDocuments(self.stores.of(user, "domaindoc").db)

    def knowledge(self, user="eva"):
        async def database():
            return self.stores.of(user, "domaindoc").db if self.open_to_caller else None

        return UserKnowledge(self.shared, database)

    async def write(self, title="Garden plan", text=PLAN, *, user="eva", labels=(), at=WALL):
        parts = sections.read_sections(text)
        made = sections.DomainDocument(title, labels, parts, at)
        return await self.documents(user).create(made)

    async def ids(self, question, user="eva"):
        return [one.id for one in await self.knowledge(user).search(question)]


@pytest.fixture
async def place(tmp_path):
    made = Place(tmp_path)
    yield made
    await made.stores.close()
    await made.shared.close()


@pytest.mark.requirement("I15-documents-known")
async def test_a_result_names_the_document_and_the_section(place):
    await place.write(labels=("Garden",))
    (found,) = await place.knowledge().search(about("moss"))
    assert (found.id, found.type, found.source_type) == ("section:1/2", "section", "domaindoc")
    assert found.title == "Garden plan, section North"
    assert found.snippet == "Fern and moss"
    assert found.metadata == {"document": "Garden plan", "section": "North", "tags": ["Garden"]}
    assert (found.score, found.updated) == (1.0, WALL)


async def test_sections_stand_among_files_and_notes_best_first(place):
    (place.path / "kb" / "fern.md").write_text("# Fern\n\nLikes shade\n")
    await place.write()
    assert set(await place.ids(about("fern"))) == {"fern.md", "section:1/2"}
    assert set(await place.ids(about("fern", namespace="personal"))) == {"note:1", "section:1/2"}
    assert await place.ids(about("fern", namespace="public")) == []
    assert await place.ids(about("fern moss", limit=1)) == ["section:1/2"]


async def test_filters_apply_to_sections_too(place):
    await place.write(labels=("Garden", "2026"))
    for kind, there in (("section", True), ("note", False), ("markdown", False)):
        assert await place.ids(about("moss", type=kind)) == ["section:1/2"] * there
    for tags, there in ((("garden",), True), (("garden", "2026"), True), (("work",), False)):
        assert await place.ids(about("moss", tags=tags)) == ["section:1/2"] * there
    assert await place.ids(about("moss", since=WALL + 1)) == []
    assert await place.ids(about("moss", until=WALL)) == []
    assert await place.ids(about("moss", since=WALL, until=WALL + 1)) == ["section:1/2"]


@pytest.mark.requirement("I15-documents-known")
async def test_documents_of_another_user_or_closed_ones_are_not_found(place):
    await place.write()
    assert await place.ids(about("moss"), user="ben") == []
    place.open_to_caller = False
    assert await place.ids(about("moss")) == []
    assert await place.knowledge().get("section:1/2") is None


async def test_a_section_is_read_with_those_below_it(place):
    await place.write()
    found = await place.knowledge().get("section:1/1")
    assert found.title == "Garden plan, section Beds"
    assert found.text == "# Beds\nBeans\n\n## North\nFern and moss\n\n## South\nRoses"
    for gone in ("section:1/9", "section:1/0", "section:2/1", "section:", "section:1/²"):
        assert await place.knowledge().get(gone) is None
    assert (await place.knowledge().get("note:1")).text == "Water the fern"


@pytest.mark.requirement("I15-documents-known")
async def test_no_section_is_readable_on_disk_after_a_search(place):
    await place.write()
    assert await place.ids(about("moss"))
    files = [path for path in place.path.rglob("*") if path.is_file()]
    assert files
    assert not [path.name for path in files if b"moss" in path.read_bytes()]


async def test_sections_are_found_while_the_folder_is_away(place):
    await place.write()
    (place.path / "kb").rmdir()
    assert await place.ids(about("moss")) == ["section:1/2"]
    with pytest.raises(ToolFailure, match="folder"):
        await place.ids(about("zebra"))


async def test_a_lost_key_hides_sections_and_is_said_when_nothing_else_is_found(place):
    await place.write()
    await place.stores.close()
    (place.path / "tools.key").unlink()
    place.stores = PrivateStores(place.path / "users", key=place.path / "tools.key")
    (place.path / "kb" / "fern.md").write_text("# Fern\n\nLikes shade\n")
    assert await place.ids(about("fern")) == ["fern.md"]
    with pytest.raises(ToolFailure) as caught:
        await place.ids(about("moss"))
    assert caught.value.error.code is ErrorCode.TOOL_UNAVAILABLE
