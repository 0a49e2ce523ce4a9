"""What a provider's form is made from and what comes out: a tool as it is told, its form, what the
form could not say.

Knows no provider.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from tools_cache.names import alias
from tools_cache.tool import Json

MAX_DEPTH: Final = 64
"""As `schema.MAX_DEPTH`: what is deeper was refused before."""


class Withheld(Exception):
    """This provider cannot be told of this tool; the words say why. Others still are."""


class Form(NamedTuple):
    """What a provider is given, and in plain words all of the schema that it leaves out or
    changes.
    """

    document: dict[str, Json]
    losses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A tool as models are told of it. `parameters` is plain JSON and is never changed."""

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
    def of(cls, package: str, entry: Mapping[str, Json]) -> "Told":
        """Take it from a built tool's document."""
        return cls(
            name=f"{package}:{entry['name']}",
            description=entry["description"],
            parameters=entry["inputSchema"],
            writes=entry.get("sideEffects", "writes") == "writes",
            idempotent=entry.get("idempotent", False),
            confirmed=entry.get("requiresConfirmation", "never") != "never",
        )


def properties(schema: Json) -> list[tuple[str, Json]]:
    """Every named property below a schema, as (JSON pointer of what holds it, name)."""
    found: list[tuple[str, Json]] = []
    level: list[tuple[str, Json]] = [("", schema)]
    while level:
        below: list[tuple[str, Json]] = []
        for path, part in level:
            items = (
                part.items()
                if isinstance(part, Mapping)
                else enumerate(part)
                if isinstance(part, list)
                else ()
            )
            below += [(f"{path}/{key}", value) for key, value in items if key not in DATA]
            if isinstance(part, Mapping) and isinstance(part.get("properties"), Mapping):
                found += [(path, name) for name in part["properties"]]
        level = below
    return found


DATA: Final = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose values are data: nothing in them is a schema."""


def root_is_plain(schema: Mapping[str, Json], provider: str) -> None:
    """Refuse a root that is not simply an object: several APIs answer it with an error. Raises
    `Withheld`.
    """
    for keyword in ("anyOf", "oneOf", "allOf", "not", "enum"):
        if keyword in schema:
            raise Withheld(f"{provider} takes no {keyword} at the root of the parameters")
