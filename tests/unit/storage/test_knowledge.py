"""The knowledge base on real SQLite FTS5 and real files: what is found, what is taken in again,
and what cannot break it.
"""

import os
import sqlite3
import threading

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from edge.runtime.clock import Clock
from edge.storage.sqlite.database import SqliteDatabase, StoreFull
from edge.storage.tools import documents
from edge.storage.tools.knowledge import LOOK_AGAIN_S, KnowledgeBase
from tools_cache.api.knowledge import Question, terms
from tools_cache.api.tool import ErrorCode, ToolFailure

WALL = 1_795_257_000.0  # 2026-11-21 10:30 UTC


class House:
    """A knowledge base over `root`; time passes when told to."""

    def __init__(self, path, *, folder=True):
        self.root = path / "kb"
        self.root.mkdir(exist_ok=True)
        self.path = path / "state" / "knowledge.db"
        self.notes = []
        self.now = 100.0
        self.asked = 0
        clock = Clock(boot=lambda: self.now, wall=lambda: WALL + self.now, boot_id="b")
        self.base = KnowledgeBase(
            self.path, folder=self.root if folder else None, notes=self._notes, clock=clock
        )

    async def _notes(self):
        self.asked += 1
        return self.notes

    def write(self, name, text="word", *, mtime=WALL - 1000):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        os.utime(path, (mtime, mtime))
        return path

    async def find(self, query, **more):
        self.now += LOOK_AGAIN_S
        return [e.id for e in await self.search(query, **more)]

    async def search(self, query, **more):
        return await self.base.search(Question(terms=terms(query), **more))


@pytest.fixture
async def house(tmp_path):
    made = House(tmp_path)
    yield made
    await made.base.close()


@pytest.fixture
def reads(monkeypatch):
    """The files that were read, in order."""
    seen = []
    real = documents.read
    monkeypatch.setattr(documents, "read", lambda one: seen.append(one.id) or real(one))
    return seen


# ------------------------------------------------------------------ found


@pytest.mark.requirement("S2-119")
async def test_documents_are_found_by_words_best_first_with_the_passage(house):
    house.write(
        "returns.md",
        "---\ntitle: Returns\ntags: [Shop, 'legal']\nurl: "
        "https://example.com/r\n---\n# Ignored\nEverything may be returned within 30 days.",
    )
    house.write("studio/shop.md", "# The shop\nOpen from nine. Nothing about giving back.")
    house.write("studio/days.txt", "thirty days has november " * 30)
    (best, other) = await house.search("returned days")
    assert (best.id, best.title, best.type, best.source_type, best.url) == (
        "returns.md",
        "Returns",
        "markdown",
        "file",
        "https://example.com/r",
    )
    assert best.metadata == {"namespace": "studio", "tags": ["shop", "legal"]}
    assert "returned within 30 days" in best.snippet
    assert best.updated == WALL - 1000
    assert (other.id, other.title) == ("studio/days.txt", "days")
    assert 0 < other.score < best.score <= 1
    assert await house.search("zebra") == []


async def test_a_document_that_has_more_of_the_words_comes_before_one_that_has_the_rarest(house):
    for n in range(6):
        house.write(f"{n}.txt", "red green blue")
    house.write("rare.txt", "zygote")
    assert (await house.find("red green blue zygote", limit=10))[-1] == "rare.txt"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("RETURN", True),
        ("retur", True),
        ("eturn", False),
        ("étage", True),
        ("ETAGE", True),
        ("straße", True),
        ("AND", False),
        ("NEAR", False),
        ("title:return", True),
        ("return*", True),
        ('"return', True),
        ("return AND (", True),
        ("-return", True),
        ("body : x", False),
        ("^return", True),
        ("{return}", True),
        ("日本語", True),
    ],
)
async def test_words_are_found_in_any_case_from_their_beginning_and_nothing_is_syntax(
    house, query, found
):
    house.write("a.md", "return Étage Straße 日本語")
    assert await house.find(query) == (["a.md"] if found else [])


async def test_no_query_breaks_the_search(house):
    house.write("a.md", "x")
    await house.find("x")

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(
            st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
            min_size=1,
            max_size=30,
        )
    )
    def any_query(queries):
        connection = sqlite3.connect(":memory:")
        connection.execute(
            "CREATE VIRTUAL TABLE words USING fts5(body, "
            "tokenize = \"unicode61 remove_diacritics 2\", prefix = '3')"
        )
        for query in queries:
            if found := terms(query):
                connection.execute(
                    "SELECT * FROM words WHERE words MATCH ?",
                    (" OR ".join(f'"{t}" *' for t in found),),
                ).fetchall()
        connection.close()

    any_query()


