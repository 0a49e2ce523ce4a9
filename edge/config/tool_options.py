"""The settings of tools, checked by each tool's own `config.py`. Runs in a child process.

`[tool.PACKAGE.NAME]` is for one tool, `[tool.PACKAGE]` for all of a package that have such a key.

The model of a tool's settings is its `Config`, else one with `enabled` alone. An unknown key is an
error of the file; a wrong value switches its tool off, and nothing else.
"""

import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from edge.config import errors as explain
from edge.config.model import NOT_CONFIGURED, SWITCHED_OFF, ToolSettings
from edge.config.validators import Problem
from edge.core.tools.package_switches import FOLLOWERS, switch_of
from tools_cache.builder.config_form import CLASS, FILE, NEEDED, OFF_AT_FIRST, build_notes
from tools_cache.frozen import FrozenDict
from tools_cache.nearest import nearest

SECTION: Final = "tool"
CLOUD_WORDS: Final = ("glasses", "declared")
"""What `policy.cloud_may` may contain besides names of tools."""
MAX_REASON: Final = 300
_NO_TABLE: Final = "must be the table of one tool"
_TABLE: Final = "write [tool.PACKAGE.NAME], its keys below"


class _Plain(BaseModel):
    """The settings of a tool without `config.py`."""

    enabled: bool = True


def read(
    tables: Any,
    tools: Path,
    own: Iterable[Path] = (),
    *,
    all_known: bool = True,
    enabled: Callable[[str], bool] = lambda _section: False,
) -> tuple[ToolSettings, list[Problem]]:
    """Check the tables below `tool`. `tools` is the folder of the tools' folders, `own` are folders
    of the owner's tools; if those are not `all_known`, a table for an unknown package may belong to
    one that was left out. `enabled` tells of a section whether it is.
    """
    given, shared, problems = _flat(tables)
    there = {
        _name(path): path
        for path in (*sorted(own), *sorted(tools.iterdir()))
        if (path / "schema.json").is_file()
    }
    unknown = [name for name in given if name.replace(":", "_") not in there]
    packages = {
        _canonical(path).partition(":")[0] for path in there.values() if path.parent == tools
    }
    problems += [
        _unknown_tool(name, there)
        for name in unknown
        if all_known or name.partition(":")[0] in packages
    ]
    if all_known:
        known = {_canonical(path).partition(":")[0] for path in there.values()}
        problems += [_unknown_package(package, known) for package in shared if package not in known]
    values: dict[str, Mapping[str, Any]] = {}
    off: dict[str, str] = {}
    unused = {(package, key): None for package, keys in shared.items() for key in keys}
    fields: dict[str, set[str]] = {}
    for tool_id, path in there.items():
        name = next((n for n in given if n.replace(":", "_") == tool_id), "") or _canonical(path)
        package = name.partition(":")[0]
        more = shared.get(package, {})
        if enabled(FOLLOWERS.get(package, "")):
            more = {"enabled": True, **more}
        if name not in given and not more:
            if not (path / FILE).is_file():
                continue
            if path.parent == tools and (why := _why_off_unset(path / FILE, package)):
                off[name] = why
                continue
        value, why, wrong = _checked(name, given.get(name, {}), path, more, fields)
        problems += wrong
        for key in fields.get(package, ()):
            unused.pop((package, key), None)
        if why:
            off[name] = why
        else:
            values[name] = FrozenDict(value)
    problems += [
        _unknown_key(package, key, fields[package], is_tool=f"{package}_{key}" in there)
        for package, key in unused
        if package in fields
    ]
    return ToolSettings(FrozenDict(values), FrozenDict(off)), problems


def cloud_may_problems(values: Iterable[str], tools: Path, source: str = "") -> list[Problem]:
    """Return a problem for each value of `policy.cloud_may` that allows nothing, with the nearest
    right one. An unknown package may be the owner's own: only the tools of the shipped packages are
    known.
    """
    names = [
        _canonical(path) for path in sorted(tools.iterdir()) if (path / "schema.json").is_file()
    ]
    packages = list(dict.fromkeys(f"{name.partition(':')[0]}:*" for name in names))
    return [
        Problem("policy.cloud_may", problem, fix, source)
        for value in values
        if value not in (*CLOUD_WORDS, "*", *packages, *names)
        for problem, fix in _cloud_may_problem(value, packages, names)
    ]


def _cloud_may_problem(
    value: str, packages: list[str], names: list[str]
) -> Iterator[tuple[str, str]]:
    package, _, tool = value.partition(":")
    well_formed = bool(package and tool) and not any(ch.isspace() for ch in value)
    if well_formed and f"{package}:*" not in packages:
        return
    neither = f"is neither a tool nor one of {', '.join(CLOUD_WORDS)}"
    problem = f'"{value[:80]}" {"is no tool" if well_formed else neither}'
    # A package's name alone means all of it.
    whole = f"{value}:*"
    near = whole if whole in packages else nearest(value, [*CLOUD_WORDS, *packages, *names])
    example = 'write for example "notes:*" or "calendar:get_availability"'
    yield problem, f'did you mean "{near}"?' if near else example


