"""What the wearer reads and hears of a text: no markup, and moments in the wearer's own form."""

import asyncio
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from edge.core.results import Link, Rendering
from edge.core.words.drawable_text import ISOLATES
from edge.core.words.wearer_forms import Writer

if TYPE_CHECKING:
    from edge.display.plain_text import PlainText

_LONG: Final = 500
"""Characters of Markdown that are read in a thread: as hostile as can be they take half a second on
a Raspberry Pi.
"""
_LIBRARY: Final = "markdown_it"


class Wording:
    """The one way of every text to the lens and to the voice. `writer` returns the wearer's forms
    at this moment.
    """

    def __init__(self, writer: Callable[[], Writer] = Writer) -> None:
        self.writer = writer

    async def apply(self, rendering: Rendering) -> Rendering:
        """Return the rendering as the wearer reads and hears it."""
        from edge.display.plain_text import spoken  # noqa: PLC0415 - at the first text

        shown = (rendering.text, rendering.first, rendering.second, *rendering.pages)
        texts = (*shown, rendering.more, rendering.speech or "")
        writer = self.writer()
        read = {text: await _read(text) for text in dict.fromkeys(texts)}
        written = {text: writer.text(found.text) for text, found in read.items()}
        speech = rendering.speech
        return replace(
            rendering,
            text=written[rendering.text],
            first=written[rendering.first],
            second=written[rendering.second],
            more=written[rendering.more],
            pages=tuple(written[page] for page in rendering.pages),
            speech=None if speech is None else spoken(written[speech]),
            links=_links(read[text] for text in shown),
        )

    async def of(self, text: str) -> str:
        """Return a text as the wearer reads it, where others draw it: without signs for directions,
        which they may not know.
        """
        return self.writer().text((await _read(text)).text).translate(ISOLATES)


async def _read(text: str) -> "PlainText":
    from edge.display import plain_text  # noqa: PLC0415 - at the first text

    text = plain_text.without_terminal_codes(text)
    if not plain_text.has_markdown(text):
        return plain_text.PlainText(text)
    if len(text) > _LONG or _LIBRARY not in sys.modules:
        return await asyncio.to_thread(plain_text.plain, text)
    return plain_text.plain(text)


def _links(texts: "Iterable[PlainText]") -> tuple[Link, ...]:
    return tuple(dict.fromkeys(link for text in texts for link in text.links))
