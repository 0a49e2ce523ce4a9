"""Reads the owner's tools, `tools.d/*.toml` and `*.json`, and reports what is wrong with them.

Runs in a child of the daemon. An invalid file does not affect the others.
"""

import hashlib
import json
import os
import stat
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from edge.core.tools import templates, user_tools
from edge.core.tools.user_tools import Own, RequestPlan, ServerDefinition
from edge.tools import user_tools_schema
from tools_cache.api.tool import ExecutionType, Json, Source, ToolDefinition
from tools_cache.builder import user_packages
from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.frozen import FrozenDict, frozen
from tools_cache.names import parse
from tools_cache.nearest import did_you_mean, nearest
from tools_cache.registry.manifest import definition, own_requirements
from tools_cache.registry.models import App, Dropped, Requirement
from tools_cache.schema import check_schema, compile_schema

MAX_FILE: Final = 64 * 1024
MAX_FILES: Final = 200
MAX_ALL: Final = 1000
"""Tools of all files."""
CARD: Final = "card"
"""Default layout of a result: the tool's title above it."""
_HIDDEN: Final = ("execution", "activationPhrases")
"""Fields that are not part of the tool's definition."""
_BODILESS: Final = frozenset({"GET", "DELETE"})
_OUR_HEADERS: Final = frozenset(
    "host content-length transfer-encoding connection accept-encoding te upgrade expect".split()
)
_CLOUD_ONLY: Final = {
    "agentConfig": "a sub-agent (execution.agentConfig) runs in a cloud",
    "imageConfig": "an image model runs in a cloud",
    "provider": "an image model (execution.provider) runs in a cloud",
    "model": "an image model (execution.model) runs in a cloud",
}


_UNQUOTED: Final = {
    "/headers": (
        "must be text by name, each in plain ASCII, on one line, of 4000 characters at most"
    ),
    "/url": "must be an address, without a space in it",
    "/webhookUrl": "must be an address, without a space in it",
}
"""Places that may hold a secret: their errors do not quote the value."""


class BadFile(Exception):
    """This file, or one tool of it, cannot be used; the message has field, problem and fix."""


@dataclass(slots=True)
class _FoundTools:
    """What was read so far."""

    tools: list[tuple[ToolDefinition, str]] = field(default_factory=list)
    needs: dict[str, tuple[Requirement, ...]] = field(default_factory=dict)
    plans: dict[str, RequestPlan] = field(default_factory=dict)
    servers: list[ServerDefinition] = field(default_factory=list)
    problems: list[Dropped] = field(default_factory=list)


def read(folders: Sequence[Path], packages: Sequence[str] = (), users: Collection[int] = ()) -> Own:
    """Read every file of every folder, sorted by name, and the owner's Python tools. Never raises
    for their content. `users`: who may own Python tools beside root; by default the user of this
    process.
    """
    found, digest = _FoundTools(), hashlib.sha256()
    for path in _files(folders, found.problems):
        try:
            raw = _bytes(path)
            digest.update(os.fsencode(path.name) + b"\0" + raw + b"\0")
            _take(_name_of(path), _parse(path, raw), found)
        except BadFile as e:
            found.problems.append(Dropped(_name_of(path), str(e)))
    for tool, place in user_packages.read(packages, found.problems, users):
        try:
            _check_new(tool.name, [other.name for other, _ in found.tools])
            found.needs[tool.name] = own_requirements(tool.name, tool.raw, allowed=True)
        except (BadFile, BadDefinition) as e:
            found.problems.append(Dropped(place, str(e)))
            continue
        digest.update(json.dumps(tool.raw, sort_keys=True, default=dict).encode())
        found.tools.append((tool, place))
    return Own(
        apps=tuple(_apps(found.tools, found.needs)),
        plans=found.plans,
        servers=tuple(found.servers),
        problems=tuple(found.problems),
        folders=tuple(map(str, folders)),
        digest=digest.hexdigest() if found.tools or found.servers else "",
    )


