"""Reads and validates registry documents, and reports what was left out and why.

One invalid tool is skipped and does not affect the others; a document that cannot be trusted as a
whole raises `BadManifest`.
"""

import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Never

from pydantic import ValidationError

from tools_cache.api.tool import (
    ENVELOPE_VERSION,
    ExecutionType,
    Json,
    Mode,
    RateLimit,
    SideEffects,
    Source,
    ToolDefinition,
)
from tools_cache.api.wearer import NO_TEXTS, Undo, WearerTexts
from tools_cache.errors import BadDefinition, BadManifest, BadToolName
from tools_cache.frozen import FrozenDict, Packed, frozen
from tools_cache.names import check_local_name, parse
from tools_cache.registry import documents, legacy
from tools_cache.registry.models import (
    HARDWARE_KEY,
    MAX_BYTES,
    App,
    Detail,
    Dropped,
    Registry,
    Requirement,
)

MAX_TOOLS: Final = 20_000
MAX_NESTING: Final = 200
"""Maximum nesting of a document; a schema may have 64 levels of it."""
CATEGORIES: Final = frozenset(
    {"retrieval", "action", "utility", "productivity", "media", "communication", "other"}
)
"""Policy categories and MentraOS ones."""
_MODES: Final = {
    frozenset(modes): frozenset(map(Mode, modes))
    for modes in (("text", "voice"), ("text",), ("voice",))
}
"""Shared by tools with equal values: saves a megabyte with ten thousand tools."""
_ALWAYS: Final = FrozenDict()
_READ: Final = frozenset({"version", "sha256", "envelopeVersion", "apps"})
"""Keys that are read: our own artifact is four times as large because of the model forms."""
HASHED: Final = "SHA-256 over `apps` alone, as canonical JSON by RFC 8785"
_EXACT: Final = 2**53
"""Above this an integer is not exact in JSON; RFC 8785 hashes the double that others read."""
_NONE: Final = FrozenDict()

logger = logging.getLogger(__name__)


def canonical(value: Json) -> bytes:
    """Return canonical JSON (RFC 8785). Raises ValueError if the value has no canonical form."""
    import rfc8785  # noqa: PLC0415 - only documents from outside are hashed

    return rfc8785.dumps(_exact(value))


def digest(apps: Json) -> str:
    """Return the SHA-256 over the canonical JSON of `apps`, in hex. Raises ValueError."""
    if not isinstance(apps, list):
        return hashlib.sha256(canonical(apps)).hexdigest()
    whole = hashlib.sha256(b"[")
    # One by one: the canonical text of all of them at once would take three times the memory.
    for number, app in enumerate(apps):
        whole.update((b"," if number else b"") + canonical(app))
    whole.update(b"]")
    return whole.hexdigest()


