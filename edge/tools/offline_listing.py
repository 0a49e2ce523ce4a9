"""Lists the tools on disk, for `glassd tools` while no daemon runs: built in, own, and cloud.

Reads documents that were validated when they were written as plain JSON: milliseconds, without
pydantic. What these glasses can do is known to a running daemon only.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from edge.core.tools.package_switches import FOLLOWERS, switch_of
from edge.runtime.paths import config_candidates, state_dir

BUILTIN: Final = Path(__file__).parents[2] / "tools_cache" / "tool_registry.json"
SYSTEM_STATE: Final = Path("/var/lib/glassd")
"""StateDirectory= of the system's unit."""
MAX_CONFIG: Final = 256 * 1024
HARDWARE_KEY: Final = "io.glassd/hardware"
"""As in `tools_cache.registry.models`, which would import dataclasses."""
OFF: Final = "disabled in the configuration"
SWITCHED_OFF: Final = "disabled: glassd tools enable {name}"
SET_OFF: Final = "switched off ([tool.{key}] enabled = false)"
NOT_SET_ON: Final = "switched off (set enabled = true in [{section}])"
NOT_CONFIGURED: Final = "not configured: set {needs} in [tool.{package}]"
BUILD_KEY: Final = "io.glassd/build"
"""As in `tools_cache.registry.models`."""
_YES: Final = frozenset({"1", "yes", "on", "true"})
_CATEGORIES: Final = frozenset(
    {"retrieval", "action", "utility", "productivity", "media", "communication", "other"}
)
_PLAIN: Final = {
    "sideEffects": "writes",
    "requiresConfirmation": "never",
    "allowedModes": ["text", "voice"],
    "queueable": False,
    "version": "0",
}
"""Fields listed as written, and their defaults."""

Row = dict[str, Any]


class OfflineConfig(NamedTuple):
    """The settings that a listing needs."""

    state: Path
    cloud: str
    """Address of the cloud in use; "" without one."""
    disabled: tuple[str, ...] = ()
    tool: Mapping[str, Any] = MappingProxyType({})
    """The section `tool`: settings of packages and of single tools."""
    folders: tuple[Path, ...] = ()
    """Folders of the owner's tools."""
    user: str = "local"
    packages: tuple[Path, ...] = ()
    """Folders of the owner's Python tools."""


class OfflineListing(NamedTuple):
    """The result; `warnings` are for people."""

    tools: list[Row]
    registry: Row
    """`{origin, version, age_s, file}`, as reported by the daemon."""
    warnings: list[str]


def read(env: Mapping[str, str], *, now: float, builtin: Path = BUILTIN) -> OfflineListing:
    """Read everything; `now` is the wall clock. Never raises for a missing, damaged or forbidden
    file.
    """
    warnings: list[str] = []
    config = _config(env, warnings)
    local = _local(builtin, warnings)
    version, stored = str(local.get("version", "")), _stored_copy(config, warnings)
    rows, notes = list(_rows(local, "local", {}, config.disabled)), _build_notes(local)
    rows += _own(config, {row["name"].partition(":")[0] for row in rows})
    registry: Row = {"origin": "local", "version": version, "age_s": None, "file": str(builtin)}
    if stored is not None:
        header, document, path = stored
        mine = {row["name"] for row in rows}
        offered = _rows(document, "cloud", header["refused"], config.disabled)
        rows += [row for row in offered if row["name"] not in mine]
        age = round(max(0.0, now - header["fetched_wall"]), 1)
        version = str(document.get("version", ""))
        registry = {"origin": "disk", "version": version, "age_s": age, "file": str(path)}
    switched_off = {name: SWITCHED_OFF.format(name=name) for name in _switched_off(config)}
    for row in rows:
        name = row["name"]
        own = _set_off(name, config.tool, notes.get(name, {}))
        row["hidden"] = row["hidden"] or own or switched_off.get(name, "")
    return OfflineListing(sorted(rows, key=lambda row: str(row["name"])), registry, warnings)


# ------------------------------------------------------------------ where things are


def _config(env: Mapping[str, str], warnings: list[str]) -> OfflineConfig:
    """Read the settings that are needed; `glassd run` reports what is wrong with them."""
    document = _toml(env, warnings)

    def section(name: str) -> dict[str, Any]:
        found = document.get(name)
        return found if isinstance(found, dict) else {}

    def on(name: str) -> bool:
        given = env.get(f"GLASSD_{name.upper()}__ENABLED", section(name).get("enabled") is True)
        return str(given).strip().lower() in _YES

    given = env.get("GLASSD_EDGE__STATE_DIR") or section("edge").get("state_dir")
    state = Path(str(given)) if given else _state(env)
    cloud = str(env.get("GLASSD_CLOUD__URL") or section("cloud").get("url") or "")
    if not cloud and not (env.get("GLASSD_UPLINK__HOST") or section("uplink").get("host")):
        cloud = _enrolled(state)
    policy, tools = section("policy"), section("tools")
    enabled = env.get("GLASSD_POLICY__TOOLS_ENABLED", policy.get("tools_enabled") is not False)
    disabled = _listed(env.get("GLASSD_POLICY__DISABLED_TOOLS"), policy.get("disabled_tools"))
    return OfflineConfig(
        state,
        cloud,
        disabled if str(enabled).strip().lower() in _YES else ("*",),
        _followed(section("tool"), on),
        (
            *_beside(env),
            *map(Path, _listed(env.get("GLASSD_TOOLS__FOLDERS"), tools.get("folders"))),
        ),
        str(env.get("GLASSD_EDGE__USER_ID") or section("edge").get("user_id") or "local"),
        tuple(map(Path, _listed(env.get("GLASSD_TOOLS__PACKAGES"), tools.get("packages")))),
    )


