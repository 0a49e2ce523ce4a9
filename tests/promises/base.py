"""Promises about what a local tool stands on. `DECLINED` holds rows that do not apply to an edge, each with its reason."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {}

DECLINED: Final[dict[str, str]] = {}
