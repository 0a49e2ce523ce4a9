"""Search: finds passages about glasses, radios and voices in a small built-in library."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, integer, params, reply, string

MAX_TOP_K: Final = 10
DEFAULT_TOP_K: Final = 5
_WORD: Final = re.compile(r"[^\W_]+")
_STOP_WORDS: Final = (
    "a an and are as at be by can do does for from have how i in is it its me not of on or that "
    "the there they this to was what when where which who will with you"
)
_COMMON: Final = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Passage:
    """One entry of the library."""

    title: str
    text: str


LIBRARY: Final = (
    Passage(
        "Bluetooth Low Energy",
        "A radio that sleeps between short connection events; "
        "glasses keep a link for days on a small battery.",
    ),
    Passage(
        "MTU",
        "The largest packet two Bluetooth devices agreed on; "
        "longer messages are split and put together again.",
    ),
    Passage(
        "Pairing", "Two devices agree on keys once, and recognise each other by them ever after."
    ),
    Passage(
        "Waveguide",
        "A thin plate of glass that leads the picture of a tiny projector in front of the eye.",
    ),
    Passage(
        "Battery",
        "Glasses carry a tenth of a phone's battery, which the radio and the display share.",
    ),
    Passage(
        "Microphone array",
        "Several microphones that together listen in one direction, "
        "to the wearer's voice rather than the room.",
    ),
    Passage(
        "Wake word",
        "A short phrase that a small model listens for all day, so that nothing else is heard.",
    ),
    Passage(
        "Speech synthesis",
        "A voice reads an answer aloud; short sentences are understood best while walking.",
    ),
    Passage(
        "MQTT",
        "Messages by topic through a broker, made for links that come and "
        "go; a session keeps what arrives meanwhile.",
    ),
    Passage(
        "Idempotency key",
        "A name for a request: a server that gets it twice answers twice and does the work once.",
    ),
    Passage(
        "Tool call",
        "A model names a tool and its arguments; a program runs it and gives the result back.",
    ),
    Passage(
        "Head gesture",
        "A nod or a shake of the head, felt by the motion sensor, "
        "answers a question without hands.",
    ),
)


def words(text: str) -> list[str]:
    return [word for w in _WORD.findall(text) if (word := w.casefold()) not in _COMMON]


_INDEX: Final = tuple(Counter(words(p.title) * 3 + words(p.text)) for p in LIBRARY)
"""A word in the title says three times as much about a passage as one in its text."""


def search(query: str, top_k: int) -> list[tuple[float, Passage]]:
    """Return the passages that share the query's rarer words, best first; ties in the library's
    order.
    """
    spread = {word: sum(word in counts for counts in _INDEX) for word in set(words(query))}
    rarity = {word: math.log(1 + len(LIBRARY) / n) for word, n in spread.items() if n}
    found = [
        (sum(rarity[w] * counts[w] / (counts[w] + 1) for w in rarity), passage)
        for counts, passage in zip(_INDEX, LIBRARY, strict=True)
    ]
    best = sorted((f for f in found if f[0] > 0), key=lambda f: -f[0])
    return [(round(score, 4), passage) for score, passage in best[:top_k]]


def _search_tool(args: dict[str, Any], _: CallContext) -> Any:
    found = search(args["query"], args.get("top_k", DEFAULT_TOP_K))
    results = [{"title": p.title, "text": p.text, "score": score} for score, p in found]
    shown = "\n".join(f"{p.title}: {p.text}" for _, p in found)
    data = {"results": results, "count": len(results)}
    nothing = "Nothing in the library is about that."
    return reply(data, title=f"{len(results)} found", show=shown or nothing)


app = AppServer("com.example.search", name="Search")
app.register_tool(
    create_tool(
        "kb_search",
        "Searches a small library about smart glasses.",
        params(
            ["query"],
            query=string("What to look for", 200),
            top_k=integer("How many passages at most", 1, MAX_TOP_K, default=DEFAULT_TOP_K),
        ),
        _search_tool,
        activation_phrases=["look up"],
        category="retrieval",
        side_effects="read_only",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
