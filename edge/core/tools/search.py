"""Searches tools by words: a plain ranking by where they occur, without a model or an index."""

import re
from collections.abc import Iterable
from typing import Final

from tools_cache.api.tool import ToolDefinition

MAX_WORDS: Final = 16
_WORD: Final = re.compile(r"[^\W_]+")
_NAME, _PHRASE, _TEXT = 8, 4, 2
"""Score of a whole word in a tool's name, in its phrases, in its description; half for a part. The
rest of its document is packed and not searched.
"""


_FILLERS: Final = frozenset(
    "a about an and another any are at be can did do does for from had has have how i in is it its "
    "me my of on or own s should some that the their then there this to user was were what when "
    "where which who will with would you your der die das ein eine einen ich mir mein meine und "
    "oder ist sind was wie wo wann zu zum zur im in am".split()
)
"""Words that say nothing about a tool; a query of them alone is searched for as it is."""
_BEGINNING: Final = 4
"""Letters that two words must share if one is the beginning of the other."""


def search(query: str, tools: Iterable[ToolDefinition], limit: int) -> list[ToolDefinition]:
    """Return the best first, then by name; for a query without words the first by name."""
    words = list(dict.fromkeys(_words(query)))[:MAX_WORDS]
    asked = [word for word in words if word not in _FILLERS] or words
    if not asked:
        return sorted(tools, key=lambda tool: tool.name)[:limit]
    beginnings = [word[:_BEGINNING] for word in asked]
    scored = [(worth, tool) for tool in tools if (worth := _worth(asked, beginnings, tool))]
    scored.sort(key=lambda found: (-found[0], found[1].name))
    return [tool for _, tool in scored[:limit]]


def _worth(asked: list[str], beginnings: list[str], tool: ToolDefinition) -> int:
    said = " ".join(
        (
            *tool.activation_phrases,
            *(phrase for more in tool.local_phrases.values() for phrase in more),
        )
    )
    about = f"{tool.category} {tool.description[:2000]}"
    whole = f"{tool.name} {said} {about}".casefold()
    # Nearly all of ten thousand tools end here, before their text is split into words.
    if not any(beginning in whole for beginning in beginnings):
        return 0
    fields = ((_NAME, _words(tool.name)), (_PHRASE, _words(said)), (_TEXT, _words(about)))
    return sum(max(_hit(word, worth, words) for worth, words in fields) for word in asked)


def _hit(word: str, worth: int, words: list[str]) -> int:
    if word in words:
        return worth
    parts = (w.startswith(word) or (len(w) >= _BEGINNING and word.startswith(w)) for w in words)
    return worth // 2 if len(word) > 2 and any(parts) else 0


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
