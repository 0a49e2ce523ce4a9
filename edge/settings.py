"""The settings: every key there is, its type, its default; read from TOML and the environment, wrong ones explained.

Refuses to know what a value is used for, and never holds a secret: only the name of the file it stands in.
"""

import re
import stat
import tomllib
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from edge import settings_explain as explain
from edge.paths import Env, config_candidates, runtime_dir, state_dir

VERSION: Final = 1
MAX_FILE: Final = 256 * 1024
"""Bytes of a configuration file; the commented sample has 5 KiB."""
MAX_SECRET: Final = 64 * 1024
"""Bytes of a secret; the longest in use are certificate chains."""

MAX_SOCKET: Final = 107
"""Bytes of a unix socket's path (sun_path less its end mark)."""

_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""What may stand as one level of an MQTT topic, and as a file name."""
_MAC: Final = re.compile(r"(?:[0-9A-F]{2}:){5}[0-9A-F]{2}", re.IGNORECASE)
_RADIO: Final = re.compile(r"bluez|inproc|usb:\d{1,3}|tcp:[^\s/]+:\d{1,5}")

Scalar = bool | int | float | str
BadSettings = explain.BadSettings


def _word(value: str) -> str:
    if value and not _WORD.fullmatch(value):
        raise ValueError("may hold letters, digits and . _ - only, at most 63, beginning with a letter or digit")
    return value


def _matching(pattern: re.Pattern[str], form: str) -> Any:
    def check(value: str) -> str:
        if value and not pattern.fullmatch(value):
            raise ValueError(f"must be {form}")
        return value

    return check


def _host(value: str) -> str:
    if "/" in value or "@" in value or (":" in value and not value.startswith("[") and value.count(":") == 1):
        raise ValueError('must be a bare host name or address; the port is a key of its own: host = "broker.local", port = 8883')
    return value.strip("[]")


def _url(value: str) -> str:
    if value and not re.match(r"https?://[^/]", value):
        raise ValueError("must begin with https:// (or http:// on your own network)")
    if "@" in value.partition("://")[2].partition("/")[0]:
        raise ValueError("must not hold a password; put the token into a file and name it in cloud.token_file")
    return value.rstrip("/")


def _absolute(value: str) -> str:
    if value and not value.startswith("/"):
        raise ValueError("must be an absolute path (a service has no directory of its own to start from)")
    return value


def _socket(value: str) -> str:
    if len(value.encode()) > MAX_SOCKET:
        raise ValueError(f"must have at most {MAX_SOCKET} bytes (the kernel's bound on a unix socket's path)")
    return _absolute(value)


def _flat(value: object) -> object:
    """Turn `display.width = 576` (a table in a table, to TOML) into the flat dotted key it means here."""
    if not isinstance(value, dict):
        return value
    flat: dict[str, object] = {}
    for key, inner in value.items():
        below = _flat(inner)
        flat.update({f"{key}.{k}": v for k, v in below.items()} if isinstance(below, dict) else {key: inner})
    return flat


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Word = Annotated[str, explain.rule(_word)]
Path_ = Annotated[str, explain.rule(_absolute)]
Seconds = Annotated[float, Field(gt=0, le=30 * 86400)]
Words = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class Section(BaseModel):
    """One `[section]`: nothing unknown, nothing converted, nothing changed later."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Edge(Section):
    id: Word = ""
    user_id: str = "local"
    tenant: Word = "default"
    state_dir: Path_ = ""


class Glasses(Section):
    radio: Annotated[str, explain.rule(_matching(_RADIO, "bluez, usb:N, tcp:HOST:PORT or inproc"))] = "bluez"
    address: Annotated[str, explain.rule(_matching(_MAC, "an address like C0:FF:EE:00:00:01"))] = ""
    model: str = ""
    scan_s: Seconds = 10.0
    connect_s: Seconds = 20.0
    backoff_min_s: Seconds = 0.5
    backoff_max_s: Seconds = 30.0
    capabilities: Annotated[dict[str, Scalar], BeforeValidator(_flat)] = {}

    @model_validator(mode="after")
    def _ordered(self) -> "Glasses":
        if self.backoff_min_s > self.backoff_max_s:
            raise ValueError("backoff_min_s must not be larger than backoff_max_s")
        return self