def _followed(settings: dict[str, Any], on: Callable[[str], bool]) -> dict[str, Any]:
    """Return the settings of tools with those that follow a section switched on with it."""
    for package, name in FOLLOWERS.items():
        own = settings.get(package, {})
        if isinstance(own, dict) and on(name):
            settings = {**settings, package: {"enabled": True, **own}}
    return settings


def _listed(given: str | None, written: Any) -> tuple[str, ...]:
    """Return a list from the environment (comma-separated or TOML), else the one in the file."""
    words = written if given is None else [word.strip(" []\"'") for word in given.split(",")]
    return tuple(word for word in map(str, words) if word) if isinstance(words, list) else ()


def _set_off(name: str, settings: Mapping[str, Any], notes: Mapping[str, Any]) -> str:
    """Return why the settings of a tool or of its package, or its own default, switch it off.
    `notes` are the build's of this tool.
    """
    package, _, tool = name.partition(":")
    shared = settings.get(package)
    shared = shared if isinstance(shared, dict) else {}
    own = shared.get(tool)
    for table, key in ((own, f"{package}.{tool}"), (shared, package)):
        if isinstance(table, dict) and isinstance(table.get("enabled"), bool):
            if not table["enabled"]:
                return SET_OFF.format(key=key)
            break
    else:
        if notes.get("offAtFirst"):
            return NOT_SET_ON.format(section=switch_of(package))
    given = {**shared, **(own if isinstance(own, dict) else {})}
    missing = [key for key in notes.get("needs", ()) if key not in given]
    needs = " and ".join(filter(None, (", ".join(missing[:-1]), *missing[-1:])))
    return NOT_CONFIGURED.format(needs=needs, package=package) if missing else ""


def _build_notes(document: Row) -> dict[str, Mapping[str, Any]]:
    """Return the build's notes by tool: whether it is off at first, and which settings it needs."""
    notes: dict[str, Mapping[str, Any]] = {}
    for app in document.get("apps", ()):
        for tool in app["tools"]:
            notes[f"{app['packageName']}:{tool['name']}"] = tool["_meta"][BUILD_KEY]
    return notes


def _beside(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folder beside the configuration, else those beside each possible one."""
    places = (Path(env["GLASSD_CONFIG"]),) if env.get("GLASSD_CONFIG") else config_candidates(env)
    found = next((path for path in places if path.exists()), None)
    return tuple(path.parent / "tools.d" for path in ((found,) if found else places))


def _toml(env: Mapping[str, str], warnings: list[str]) -> dict[str, Any]:
    named = env.get("GLASSD_CONFIG")
    for path in (Path(named),) if named else config_candidates(env):
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_CONFIG)
        except FileNotFoundError:
            continue
        except OSError as e:
            warnings.append(f"{path} cannot be read: {e.strerror}")
            continue
        import tomllib  # noqa: PLC0415 - without a file there is nothing to read

        try:
            return tomllib.loads(raw.decode("utf-8-sig"))
        except (ValueError, RecursionError) as e:
            warnings.append(f"{path} is not valid TOML: {e}")
        break
    return {}


def _state(env: Mapping[str, str]) -> Path:
    """Return the state directory: this user's own if it exists, else the system's."""
    own = state_dir(env)
    if not env.get("STATE_DIRECTORY") and not own.exists() and SYSTEM_STATE.exists():
        return SYSTEM_STATE
    return own


def _enrolled(state: Path) -> str:
    """Return the address of the cloud this edge enrolled with; "" without one, or if unreadable."""
    with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
        document = json.loads((state / "enrolled" / "enrolment.json").read_bytes())
        return str(document.get("cloud_url") or "")
    return ""


# ------------------------------------------------------------------ what is there


def _local(path: Path, warnings: list[str]) -> Row:
    try:
        document = json.loads(path.read_bytes())
        if isinstance(document, dict):
            return document
    except (OSError, ValueError, RecursionError):
        pass
    warnings.append("the built-in tools cannot be read: run glassd registry build")
    return {}


def _stored_copy(config: OfflineConfig, warnings: list[str]) -> tuple[Row, Row, Path] | None:
    """Return header, document and file of the newest good copy from the cloud in use."""
    folder = config.state / "registry"
    for name in ("current.json", "previous.json") if config.cloud else ():
        path = folder / name
        try:
            header, document = _copy(path.read_bytes())
        except FileNotFoundError:
            continue
        except PermissionError:
            warnings.append(
                f"{path} may not be read by you: the cloud's tools are not "
                "shown; see them as root, or start glassd"
            )
            return None
        except OSError as e:
            warnings.append(f"{path} cannot be read: {e.strerror}")
        except (ValueError, KeyError, TypeError, RecursionError):
            warnings.append(f"{path} is damaged: the copy before it is taken, where there is one")
        else:
            if header["base"] == config.cloud:
                return header, document, path
    return None


def _switched_off(config: OfflineConfig) -> frozenset[str]:
    """Return what this user switched off, from the daemon's copy beside its database."""
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError, RecursionError):
        document = json.loads((config.state / "tools_off.json").read_bytes())
        return frozenset(map(str, document.get(config.user, ())))
    return frozenset()


