"""Reads the settings from TOML and the environment, and explains what is wrong. Runs in a child
process of the daemon.

The pydantic models are built from the classes of model.py.
"""

import stat
import tomllib
from collections.abc import Container, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo as PlainField, fields, replace
from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo

import tools_cache
from edge.config import errors as explain, tool_options
from edge.config.model import Settings
from edge.config.validators import BadSettings, Problem
from edge.runtime.paths import Env, config_candidates
from tools_cache.builder import user_packages
from tools_cache.frozen import FrozenDict
from tools_cache.registry.models import Dropped

VERSION: Final = 1
MAX_FILE: Final = 256 * 1024
"""Bytes of a configuration file; the commented sample has 5 KiB."""

TOOLS: Final = Path(tools_cache.__file__).parent / "tools"

# ------------------------------------------------------------------ the form


class _Form(BaseModel):
    """The pydantic model of a section: unknown keys are errors, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True)
    plain: ClassVar[type]

    @model_validator(mode="after")
    def _consistent(self) -> "_Form":
        self.to_plain()
        return self

    def to_plain(self) -> Any:
        """Return the plain section. Raise ValueError if its keys do not fit together."""
        names = type(self).model_fields
        return self.plain(**{name: _to_plain(getattr(self, name)) for name in names})


def _to_plain(value: Any) -> Any:
    if isinstance(value, _Form):
        return value.to_plain()
    if isinstance(value, tuple):
        return tuple(map(_to_plain, value))
    if isinstance(value, dict):
        return {key: _to_plain(item) for key, item in value.items()}
    return value


def _form(plain: type[Struct], only: Container[str] | None = None) -> type[_Form]:
    """Return the model of a section, or of the settings with `only` these sections."""
    hints = get_type_hints(plain, include_extras=True)
    keys: dict[str, Any] = {
        f.name: (_type(hints[f.name]), _default(f))
        for f in fields(plain)
        if only is None or f.name in only
    }
    form = create_model(plain.__name__, __base__=_Form, **keys)
    form.plain = plain
    return form


@cache
def _section_form(plain: Any) -> type[_Form]:
    return _form(plain)


def _type(hint: Any) -> Any:
    """Replace plain classes by their models, also as the values of a table and the members of a
    list.
    """
    if isinstance(hint, type) and issubclass(hint, Struct):
        return _section_form(hint)
    if get_origin(hint) is Annotated:
        plain, *marks = get_args(hint)
        return Annotated[_type(plain), *marks]
    if get_origin(hint) is tuple:
        return tuple.__class_getitem__(
            tuple(part if part is Ellipsis else _type(part) for part in get_args(hint))
        )
    if get_origin(hint) is dict:
        key, value = get_args(hint)
        return dict.__class_getitem__((key, _type(value)))
    return hint


def _default(f: PlainField) -> Any:
    if f.default_factory is not NODEFAULT:
        return FieldInfo(default_factory=f.default_factory)
    if f.default is NODEFAULT:
        return ...
    return (
        FieldInfo(default_factory=_section_form(type(f.default)))
        if isinstance(f.default, Struct)
        else f.default
    )


@cache
def whole_form() -> type[_Form]:
    """Return the model of all settings, which is needed to explain what is wrong with some."""
    return _form(Settings, only=Settings().sections())


def formed(document: Mapping[str, Any]) -> Settings:
    """Return the settings of a document's sections. Raise pydantic's ValidationError.

    Only the sections that are there get a model: each costs 2 ms to make.
    """
    there = document.keys() & Settings().sections().keys()
    settings: Settings = _form(Settings, only=there).model_validate(document).to_plain()
    return settings


# ------------------------------------------------------------------ reading


def load(path: Path | None, env: Env) -> Settings:
    """Read the active settings. Raise `BadSettings` with one problem per line."""
    source = find(path, env)
    document = _read(source) if source else {}
    tables = document.pop(tool_options.SECTION, {})
    from_env, problems = explain.overlay(Settings(), document, env)
    own, all_known = _own_folders(document)
    single, wrong_tools = tool_options.read(
        tables, TOOLS, own, all_known=all_known, enabled=partial(_enabled, document)
    )
    try:
        settings = formed(document)
    except ValidationError as wrong:
        problems += explain.problems(whole_form(), wrong, from_env)
    else:
        problems += _unreadable_files(settings, from_env)
        problems += tool_options.cloud_may_problems(
            settings.policy.cloud_may, TOOLS, from_env.get(("policy", "cloud_may"), "")
        )
    problems += wrong_tools
    if problems:
        raise BadSettings.of(problems, str(source) if source else "the environment")
    single = replace(single, values=_in_zone(single.values, settings.wearer.timezone))
    return replace(settings, source=source, tool=single)


def _enabled(document: Mapping[str, Any], section: str) -> bool:
    keys = document.get(section)
    return isinstance(keys, dict) and keys.get("enabled") is True


def _in_zone(tools: Mapping[str, Mapping[str, Any]], zone: str) -> Mapping[str, Mapping[str, Any]]:
    """Give the wearer's time zone to the tools that have none of their own."""
    return FrozenDict(
        {
            name: FrozenDict({**values, "timezone": zone})
            if values.get("timezone") == ""
            else values
            for name, values in tools.items()
        }
    )


