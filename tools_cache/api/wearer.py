"""What a tool's author says to the wearer: its name in a sentence, its question, how to undo it."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tools_cache.api.handed import Json

MAX_TEXT: Final = 60
"""Characters of one of these texts: about a row of a lens."""
MAX_UNDO_ARGS: Final = 16


class Undo(Struct, frozen=True):
    """The tool that takes a call back. `args` is a template over the call's `input` and the
    result's `data`: `{"id": "{{data.id}}"}`.
    """

    tool: str
    args: Mapping[str, Json]


class WearerTexts(Struct, frozen=True):
    """`name`: the tool in a sentence, "the calculator". `ask`: the question before it runs, only of
    tools that glassd ships. `later`: what is said when the call waits for the network, a template
    over `input`.
    """

    name: str = ""
    ask: str = ""
    later: str = ""
    undo: Undo | None = None


NO_TEXTS: Final = WearerTexts()
