"""Documents in sections that a user keeps: encrypted, with their earlier versions.

One row is one document, so a change is stored whole or not at all.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from tools_cache.api.handed import Database, Json
from tools_cache.api.knowledge import Document, Evidence, Question, terms
from tools_cache.api.notes import folded
from tools_cache.errors import ErrorCode, ToolFailure

MAX_DOCUMENTS: Final = 500
MAX_SECTIONS: Final = 100
MAX_CHARACTERS: Final = 48 * 1024
"""Of one document: with its envelope it must fit an answer."""
MAX_HEADING: Final = 120
KEPT_VERSIONS: Final = 20
_AMBIGUOUS: Final = 10
"""Titles or headings that are named when several match."""
_START: Final = "Start"
"""Heading of what stands before the first heading."""
_HEADING: Final = re.compile(r"(#{1,3})[ \t]+(.+?)[ \t]*#*[ \t]*")
_FENCE: Final = ("```", "~~~")
_DOCUMENTS: Final = "documents"
_VERSIONS: Final = "versions"
_DOCUMENT_COLUMNS: Final = {"version": "INTEGER NOT NULL", "encrypted__body": "TEXT"}
_VERSION_COLUMNS: Final = {
    "document": "INTEGER NOT NULL",
    "version": "INTEGER NOT NULL",
    "encrypted__body": "TEXT",
}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'documents'"
SECTION_ID: Final = "section:"
"""Begins the id of a section in the knowledge base: section:document/number."""
SECTION: Final = "section"
NAMESPACES: Final = ("studio", "personal")
"""Namespaces of the knowledge base in which sections are found: whose they are is known, what they
are about is not.
"""
MAX_LINE: Final = 200
_MATCHES: Final = (str.__eq__, str.startswith, str.__contains__)
"""How a name is looked for, one after the other."""


_CREATING: Final = asyncio.Lock()
"""Held from looking whether a title is free until it is stored."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Section:
    """`level`: 1 to 3, as many as the signs before its heading in Markdown."""

    heading: str
    text: str = ""
    level: int = 1


@dataclass(frozen=True, slots=True)
class DomainDocument:
    """One version of a document. `changed`: seconds since 1970; `id` is 0 before it is stored."""

    title: str
    labels: tuple[str, ...]
    sections: tuple[Section, ...]
    changed: float
    id: int = 0
    version: int = 1

    def children(self, number: int) -> Iterator[int]:
        """Yield the numbers of the sections below this one; numbers begin at 1."""
        level = self.sections[number - 1].level
        for place in range(number, len(self.sections)):
            if self.sections[place].level <= level:
                return
            yield place + 1


def read_sections(text: str) -> tuple[Section, ...]:
    """Divide Markdown at its headings of three levels; those in fenced code are text. Raises
    `ToolFailure` if there are too many.
    """
    sections: list[Section] = []
    lines: list[str] = []
    heading, level, fence = _START, 1, ""

    def close() -> None:
        body = "\n".join(lines).strip("\n")
        if body or sections or heading != _START:
            sections.append(Section(heading, body, level))

    for line in text.splitlines():
        mark = line.lstrip()[:3]
        if mark in _FENCE and fence in ("", mark):
            fence = "" if fence else mark
        found = None if fence else _HEADING.fullmatch(line)
        if found is None:
            lines.append(line)
            continue
        if lines or sections or heading != _START:
            close()
        heading, level = found[2][:MAX_HEADING], len(found[1])
        lines = []
    close()
    return check(tuple(sections))


