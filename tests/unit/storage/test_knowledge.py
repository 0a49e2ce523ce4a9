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
    """A knowledge base over `root`; time passes on request."""

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
async def kb(tmp_path):
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
async def test_matching_documents_come_best_first_with_the_passage(kb):
    kb.write(
        "returns.md",
        "---\ntitle: Returns\ntags: [Shop, 'legal']\nurl: "
        "https://example.com/r\n---\n# Ignored\nEverything may be returned within 30 days.",
    )
    kb.write("studio/shop.md", "# The shop\nOpen from nine. Nothing about giving back.")
    kb.write("studio/days.txt", "thirty days has november " * 30)
    (best, other) = await kb.search("returned days")
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
    assert await kb.search("zebra") == []


async def test_more_matching_words_rank_above_one_rare_word(kb):
    for n in range(6):
        kb.write(f"{n}.txt", "red green blue")
    kb.write("rare.txt", "zygote")
    assert (await kb.find("red green blue zygote", limit=10))[-1] == "rare.txt"


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
async def test_words_match_in_any_case_by_their_beginning(kb, query, found):
    kb.write("a.md", "return Étage Straße 日本語")
    assert await kb.find(query) == (["a.md"] if found else [])


async def test_no_query_breaks_the_search(kb):
    kb.write("a.md", "x")
    await kb.find("x")

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
async def test_filters_are_applied(kb):
    kb.write("a.md", "---\ntags: one, two\n---\nword", mtime=WALL)
    kb.write("b.txt", "word", mtime=WALL - 86_400)
    kb.write("public/c.md", "word")
    kb.write("personal/deep/er/d.md", "word")
    kb.write("elsewhere/e.md", "word", mtime=WALL - 10 * 86_400)
    assert sorted(await kb.find("word")) == ["a.md", "b.txt", "elsewhere/e.md"]
    assert await kb.find("word", namespace="public") == ["public/c.md"]
    assert await kb.find("word", namespace="personal") == ["personal/deep/er/d.md"]
    assert await kb.find("word", type="text") == ["b.txt"]
    assert await kb.find("word", tags=("ONE", "two")) == ["a.md"]
    assert await kb.find("word", tags=("one", "three")) == []
    assert await kb.find("word", since=WALL) == ["a.md"]
    assert await kb.find("word", until=WALL - 86_400) == ["elsewhere/e.md"]
    assert await kb.find("word", since=WALL - 86_400, until=WALL) == ["b.txt"]
    assert len(await kb.find("word", limit=2)) == 2


async def test_notes_are_personal_and_come_and_go(kb):
    kb.notes = [("1", "Bring the umbrella back", WALL - 50), ("2", "word", WALL)]
    (found,) = await kb.search("umbrella", namespace="personal")
    assert (found.id, found.type, found.source_type, found.title, found.updated) == (
        "note:1",
        "note",
        "note",
        "Bring the umbrella back",
        WALL - 50,
    )
    assert await kb.find("umbrella") == []
    kb.notes = [("2", "another word", WALL)]
    assert await kb.find("umbrella", namespace="personal") == []
    assert await kb.find("another", namespace="personal") == ["note:2"]


async def test_a_document_is_given_whole_by_its_id(kb):
    kb.write("personal/a.md", "---\ntitle: T\n---\nbody\r\nmore")
    found = await kb.base.get("personal/a.md")
    assert (found.title, found.text, found.type, found.tags) == ("T", "body\nmore", "markdown", ())
    assert await kb.base.get("personal/none.md") is None
    assert await kb.base.get("../kb/personal/a.md") is None


# ------------------------------------------------------------------ kept up


async def test_only_what_changed_is_read_again(kb, reads):
    kb.write("a.md", "old")
    kb.write("b.md", "same")
    assert await kb.find("old") == ["a.md"]
    assert sorted(reads) == ["a.md", "b.md"]
    reads.clear()
    assert await kb.find("same") == ["b.md"]
    assert reads == []
    kb.write("a.md", "new", mtime=WALL - 500)
    (kb.root / "b.md").unlink()
    kb.write("c.md", "third")
    assert await kb.find("old") == []
    assert await kb.find("new") == ["a.md"]
    assert await kb.find("same") == []
    assert await kb.find("third") == ["c.md"]
    assert sorted(reads) == ["a.md", "c.md"]


