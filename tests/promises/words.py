"""What a promise is, as data. Knows none of them."""

from typing import NamedTuple


class Promise(NamedTuple):
    """One promise: a sentence a user can rely on, and its source."""

    sentence: str
    source: str
