"""Promises about how the registry is kept, renewed and served. `DECLINED` holds rows that do not apply to an edge, each with its reason."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I5-list-changed": Promise("A change of the list of offered tools is told once, after it took force, at a turn boundary.", "issue 5, Runtime; C-36"),
}

DECLINED: Final[dict[str, str]] = {}
