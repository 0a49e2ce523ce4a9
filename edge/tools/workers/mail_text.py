"""Makes plain text of what strangers send: headers, bodies in any charset, HTML.

Every function takes time in proportion to its input and never raises for what a message holds.
"""

import base64
import binascii
import html
import quopri
import re
import unicodedata
from email.errors import HeaderParseError
from email.header import decode_header
from email.utils import getaddresses
from typing import Final

MAX_HEADER: Final = 2_000
"""Characters of one header that are read."""
MAX_ADDRESSES: Final = 100
_CHARSET: Final = re.compile(
    r"utf[-_]?(?:7|8|16|32)(?:[-_]?[bl]e)?|(?:us-)?ascii|latin-?1|iso[-_]?8859[-_]\d+"
    r"|(?:windows|cp)-?\d+|koi8-[rut]|gb2312|gbk|gb18030|big5(?:-hkscs)?|euc-?(?:jp|kr)"
    r"|iso-2022-(?:jp|kr)|shift[-_]jis|ks_c_5601-1987|tis-620|mac(?:intosh|-roman)"
)
"""Charsets that are decoded. Others are guessed: of Python's own, some take quadratic time."""
_GUESSED: Final = frozenset({"", "ascii", "us-ascii", "utf-8", "utf8", "unknown-8bit"})
_KEPT_FORMATS: Final = frozenset("\u200c\u200d")
"""Joiners: some scripts and emoji are wrong without them."""
_DROPPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_MOST_MARKS: Final = 4
"""Combining marks on one letter."""
_NOT_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/]")


def clean(text: str) -> str:
    """Return text without control, format and direction characters; lines end with a line feed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")
    kept: list[str] = []
    marks = 0
    for ch in text:
        if ch.isascii():
            if ch >= " " or ch == "\n":
                kept.append("" if ch == "\x7f" else ch)
                marks = 0
            continue
        category = unicodedata.category(ch)
        marks = marks + 1 if category[0] == "M" else 0
        if category in ("Zl", "Zp"):
            kept.append("\n")
        elif category == "Zs":
            kept.append(" ")
        elif (category not in _DROPPED or ch in _KEPT_FORMATS) and marks <= _MOST_MARKS:
            kept.append(ch)
    return "".join(kept)


def one_line(text: str, most: int) -> str:
    """Return clean text on one line, cut to `most` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def tidy(text: str) -> str:
    """Return clean text in lines without spaces around them, and at most one empty line between."""
    lines: list[str] = []
    for line in clean(text).split("\n"):
        words = " ".join(line.split())
        if words or (lines and lines[-1]):
            lines.append(words)
    return "\n".join(lines).strip()


# ------------------------------------------------------------------ charsets and encodings


def decode(data: bytes, charset: str) -> str:
    """Return the text of bytes. An unknown charset, or one that they are not in, is guessed: UTF-8,
    else Windows-1252. A character cut at the end does not count.
    """
    name = charset.strip().strip("\"'").lower()
    if name not in _GUESSED and _CHARSET.fullmatch(name):
        try:
            return data.decode(name, "replace")
        except LookupError:
            pass  # Python does not know this one of the family
    try:
        return data.decode()
    except UnicodeDecodeError as e:
        before = data[: e.start]
        if e.reason == "unexpected end of data" and not before.isascii():
            return before.decode()
        return data.decode("cp1252", "replace")


def unpack(data: bytes, encoding: str) -> bytes:
    """Undo a transfer encoding; damaged or cut base64 gives what is before the damage."""
    match encoding.strip().lower():
        case "base64":
            letters = _NOT_BASE64.sub(b"", data)
            if len(letters) % 4 == 1:
                letters = letters[:-1]
            return base64.b64decode(letters + b"=" * (-len(letters) % 4))
        case "quoted-printable":
            return quopri.decodestring(data)
    return data


# ------------------------------------------------------------------ headers


