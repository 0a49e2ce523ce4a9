"""Storyteller: turns a list of words or numbers into a spoken sentence."""

from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, params, reply

LARGEST: Final = 10**15
_NAMES: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_SMALL: Final = tuple(_NAMES.split())
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Final = (
    (10**12, "trillion"),
    (10**9, "billion"),
    (10**6, "million"),
    (1000, "thousand"),
    (100, "hundred"),
)


def whole(n: int) -> str:
    """Return a whole number in words."""
    if n < 0:
        return f"minus {whole(-n)}"
    if n < 20:
        return _SMALL[n]
    if n < 100:
        tens = _TENS[n // 10 - 2]
        return tens if n % 10 == 0 else f"{tens}-{_SMALL[n % 10]}"
    size, word = next((size, word) for size, word in _SCALES if n >= size)
    head, rest = divmod(n, size)
    if rest == 0:
        return f"{whole(head)} {word}"
    joint = " and " if rest < 100 else " "
    return f"{whole(head)} {word}{joint}{whole(rest)}"


def in_words(item: Any) -> str:
    """Return one item in words. Raises ValueError for a number that is too large."""
    if isinstance(item, str):
        return " ".join(item.split())
    if abs(item) >= LARGEST:
        raise ValueError(f"{item} is too large to say")
    if float(item).is_integer():
        return whole(int(item))
    sign, digits = ("minus " if item < 0 else ""), f"{abs(item):.6f}".rstrip("0")
    before, _, after = digits.partition(".")
    if not after:
        return whole(int(item))
    return f"{sign}{whole(int(before))} point {' '.join(_SMALL[int(d)] for d in after)}"


def sentence(items: list[Any], opening: str) -> str:
    """Join the items for speech, with an `and` before the last; add the numbers up."""
    said = [s for s in map(in_words, items) if s]
    if not said:
        raise ValueError("items: there is nothing to say")
    joined = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
    numbers = [i for i in items if not isinstance(i, str)]
    total = f" Together that makes {in_words(round(sum(numbers), 6))}." if len(numbers) > 1 else ""
    return f"{opening} {joined}.{total}"


def _tell_tool(args: dict[str, Any], _: CallContext) -> Any:
    said = sentence(args["items"], args.get("opening", "Here is what I have:"))
    return reply({"text": said, "items": len(args["items"])}, say=said)


_ITEM: Final = {"type": ["string", "number"]}
_ITEMS: Final = {"type": "array", "items": _ITEM, "minItems": 1, "maxItems": 50}

app = AppServer("com.example.storyteller", name="Storyteller")
app.register_tool(
    create_tool(
        "tell",
        "Says a list of words or numbers aloud as one sentence, and adds the numbers up.",
        params(
            ["items"],
            items={**_ITEMS, "description": "Words or numbers"},
            opening={"type": "string", "maxLength": 200, "description": "How the sentence begins"},
        ),
        _tell_tool,
        activation_phrases=["tell me"],
        category="communication",
        side_effects="none",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
