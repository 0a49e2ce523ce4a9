"""What may be said now: recognisers that can weigh it understand it better."""

from collections.abc import Mapping

from msgspec import Struct, field


class ExpectedWords(Struct, frozen=True):
    """Sentences in small letters without marks: `set a timer for {duration}`, `note that {text}`.

    `{number}`, `{duration}`, `{time}` and `{day}` are known to everybody, `{text}` is any words;
    other names are in `lists`, with the words that may stand there.
    """

    sentences: tuple[str, ...] = ()
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
