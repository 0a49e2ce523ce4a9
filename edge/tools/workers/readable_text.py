"""Text from other machines, made fit to be shown: decoded, without what is not seen."""

import codecs
import re
import unicodedata
from typing import Final

MAX_META: Final = 4096
"""Bytes of a page in which its own charset is looked for."""
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.ASCII | re.IGNORECASE)
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_READ_AS: Final = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030"}
"""Charsets that pages name, and those that browsers read instead."""
_JOINERS: Final = "\u200c\u200d"
"""Some scripts are misspelt without them."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_EMPTY_LINES: Final = re.compile(r"\n{3,}")


def decoded(body: bytes, content_type: str) -> str:
    """Return the text of an answer: by its byte order mark, else by the charset that its header or
    the page itself names, else as UTF-8, else as Windows-1252. What cannot be read is `�`.
    """
    for mark, charset in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(charset, errors="replace")
    head = body[:MAX_META].decode("latin-1")
    for found in (_CHARSET.search(content_type), _CHARSET.search(head)):
        charset = _known(found[1]) if found else ""
        if charset:
            return body.decode(charset, errors="replace")
    try:
        # The last bytes may be those of a character that was cut.
        return codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return body.decode("cp1252", errors="replace")


def clean(text: str) -> str:
    """Return a text without control characters, signs for directions and other characters that are
    not seen; lines and paragraphs stay.
    """
    lines = text.replace("\r\n", "\n").translate(_LINE_ENDS)
    seen = "".join(
        ch
        for ch in lines
        if ch == "\n" or ch in _JOINERS or unicodedata.category(ch) not in _UNSEEN
    )
    stripped = "\n".join(line.rstrip() for line in seen.split("\n"))
    return _EMPTY_LINES.sub("\n\n", stripped).strip("\n")


def one_line(text: str, most: int) -> str:
    """Return a cleaned text as one line of at most `most` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _known(name: str) -> str:
    """Return the charset to decode with; "" for none that Python has."""
    try:
        charset = codecs.lookup(name).name
        b"a".decode(charset)
    except (LookupError, ValueError):
        return ""
    charset = _READ_AS.get(charset, charset)
    return "" if charset in _NO_CHARSETS else charset


_LINE_ENDS: Final = {ord(ch): "\n" for ch in "\r\x0b\x0c\x85\u2028\u2029"} | {ord("\t"): " "}
_NO_CHARSETS: Final = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape"})
"""Encodings of Python that are no charsets of pages."""