def _copy(content: bytes) -> tuple[Row, Row]:
    """Check a stored copy as written by `registry_store.py`. Raises ValueError, KeyError,
    TypeError.
    """
    from hashlib import sha256  # noqa: PLC0415 - OpenSSL comes with it, and most edges have no copy to check

    line, _, body = content.partition(b"\n")
    header, document = json.loads(line), json.loads(body)
    intact = header["format"] == 1 and sha256(body).hexdigest() == header["sha256"]
    if not intact or not isinstance(document, dict):
        raise ValueError("not what was written")
    refused, fetched_wall = dict(header["refused"]), float(header["fetched_wall"])
    return {**header, "refused": refused, "fetched_wall": fetched_wall}, document


def _own(config: OfflineConfig, taken: set[str]) -> list[Row]:
    """List the owner's tools; a package of this installation cannot be theirs."""
    folders = [folder for folder in config.folders if folder.is_dir()]
    if not folders and not config.packages:
        return []
    from edge.tools import offline_user_tools  # noqa: PLC0415 - most edges have none

    found: dict[str, Row] = {}
    written = offline_user_tools.written(config.packages)
    for package, tool in (*offline_user_tools.documents(folders), *written):
        row = _row_or_none({"packageName": package}, tool, "local")
        if package not in taken and row is not None:
            row["hidden"] = _hidden(row["name"], package, {}, config.disabled)
            found.setdefault(row["name"], row)
    return list(found.values())


def _rows(
    document: Row, source: str, refused: Mapping[str, Any], disabled: tuple[str, ...]
) -> Iterator[Row]:
    apps = document.get("apps")
    for app in apps if isinstance(apps, list) else ():
        package, tools = (
            (app.get("packageName"), app.get("tools")) if isinstance(app, dict) else ("", ())
        )
        if not isinstance(package, str) or not package or ":" in package:
            continue
        for tool in tools if isinstance(tools, list) else ():
            row = _row_or_none(app, tool, source)
            if row is not None:
                row["hidden"] = _hidden(row["name"], package, refused, disabled)
                yield row


def _row_or_none(app: Row, tool: Any, source: str) -> Row | None:
    """List one tool as `GET /v1/tools` does; None for an invalid one: not all were validated."""
    try:
        return _row(app, tool, source) if isinstance(tool, dict) else None
    except (AttributeError, KeyError, TypeError):
        return None


def _row(app: Row, tool: Row, source: str) -> Row | None:
    name, schema, about = tool.get("name"), tool.get("inputSchema"), tool.get("description")
    if not isinstance(name, str) or ":" in name or not name.isprintable() or name.split() != [name]:
        return None
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    if not isinstance(about, str) or not isinstance(tool.get("allowedModes", []), list):
        return None
    extensions = tool.get("mentraExtensions") or {}
    category = tool.get("category") or extensions.get("category") or "utility"
    return {
        "name": f"{app['packageName']}:{name}",
        "description": about,
        "inputSchema": schema,
        "category": category if category in _CATEGORIES else "other",
        "app": app.get("name") or app["packageName"],
        "source": str(tool.get("source", source)) if source == "local" else source,
        "activationPhrases": extensions.get("activationPhrases") or [],
        "needs": _needs(app, tool, source),
        **{key: tool.get(key, meant) for key, meant in _PLAIN.items()},
    }


def _needs(app: Row, tool: Row, source: str) -> list[str]:
    """Return the hardware it requires; a tool's own needs count for local tools."""
    own = (tool.get("_meta") or {}).get(HARDWARE_KEY) if source == "local" else None
    declared = (*(app.get("hardwareRequirements") or ()), *(own or ()))
    required = (n for n in declared if str(n.get("level", "REQUIRED")).upper() != "OPTIONAL")
    return [str(need["type"]) for need in required]


def _hidden(name: str, package: str, refused: Mapping[str, Any], disabled: tuple[str, ...]) -> str:
    off = "*" in disabled or name in disabled or f"{package}:*" in disabled
    return OFF if off else str(refused.get(name, ""))