def _files(folders: Sequence[Path], problems: list[Dropped]) -> Iterator[Path]:
    for folder in folders:
        try:
            open_to_all = folder.stat().st_mode & stat.S_IWOTH
            names = sorted(
                p
                for p in folder.iterdir()
                if p.suffix in {".toml", ".json"} and not p.name.startswith(".")
            )
        except FileNotFoundError:
            continue
        except OSError as e:
            problems.append(
                Dropped(str(folder), f"cannot be read: {e.strerror}; check who may read it")
            )
            continue
        if open_to_all and names:
            problems.append(
                Dropped(
                    str(folder),
                    "anybody may put files into it, and they decide "
                    "where your secrets go: chmod o-w",
                )
            )
            continue
        if len(names) > MAX_FILES:
            problems.append(
                Dropped(str(folder), f"{len(names)} files; the first {MAX_FILES} are read")
            )
        yield from names[:MAX_FILES]


def _name_of(path: Path) -> str:
    """Return a file's name as printable text: on disk it may be any bytes."""
    return os.fsencode(path.name).decode("utf-8", "replace")


def _bytes(path: Path) -> bytes:
    try:
        # Without waiting: a pipe of that name must not keep a daemon from starting.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise BadFile("is no file")
            if mode & stat.S_IWOTH:
                raise BadFile(
                    "anybody may write it, and it decides where your secrets go: chmod o-w"
                )
            raw = file.read(MAX_FILE + 1)
    except OSError as e:
        raise BadFile(f"cannot be read: {e.strerror}; check who may read it") from None
    if len(raw) > MAX_FILE:
        raise BadFile(f"is larger than {MAX_FILE // 1024} KiB; this is no tool")
    return raw


def _parse(path: Path, raw: bytes) -> dict[str, Json]:
    try:
        document = (
            json.loads(raw) if path.suffix == ".json" else tomllib.loads(raw.decode("utf-8-sig"))
        )
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, RecursionError):
        raise BadFile(
            "holds a date, or goes too deep; JSON has neither: write it as text"
        ) from None
    except ValueError as e:
        raise BadFile(f"is not valid {path.suffix[1:].upper()}: {e}") from None
    if not isinstance(document, dict):
        raise BadFile("must be an object with name, description and execution")
    return document


def _take(file: str, document: dict[str, Json], found: _FoundTools) -> None:
    """Read all tools and servers of one file. Raises `BadFile` if it has none."""
    if not document.keys() & {"tools", "servers"}:
        _take_tool(file, "", document, found)
        return
    if unknown := sorted(document.keys() - {"tools", "servers"}):
        raise BadFile(
            f"{unknown[0]}: stands beside a list; a file is one tool, "
            "or it has tools = [...] and servers = [...]"
        )
    for kind, take in (("tools", _take_tool), ("servers", _take_server)):
        listed = document.get(kind, [])
        if not isinstance(listed, list) or len(listed) > user_tools_schema.MAX_TOOLS:
            raise BadFile(f"{kind}: must be a list of at most {user_tools_schema.MAX_TOOLS}")
        for number, one in enumerate(listed):
            take(file, f"{kind}.{number}: ", one, found)


def _take_tool(file: str, where: str, document: Json, found: _FoundTools) -> None:
    try:
        _validate(document, user_tools_schema.TOOL)
        tool, plan = _tool(document)
        _check_new(tool.name, [other.name for other, _ in found.tools])
    except (BadFile, BadDefinition, BadToolName, templates.BadTemplate) as e:
        found.problems.append(Dropped(_label(file, document), where + str(e)))
        return
    found.tools.append((tool, file))
    if plan is not None:
        found.plans[tool.name] = plan


def _take_server(file: str, where: str, document: Json, found: _FoundTools) -> None:
    try:
        _check_one_address(document)
        _validate(document, user_tools_schema.SERVER)
        templates.check([document.get(key, "") for key in ("url", "headers", "env", "args")])
        _check_new(document["name"], [other.name for other in found.servers])
    except (BadFile, templates.BadTemplate) as e:
        found.problems.append(Dropped(file, where + str(e)))
        return
    found.servers.append(_server(document))


def _check_one_address(document: Json) -> None:
    """Check that a server has either `url` or `command`. Raises `BadFile`."""
    if isinstance(document, dict) and ("url" in document) is ("command" in document):
        raise BadFile("url: a server has an address, or a command that runs it: write one of them")


