"""Loads a tool's handler from its folder: a function, or a class with one instance per call.

A handler is imported at its first call, and again after it was unloaded.
"""

import importlib.util
import inspect
import sys
import typing
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from tools_cache.api.tool import (
    ErrorCode,
    Json,
    Named,
    ToolContext,
    ToolDefinition,
    ToolFailure,
    ToolResponse,
)
from tools_cache.registry import tool_docs

if typing.TYPE_CHECKING:
    from tools_cache.api.base import Tool

Runner = Callable[[Mapping[str, Json], ToolContext], Awaitable[Json]]
LateTaker = Callable[[ToolResponse, ToolContext], Awaitable[None]]
Namer = Callable[[Mapping[str, Json], ToolContext], Awaitable[Mapping[str, Named]]]


class BadHandler(Exception):
    """A handler that cannot be loaded."""


class Handlers:
    """The handlers of the folders below `tools`."""

    def __init__(self, tools: Path) -> None:
        self._tools = tools
        self._loaded: dict[Path, Runner] = {}

    def find(self, definition: ToolDefinition) -> Runner:
        """Return the tool's runner, imported at its first use. Raises `BadHandler`."""
        folder = self._folder_of(definition)
        if folder not in self._loaded:
            self._loaded[folder] = _runner(
                _module(folder / "handler.py", self._module_name(folder), folder.name), folder.name
            )
        return self._loaded[folder]

    def find_late_taker(self, definition: ToolDefinition) -> LateTaker | None:
        """Return what takes late answers of calls that this tool made, None if nothing does. Raises
        `BadHandler`.
        """
        found: LateTaker | None = self._find_function(definition, "take_late_answer")
        return found

    def find_namer(self, definition: ToolDefinition) -> Namer | None:
        """Return what names the tool's arguments in questions, None if nothing does. Raises
        `BadHandler`.
        """
        found: Namer | None = self._find_function(definition, "name_arguments")
        return found

    def _find_function(self, definition: ToolDefinition, name: str) -> Any:
        self.find(definition)
        module = sys.modules[self._module_name(self._folder_of(definition))]
        found = getattr(module, name, None)
        return found if inspect.iscoroutinefunction(found) else None

    def unload(self, definition: ToolDefinition) -> None:
        """Drop its code; the next call imports it again."""
        folder = self._folder_of(definition)
        if self._loaded.pop(folder, None) is not None:
            sys.modules.pop(self._module_name(folder), None)

    def _folder_of(self, definition: ToolDefinition) -> Path:
        """Return the folder the registry names for a tool. Raises `BadHandler`."""
        folder = tool_docs.folder_of(definition, self._tools)
        if folder is None:
            raise BadHandler(f"tool {definition.name}: the registry names no folder for it")
        return folder

    def _module_name(self, folder: Path) -> str:
        """Return a unique module name: an owner's folder may have the name of a built-in one."""
        whose = "" if folder.parent == self._tools else "own_"
        return f"glassd_tool_{whose}{folder.name.replace('-', '_')}"


def _module(path: Path, name: str, folder: str) -> ModuleType:
    """Import one file by its path. Raises `BadHandler`."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadHandler(f"Handler for {folder} cannot be loaded from {path.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        del sys.modules[name]
        raise BadHandler(f"Handler for {folder} cannot be loaded: {type(e).__name__}: {e}") from e
    return module


def _runner(module: ModuleType, folder: str) -> Runner:
    execute = getattr(module, "execute", None)
    classes = _classes(module)
    if execute is not None and classes:
        raise BadHandler(f"Handler for {folder} has both execute and a Tool: {classes[0].__name__}")
    if execute is not None or not classes:
        if not inspect.iscoroutinefunction(execute):
            raise BadHandler(f"Handler for {folder} doesn't export execute function")
        return typing.cast(Runner, execute)
    return _of_class(_the_one(classes, folder), folder)


def _classes(module: ModuleType) -> "list[type[Tool]]":
    """Return the tool classes defined in this module, without imported ones."""
    base = sys.modules.get("tools_cache.api.base")
    if base is None:
        return []  # a module with a tool class has imported it
    mine = [
        c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__
    ]
    return [c for c in mine if issubclass(c, base.Tool)]


def _the_one(classes: "list[type[Tool]]", folder: str) -> "type[Tool]":
    whole = [c for c in classes if not inspect.isabstract(c)]
    if not whole:
        lacking = ", ".join(sorted(classes[-1].__abstractmethods__))
        raise BadHandler(f"Handler for {folder}: class {classes[-1].__name__} has no {lacking}")
    if len(whole) > 1:
        raise BadHandler(
            f"Handler for {folder} has {len(whole)} tools: "
            f"{', '.join(c.__name__ for c in whole)}; one a folder"
        )
    if not inspect.iscoroutinefunction(whole[0].run):
        raise BadHandler(
            f"Handler for {folder}: {whole[0].__name__}.run must be async def run(self, args)"
        )
    return whole[0]


def _of_class(tool: "type[Tool]", folder: str) -> Runner:
    parts = _parts(tool, folder)

    async def run(args: Mapping[str, Json], ctx: ToolContext) -> Json:
        made = tool(**{name: getattr(ctx, part) if part else ctx for name, part in parts.items()})
        why_not = await made.is_available()
        if why_not:
            raise ToolFailure.of(ErrorCode.TOOL_UNAVAILABLE, why_not)
        return await made.run(args)

    return run


def _parts(tool: "type[Tool]", folder: str) -> dict[str, str]:
    """Map each constructor parameter to its part of the context, by its annotation. Raises
    `BadHandler`.
    """
    from tools_cache.api.base import INJECTED  # noqa: PLC0415 - who gets here has it in memory

    if tool.__init__ is object.__init__:
        return {}
    try:
        types: Mapping[str, Any] = typing.get_type_hints(tool.__init__)
    except Exception as e:
        raise BadHandler(
            f"Handler for {folder}: an annotation of {tool.__name__}() cannot be read: {e}"
        ) from e
    parts = {}
    for name, parameter in list(inspect.signature(tool.__init__).parameters.items())[1:]:
        asked = types.get(name)
        one = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if asked is None or asked not in INJECTED or not one:
            word = "no annotation" if asked is None else getattr(asked, "__name__", str(asked))
            raise BadHandler(
                f"Handler for {folder}: {tool.__name__}({name}: "
                f"{word}) asks for what cannot be handed in"
            )
        parts[name] = INJECTED[asked]
    return parts
