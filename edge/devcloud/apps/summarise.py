"""Reader: an extractive summary, word counts and reading time of any text; every sentence is
quoted.
"""

import re
from collections import Counter
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, integer, params, reply, string

MAX_TEXT: Final = 100_000
WORDS_PER_MINUTE: Final = 238
"""Mean silent reading speed of adults for English non-fiction (Brysbaert 2019)."""
_SENTENCE: Final = re.compile(r"[^.!?。！？]+[.!?。！？]*[\"'”’)]*\s*")
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_STOP_WORDS: Final = (
    "a an and are as at be been but by can could did do does for from had has have he her his i if "
    "in into is it its may more most my no nor not of on or our out she should so some such than "
    "that the their them then there these they this those to up was we were what when where which "
    "who will with would you your"
)
_COMMON: Final = frozenset(_STOP_WORDS.split())


def sentences(text: str) -> list[str]:
    """Split into sentences; a text without a full stop is one."""
    return [found.strip() for found in _SENTENCE.findall(" ".join(text.split())) if found.strip()]


def words(text: str) -> list[str]:
    return [w.lower() for w in _WORD.findall(text)]


def summarise(text: str, count: int) -> list[str]:
    """Pick the `count` sentences that share most of the text's frequent words, in their own
    order.
    """
    all_sentences = sentences(text)
    frequency = Counter(w for w in words(text) if w not in _COMMON and len(w) > 2)

    def weight(index: int) -> tuple[float, int]:
        own = [w for w in words(all_sentences[index]) if w in frequency]
        # Mean, not sum: long sentences must not win by length. Early ones win ties: texts open with
        # their point.
        return (sum(frequency[w] for w in own) / (len(own) + 2), -index)

    chosen = sorted(sorted(range(len(all_sentences)), key=weight, reverse=True)[:count])
    return [all_sentences[i] for i in chosen]


def reading_time(count: int) -> str:
    seconds = round(count * 60 / WORDS_PER_MINUTE)
    return f"{seconds} s" if seconds < 90 else f"{round(seconds / 60)} min"


def _summarise_tool(args: dict[str, Any], _: CallContext) -> Any:
    text = args["text"]
    if not words(text):
        raise ValueError("text: there is not a word in it")
    picked = summarise(text, args.get("sentences", 3))
    count = len(words(text))
    title = f"{count} words, {reading_time(count)}"
    data: dict[str, Any] = {"summary": " ".join(picked), "sentences": picked}
    data |= {"words": count, "readingTime": reading_time(count)}
    follow_ups = ["Which words are the most frequent?"]
    return reply(data, title=title, show="\n".join(picked), follow_ups=follow_ups)


def _wordcount_tool(args: dict[str, Any], _: CallContext) -> Any:
    found = words(args["text"])
    top = Counter(w for w in found if w not in _COMMON).most_common(5)
    data = {
        "words": len(found),
        "unique": len(set(found)),
        "sentences": len(sentences(args["text"])),
        "characters": len(args["text"]),
        "top": [{"word": w, "count": n} for w, n in top],
    }
    lines = [f"{data['words']} words, {data['unique']} different", *(f"{n} × {w}" for w, n in top)]
    return reply(data, show="\n".join(lines))


_TEXT: Final = string("The text", MAX_TEXT)

app = AppServer("com.example.summarise", name="Reader")
app.register_tool(
    create_tool(
        "summarise",
        "Picks the sentences that carry most of a text, and says how long it takes to read.",
        params(
            ["text"], text=_TEXT, sentences=integer("How many sentences to keep", 1, 20, default=3)
        ),
        _summarise_tool,
        activation_phrases=["summarise", "summarize"],
        category="productivity",
        side_effects="none",
        idempotent=True,
        queueable=True,
        queue_ttl_s=600,
    )
)
app.register_tool(
    create_tool(
        "wordcount",
        "Counts words, sentences and the most frequent words of a text.",
        params(["text"], text=_TEXT),
        _wordcount_tool,
        category="productivity",
        side_effects="none",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