async def test_a_file_changed_while_it_was_read_is_read_once_more(kb, reads):
    """Same size, same time: only that it was read within two seconds of its time tells."""
    now = WALL + kb.now + 1
    kb.write("a.md", "first", mtime=now)
    assert await kb.find("first") == ["a.md"]
    kb.write("a.md", "other", mtime=now)
    assert await kb.find("other") == ["a.md"]
    assert await kb.find("other") == ["a.md"]
    assert reads == ["a.md", "a.md"], "and not for ever"


async def test_a_second_question_of_the_same_moment_does_not_look_again(kb):
    kb.write("a.md", "word")
    await kb.search("word")
    kb.write("b.md", "word")
    assert [e.id for e in await kb.search("word")] == ["a.md"]
    assert kb.asked == 1
    assert len(await kb.find("word")) == 2


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
    kb = House(tmp_path)
    before = threading.active_count()
    assert not kb.path.exists()
    assert threading.active_count() == before
    await kb.base.close()


async def test_without_a_folder_there_are_notes(tmp_path):
    kb = House(tmp_path, folder=False)
    kb.write("a.md", "word")
    kb.notes = [("1", "word", WALL)]
    assert await kb.find("word") == []
    assert await kb.find("word", namespace="personal") == ["note:1"]
    await kb.base.close()


# ------------------------------------------------------------------ what could break it


