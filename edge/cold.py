"""The tools as they are on disk, for `glassd tools` while no daemon runs: the built-in ones, and the last good copy of the cloud's.

Refuses to judge: documents that were checked when they were written are read as plain JSON, without pydantic, in
milliseconds. What these glasses can do, and what takes force, only a running daemon knows.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from edge.paths import config_candidates, state_dir

BUILTIN: Final = Path(__file__).parent.parent / "tools_cache" / "tool_registry.json"
SYSTEM_STATE: Final = Path("/var/lib/glassd")
"""StateDirectory= of the system's unit."""
MAX_CONFIG: Final = 256 * 1024
HARDWARE_KEY: Final = "io.glassd/hardware"
"""As in `tools_cache.registry`, which would bring dataclasses with it."""
OFF: Final = "disabled in the configuration"
SWITCHED_OFF: Final = "disabled: glassd tools enable {name}"
_CATEGORIES: Final = frozenset({"retrieval", "action", "utility", "productivity", "media", "communication", "other"})
_PLAIN: Final = {
    "sideEffects": "writes", "requiresConfirmation": "never", "allowedModes": ["text", "voice"], "queueable": False, "version": "0",
}  # fmt: skip
"""What a listing gives of a tool as it was written, and what it means where nothing was."""

Row = dict[str, Any]


class Config(NamedTuple):
    """The few settings a listing needs."""

    state: Path
    cloud: str
    """Address of the cloud in force; "" when there is none."""
    disabled: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    """Where tools of the owner's may be."""
    user: str = "local"


class Cold(NamedTuple):
    """What was found; `warnings` are for a person."""

    tools: list[Row]
    registry: Row
    """`{origin, version, age_s, file}`: as the daemon would tell of it."""
    warnings: list[str]


def read(env: Mapping[str, str], *, now: float, builtin: Path = BUILTIN) -> Cold:
    """Read what is there; `now` is the wall clock. Never raises for a file that is missing, damaged or not ours to read."""
    warnings: list[str] = []
    config = _config(env, warnings)
    local = _local(builtin, warnings)
    version, kept = str(local.get("version", "")), _kept(config, warnings)
    rows = list(_rows(local, "local", {}, config.disabled))
    rows += _own(config, {row["name"].partition(":")[0] for row in rows})
    registry: Row = {"origin": "local", "version": version, "age_s": None, "file": str(builtin)}
    if kept is not None:
        header, document, path = kept
        mine = {row["name"] for row in rows}
        rows += [row for row in _rows(document, "cloud", header["refused"], config.disabled) if row["name"] not in mine]
        age = round(max(0.0, now - float(header["fetched_wall"])), 1)
        registry = {"origin": "disk", "version": str(document.get("version", "")), "age_s": age, "file": str(path)}
    switched_off = _switched_off(config)
    for row in rows:
        if row["name"] in switched_off and not row["hidden"]:
            row["hidden"] = SWITCHED_OFF.format(name=row["name"])
    return Cold(sorted(rows, key=lambda row: str(row["name"])), registry, warnings)


# ------------------------------------------------------------------ where things are


def _config(env: Mapping[str, str], warnings: list[str]) -> Config:
    """Read as much of the configuration as is needed; what is wrong with it, `glassd run` tells."""
    document = _toml(env, warnings)

    def section(name: str) -> dict[str, Any]:
        found = document.get(name)
        return found if isinstance(found, dict) else {}

    given = env.get("GLASSD_EDGE__STATE_DIR") or section("edge").get("state_dir")
    state = Path(str(given)) if given else _state(env)
    cloud = str(env.get("GLASSD_CLOUD__URL") or section("cloud").get("url") or "")
    if not cloud and not (env.get("GLASSD_UPLINK__HOST") or section("uplink").get("host")):
        cloud = _enrolled(state)
    policy = section("policy")
    listed = policy.get("disabled_tools")
    off = tuple(map(str, listed)) if isinstance(listed, list) else ()
    more = section("tools").get("folders")
    named = tuple(map(Path, map(str, more))) if isinstance(more, list) else ()
    return Config(state, cloud, off if policy.get("tools_enabled") is not False else ("*",), (*_beside(env), *named), str(section("edge").get("user_id") or "local"))


