"""Long texts made short for the lens."""

from typing import Final

CUT: Final = "…"


def shortened(text: str, most: int) -> str:
    """Return at most `most` characters, cut at a word, with a sign where something is missing."""
    if len(text) <= most:
        return text
    head = text[: most - len(CUT)]
    if not text[len(head)].isspace():
        word = head.rfind(" ")
        head = head[:word] if word > most // 2 else head
    return head.rstrip(" \n.,;:") + CUT


def is_data(text: str) -> bool:
    """Return whether a text is JSON or XML, which says nothing to the wearer."""
    return text.lstrip()[:1] in {"{", "[", "<"}