async def test_links_hidden_files_and_other_kinds_are_left_alone(kb, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("word")
    (kb.root / "link.md").symlink_to(outside / "secret.md")
    (kb.root / "studio").symlink_to(outside)
    kb.write(".hidden.md")
    kb.write(".git/a.md")
    kb.write("a.pdf")
    os.mkfifo(kb.root / "pipe.md")
    assert await kb.find("word") == []


async def test_binary_and_large_files_are_left_out_and_logged(kb, caplog, reads):
    kb.write("binary.txt", b"word\xff\xfe")
    kb.write("nul.txt", b"word\0")
    kb.write("big.txt", b"word " * (documents.MAX_FILE // 5 + 1))
    kb.write("n" * 200 + "/" + "m" * 100 + ".txt")
    (kb.root / os.fsdecode(b"odd\xff.txt")).write_bytes(b"word")
    kb.write("good.txt")
    assert await kb.find("word") == ["good.txt"]
    assert await kb.find("word") == ["good.txt"]
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [
        (
            "5 documents are left out of the knowledge base (too large, "
            "too many, no text, or not ours to read)"
        )
    ]
    assert reads.count("binary.txt") == 1, "and not looked at again before it changes"
    kb.write("binary.txt", "word", mtime=WALL - 10)
    assert sorted(await kb.find("word")) == ["binary.txt", "good.txt"]


async def test_a_folder_that_is_away_for_a_while_costs_nothing(kb, caplog):
    caplog.set_level("INFO")
    kb.write("a.md")
    assert await kb.find("word") == ["a.md"]
    kb.root.rename(kb.root.with_name("away"))
    assert await kb.find("word") == ["a.md"]
    assert await kb.find("word") == ["a.md"]
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1
    kb.root.with_name("away").rename(kb.root)
    (kb.root / "a.md").unlink()
    assert await kb.find("word") == []
    assert "whole again" in caplog.text


@pytest.mark.requirement("I11-folder-said")
@pytest.mark.parametrize("there", ["missing", "a file"])
async def test_an_unreadable_folder_is_an_error_when_nothing_is_found(kb, there):
    kb.root.rename(kb.root.with_name("away"))
    why = "there is no such folder"
    if there == "a file":
        kb.root.write_text("x")
        why = "this is a file, not a folder"
    kb.notes = [("1", "a word of mine", WALL)]
    assert await kb.find("mine", namespace="personal") == ["note:1"], "what is found is true"
    for asked in (kb.find("nothing"), kb.base.get("a.md")):
        with pytest.raises(ToolFailure) as e:
            await asked
        assert (e.value.error.code, e.value.error.message) == (
            ErrorCode.TOOL_UNAVAILABLE,
            f"The knowledge base's folder {kb.root} cannot be used: {why}",
        )
        assert "[kb] folder" in e.value.error.suggestion
    kb.root.unlink(missing_ok=True)
    kb.root.with_name("away").rename(kb.root)
    kb.write("a.md")
    assert [e.id for e in await kb.search("word", namespace="studio")] == ["a.md"], (
        "at once, when it is there"
    )
    assert await kb.find("nothing") == []


async def test_a_folder_named_while_it_looks_is_that_of_the_next_question(kb, tmp_path):
    kb.write("old.md")
    other = tmp_path / "other"
    other.mkdir()
    (other / "new.md").write_text("word")

    async def meanwhile():
        kb.base.follow(other)
        return []

    kb.base._notes = meanwhile
    kb.now += LOOK_AGAIN_S
    await kb.search("word")
    assert [e.id for e in await kb.search("word")] == ["new.md"]


async def test_a_folder_below_that_may_not_be_read_costs_only_itself(kb, monkeypatch, caplog):
    kb.write("a.md")
    kb.write("studio/b.md")
    kb.write("lost+found/c.md")
    shut, real = {str(kb.root / "lost+found")}, os.scandir

    def scandir(path):
        if path in shut:
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(documents.os, "scandir", scandir)
    assert sorted(await kb.find("word")) == ["a.md", "studio/b.md"]
    assert [r.getMessage()[:26] for r in caplog.records if r.levelname == "WARNING"] == [
        "1 documents are left out o"
    ]
    shut.add(str(kb.root))
    assert sorted(await kb.find("word")) == ["a.md", "studio/b.md"], "what was known stays"
    assert "cannot be read: Permission denied" in caplog.text


async def test_a_damaged_index_is_built_again(tmp_path):
    first = House(tmp_path)
    first.write("a.md")
    await first.find("word")
    await first.base.close()
    first.path.write_bytes(b"not a database" * 1000)
    again = House(tmp_path)
    assert await again.find("word") == ["a.md"]
    await again.base.close()


async def test_an_index_that_cannot_be_opened_is_an_error_without_traceback(tmp_path):
    kb = House(tmp_path)
    kb.path.parent.mkdir()
    kb.path.mkdir()
    with pytest.raises(ToolFailure) as e:
        await kb.find("word")
    assert e.value.error.code is ErrorCode.TOOL_UNAVAILABLE


async def test_on_a_full_store_what_is_known_is_still_found(kb, monkeypatch):
    kb.write("a.md")
    assert await kb.find("word") == ["a.md"]

    async def full(self, work, *, grows=True):
        raise StoreFull("no room")

    monkeypatch.setattr(SqliteDatabase, "write", full)
    kb.write("b.md")
    assert await kb.find("word") == ["a.md"]


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


async def test_passages_are_cut_only_for_returned_documents(kb, monkeypatch):
    """Cutting them for every match made a search of 2,000 documents take ten seconds."""
    from edge.storage.tools import knowledge

    cut = []
    real = knowledge._evidence
    monkeypatch.setattr(
        knowledge, "_evidence", lambda c, row, *rest: cut.append(row) or real(c, row, *rest)
    )
    for n in range(30):
        kb.write(f"{n:02}.txt", "word " + "filler " * 9 * n)
    assert await kb.find("word", limit=2) == ["00.txt", "01.txt"]
    assert len(cut) == 2


async def test_looking_that_is_cut_short_goes_on_from_there(kb, monkeypatch, reads):
    from edge.storage.tools import knowledge

    monkeypatch.setattr(knowledge, "BATCH", 2)
    for n in range(6):
        kb.write(f"{n}.txt")
    real, done = KnowledgeBase._take_in, []

    async def cut_short(self, db, batch, known):
        if len(done) == 1:
            done.append("cut")
            raise TimeoutError
        done.append("in")
        await real(self, db, batch, known)

    monkeypatch.setattr(KnowledgeBase, "_take_in", cut_short)
    with pytest.raises(TimeoutError):
        await kb.find("word")
    assert sorted(await kb.find("word", limit=10)) == [f"{n}.txt" for n in range(6)]
    assert len(reads) == len(set(reads)) == 6
