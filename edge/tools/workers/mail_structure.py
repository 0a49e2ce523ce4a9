"""Reads IMAP's BODYSTRUCTURE: which parts of a message are text to read, which are attachments."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from edge.tools.workers.mail_text import header, one_line

MAX_DEPTH: Final = 200
MAX_PARTS: Final = 2_000
_TOKEN: Final = re.compile(rb'[()]|"((?:[^"\\]|\\.)*)"|([^\s()"]+)')
_OPEN: Final = "("
_CLOSE: Final = ")"
_LITERAL: Final = re.compile(rb"\{\d+\}$")
_READ: Final = frozenset({"plain", "html", "enriched"})


class BadStructure(Exception):
    """A message whose structure cannot be read, or is too deep or too large."""


@dataclass(frozen=True, slots=True)
class Part:
    """One leaf: its IMAP number (`1.2`), type, and how its text is written."""

    number: str
    kind: str
    charset: str
    encoding: str
    size: int
    name: str
    attached: bool

    @property
    def readable(self) -> bool:
        return self.kind.partition("/")[0] == "text" and not self.attached

    def about(self) -> dict[str, Any]:
        """Return what is said of an attachment; three of four base64 bytes are its own."""
        size = self.size * 3 // 4 if self.encoding == "base64" else self.size
        name = self.name or self.kind
        return {"name": name, "type": self.kind, "size": size}


def parse(pieces: Sequence[bytes | tuple[bytes, bytes]]) -> list[Any]:
    """Return nested lists of a server's answer, texts as bytes, NIL as None. Raise
    `BadStructure`.
    """
    root: list[Any] = []
    stack = [root]
    for count, token in enumerate(_tokens(pieces)):
        if count > 40 * MAX_PARTS:
            raise BadStructure("too many parts")
        if token == _OPEN:
            inner: list[Any] = []
            stack[-1].append(inner)
            stack.append(inner)
            if len(stack) > MAX_DEPTH:
                raise BadStructure("nested too deeply")
        elif token == _CLOSE:
            stack.pop()
            if not stack:
                raise BadStructure("a bracket too many")
        else:
            stack[-1].append(token)
    return root


def _tokens(pieces: Sequence[bytes | tuple[bytes, bytes]]) -> Iterator[str | bytes | None]:
    """Yield brackets as str, texts as bytes, NIL as None. A piece that ends with `{size}` is
    followed by a text of that size.
    """
    for piece in pieces:
        line, literal = piece if isinstance(piece, tuple) else (piece, None)
        if literal is not None:
            line = _LITERAL.sub(b"", line)
        for found in _TOKEN.finditer(line):
            if found[1] is not None:
                yield re.sub(rb"\\(.)", rb"\1", found[1])
            elif found[2] is not None:
                yield None if found[2].upper() == b"NIL" else found[2]
            else:
                yield found[0].decode()
        if literal is not None:
            yield literal


def leaves(body: list[Any]) -> list[Part]:
    """Return the texts to read in their order, then the attachments. Of alternatives the plain text
    counts, else the last.
    """
    texts: list[Part] = []
    attached: list[Part] = []
    todo: list[tuple[list[Any], str]] = [(body, "")]
    while todo:
        part, number = todo.pop()
        if len(texts) + len(attached) > MAX_PARTS:
            raise BadStructure("too many parts")
        if not part or not isinstance(part[0], list):
            leaf = _leaf(part, number or "1")
            (texts if leaf.readable else attached).append(leaf)
            continue
        inner = [child for child in part if isinstance(child, list)]
        inner = inner[: next((i for i, x in enumerate(part) if not isinstance(x, list)), len(part))]
        placed = [(child, f"{number}.{i}".strip(".")) for i, child in enumerate(inner, 1)]
        subtype = _text(part[len(inner)]) if len(part) > len(inner) else "mixed"
        if subtype == "alternative":
            placed = _best(placed)
        todo += reversed(placed)
    return [*texts, *attached]


def _best(placed: list[tuple[list[Any], str]]) -> list[tuple[list[Any], str]]:
    """Return the alternative to read, with those that are no text (an invitation)."""
    kinds = [_kind(part) for part, _ in placed]
    plain = [at for at, kind in enumerate(kinds) if kind == "text/plain"]
    text = [at for at, kind in enumerate(kinds) if kind.partition("/")[0] in ("text", "multipart")]
    read = plain[:1] or [at for at in text if kinds[at] != "text/calendar"][-1:]
    more = [at for at in range(len(placed)) if at not in text or kinds[at] == "text/calendar"]
    return [placed[at] for at in sorted({*read, *more})]


def _kind(part: list[Any]) -> str:
    if part and isinstance(part[0], list):
        return "multipart/"
    return f"{_text(part[0])}/{_text(part[1])}" if len(part) > 1 else ""


def _leaf(part: list[Any], number: str) -> Part:
    kind = one_line(_kind(part), 80) or "application/octet-stream"
    parameters = _pairs(_at(part, 2))
    disposition, named = "", parameters.get("name", "")
    for item in part[7:]:
        if isinstance(item, list) and len(item) == 2 and isinstance(item[0], bytes):
            disposition = disposition or _text(item[0])
            named = _pairs(item[1]).get("filename", named)
    main, _, subtype = kind.partition("/")
    attached = main != "text" or subtype not in _READ or disposition == "attachment"
    return Part(
        number=number,
        kind=kind,
        charset=parameters.get("charset", ""),
        encoding=_text(_at(part, 5)),
        size=_number(_at(part, 6)),
        name=one_line(header(named), 120),
        attached=attached,
    )


def _at(part: list[Any], place: int) -> Any:
    return part[place] if len(part) > place else None


def _pairs(value: Any) -> dict[str, str]:
    """Return parameters by name. `filename*` in RFC 2231's form is read where a plain one is
    missing.
    """
    found: dict[str, str] = {}
    if not isinstance(value, list):
        return found
    for name, said in zip(value[::2], value[1::2], strict=False):
        if isinstance(name, bytes) and isinstance(said, bytes):
            key, text = _text(name), said.decode("utf-8", "replace")
            if key.endswith("*"):
                key, text = key[:-1], _percent(text)
            found.setdefault(key, text)
    return found


def _percent(text: str) -> str:
    """Decode `utf-8''%e2%82%ac.txt`."""
    from urllib.parse import unquote  # noqa: PLC0415 - rare

    charset, _, rest = text.partition("'")
    value = rest.partition("'")[2] if rest else text
    try:
        return unquote(value, encoding=charset or "utf-8", errors="replace")
    except LookupError:
        return value


def _text(value: Any) -> str:
    return value.decode("ascii", "replace").lower() if isinstance(value, bytes) else ""


def _number(value: Any) -> int:
    digits = _text(value)
    return int(digits) if digits.isdigit() and len(digits) < 16 else 0