def _beside(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The folder beside the configuration there is, else beside each one there could be."""
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
            return tomllib.loads(raw.decode("utf-8"))
        except ValueError as e:
            warnings.append(f"{path} is not valid TOML: {e}")
        break
    return {}


def _state(env: Mapping[str, str]) -> Path:
    """The directory of whoever's daemon was here: this user's own, else the system's."""
    own = state_dir(env)
    return SYSTEM_STATE if not env.get("STATE_DIRECTORY") and not own.exists() and SYSTEM_STATE.exists() else own


def _enrolled(state: Path) -> str:
    """The cloud this edge enrolled with; "" when it did not, or when that is not for us to read."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        document = json.loads((state / "enrolled" / "enrolment.json").read_bytes())
        return str(document.get("cloud_url") or "")
    return ""


# ------------------------------------------------------------------ what is there


def _local(path: Path, warnings: list[str]) -> Row:
    try:
        document = json.loads(path.read_bytes())
        if isinstance(document, dict):
            return document
    except (OSError, ValueError):
        pass
    warnings.append("the built-in tools cannot be read: run glassd registry build")
    return {}


def _kept(config: Config, warnings: list[str]) -> tuple[Row, Row, Path] | None:
    """Give header, document and file of the newest good copy from the cloud in force; moves and mends nothing."""
    folder = config.state / "registry"
    for name in ("current.json", "previous.json") if config.cloud else ():
        path = folder / name
        try:
            header, document = _copy(path.read_bytes())
        except FileNotFoundError:
            continue
        except PermissionError:
            warnings.append(f"{path} may not be read by you: the cloud's tools are not shown; see them as root, or start glassd")
            return None
        except OSError as e:
            warnings.append(f"{path} cannot be read: {e.strerror}")
        except (ValueError, KeyError, TypeError, RecursionError):
            warnings.append(f"{path} is damaged: the copy before it is taken, where there is one")
        else:
            if header["base"] == config.cloud:
                return header, document, path
    return None


def _switched_off(config: Config) -> frozenset[str]:
    """Name what this user switched off, by the copy the daemon keeps beside its database."""
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
        return frozenset(map(str, json.loads((config.state / "tools_off.json").read_bytes()).get(config.user, ())))
    return frozenset()


def _copy(content: bytes) -> tuple[Row, Row]:
    """Check a stored copy as `tools_cache/generations.py` wrote it. Raises ValueError, KeyError, TypeError."""
    from hashlib import sha256  # noqa: PLC0415 - OpenSSL comes with it, and most edges have no copy to check

    line, _, body = content.partition(b"\n")
    header = json.loads(line)
    document = json.loads(body)
    if header["format"] != 1 or sha256(body).hexdigest() != header["sha256"] or not isinstance(document, dict):
        raise ValueError("not what was written")
    return {**header, "refused": dict(header["refused"]), "fetched_wall": float(header["fetched_wall"])}, document


def _own(config: Config, taken: set[str]) -> list[Row]:
    """The owner's own tools; a package of this installation is not theirs."""
    folders = [folder for folder in config.folders if folder.is_dir()]
    if not folders:
        return []
    from edge import cold_own  # noqa: PLC0415 - most edges have none

    found: dict[str, Row] = {}
    for package, tool in cold_own.documents(folders):
        try:
            row = _row({"packageName": package}, tool, "local")
        except (AttributeError, KeyError, TypeError):  # written by hand and checked by nobody: it costs itself
            continue
        if package not in taken and row is not None:
            row["hidden"] = _hidden(row["name"], package, {}, config.disabled)
            found.setdefault(row["name"], row)
    return list(found.values())


def _rows(document: Row, source: str, refused: Mapping[str, Any], disabled: tuple[str, ...]) -> Iterator[Row]:
    apps = document.get("apps")
    for app in apps if isinstance(apps, list) else ():
        if not isinstance(app, dict) or not isinstance(app.get("packageName"), str):
            continue
        for tool in app.get("tools") or ():
            row = _row(app, tool, source)
            if row is not None:
                row["hidden"] = _hidden(row["name"], app["packageName"], refused, disabled)
                yield row


def _row(app: Row, tool: Any, source: str) -> Row | None:
    """One tool as `GET /v1/tools` lists it; None for what the daemon would not take either."""
    if not isinstance(tool, dict):
        return None
    name, schema, about = tool.get("name"), tool.get("inputSchema"), tool.get("description")
    if not isinstance(name, str) or ":" in name or not isinstance(about, str) or not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    extensions = tool.get("mentraExtensions") or {}
    category = tool.get("category") or extensions.get("category") or "utility"
    return {
        "name": f"{app['packageName']}:{name}", "description": about, "inputSchema": schema,
        "category": category if category in _CATEGORIES else "other", "app": app.get("name") or app["packageName"],
        "source": str(tool.get("source", source)) if source == "local" else source,
        "activationPhrases": extensions.get("activationPhrases") or [], "needs": _needs(app, tool, source),
        **{key: tool.get(key, meant) for key, meant in _PLAIN.items()},
    }  # fmt: skip


def _needs(app: Row, tool: Row, source: str) -> list[str]:
    """Name the hardware it cannot do without; a tool's own needs count for tools that live here."""
    own = (tool.get("_meta") or {}).get(HARDWARE_KEY) if source == "local" else None
    declared = (*(app.get("hardwareRequirements") or ()), *(own or ()))
    return [str(need["type"]) for need in declared if str(need.get("level", "REQUIRED")).upper() != "OPTIONAL"]


def _hidden(name: str, package: str, refused: Mapping[str, Any], disabled: tuple[str, ...]) -> str:
    off = "*" in disabled or name in disabled or f"{package}:*" in disabled
    return OFF if off else str(refused.get(name, ""))