def header(raw: bytes | str) -> str:
    """Return a header's value in plain words on one line, encoded words decoded."""
    text = decode(raw, "") if isinstance(raw, bytes) else raw
    text = " ".join(text[:MAX_HEADER].split())
    try:
        parts = decode_header(text)
    except (HeaderParseError, binascii.Error, ValueError, RecursionError):
        return one_line(text, MAX_HEADER)
    found = "".join(
        part if isinstance(part, str) else decode(part, charset or "") for part, charset in parts
    )
    return one_line(found, MAX_HEADER)


def addresses(raw: bytes | str) -> list[tuple[str, str]]:
    """Return (name, address) of each person a header names. It is taken apart before encoded words
    are decoded, so that no name can pretend to be an address.
    """
    text = decode(raw, "") if isinstance(raw, bytes) else raw
    text = " ".join(text[: 8 * MAX_HEADER].split())
    try:
        found = getaddresses([text])[:MAX_ADDRESSES]
    except (ValueError, IndexError, RecursionError):
        found = []
    people = [(one_line(header(name), 120), one_line(address, 254)) for name, address in found]
    people = [(name, address) for name, address in people if name or address]
    return people or ([("", one_line(header(text), 254))] if text.strip() else [])


def fields(raw: bytes) -> dict[str, str]:
    """Return the header fields of a message by name in small letters: the first of each name."""
    found: dict[str, str] = {}
    name = ""
    for line in decode(raw, "").replace("\r\n", "\n").split("\n"):
        if line[:1] in (" ", "\t"):
            if name:
                found[name] += " " + line.strip()
            continue
        before, colon, after = line.partition(":")
        name = before.strip().lower() if colon else ""
        if name in found:
            name = ""
        elif name:
            found[name] = after.strip()
    return found


# ------------------------------------------------------------------ HTML

_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_TAG: Final = re.compile(r"</?([a-z][a-z0-9]{0,19})")
_UNREAD: Final = frozenset({"script", "style", "title", "template", "noscript", "svg"})
_LINES: Final = frozenset(
    "address article aside blockquote br center div dl dt dd fieldset footer form h1 h2 h3 h4 h5"
    " h6 header hr li main nav ol p pre section table tr ul".split()
)
_CELLS: Final = frozenset({"td", "th"})


def from_html(text: str) -> str:
    """Return what a reader sees of HTML. Each search for an end either moves on or is the last, so
    that no markup takes more than linear time.
    """
    plain = text.translate(_LOWER)
    out: list[str] = []
    at = 0
    while (start := text.find("<", at)) >= 0:
        out.append(_words(text[at:start]))
        if plain.startswith("<!--", start):
            end = text.find("-->", start + 4)
            at = len(text) if end < 0 else end + 3
            continue
        tag = _TAG.match(plain, start)
        if tag is None and plain[start + 1 : start + 2] not in ("!", "?", "/"):
            out.append("<")
            at = start + 1
            continue
        end = _tag_end(text, start)
        if end < 0:
            at = len(text)
            break
        at = end + 1
        name = tag[1] if tag else ""
        out.append(_mark(name, closing=plain.startswith("</", start)))
        if name in _UNREAD and plain[start + 1] != "/" and text[end - 1] != "/":
            close = plain.find(f"</{name}", at)
            at = len(text) if close < 0 else close
    out.append(_words(text[at:]))
    return "".join(out)


def _words(text: str) -> str:
    """Return text between tags; its line ends are only spaces."""
    return html.unescape(re.sub(r"[\r\n\t]", " ", text))


def _mark(name: str, *, closing: bool) -> str:
    if name in _CELLS:
        return " "
    if name == "li" and not closing:
        return "\n- "
    return "\n" if name in _LINES else ""


def _tag_end(text: str, start: int) -> int:
    """Return where a tag ends; a `>` within a quoted value does not end it. -1: nowhere."""
    end = text.find(">", start)
    value = text.find('="', start, end)
    while 0 <= value < end:
        close = text.find('"', value + 2)
        if close < 0:
            return end
        if close > end:
            end = text.find(">", close)
            if end < 0:
                return -1
        value = text.find('="', close + 1, end)
    return end