def parse_json(body: bytes, *, wanted: Collection[str] = ()) -> Json:
    """Parse a document (only top-level keys in `wanted`, if given). Raises `BadManifest`."""
    if len(body) > MAX_BYTES:
        raise BadManifest(f"the registry is {len(body)} bytes; at most {MAX_BYTES} are taken")
    try:
        document = json.loads(body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as e:
        raise BadManifest(f"the registry is not JSON: {str(e)[:120]}") from None
    if wanted and isinstance(document, dict):
        document = {key: value for key, value in document.items() if key in wanted}
    if _depth_over(document, MAX_NESTING):
        raise BadManifest(f"the registry is nested deeper than {MAX_NESTING} levels")
    return document


def load(
    body: bytes,
    *,
    source: Source = Source.CLOUD,
    per_tool_hardware: bool = False,
    trusted: bool = False,
) -> Registry:
    """Read `{version, sha256, apps}`. Raises `BadManifest`.

    `source`: where its tools run; only our own build (LOCAL) may mark a tool as GLASSES. `trusted`
    skips the hash: the bytes are an unchanged copy that was validated when written.
    """
    document = parse_json(body, wanted=_READ)
    try:
        head = documents.Head.model_validate(document)
    except ValidationError as e:
        raise BadManifest(f"the registry is not a registry document: {problem_of(e)}") from None
    if head.envelope_version not in (None, ENVELOPE_VERSION):
        raise BadManifest(
            "Incompatible ToolResponse schema version: "
            f"{head.envelope_version}; this version supports {ENVELOPE_VERSION}"
        )
    if not trusted:
        _verify(head.sha256, document["apps"])
    return _registry(head, document["apps"], source, per_tool_hardware=per_tool_hardware)


def from_tool_list(body: bytes) -> tuple[bytes, tuple[Dropped, ...]]:
    """Convert the answer of `GET /api/tools` to the bytes of a registry document. Raises
    `BadManifest`.

    Tools whose name is not `package:tool` are left out and reported.
    """
    document = parse_json(body)
    tools = document.get("tools") if isinstance(document, dict) else None
    if not isinstance(tools, list):
        raise BadManifest("the tool list is not {tools: [...]}")
    apps, nameless = legacy.apps_of_list(tools)
    sha256 = _digest_or_refuse(apps)
    made = json.dumps({"version": f"list-{sha256[:8]}", "sha256": sha256, "apps": apps}).encode()
    return made, tuple(
        Dropped(_label(tool, "name"), "name: is not packageName:toolName") for tool in nameless
    )


def definition(package: str, document: Json, *, source: Source) -> ToolDefinition:
    """Validate one tool's document. Raises `BadDefinition` or `BadToolName`."""
    if not isinstance(document, dict):
        raise BadDefinition("a tool must be an object")
    raw = legacy.migrate(document)
    try:
        tool = documents.ToolDocument.model_validate(raw)
    except ValidationError as e:
        raise BadDefinition(problem_of(e)) from None
    check_local_name(tool.name)
    name = str(parse(f"{package}:{tool.name}"))
    written, schema = _pack(raw)
    return ToolDefinition(
        name=name,
        description=tool.description,
        input_schema=schema,
        source=source,
        version=tool.version,
        category=_category(name, tool),
        side_effects=SideEffects(tool.side_effects),
        idempotent=tool.idempotent,
        requires_confirmation=tool.requires_confirmation,
        allowed_modes=_MODES[frozenset(tool.allowed_modes)],
        latency_budget_ms=int(tool.latency_budget_ms),
        timeout_s=tool.timeout_s,
        queueable=tool.queueable,
        queue_ttl_s=tool.queue_ttl_s,
        execution_type=ExecutionType(tool.execution_type),
        endpoint=tool.execution.url or tool.execution.webhook_url or "",
        pending_ttl_s=tool.pending_ttl_s,
        visible=_visible(raw),
        custom_ui=_custom_ui(raw),
        cache_ttl_s=_cache_ttl_s(tool),
        rate_limit=_rate_limit(tool),
        available_when=FrozenDict({str(f): wanted for f, wanted in tool.available_when.items()})
        if tool.available_when
        else _ALWAYS,
        activation_phrases=tuple(tool.mentra_extensions.activation_phrases),
        depends_on=tuple(dict.fromkeys(tool.depends_on)),
        local_phrases=_local_phrases(tool),
        open_to_cloud=raw.get("openToCloud") is True,
        for_programs=tool.mentra_extensions.for_programs,
        how_to_check=tool.mentra_extensions.how_to_check,
        wearer=_wearer(name, tool.mentra_extensions.wearer),
        raw=written,
    )


def _pack(raw: dict[str, Json]) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    """Return the definition as written, and its schema, both packed."""
    packed = Packed.of(raw)
    return packed, packed.part("inputSchema")


def _visible(raw: Mapping[str, Json]) -> bool | None:
    """Return the tool's own visibility flag, if it is a bool."""
    found = raw.get("visible")
    return found if isinstance(found, bool) else None


def _custom_ui(raw: Mapping[str, Json]) -> str:
    display = raw.get("display")
    found = display.get("customUI") if isinstance(display, Mapping) else None
    return found[:80] if isinstance(found, str) else ""


def problem_of(error: ValidationError) -> str:
    """Return a pydantic error as `field.path: problem`, the first one only, without its value."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "document"
    return f"{where}: {first['msg']}"[:300]


# ------------------------------------------------------------------ inside


def _registry(
    head: documents.Head, raw_apps: list[Json], source: Source, *, per_tool_hardware: bool
) -> Registry:
    if sum(len(_tools(app)) for app in raw_apps) > MAX_TOOLS:
        raise BadManifest(f"the registry has more than {MAX_TOOLS} tools")
    dropped: list[Dropped] = []
    seen: set[str] = set()
    apps = [
        _app(raw, source, dropped, seen, per_tool_hardware=per_tool_hardware) for raw in raw_apps
    ]
    kept = tuple(app for app in apps if app is not None)
    return Registry(
        version=head.version,
        sha256=head.sha256.lower(),
        apps=kept,
        dropped=tuple(dropped),
        commit=head.git_commit or "",
    )


def _app(
    raw: Json,
    source: Source,
    dropped: list[Dropped],
    seen: set[str],
    *,
    per_tool_hardware: bool,
) -> App | None:
    try:
        app = documents.AppDocument.model_validate(raw)
    except ValidationError as e:
        dropped.append(Dropped(_label(raw, "packageName"), problem_of(e)))
        return None
    tools: list[ToolDefinition] = []
    needs: dict[str, tuple[Requirement, ...]] = {}
    for document in _tools(raw):
        try:
            tool = definition(app.package_name, document, source=_source(document, source))
            allowed = per_tool_hardware or source is Source.LOCAL
            own = own_requirements(tool.name, document, allowed=allowed)
            _first(tool.name, seen)
        except (BadDefinition, BadToolName) as e:
            dropped.append(Dropped(f"{app.package_name}:{_label(document, 'name')}", str(e)))
            continue
        tools.append(tool)
        if own:
            needs[tool.name] = own
    requirements = tuple(map(_requirement, app.hardware_requirements))
    return App(
        package=app.package_name,
        name=app.name or app.package_name,
        requirements=requirements,
        tools=tuple(tools),
        tool_requirements=FrozenDict(needs),
    )


def _first(name: str, seen: set[str]) -> None:
    if name in seen:
        raise BadDefinition("is defined twice; the first one is used")
    seen.add(name)


def own_requirements(
    name: str, document: Mapping[str, Json], *, allowed: bool
) -> tuple[Requirement, ...]:
    """Return the hardware needs of a single tool, from its document; if not allowed, they are
    logged and ignored.
    """
    meta = document.get("_meta")
    declared = meta.get(HARDWARE_KEY) if isinstance(meta, Mapping) else None
    if declared is None:
        return ()
    if not allowed:
        logger.warning(
            "tool %s: its own hardware needs are ignored; hardware belongs to the app", name
        )
        return ()
    try:
        needs = documents.HardwareDocument.model_validate({"list": declared}).list
        return tuple(map(_requirement, needs))
    except ValidationError as e:
        raise BadDefinition(f"_meta.{HARDWARE_KEY}: {problem_of(e)}") from None


def _requirement(need: documents.Need) -> Requirement:
    details = tuple(_detail(field, wanted) for field, wanted in need.where.items())
    return Requirement(
        need.type.upper(),
        need.level.upper() != "OPTIONAL",
        need.description or "",
        details,
        (need.instead or "").upper(),
    )


def _detail(field: str, wanted: documents.Wanted) -> Detail:
    if isinstance(wanted, documents.Bounds):
        return Detail(field, least=wanted.min, most=wanted.max)
    return Detail(field, equal=wanted)


def _cache_ttl_s(tool: documents.ToolDocument) -> float | None:
    if tool.cache_ttl_s is not None and SideEffects(tool.side_effects) is SideEffects.WRITES:
        raise BadDefinition(
            "cacheTtlS: only a tool that writes nothing may be answered from a cache; "
            "say sideEffects read_only or none, or leave cacheTtlS out"
        )
    return tool.cache_ttl_s


def _local_phrases(tool: documents.ToolDocument) -> Mapping[str, Sequence[str]]:
    """Return the phrases by language, packed: most wearers speak one."""
    phrases = tool.mentra_extensions.local_phrases
    found = {language: said for language, said in phrases.items() if said}
    return Packed.of(found) if found else _NONE


def _wearer(name: str, said: documents.WearerDocument) -> WearerTexts:
    if said.undo is None:
        texts = WearerTexts(said.name, said.ask, said.later)
        return NO_TEXTS if texts == NO_TEXTS else texts
    package = name.partition(":")[0]
    if said.undo.tool == name or said.undo.tool.partition(":")[0] != package:
        raise BadDefinition(
            f"mentraExtensions.wearer.undo.tool: must be another tool of {package}, "
            f"not {said.undo.tool[:80]}"
        )
    undo = Undo(said.undo.tool, frozen(said.undo.args))
    return WearerTexts(said.name, said.ask, said.later, undo)


def _rate_limit(tool: documents.ToolDocument) -> RateLimit | None:
    limit = tool.rate_limit
    return None if limit is None else RateLimit(limit.calls, limit.window)


def _category(name: str, tool: documents.ToolDocument) -> str:
    category = tool.category or tool.mentra_extensions.category or "utility"
    if category in CATEGORIES:
        return category
    logger.warning("tool %s: category %.40r is unknown; treated as other", name, category)
    return "other"


def _source(document: Json, source: Source) -> Source:
    if source is not Source.LOCAL or not isinstance(document, dict):
        return source
    return Source.GLASSES if document.get("source") == Source.GLASSES else source


def _tools(raw_app: Json) -> list[Json]:
    tools = raw_app.get("tools") if isinstance(raw_app, dict) else None
    return tools if isinstance(tools, list) else []


def _label(raw: Json, key: str) -> str:
    """Return a name for an invalid entry, as well as possible."""
    found = (raw.get(key) or raw.get("id")) if isinstance(raw, dict) else None
    printable = found.isprintable() if isinstance(found, str) else False
    return found[:80] if printable and found else "(unnamed)"


def _verify(claimed: str, apps: Json) -> None:
    actual = _digest_or_refuse(apps)
    if actual != claimed.lower():
        raise BadManifest(
            f"its sha256 is {claimed.lower()}, but that of its apps is {actual} ({HASHED})"
        )


def _digest_or_refuse(apps: Json) -> str:
    try:
        return digest(apps)
    except (ValueError, OverflowError, RecursionError) as e:
        raise BadManifest(f"the registry cannot be hashed: {str(e)[:120]}") from None


def _exact(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    big = isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _EXACT
    return float(value) if big else value


def _depth_over(value: Json, bound: int) -> bool:
    """Measure the depth level by level, without recursion."""
    level: list[Json] = [value]
    for _ in range(bound + 1):
        level = [child for part in level for child in _inner(part)]
        if not level:
            return False
    return True


def _inner(part: Json) -> Iterable[Json]:
    values = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [child for child in values if isinstance(child, dict | list)]


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")