def _server(document: Mapping[str, Json]) -> ServerDefinition:
    words = "title url transport command enabled prompt visible trusted".split()
    plain = {word: word for word in words} | {"idle": "idle_s", "requiresConfirmation": "confirm"}
    given: dict[str, Any] = {ours: document[key] for key, ours in plain.items() if key in document}
    if "timeout" in document:
        given["timeout_s"] = document["timeout"] / 1000
    return ServerDefinition(
        name=document["name"],
        headers=frozen(document.get("headers", {})),
        env=frozen(document.get("env", {})),
        args=tuple(document.get("args", ())),
        allowed_tools=frozenset(document.get("allowedTools", ())),
        tool_prompts=frozen(document.get("toolPrompts", {})),
        **given,
    )


def _check_new(name: str, taken: list[str]) -> None:
    """Check that a name is not taken and that there is room. Raises `BadFile`."""
    if len(taken) >= MAX_ALL:
        raise BadFile(f"there are {MAX_ALL} already")
    if name in taken:
        raise BadFile(f"name: {name} is taken by another one already; the first one stands")


def _label(file: str, document: Json) -> str:
    name = document.get("name") if isinstance(document, dict) else None
    if isinstance(name, str) and name.isprintable() and name:
        return f"{file} ({name[:80]})"
    return file


# ------------------------------------------------------------------ the form


def _validate(document: Json, schema: Mapping[str, Any]) -> None:
    """Validate against the schema. Raises `BadFile` with the first problem."""
    if not isinstance(document, dict):
        raise BadFile("must be a table")
    _reject_unknown(document, schema, "")
    problems = compile_schema(schema).errors(document)
    if not problems:
        return
    path, problem = problems[0]["path"], problems[0]["problem"]
    field_ = "" if path == "root" else path.strip("/").replace("/", ".") + ": "
    if path == "/name":
        problem = "must be package:tool in small letters, for example my:weather"
    elif found := next((words for place, words in _UNQUOTED.items() if place in path), ""):
        problem = found
    raise BadFile(field_ + problem)


def _reject_unknown(document: Mapping[str, Json], schema: Mapping[str, Any], where: str) -> None:
    """Report an unknown key with the nearest known one, in clearer words than the schema's."""
    if schema.get("additionalProperties") is not False:
        return
    known = schema["properties"]
    for key, value in document.items():
        if key not in known:
            raise BadFile(
                f"{where}{key}: there is no such field; "
                + (did_you_mean(key, known) or f"there are {', '.join(known)}")
            )
        if isinstance(value, dict):
            _reject_unknown(value, known[key], f"{where}{key}.")


# ------------------------------------------------------------------ one tool


def _tool(document: Mapping[str, Json]) -> tuple[ToolDefinition, RequestPlan | None]:
    name = parse(document["name"])
    kind = ExecutionType(document.get("executionType", ExecutionType.GATEWAY))
    execution: dict[str, Json] = dict(document.get("execution", {}))
    schema = document.get(
        "inputSchema", {"type": "object", "properties": {}, "additionalProperties": False}
    )
    check_schema(schema)
    plan = _plan(kind, execution, schema)
    method = plan.method if plan else "POST"
    reads = method == "GET" and plan is not None and not plan.later
    raw: dict[str, Json] = {
        "sideEffects": "read_only" if reads else "writes",
        "idempotent": reads,
        **{key: value for key, value in document.items() if key not in _HIDDEN},
        "name": name.tool,
        "inputSchema": schema,
        "executionType": kind.value,
    }
    if execution:
        raw[user_tools.EXECUTION_KEY] = hashlib.sha256(
            json.dumps(execution, sort_keys=True, default=str).encode()
        ).hexdigest()
    if "activationPhrases" in document:
        raw["mentraExtensions"] = {"activationPhrases": document["activationPhrases"]}
    tool = definition(name.package, raw, source=Source.LOCAL)
    timeout_s = execution.get("timeout", 30_000) / 1000
    endpoint = "" if plan is None or plan.later else "http"
    return replace(
        tool, endpoint=endpoint, timeout_s=timeout_s, custom_ui=tool.custom_ui or CARD, own=True
    ), plan