def check(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    """Return the sections. Raises `ToolFailure` if they are too many or too long."""
    if len(sections) > MAX_SECTIONS:
        raise _invalid(
            f"/text a document has at most {MAX_SECTIONS} sections, not {len(sections)}",
            "Divide it into two documents",
        )
    size = sum(len(section.text) + len(section.heading) for section in sections)
    if size > MAX_CHARACTERS:
        raise _invalid(
            f"/text a document has at most {MAX_CHARACTERS} characters, not {size}",
            "Divide it into two documents",
        )
    return sections


class DomainDocuments:
    """The documents of one user."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def all(self) -> list[DomainDocument]:
        """Return all documents, by title. Creates no table, so it works on a full disk."""
        if not await self._db.fetch(_THERE):
            return []
        rows = await self._db.select(_DOCUMENTS, limit=MAX_DOCUMENTS)
        return sorted(map(_from_row, rows), key=lambda d: (folded(d.title), d.id))

    async def find(self, word: str) -> DomainDocument:
        """Return the document of this number or title: the same, its beginning, or a part of it;
        capitals do not matter. Raises `ToolFailure` if there is none, or several.
        """
        documents = await self.all()
        by_number = [d for d in documents if word.strip().lstrip("#") == str(d.id)]
        found = by_number or matching(word, documents, [d.title for d in documents])
        return _only(found, "/document", word, [f"{d.id}: {d.title}" for d in found])

    async def create(self, document: DomainDocument) -> DomainDocument:
        """Store a new document. Raises `ToolFailure`: CONFLICT if its title is taken."""
        async with _CREATING:
            return await self._create(document)

    async def _create(self, document: DomainDocument) -> DomainDocument:
        documents = await self.all()
        if same := [d for d in documents if folded(d.title) == folded(document.title)]:
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                f"There is a document {same[0].title!r} already, number {same[0].id}",
                suggestion="Choose another title, or change that one with domaindoc:edit",
                for_wearer=f"There is a document “{same[0].title}” already.",
            )
        if len(documents) >= MAX_DOCUMENTS:
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                f"{MAX_DOCUMENTS} documents are stored already",
                suggestion="Remove one with domaindoc:remove",
            )
        await self._db.create_table(_DOCUMENTS, _DOCUMENT_COLUMNS)
        row = {"version": 1, "encrypted__body": _body(document)}
        return replace(document, id=await self._db.insert(_DOCUMENTS, row), version=1)

    async def replace(self, old: DomainDocument, new: DomainDocument) -> DomainDocument:
        """Store `new` as the next version of `old`, which is kept. Raises `ToolFailure`: CONFLICT
        if another version was stored meanwhile.
        """
        await self._db.create_table(_VERSIONS, _VERSION_COLUMNS)
        kept = {"document": old.id, "version": old.version, "encrypted__body": _body(old)}
        number = await self._db.insert(_VERSIONS, kept)
        stored = replace(new, id=old.id, version=old.version + 1)
        row = {"version": stored.version, "encrypted__body": _body(stored)}
        where = {"id": old.id, "version": old.version}
        if not await self._db.update(_DOCUMENTS, row, where=where):
            await self._db.delete(_VERSIONS, where={"id": number})
            raise changed_meanwhile(old.title)
        await self._db.execute(
            "DELETE FROM versions WHERE document = ? AND version <= ?",
            old.id,
            old.version - KEPT_VERSIONS,
        )
        return stored

    async def earlier(self, document: DomainDocument, version: int) -> DomainDocument:
        """Return a version that is kept. Raises `ToolFailure` if it is not."""
        if version == document.version:
            return document
        kept: list[int] = []
        if await self._db.fetch(_THERE.replace("documents", _VERSIONS)):
            where = {"document": document.id}
            rows = await self._db.select(_VERSIONS, where=where, order="-id", limit=1000)
            for row in rows:
                if row["version"] == version:
                    return _from_row({**row, "id": document.id})
            kept = sorted({row["version"] for row in rows})
        known = f"versions {kept[0]} to {document.version}" if kept else "no earlier version"
        raise _invalid(
            f"/version {document.title!r} has no version {version} any more", f"It has {known}"
        )

    async def remove(self, document: DomainDocument) -> None:
        """Remove a document with all versions."""
        if await self._db.fetch(_THERE.replace("documents", _VERSIONS)):
            await self._db.delete(_VERSIONS, where={"document": document.id})
        await self._db.delete(_DOCUMENTS, where={"id": document.id})


def find_section(document: DomainDocument, word: str) -> int:
    """Return the number of the section of this number or heading, as `DomainDocuments.find` does.
    Raises `ToolFailure`.
    """
    numbers = list(range(1, len(document.sections) + 1))
    if word.strip().isdecimal() and int(word) in numbers:
        return int(word)
    found = matching(word, numbers, [section.heading for section in document.sections])
    headings = [f"{n}: {document.sections[n - 1].heading}" for n in found or numbers]
    if not found:
        raise _invalid(
            f"/section there is no section {word!r} in {document.title!r}",
            f"It has {', '.join(headings[:_AMBIGUOUS]) or 'none'}",
        )
    return _only(found, "/section", word, headings)


def matching(word: str, things: Sequence[T], names: Sequence[str]) -> list[T]:
    """Return the things of this name, else those whose name begins so, else those that contain
    it.
    """
    wanted, plain = folded(word.strip()), [folded(name) for name in names]
    for match in _MATCHES:
        found = [thing for thing, name in zip(things, plain, strict=True) if match(name, wanted)]
        if found:
            return found
    return []


def search(
    documents: Sequence[DomainDocument], query: str
) -> list[tuple[float, DomainDocument, int]]:
    """Return the sections with words of a query, best first: (score 0 to 1, document, number). A
    word in a heading or a title counts as much as one in the text.
    """
    words = terms(query)
    found = []
    for document in documents:
        for number, section in enumerate(document.sections, 1):
            text = folded(f"{document.title}\n{section.heading}\n{section.text}")
            own = folded(f"{section.heading}\n{section.text}")
            hits = sum(folded(word) in text for word in words)
            if hits and any(folded(word) in own for word in words):
                found.append((hits / len(words), document, number))
    return sorted(found, key=lambda f: (-f[0], -f[1].changed, f[1].id, f[2]))


def matching_line(section: Section, words: Sequence[str]) -> str:
    """Return the first line with one of the words, else the first line."""
    lines = [line.strip() for line in section.text.splitlines() if line.strip()]
    plain = [folded(word) for word in words]
    found = next((one for one in lines if any(word in folded(one) for word in plain)), "")
    return (found or next(iter(lines), ""))[:MAX_LINE]


def evidence(documents: Sequence[DomainDocument], question: Question) -> list[Evidence]:
    """Return the sections that match a question to the knowledge base, best first."""
    if question.namespace not in NAMESPACES or question.type not in ("", SECTION):
        return []
    wanted = [document for document in documents if _is_asked_for(document, question)]
    found = search(wanted, " ".join(question.terms))[: question.limit]
    return [_evidence(*one, question.terms) for one in found]


def whole_section(documents: Sequence[DomainDocument], section_id: str) -> Document | None:
    """Return a section with those below it, by its id in the knowledge base."""
    name, _, number = section_id.removeprefix(SECTION_ID).partition("/")
    document = next((one for one in documents if str(one.id) == name), None)
    if document is None or number not in map(str, range(1, len(document.sections) + 1)):
        return None
    chosen = int(number)
    parts = [document.sections[n - 1] for n in (chosen, *document.children(chosen))]
    text = "\n\n".join(f"{'#' * s.level} {s.heading}\n{s.text}".strip() for s in parts)
    return Document(
        id=section_id,
        type=SECTION,
        title=_named(document, chosen),
        text=text,
        source_type="domaindoc",
        updated=document.changed,
        tags=document.labels,
    )


def _is_asked_for(document: DomainDocument, question: Question) -> bool:
    labels = {folded(label) for label in document.labels}
    late = question.since is None or document.changed >= question.since
    early = question.until is None or document.changed < question.until
    return late and early and all(folded(tag) in labels for tag in question.tags)


def _evidence(
    score: float, document: DomainDocument, number: int, words: Sequence[str]
) -> Evidence:
    section = document.sections[number - 1]
    about = {"document": document.title, "section": section.heading, "tags": list(document.labels)}
    return Evidence(
        id=f"{SECTION_ID}{document.id}/{number}",
        type=SECTION,
        title=_named(document, number),
        snippet=matching_line(section, words),
        score=score,
        source_type="domaindoc",
        updated=document.changed,
        metadata=about,
    )


def _named(document: DomainDocument, number: int) -> str:
    return f"{document.title}, section {document.sections[number - 1].heading}"


def changed_meanwhile(title: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.CONFLICT,
        f"{title!r} was changed meanwhile",
        suggestion="Read it again with domaindoc:read, then repeat the change",
        for_wearer=f"“{title}” was changed meanwhile.",
    )


def _only(found: Sequence[T], field: str, word: str, names: Sequence[str]) -> T:
    if len(found) == 1:
        return found[0]
    if not found:
        raise _invalid(
            f"{field} there is no document {word!r}", "domaindoc:list gives their titles"
        )
    named = ", ".join(names[:_AMBIGUOUS])
    raise _invalid(f"{field} {word!r} could be {len(found)}: {named}", "Give its number")


def _invalid(problem: str, fix: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: {problem}", suggestion=fix
    )


def _body(document: DomainDocument) -> dict[str, Json]:
    return {
        "title": document.title,
        "labels": list(document.labels),
        "changed": document.changed,
        "sections": [[s.heading, s.text, s.level] for s in document.sections],
    }


def _from_row(row: Mapping[str, Json]) -> DomainDocument:
    body = row["encrypted__body"]
    return DomainDocument(
        title=body["title"],
        labels=tuple(body["labels"]),
        sections=tuple(Section(*section) for section in body["sections"]),
        changed=body["changed"],
        id=row["id"],
        version=row["version"],
    )
