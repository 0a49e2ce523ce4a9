"""A validated registry as a file, so that a start need not validate the document again.

It is used only for the document, the version of glassd and the settings that it was made of, and
only if it is whole; else it is made again. One line of JSON (the header, with the hash of the
rest), one with the apps, and the packed tools. Blocking.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools_cache.api.tool import Json
from tools_cache.files import write_atomic
from tools_cache.frozen import FrozenDict
from tools_cache.registry.models import App, Detail, Dropped, Registry, Requirement
from tools_cache.registry.packed_tools import CHUNK, PackedTools

FORMAT: Final = 1
"""To be raised with each change of what a definition is built from."""
NAME: Final = "registry.index"
MAX_FILE: Final = 24 * 1024 * 1024
"""Bytes: twice those of a document, for texts that do not compress."""


class IndexKey(NamedTuple):
    """What an index is made of: the hash of the document, the version of glassd, and the settings
    by which it was validated.
    """

    source: str
    version: str
    per_tool_hardware: bool = False


def read(directory: Path, key: IndexKey) -> Registry | None:
    """Return the stored registry; None if there is none of this key, or if it is damaged."""
    try:
        with (directory / NAME).open("rb") as file:
            content = file.read(MAX_FILE + 1)
        head, _, rest = content.partition(b"\n")
        if len(content) > MAX_FILE or json.loads(head) != _head(key, rest):
            return None
        apps, _, chunks = rest.partition(b"\n")
        return _registry(json.loads(apps), chunks)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def write(directory: Path, key: IndexKey, registry: Registry) -> None:
    """Store a registry. Raises OSError."""
    chunks: list[bytes] = []
    apps = [_app_document(app.packed(), chunks) for app in registry.apps]
    document = {
        "version": registry.version,
        "sha256": registry.sha256,
        "commit": registry.commit,
        "dropped": registry.dropped,
        "apps": apps,
    }
    line = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    rest = b"\n".join((line, b"".join(chunks)))
    directory.mkdir(parents=True, exist_ok=True)
    head = json.dumps(_head(key, rest)).encode()
    write_atomic(directory / NAME, b"\n".join((head, rest)), 0o666)


def _head(key: IndexKey, rest: bytes) -> dict[str, Json]:
    return {"format": FORMAT, **key._asdict(), "sha256": sha256(rest).hexdigest()}


# ------------------------------------------------------------------ apps as JSON


def _app_document(app: App, chunks: list[bytes]) -> dict[str, Json]:
    """Return an app, and add its packed tools to `chunks`."""
    tools = app.tools
    assert isinstance(tools, PackedTools)
    chunks += tools.chunks
    return {
        "package": app.package,
        "name": app.name,
        "needs": _needs_document(app.requirements),
        "own": {name: _needs_document(needs) for name, needs in app.tool_requirements.items()},
        "tools": tools.names,
        "special": [name for name in tools.names if name not in tools.plain],
        "sizes": [len(chunk) for chunk in tools.chunks],
    }


def _needs_document(needs: Sequence[Requirement]) -> list[Json]:
    return [
        [
            need.type,
            need.required,
            need.description,
            [_values(d) for d in need.details],
            need.instead,
        ]
        for need in needs
    ]


def _values(detail: Detail) -> list[Json]:
    return [detail.field, detail.equal, detail.least, detail.most]


def _registry(document: Mapping[str, Any], chunks: bytes) -> Registry:
    """Raises what a document of another form makes it raise."""
    apps, first = [], 0
    for written in document["apps"]:
        parts = []
        for size in written["sizes"]:
            parts.append(chunks[first : first + size])
            first += size
        apps.append(_app(written, tuple(parts)))
    return Registry(
        version=document["version"],
        sha256=document["sha256"],
        apps=tuple(apps),
        dropped=tuple(Dropped(*dropped) for dropped in document["dropped"]),
        commit=document["commit"],
    )


def _app(written: Mapping[str, Any], chunks: tuple[bytes, ...]) -> App:
    names = tuple(written["tools"])
    if len(chunks) != -(-len(names) // CHUNK):
        raise ValueError("the packed tools are not those that are named")
    return App(
        package=written["package"],
        name=written["name"],
        requirements=_needs(written["needs"]),
        tools=PackedTools(names, frozenset(names) - frozenset(written["special"]), chunks),
        tool_requirements=FrozenDict(
            {name: _needs(needs) for name, needs in written["own"].items()}
        ),
    )


def _needs(written: Sequence[Any]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(kind, required, about, tuple(Detail(*values) for values in details), instead)
        for kind, required, about, details, instead in written
    )