def _own_folders(document: Mapping[str, Any]) -> tuple[list[Path], bool]:
    """Return the folders of the owner's Python tools, which define their own settings; and whether
    these are all. A problem with one is reported with the tools, not with the configuration.
    """
    tools = document.get("tools")
    named = tools.get("packages") if isinstance(tools, dict) else None
    problems: list[Dropped] = []
    names = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    found = list(user_packages.folders(names, problems))
    whole = [folder for folder in found if (folder / "schema.json").is_file()]
    return whole, whole == found and not problems


def find(path: Path | None, env: Env) -> Path | None:
    """Return the file to read: the named one, else the first that exists, else None. Raise
    `BadSettings`.
    """
    named = path or (Path(env["GLASSD_CONFIG"]) if env.get("GLASSD_CONFIG") else None)
    if named is not None:
        if not _there(named):
            raise BadSettings(
                f"{named}: there is no such file; create it, "
                "or leave out --config and GLASSD_CONFIG"
            )
        return named
    return next((p for p in config_candidates(env) if _there(p)), None)


def _there(path: Path) -> bool:
    """Return whether the file exists. Raise `BadSettings` if its directory may not be entered: a
    configuration that exists but is not readable must not count as missing.
    """
    try:
        return path.exists()
    except PermissionError as e:
        fix = (
            f"ask for the right to enter {path.parent} (its group: "
            f"ls -ld {path.parent}), or name another file: --config FILE"
        )
        raise BadSettings(
            f"{path}: cannot be looked at: {(e.strerror or 'permission denied').lower()}; {fix}"
        ) from None


def _read(source: Path) -> dict[str, Any]:
    try:
        with source.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except OSError as e:
        raise BadSettings(
            f"{source}: cannot be read: {e.strerror}; check who may read it (ls -l {source})"
        ) from None
    if len(raw) > MAX_FILE:
        raise BadSettings(
            f"{source}: is larger than {MAX_FILE // 1024} KiB; "
            "this cannot be a glassd configuration"
        )
    try:
        document = tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as e:
        raise BadSettings(
            f"{source}: is not UTF-8 text (byte {e.start}); save it as UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as e:
        raise BadSettings(f"{source}: is not valid TOML: {e}") from None
    _check_version(source, document.pop("version", None))
    return document


def _check_version(source: Path, version: object) -> None:
    if version is None:
        raise BadSettings(
            f"{source}: version: missing; write `version = {VERSION}` as the first line"
        )
    if type(version) is not int or version != VERSION:
        why = f"write `version = {VERSION}`"
        if type(version) is int and version > VERSION:
            why = "this file is for a newer glassd; update glassd"
        raise BadSettings(f"{source}: version: this glassd reads version {VERSION} only; {why}")


def _unreadable_files(settings: Settings, from_env: Mapping[tuple[str, ...], str]) -> list[Problem]:
    """Return a problem for every `*_file` that cannot be opened, before anything starts that needs
    it later.
    """
    fix, found = "correct the path, or remove the key", []
    for section, key in explain.every_key(settings):
        value = getattr(getattr(settings, section), key) if key.endswith("_file") else ""
        if value and (why := _why_unreadable(Path(value))):
            source = from_env.get((section, key), "")
            found.append(Problem(f"{section}.{key}", f"{value}: {why}", fix, source))
    return found


def _why_unreadable(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return "" if stat.S_ISREG(path.stat().st_mode) and file.readable() else "is not a file"
    except OSError as e:
        return (e.strerror or "cannot be read").lower()