def _plan(
    kind: ExecutionType, execution: Mapping[str, Json], schema: Mapping[str, Json]
) -> RequestPlan | None:
    """Return how it is requested; None if the wearer answers, or the result is handed in later."""
    if kind is ExecutionType.SPACE:
        if execution:
            raise BadFile(
                "execution: a tool of executionType space is a question to the "
                "wearer, nobody is asked for it; take execution out"
            )
        return None
    if only := next((why for key, why in _CLOUD_ONLY.items() if key in execution), ""):
        return RequestPlan(only_cloud=only)
    later = execution.get("answer") == "later"
    url = execution.get("url") or execution.get("webhookUrl") or ""
    if not url:
        _check_no_address(kind, execution)
        return None
    if later and kind is not ExecutionType.EXTERNAL:
        raise BadFile('execution.answer: later is for executionType = "external"')
    method = execution.get("method", "POST")
    plan = RequestPlan(
        url=url,
        method=method,
        headers=frozen(execution.get("headers", {})),
        query=frozen(execution.get("query", {})),
        body=frozen(_body(execution, method)),
        later=later,
    )
    _check_plan(plan, schema)
    return plan


def _check_no_address(kind: ExecutionType, execution: Mapping[str, Json]) -> None:
    if kind is not ExecutionType.EXTERNAL:
        raise BadFile(
            f"execution.url: is missing; a tool of executionType {kind.value} is "
            "asked there (external without one is answered later)"
        )
    if left := sorted(execution.keys() - {"answer", "timeout"}):
        raise BadFile(
            f"execution.{left[0]}: is for an address, and there is none; "
            "write execution.url, or take it out"
        )


def _body(execution: Mapping[str, Json], method: str) -> Json:
    body = execution.get("body")
    if body is None:
        return None
    if method in _BODILESS:
        raise BadFile(f'execution.body: {method} has none; use execution.query, or method = "POST"')
    if not isinstance(body, str) or templates.slots(body) == {body.strip("{} \t")}:
        return body
    try:
        made: Json = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise BadFile(
            f"execution.body: is no JSON ({e}); placeholders stand within "
            "quotes there, or write it as a table"
        ) from None
    # The empty schema still limits size and depth, and rejects NaN, which JSON does not have.
    if problems := compile_schema({}).errors(made):
        raise BadFile(f"execution.body: {problems[0]['problem']}")
    return made


def _check_plan(plan: RequestPlan, schema: Mapping[str, Json]) -> None:
    """Check a plan as far as possible without its secrets. Raises `BadFile`, `BadTemplate`."""
    if not templates.secrets(templates.origin(plan.url)) and (
        problem := user_tools.address_problem(plan.url)
    ):
        raise BadFile(problem)
    places: dict[str, Json] = {
        "url": plan.url,
        "headers": dict(plan.headers),
        "query": plan.query,
        "body": plan.body,
    }
    for place, template in places.items():
        try:
            templates.check(template)
        except templates.BadTemplate as e:
            raise BadFile(f"execution.{place}: {e}") from None
        if place != "headers":
            _check_inputs(place, template, schema)
    for name, value in plan.headers.items():
        if templates.slots(value):
            raise BadFile(
                f"execution.headers.{name}: a call's values have no place in "
                "headers; put them into query or body"
            )
        if name.lower() in _OUR_HEADERS:
            raise BadFile(f"execution.headers.{name}: is written by glassd itself; take it out")


def _check_inputs(place: str, template: Json, schema: Mapping[str, Json]) -> None:
    """Check that placeholders name arguments of the tool."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or schema.get("additionalProperties", True) not in (
        True,
        False,
    ):
        return
    for path in sorted(templates.slots(template)):
        wanted = path.split(".")[1:2]
        if path.startswith("input.") and wanted[0] not in properties:
            near = nearest(wanted[0], properties)
            hint = (
                f"did you mean {{{{input.{near}}}}}?"
                if near
                else "add it to inputSchema.properties"
            )
            raise BadFile(f"execution.{place}: {{{{{path}}}}} is no argument of this tool; {hint}")


def _apps(
    tools: Iterable[tuple[ToolDefinition, str]], needs: Mapping[str, tuple[Requirement, ...]]
) -> Iterator[App]:
    packages: dict[str, list[ToolDefinition]] = {}
    for tool, _ in tools:
        packages.setdefault(parse(tool.name).package, []).append(tool)
    for package, members in sorted(packages.items()):
        mine = FrozenDict({tool.name: needs[tool.name] for tool in members if needs.get(tool.name)})
        yield App(package=package, name=package, tools=tuple(members), tool_requirements=mine)