def _flat(
    tables: Any,
) -> tuple[dict[str, Mapping[str, Any]], dict[str, dict[str, Any]], list[Problem]]:
    """Divide `{package: {tool: {…}, key: value}}`: the tables by canonical name, the values by
    package.
    """
    given: dict[str, Mapping[str, Any]] = {}
    shared: dict[str, dict[str, Any]] = {}
    problems = []
    for package, inner in (tables if isinstance(tables, dict) else {"": None}).items():
        if not isinstance(inner, dict):
            where = ".".join(filter(None, (SECTION, package)))
            problems.append(Problem(where, _NO_TABLE, _TABLE))
            continue
        for key, value in inner.items():
            if isinstance(value, dict):
                given[f"{package}:{key}"] = value
            else:
                shared.setdefault(package, {})[key] = value
    return given, shared, problems


def _why_off_unset(file: Path, package: str) -> str:
    """Return why a shipped tool is off while its owner sets nothing, or "".

    Found without its model, which costs 3 ms: it is not made for a tool that is not used.
    """
    try:
        notes = build_notes(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""  # its model reports it
    needs = notes.get(NEEDED)
    if isinstance(needs, list):
        return _needs(needs, package)
    return _not_enabled(package) if notes.get(OFF_AT_FIRST) else ""


def _needs(keys: Sequence[str], package: str) -> str:
    return f"{NOT_CONFIGURED}: set {listing(keys)} in [{SECTION}.{package}]"


def _not_enabled(package: str) -> str:
    return f"{SWITCHED_OFF} (set enabled = true in [{switch_of(package)}])"


def _checked(
    name: str,
    given: Mapping[str, Any],
    folder: Path,
    shared: Mapping[str, Any],
    fields: dict[str, set[str]],
) -> tuple[dict[str, Any], str, list[Problem]]:
    """Return a tool's values, why it is off (or ""), and its unknown keys. Adds its keys to those
    of its package in `fields`.
    """
    package = name.partition(":")[0]
    section = f"{SECTION}.{name.replace(':', '.')}"
    try:
        form = _form(folder)
    except (Exception, SystemExit) as e:  # noqa: BLE001 - a broken file switches its tool off
        return {}, f"its {FILE} cannot be loaded: {type(e).__name__}: {e}"[:MAX_REASON], []
    fields.setdefault(package, set()).update(form.model_fields)
    unknown = [
        Problem(f"{section}.{key}", "unknown key", explain.did_you_mean(key, form.model_fields))
        for key in given
        if key not in form.model_fields
    ]
    own = {**shared, **given}
    known = {key: value for key, value in own.items() if key in form.model_fields}
    try:
        values = form.model_validate(known).model_dump(mode="json")
    except ValidationError as wrong:
        missing = [str(e["loc"][0]) for e in wrong.errors() if e["type"] == "missing"]
        if len(missing) == wrong.error_count() and not known.keys() - {"enabled"}:
            return {}, _needs(missing, package), unknown
        listed = "; ".join(
            f"{'.'.join(map(str, e['loc']))}: {e['msg']}"
            for e in wrong.errors(include_url=False, include_input=False)
        )
        return {}, f"its settings are wrong ([{section}] {listed})"[:MAX_REASON], unknown
    if values.get("enabled") is True:
        return values, "", unknown
    if "enabled" in own:
        switch = section if "enabled" in given else f"{SECTION}.{package}"
        return values, f"{SWITCHED_OFF} ([{switch}] enabled = false)", unknown
    return values, _not_enabled(package), unknown


def listing(names: Sequence[str]) -> str:
    """Return names as in a sentence: a, b and c."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _form(folder: Path) -> type[BaseModel]:
    """Return the tool's own model, made strict: no unknown keys, no conversions."""
    own: type[BaseModel] = _Plain
    path = folder / FILE
    if path.is_file():
        spec = importlib.util.spec_from_file_location(f"glassd_config_{_name(folder)}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found: object = getattr(module, CLASS, None)
        if (
            not (isinstance(found, type) and issubclass(found, BaseModel))
            or "enabled" not in found.model_fields
        ):
            raise TypeError(f"{CLASS} must be a model with enabled: bool")
        own = found
    strict = create_model(CLASS, __base__=own)
    strict.model_config = ConfigDict(**{**own.model_config, "extra": "forbid", "strict": True})
    strict.model_rebuild(force=True)
    return strict


def _name(folder: Path) -> str:
    return folder.name.replace("-", "_")


def _canonical(folder: Path) -> str:
    """Return a tool's canonical name; lint checks that it fits the folder's."""
    try:
        return str(json.loads((folder / "schema.json").read_text(encoding="utf-8"))["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return folder.name.replace("_", ":", 1)


def _unknown_tool(name: str, there: Mapping[str, Path]) -> Problem:
    section = f"{SECTION}.{name.replace(':', '.')}"
    known = [f"{SECTION}.{_canonical(path).replace(':', '.')}" for path in there.values()]
    return Problem(
        section, "there is no tool of this name here", explain.did_you_mean(section, known)
    )


def _unknown_key(package: str, key: str, known: Iterable[str], *, is_tool: bool) -> Problem:
    where = f"{SECTION}.{package}.{key}"
    if is_tool:
        return Problem(where, _NO_TABLE, _TABLE)
    return Problem(where, "unknown key", explain.did_you_mean(key, sorted(known)))


def _unknown_package(package: str, known: Iterable[str]) -> Problem:
    names = [f"{SECTION}.{each}" for each in known]
    where = f"{SECTION}.{package}"
    return Problem(where, "there is no package of this name", explain.did_you_mean(where, names))