@pytest.mark.requirement("S2-120")
async def test_filters_are_kept(house):
    house.write("a.md", "---\ntags: one, two\n---\nword", mtime=WALL)
    house.write("b.txt", "word", mtime=WALL - 86_400)
    house.write("public/c.md", "word")
    house.write("personal/deep/er/d.md", "word")
    house.write("elsewhere/e.md", "word", mtime=WALL - 10 * 86_400)
    assert sorted(await house.find("word")) == ["a.md", "b.txt", "elsewhere/e.md"]
    assert await house.find("word", namespace="public") == ["public/c.md"]
    assert await house.find("word", namespace="personal") == ["personal/deep/er/d.md"]
    assert await house.find("word", type="text") == ["b.txt"]
    assert await house.find("word", tags=("ONE", "two")) == ["a.md"]
    assert await house.find("word", tags=("one", "three")) == []
    assert await house.find("word", since=WALL) == ["a.md"]
    assert await house.find("word", until=WALL - 86_400) == ["elsewhere/e.md"]
    assert await house.find("word", since=WALL - 86_400, until=WALL) == ["b.txt"]
    assert len(await house.find("word", limit=2)) == 2


async def test_notes_are_personal_and_come_and_go(house):
    house.notes = [("1", "Bring the umbrella back", WALL - 50), ("2", "word", WALL)]
    (found,) = await house.search("umbrella", namespace="personal")
    assert (found.id, found.type, found.source_type, found.title, found.updated) == (
        "note:1",
        "note",
        "note",
        "Bring the umbrella back",
        WALL - 50,
    )
    assert await house.find("umbrella") == []
    house.notes = [("2", "another word", WALL)]
    assert await house.find("umbrella", namespace="personal") == []
    assert await house.find("another", namespace="personal") == ["note:2"]


async def test_a_document_is_given_whole_by_its_id(house):
    house.write("personal/a.md", "---\ntitle: T\n---\nbody\r\nmore")
    found = await house.base.get("personal/a.md")
    assert (found.title, found.text, found.type, found.tags) == ("T", "body\nmore", "markdown", ())
    assert await house.base.get("personal/none.md") is None
    assert await house.base.get("../kb/personal/a.md") is None


# ------------------------------------------------------------------ kept up


async def test_only_what_changed_is_read_again(house, reads):
    house.write("a.md", "old")
    house.write("b.md", "same")
    assert await house.find("old") == ["a.md"]
    assert sorted(reads) == ["a.md", "b.md"]
    reads.clear()
    assert await house.find("same") == ["b.md"]
    assert reads == []
    house.write("a.md", "new", mtime=WALL - 500)
    (house.root / "b.md").unlink()
    house.write("c.md", "third")
    assert await house.find("old") == []
    assert await house.find("new") == ["a.md"]
    assert await house.find("same") == []
    assert await house.find("third") == ["c.md"]
    assert sorted(reads) == ["a.md", "c.md"]


async def test_a_file_changed_while_it_was_read_is_read_once_more(house, reads):
    """Same size, same time: only that it was read within two seconds of its time tells."""
    now = WALL + house.now + 1
    house.write("a.md", "first", mtime=now)
    assert await house.find("first") == ["a.md"]
    house.write("a.md", "other", mtime=now)
    assert await house.find("other") == ["a.md"]
    assert await house.find("other") == ["a.md"]
    assert reads == ["a.md", "a.md"], "and not for ever"


async def test_a_second_question_of_the_same_moment_does_not_look_again(house):
    house.write("a.md", "word")
    await house.search("word")
    house.write("b.md", "word")
    assert [e.id for e in await house.search("word")] == ["a.md"]
    assert house.asked == 1
    assert len(await house.find("word")) == 2


async def test_the_index_outlives_the_daemon(tmp_path, reads):
    first = House(tmp_path)
    first.write("a.md", "word")
    assert await first.find("word") == ["a.md"]
    await first.base.close()
    reads.clear()
    again = House(tmp_path)
    assert await again.find("word") == ["a.md"]
    assert reads == []
    await again.base.close()