class Uplink(Section):
    host: Annotated[str, explain.rule(_host)] = ""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    tls: bool = True
    ca_file: Path_ = ""
    cert_file: Path_ = ""
    key_file: Path_ = ""
    username: str = ""
    password_file: Path_ = ""
    pool: Word = "tools"
    keepalive_s: Annotated[int, Field(ge=1, le=3600)] = 8
    tcp_user_timeout_s: Seconds = 15.0
    session_expiry_s: Annotated[int, Field(ge=0, le=30 * 86400)] = 86400
    will_delay_s: Annotated[int, Field(ge=0, le=3600)] = 15
    reconnect_min_s: Seconds = 0.5
    reconnect_max_s: Seconds = 60.0
    stable_s: Seconds = 60.0
    outbox_max: Annotated[int, Field(ge=1, le=100_000)] = 2000

    @property
    def port_in_use(self) -> int:
        """The port, 0 standing for the usual one."""
        return self.port or (8883 if self.tls else 1883)

    @model_validator(mode="after")
    def _consistent(self) -> "Uplink":
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("cert_file and key_file belong together: set both, or neither")
        if not self.tls and (self.ca_file or self.cert_file):
            raise ValueError("ca_file and cert_file need tls = true")
        if self.password_file and not self.username:
            raise ValueError("password_file needs a username")
        if self.reconnect_min_s > self.reconnect_max_s:
            raise ValueError("reconnect_min_s must not be larger than reconnect_max_s")
        return self


class Cloud(Section):
    url: Annotated[str, explain.rule(_url)] = ""
    token_file: Path_ = ""
    refresh_s: Seconds = 300.0


class Audio(Section):
    speech: Literal["auto", "off"] = "auto"
    voice: Literal["en-GB", "en-US", "de-DE", "es-ES", "fr-FR", "it-IT"] = "en-GB"


class Rate(Section):
    """At most `calls` within `window` seconds."""

    calls: Annotated[int, Field(ge=1, le=100_000)]
    window: Annotated[float, Field(gt=0, le=86_400)]


class Policy(Section):
    tools_enabled: bool = True
    voice_total_calls: Annotated[int, Field(ge=1, le=100)] = 3
    voice_retrieval_calls: Annotated[int, Field(ge=0, le=100)] = 2
    voice_latency_ms: Annotated[int, Field(ge=1, le=600_000)] = 1500
    confirmation_s: Seconds = 300.0
    disabled_tools: Words = ()
    rate_limits: dict[str, Rate] = {}
    strict_registry: bool = False


class Audit(Section):
    enabled: bool = True
    args: bool = False
    max_bytes: Annotated[int, Field(ge=64 * 1024, le=1024 * 1024 * 1024)] = 8 * 1024 * 1024
    keep: Annotated[int, Field(ge=0, le=100)] = 4


class Control(Section):
    socket: Annotated[str, explain.rule(_socket)] = ""
    group: str = "glassd"


class Log(Section):
    level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(Section):
    """The whole configuration. A key that is not written has its default, so `Settings()` is a working daemon."""

    edge: Edge = Edge()
    glasses: Glasses = Glasses()
    uplink: Uplink = Uplink()
    cloud: Cloud = Cloud()
    audio: Audio = Audio()
    policy: Policy = Policy()
    audit: Audit = Audit()
    control: Control = Control()
    log: Log = Log()
    _source: Path | None = PrivateAttr(default=None)

    @property
    def source(self) -> Path | None:
        """The file these settings came from; None when there is none."""
        return self._source

    def state_dir(self, env: Env) -> Path:
        return Path(self.edge.state_dir) if self.edge.state_dir else state_dir(env)

    def socket_path(self, env: Env) -> Path:
        return Path(self.control.socket) if self.control.socket else runtime_dir(env) / "control.sock"


# ------------------------------------------------------------------ reading


def load(path: Path | None, env: Env) -> Settings:
    """Read the settings in force. Raises `BadSettings`: one message with every problem, one a line."""
    source = find(path, env)
    document = _read(source) if source else {}
    from_env, problems = explain.overlay(Settings, document, env)
    try:
        settings = Settings.model_validate(document)
    except ValidationError as wrong:
        problems += explain.problems(Settings, wrong, from_env)
    else:
        problems += _unreadable_files(settings, from_env)
    if problems:
        raise BadSettings.of(problems, str(source) if source else "the environment")
    settings._source = source  # noqa: SLF001 - pydantic keeps what is no field private
    return settings


