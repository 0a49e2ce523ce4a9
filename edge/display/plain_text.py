"""Markdown → plain text for a lens and a voice (the only importer of the Markdown library, which is
loaded with the first text that has Markdown in it).

Cells of a table are separated by tabs, which the layout sets as columns.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from edge.core.results import Link
from edge.core.words.drawable_text import ISOLATES

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BULLETS: Final = ("•", "–", "·")
"""Signs of a list, of one within it, and of those deeper: a lens has no room for indents."""
MAX_TEXT: Final = 8000
"""Characters that are read as Markdown; a text as hostile as can be takes 0.15 s on a PC."""
MAX_LINKS: Final = 8
_SIGNS: Final = re.compile(
    r"""
    ^[ ]{0,3}(?:\#{1,6}[ ]|>|```|~~~|[-*+][ ]|\d{1,9}[.)][ ]|\|)  # what begins a line
    |^[ ]{0,3}(?:-{3,}|\*{3,}|_{3,}|={3,})[ ]*$                   # rules and underlines
    |\|[ ]*:?-{2,}                                                # a table's second line
    |\*\S|\b_\S|`|~~|\]\(|\]\[|!\[|<https?:|\\[!-/:-@\[-`{-~]     # within a line
    |&(?:\#\d+|\#x[0-9a-f]+|[a-z]\w*);
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_TIMES: Final = re.compile(r"(?<=\w)\*(?=\w)")
_TIMES_SIGN: Final = "\ufdd0"
"""Stands for a `*` between letters or digits, which is no markup in 2*3*4; no text has this."""
_ALONE: Final = re.compile(r"[ ]{0,3}(?:(?=[>+][ ])|(?=-[ ]+\d))")
"""Begins a text of one line that is neither a list nor a quotation: `> 5 km`, `- 5 degrees`."""
_HAVE_TEXT: Final = frozenset({"inline", "fence", "code_block", "tr_open"})
_BULLET: Final = re.compile(r"^(?:\s*•|[ ]{2,}[–·](?= ))")
_TERMINAL: Final = re.compile(
    r"""
    (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]              # colours, moves of the cursor
    |\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)     # links, titles
    |\x1b[ -/]+[0-~]                              # character sets
    """,
    re.VERBOSE,
)
_BLANK: Final = re.compile(r"\n{3,}")
_BREAK: Final = re.compile(r"<br ?/?>", re.IGNORECASE)
_WRAPPED: Final = 60
"""Characters of a line from which its end is an editor's doing and means nothing to a reader."""
_WHOLE_ADDRESS: Final = re.compile(r"\bhttps?://(?:www\.)?([^\s/?#]+)\S*", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"https?://|mailto:|tel:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text without markup. `links`: those whose words are not their address."""

    text: str
    links: tuple[Link, ...] = ()


def plain(text: str) -> PlainText:
    """Return a text without its Markdown; one that has none comes back unchanged."""
    if not has_markdown(text):
        return PlainText(text)
    head, rest = _TIMES.sub(_TIMES_SIGN, text[:MAX_TEXT]), text[MAX_TEXT:]
    if "\n" not in head and _ALONE.match(head):
        head = "\\" + head.lstrip()
    reader = _Reader()
    lines = reader.blocks(_parser().parse(head))
    shown = _BLANK.sub("\n\n", "\n".join(lines)).strip("\n").replace(_TIMES_SIGN, "*")
    return PlainText(shown + rest, tuple(dict.fromkeys(reader.links))[:MAX_LINKS])


def without_terminal_codes(text: str) -> str:
    """Return a text without what colours it at a terminal, as programs print it."""
    return _TERMINAL.sub("", text) if "\x1b" in text or "\x9b" in text else text


def has_markdown(text: str) -> bool:
    """Return whether a text seems to have Markdown in it, without the library."""
    return _SIGNS.search(text) is not None


def spoken(text: str) -> str:
    """Return plain text for a voice: no bullets, cells of a table with commas between them, of an
    address only its host; without signs for directions.
    """
    lines = (_BULLET.sub("", line).strip() for line in text.split("\n"))
    said = "\n".join(lines).replace("\t", ", ").translate(ISOLATES)
    return _WHOLE_ADDRESS.sub(r"\1", said)


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 1 MiB, and most texts have no Markdown

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable("reference")  # its lines would vanish: `[to do]: milk` is one


class _Reader:
    """Reads the parser's tokens once; collects the links."""

    def __init__(self) -> None:
        self.links: list[Link] = []
        self._lists: list[int | None] = []
        """The open lists: the next number of each, None for bullets."""
        self._first = ""
        """What the next line of text begins with: the sign of a list's item."""
        self._row: list[str] | None = None
        self._read = 0
        """Source lines that were read."""
        self._gap_after: int | None = None
        """Leave a row empty if the next block begins after this source line."""

    def blocks(self, tokens: Sequence["Token"]) -> Iterator[str]:
        """Yield lines; an empty one between blocks where the writer left one."""
        for token in tokens:
            if token.map and token.type in _HAVE_TEXT:
                if self._gap_after is not None and token.map[0] > self._gap_after:
                    yield ""
                self._gap_after, self._read = None, token.map[1]
            match token.type:
                case "inline":
                    yield from self._text(self._inline(token.children or ()))
                case "fence" | "code_block":
                    yield from self._text(token.content.rstrip("\n"))
                    self._end_block(-1)
                case "bullet_list_open":
                    self._lists.append(None)
                case "ordered_list_open":
                    self._lists.append(int(token.attrGet("start") or 1))
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                    self._end_block(self._read)
                case "list_item_open":
                    self._first = self._sign()
                case "tr_open":
                    self._row = []
                case "tr_close":
                    yield "\t".join(self._row or ())
                    self._row = None
                case "paragraph_close" if token.hidden:
                    pass
                case "paragraph_close" | "table_close":
                    self._end_block(self._read)

    def _end_block(self, line: int) -> None:
        if not self._lists:
            self._gap_after = line

    def _sign(self) -> str:
        """Return the sign of the next item: of a numbered list within another `2.1.`."""
        number = self._lists[-1]
        if number is None:
            return f"{BULLETS[min(len(self._lists), len(BULLETS)) - 1]} "
        self._lists[-1] = number + 1
        outer = (n - 1 for n in self._lists[:-1] if n is not None)
        return ".".join(map(str, (*outer, number))) + ". "

    def _text(self, text: str) -> Iterator[str]:
        if self._row is not None:
            self._row.append(" ".join(text.split()))
            return
        indent = "  " * (len(self._lists) - 1) if self._lists else ""
        for line in text.split("\n"):
            yield indent + self._first + line
            self._first = ""

    def _inline(self, tokens: Iterable["Token"]) -> str:
        said: list[str] = []
        open_links: list[tuple[int, str]] = []
        for token in tokens:
            match token.type:
                case "text" | "code_inline":
                    said.append(_BREAK.sub("\n", token.content))
                case "softbreak":
                    line = "".join(said).rpartition("\n")[2]
                    said.append(" " if len(line) >= _WRAPPED else "\n")
                case "hardbreak":
                    said.append("\n")
                case "image":
                    said.append(token.content or "(picture)")
                case "link_open":
                    open_links.append((len(said), str(token.attrGet("href") or "")))
                case "link_close":
                    begin, address = open_links.pop()
                    words = "".join(said[begin:]).strip()
                    if not words:
                        said.append(address)
                    elif token.info != "auto" and _ADDRESS.match(address):
                        self.links.append(Link(words, address))
        return "".join(said)
