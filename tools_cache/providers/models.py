"""Types of the provider forms: a tool as described to models, its form, and the losses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from tools_cache.api.tool import Json
from tools_cache.names import alias

MAX_DEPTH: Final = 64
"""As `schema.MAX_DEPTH`: what is deeper was refused before."""


class Withheld(Exception):
    """This provider cannot get this tool; the message says why."""


class ProviderForm(NamedTuple):
    """The form for a provider, and everything of the schema that it leaves out or changes."""

    document: dict[str, Json]
    losses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTool:
    """A tool as described to models. `parameters` is plain JSON and is never changed."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    writes: bool = True
    idempotent: bool = False
    confirmed: bool = False
    open_world: bool = False

    @property
    def alias(self) -> str:
        return alias(self.name)

    @classmethod
    def of(cls, package: str, entry: Mapping[str, Json]) -> "DescribedTool":
        """Create it from a built tool's document."""
        return cls(
            name=f"{package}:{entry['name']}",
            description=entry["description"],
            parameters=entry["inputSchema"],
            writes=entry.get("sideEffects", "writes") == "writes",
            idempotent=entry.get("idempotent", False),
            confirmed=entry.get("requiresConfirmation", "never") != "never",
        )


def properties(schema: Json) -> list[tuple[str, Json]]:
    """Return every named property below a schema, as (JSON pointer of its parent, name)."""
    found: list[tuple[str, Json]] = []
    level: list[tuple[str, Json]] = [("", schema)]
    while level:
        below: list[tuple[str, Json]] = []
        for path, part in level:
            if isinstance(part, list):
                below += [(f"{path}/{number}", value) for number, value in enumerate(part)]
            elif isinstance(part, Mapping):
                below += [(f"{path}/{key}", v) for key, v in part.items() if key not in DATA]
                if isinstance(part.get("properties"), Mapping):
                    found += [(path, name) for name in part["properties"]]
        level = below
    return found


DATA: Final = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose values are data: they contain no schemas."""


def root_is_plain(schema: Mapping[str, Json], provider: str) -> None:
    """Check that the root is simply an object, as several APIs require. Raises `Withheld`."""
    for keyword in ("anyOf", "oneOf", "allOf", "not", "enum"):
        if keyword in schema:
            raise Withheld(f"{provider} takes no {keyword} at the root of the parameters")