def find(path: Path | None, env: Env) -> Path | None:
    """Give the file to read: the one named, else the first there is, else None. Raises `BadSettings`."""
    named = path or (Path(env["GLASSD_CONFIG"]) if env.get("GLASSD_CONFIG") else None)
    if named is not None:
        if not named.exists():
            raise BadSettings(f"{named}: there is no such file; create it, or leave out --config and GLASSD_CONFIG")
        return named
    return next((p for p in config_candidates(env) if p.exists()), None)


def _read(source: Path) -> dict[str, Any]:
    try:
        with source.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except OSError as e:
        raise BadSettings(f"{source}: cannot be read: {e.strerror}; check who may read it (ls -l {source})") from None
    if len(raw) > MAX_FILE:
        raise BadSettings(f"{source}: is larger than {MAX_FILE // 1024} KiB; this cannot be a glassd configuration")
    try:
        document = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as e:
        raise BadSettings(f"{source}: is not UTF-8 text (byte {e.start}); save it as UTF-8") from None
    except tomllib.TOMLDecodeError as e:
        raise BadSettings(f"{source}: is not valid TOML: {e}") from None
    _check_version(source, document.pop("version", None))
    return document


def _check_version(source: Path, version: object) -> None:
    if version is None:
        raise BadSettings(f"{source}: version: missing; write `version = {VERSION}` as the first line")
    if type(version) is not int or version != VERSION:
        newer = type(version) is int and version > VERSION
        why = "this file is for a newer glassd; update glassd" if newer else f"write `version = {VERSION}`"
        raise BadSettings(f"{source}: version: this glassd reads version {VERSION} only; {why}")


def _unreadable_files(settings: Settings, from_env: Mapping[tuple[str, ...], str]) -> list[explain.Problem]:
    """Name every `*_file` that cannot be opened now, before anything starts that would need it later."""
    found = []
    for section in type(settings).model_fields:
        for key, value in getattr(settings, section):
            if key.endswith("_file") and value:
                why = _why_unreadable(Path(value))
                if why:
                    where = from_env.get((section, key), "")
                    found.append(explain.Problem(f"{section}.{key}", f"{value}: {why}", "correct the path, or remove the key", where))
    return found


def _why_unreadable(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return "" if stat.S_ISREG(path.stat().st_mode) and file.readable() else "is not a file"
    except OSError as e:
        return (e.strerror or "cannot be read").lower()


# ------------------------------------------------------------------ secrets and identity


def credential(configured: str, name: str, env: Env) -> Path | None:
    """Give the file a secret stands in: the configured one, else systemd's credential `name`, else None."""
    if configured:
        return Path(configured)
    folder = env.get("CREDENTIALS_DIRECTORY")
    path = Path(folder) / name if folder else None
    return path if path is not None and path.is_file() else None


def read_secret(configured: str, name: str, env: Env) -> str | None:
    """Read a secret's text, without its last line end; None when there is none. Raises `BadSettings`."""
    path = credential(configured, name, env)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SECRET + 1)
    except OSError as e:
        raise BadSettings(f"{path}: cannot be read: {e.strerror}; check who may read it") from None
    if len(raw) > MAX_SECRET:
        raise BadSettings(f"{path}: is larger than {MAX_SECRET // 1024} KiB; this cannot be a secret")
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadSettings(f"{path}: is not text; save it as UTF-8") from None


def edge_id_in(folder: Path) -> str:
    """Give this edge's own stable name, made once and kept in `folder/edge_id`; a damaged one is made anew."""
    path = folder / "edge_id"
    try:
        kept = path.read_text(encoding="ascii")[:64].strip()
    except (FileNotFoundError, UnicodeDecodeError):
        kept = ""
    if _WORD.fullmatch(kept):
        return kept
    fresh = f"edge-{uuid.uuid4().hex[:12]}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = path.with_name("edge_id.new")
    half.write_text(fresh + "\n", encoding="ascii")
    half.replace(path)
    return fresh