async def test_nothing_is_opened_before_the_first_question(tmp_path):
    house = House(tmp_path)
    before = threading.active_count()
    assert not house.path.exists()
    assert threading.active_count() == before
    await house.base.close()


async def test_without_a_folder_there_are_notes(tmp_path):
    house = House(tmp_path, folder=False)
    house.write("a.md", "word")
    house.notes = [("1", "word", WALL)]
    assert await house.find("word") == []
    assert await house.find("word", namespace="personal") == ["note:1"]
    await house.base.close()


# ------------------------------------------------------------------ what could break it


async def test_links_hidden_files_and_other_kinds_are_left_alone(house, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("word")
    (house.root / "link.md").symlink_to(outside / "secret.md")
    (house.root / "studio").symlink_to(outside)
    house.write(".hidden.md")
    house.write(".git/a.md")
    house.write("a.pdf")
    os.mkfifo(house.root / "pipe.md")
    assert await house.find("word") == []


async def test_what_is_no_text_or_too_large_is_left_out_with_one_word(house, caplog, reads):
    house.write("binary.txt", b"word\xff\xfe")
    house.write("nul.txt", b"word\0")
    house.write("big.txt", b"word " * (documents.MAX_FILE // 5 + 1))
    house.write("n" * 200 + "/" + "m" * 100 + ".txt")
    (house.root / os.fsdecode(b"odd\xff.txt")).write_bytes(b"word")
    house.write("good.txt")
    assert await house.find("word") == ["good.txt"]
    assert await house.find("word") == ["good.txt"]
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [
        (
            "5 documents are left out of the knowledge base (too large, "
            "too many, no text, or not ours to read)"
        )
    ]
    assert reads.count("binary.txt") == 1, "and not looked at again before it changes"
    house.write("binary.txt", "word", mtime=WALL - 10)
    assert sorted(await house.find("word")) == ["binary.txt", "good.txt"]


async def test_a_folder_that_is_away_for_a_while_costs_nothing(house, caplog):
    caplog.set_level("INFO")
    house.write("a.md")
    assert await house.find("word") == ["a.md"]
    house.root.rename(house.root.with_name("away"))
    assert await house.find("word") == ["a.md"]
    assert await house.find("word") == ["a.md"]
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1
    house.root.with_name("away").rename(house.root)
    (house.root / "a.md").unlink()
    assert await house.find("word") == []
    assert "whole again" in caplog.text


@pytest.mark.requirement("I11-folder-said")
@pytest.mark.parametrize("there", ["missing", "a file"])
async def test_what_is_not_found_while_the_folder_cannot_be_read_is_no_empty_answer(house, there):
    house.root.rename(house.root.with_name("away"))
    why = "there is no such folder"
    if there == "a file":
        house.root.write_text("x")
        why = "this is a file, not a folder"
    house.notes = [("1", "a word of mine", WALL)]
    assert await house.find("mine", namespace="personal") == ["note:1"], "what is found is true"
    for asked in (house.find("nothing"), house.base.get("a.md")):
        with pytest.raises(ToolFailure) as e:
            await asked
        assert (e.value.error.code, e.value.error.message) == (
            ErrorCode.TOOL_UNAVAILABLE,
            f"The knowledge base's folder {house.root} cannot be used: {why}",
        )
        assert "[kb] folder" in e.value.error.suggestion
    house.root.unlink(missing_ok=True)
    house.root.with_name("away").rename(house.root)
    house.write("a.md")
    assert [e.id for e in await house.search("word", namespace="studio")] == ["a.md"], (
        "at once, when it is there"
    )
    assert await house.find("nothing") == []


async def test_a_folder_named_while_it_looks_is_that_of_the_next_question(house, tmp_path):
    house.write("old.md")
    other = tmp_path / "other"
    other.mkdir()
    (other / "new.md").write_text("word")

    async def meanwhile():
        house.base.follow(other)
        return []

    house.base._notes = meanwhile
    house.now += LOOK_AGAIN_S
    await house.search("word")
    assert [e.id for e in await house.search("word")] == ["new.md"]


async def test_a_folder_below_that_may_not_be_read_costs_only_itself(house, monkeypatch, caplog):
    house.write("a.md")
    house.write("studio/b.md")
    house.write("lost+found/c.md")
    shut, real = {str(house.root / "lost+found")}, os.scandir

    def scandir(path):
        if path in shut:
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(documents.os, "scandir", scandir)
    assert sorted(await house.find("word")) == ["a.md", "studio/b.md"]
    assert [r.getMessage()[:26] for r in caplog.records if r.levelname == "WARNING"] == [
        "1 documents are left out o"
    ]
    shut.add(str(house.root))
    assert sorted(await house.find("word")) == ["a.md", "studio/b.md"], "what was known stays"
    assert "cannot be read: Permission denied" in caplog.text


async def test_a_damaged_index_is_made_anew(tmp_path):
    first = House(tmp_path)
    first.write("a.md")
    await first.find("word")
    await first.base.close()
    first.path.write_bytes(b"not a database" * 1000)
    again = House(tmp_path)
    assert await again.find("word") == ["a.md"]
    await again.base.close()


async def test_an_index_that_cannot_be_opened_is_told_and_not_explained_by_a_traceback(tmp_path):
    house = House(tmp_path)
    house.path.parent.mkdir()
    house.path.mkdir()
    with pytest.raises(ToolFailure) as e:
        await house.find("word")
    assert e.value.error.code is ErrorCode.TOOL_UNAVAILABLE


async def test_on_a_full_store_what_is_known_is_still_found(house, monkeypatch):
    house.write("a.md")
    assert await house.find("word") == ["a.md"]

    async def full(self, work, *, grows=True):
        raise StoreFull("no room")

    monkeypatch.setattr(SqliteDatabase, "write", full)
    house.write("b.md")
    assert await house.find("word") == ["a.md"]


def test_the_number_of_documents_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_FILES", 3)
    for n in range(5):
        (tmp_path / f"{n}.md").write_text("x")
    found, left_out = documents.standing(tmp_path)
    assert ([one.id for one in found], left_out) == (["0.md", "1.md", "2.md"], 2)


@pytest.mark.parametrize(
    ("text", "title", "tags", "body"),
    [
        ("# A  title #\nx", "A title", (), "# A  title #\nx"),
        ("no head", "stem", (), "no head"),
        ("---\ntitle: 'T'\n---\nx", "T", (), "x"),
        ("---\ntags: []\n---\n", "stem", (), ""),
        ("---\ntags: [A, b, a, ]\n---\n", "stem", ("a", "b"), ""),
        ("---\nno end", "stem", (), "---\nno end"),
        ("---\nurl: javascript:x\n---\ny", "stem", (), "y"),
        ("\ufeff# BOM\n", "BOM", (), "# BOM\n"),
        ("", "stem", (), ""),
    ],
)
def test_a_documents_head_is_read(tmp_path, text, title, tags, body):
    (tmp_path / "stem.md").write_text(text)
    (one,) = documents.standing(tmp_path)[0]
    leaf = documents.read(one)
    assert (leaf.title, leaf.tags, leaf.body, leaf.url) == (title, tags, body, None)


async def test_passages_are_cut_only_for_what_is_told(house, monkeypatch):
    """Cutting them for every match made a search of 2,000 documents take ten seconds."""
    from edge.storage.tools import knowledge

    cut = []
    real = knowledge._evidence
    monkeypatch.setattr(
        knowledge, "_evidence", lambda c, row, *rest: cut.append(row) or real(c, row, *rest)
    )
    for n in range(30):
        house.write(f"{n:02}.txt", "word " + "filler " * 9 * n)
    assert await house.find("word", limit=2) == ["00.txt", "01.txt"]
    assert len(cut) == 2


async def test_looking_that_is_cut_short_goes_on_from_there(house, monkeypatch, reads):
    from edge.storage.tools import knowledge

    monkeypatch.setattr(knowledge, "BATCH", 2)
    for n in range(6):
        house.write(f"{n}.txt")
    real, done = KnowledgeBase._take_in, []

    async def cut_short(self, db, batch, known):
        if len(done) == 1:
            done.append("cut")
            raise TimeoutError
        done.append("in")
        await real(self, db, batch, known)

    monkeypatch.setattr(KnowledgeBase, "_take_in", cut_short)
    with pytest.raises(TimeoutError):
        await house.find("word")
    assert sorted(await house.find("word", limit=10)) == [f"{n}.txt" for n in range(6)]
    assert len(reads) == len(set(reads)) == 6
