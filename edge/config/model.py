"""The settings: every key there is, its type, its bounds, its default. Plain values, checked by
load.py.

A setting never holds a secret, only the name of the file that contains it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec import Struct, field

from edge.config import validators as rules
from edge.config.validators import BadSettings, Number, Rule, Tidy
from edge.runtime.paths import SOCKET_NAME, Env, owner_beside, runtime_dir, state_dir

MAX_SECRET: Final = 64 * 1024
"""Bytes of a secret; the longest in use are certificate chains."""

MAX_SERVERS: Final = 32

Scalar = bool | int | float | str

Word = Annotated[str, Rule(rules.word)]
Path_ = Annotated[str, Rule(rules.absolute)]
Seconds = Annotated[float, Number(gt=0, le=30 * 86400)]
Words = Annotated[tuple[str, ...], Tidy(rules.listed)]
_SERVER_ID: Final = rules.matching(
    rules.SERVER,
    "small letters, digits and . _ - (63 at most), beginning with a letter or digit",
    empty=False,
)
Variable = Annotated[str, Rule(rules.matching(rules.VARIABLE, "a name like WEATHER_TOKEN"))]
Denied = Annotated[tuple[str, ...], Tidy(rules.listed), Rule(rules.configurable)]


class EdgeConfig(Struct, frozen=True, kw_only=True):
    id: Word = ""
    user_id: str = "local"
    tenant: Word = "default"
    state_dir: Path_ = ""


class GlassesConfig(Struct, frozen=True, kw_only=True):
    radio: Annotated[
        str, Rule(rules.matching(rules.RADIO, "bluez, usb:N, tcp:HOST:PORT or inproc"))
    ] = "bluez"
    address: Annotated[
        str, Rule(rules.matching(rules.MAC, "an address like C0:FF:EE:00:00:01"))
    ] = ""
    model: str = ""
    connect: Literal["auto", "paired", "any"] = "auto"
    scan_s: Seconds = 10.0
    connect_s: Seconds = 20.0
    backoff_min_s: Seconds = 0.5
    backoff_max_s: Seconds = 30.0
    capabilities: Annotated[dict[str, Scalar], Tidy(rules.flat)] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.backoff_min_s > self.backoff_max_s:
            raise ValueError("backoff_min_s must not be larger than backoff_max_s")


class UplinkConfig(Struct, frozen=True, kw_only=True):
    host: Annotated[str, Rule(rules.host)] = ""
    port: Annotated[int, Number(ge=0, le=65535)] = 0
    tls: bool = True
    ca_file: Path_ = ""
    cert_file: Path_ = ""
    key_file: Path_ = ""
    username: str = ""
    password_file: Path_ = ""
    pool: Word = "tools"
    keepalive_s: Annotated[int, Number(ge=1, le=3600)] = 8
    tcp_user_timeout_s: Seconds = 15.0
    session_expiry_s: Annotated[int, Number(ge=0, le=30 * 86400)] = 86400
    will_delay_s: Annotated[int, Number(ge=0, le=3600)] = 15
    reconnect_min_s: Seconds = 0.5
    reconnect_max_s: Seconds = 60.0
    stable_s: Seconds = 60.0
    outbox_max: Annotated[int, Number(ge=1, le=100_000)] = 2000

    @property
    def port_in_use(self) -> int:
        """Return the port; 0 means the usual one."""
        return self.port or (8883 if self.tls else 1883)

    def __post_init__(self) -> None:
        if bool(self.cert_file) != bool(self.key_file):
            raise ValueError("cert_file and key_file are needed together: set both, or neither")
        if not self.tls and (self.ca_file or self.cert_file):
            raise ValueError("ca_file and cert_file need tls = true")
        if self.password_file and not self.username:
            raise ValueError("password_file needs a username")
        if self.reconnect_min_s > self.reconnect_max_s:
            raise ValueError("reconnect_min_s must not be larger than reconnect_max_s")


class CloudConfig(Struct, frozen=True, kw_only=True):
    url: Annotated[str, Rule(rules.url)] = ""
    token_file: Path_ = ""
    refresh_s: Seconds = 300.0


class AudioConfig(Struct, frozen=True, kw_only=True):
    speech: Literal["auto", "off"] = "auto"
    voice: Literal["en-GB", "en-US", "de-DE", "es-ES", "fr-FR", "it-IT"] = "en-GB"
    volume: Annotated[int, Number(ge=0, le=100)] = 80
    server: Annotated[str, Rule(rules.voice_server)] = ""
    preroll_ms: Annotated[int, Number(ge=0, le=2000)] = 300
    """Silence before each speech: loudspeakers that sleep lose the beginning of what they play."""


class MicrophoneConfig(Struct, frozen=True, kw_only=True):
    """Whether glassd may listen, what recognises the words, and what makes it listen."""

    allow: bool = True
    recogniser: Annotated[str, Rule(rules.recogniser)] = "auto"
    model: Path_ = ""
    """The folder of the model for `sherpa`."""
    language: Annotated[str, Rule(rules.locale)] = ""
    push_to_talk: Literal[
        "auto",
        "off",
        "tap",
        "double_tap",
        "button",
        "button_long",
        "head_up",
        "head_down",
        "nod",
        "shake",
    ] = "auto"
    wake_phrase: Annotated[str, Rule(rules.wake_phrase)] = ""
    yes_by_voice: Annotated[tuple[str, ...], Tidy(rules.listed), Rule(rules.tool_names)] = ()

    def __post_init__(self) -> None:
        if self.recogniser == "sherpa" and not self.model:
            raise ValueError("recogniser = sherpa needs model, the folder of its model")


class WearerConfig(Struct, frozen=True, kw_only=True):
    """How the wearer reads dates, times and numbers; empty: as this machine does."""

    locale: Annotated[str, Rule(rules.locale)] = ""
    timezone: Annotated[str, Rule(rules.timezone)] = ""


class DisplayConfig(Struct, frozen=True, kw_only=True):
    fonts: Annotated[tuple[Path_, ...], Tidy(rules.listed)] = ()
    """More folders with Noto fonts."""


class RateConfig(Struct, frozen=True, kw_only=True):
    """At most `calls` within `window` seconds."""

    calls: Annotated[int, Number(ge=1, le=100_000)]
    window: Annotated[float, Number(gt=0, le=86_400)]


class UserConfig(Struct, frozen=True, kw_only=True):
    """Restrictions of one user: tools not allowed, and rate limits."""

    disabled_tools: Denied = ()
    rate_limits: dict[str, RateConfig] = field(default_factory=dict)


class ToolsConfig(Struct, frozen=True, kw_only=True):
    """The owner's own tools: folders of them, and the environment names their templates may use;
    and how many tools models are offered, which of them always, and after how many idle turns a
    tool is no longer offered.
    """

    folders: Annotated[tuple[Path_, ...], Tidy(rules.listed)] = ()
    packages: Annotated[tuple[Path_, ...], Tidy(rules.listed)] = ()
    """Directories of Python tools in the form of docs/tools.md."""
    env: Annotated[tuple[Variable, ...], Tidy(rules.listed)] = ()
    offered_max: Annotated[int, Number(ge=8, le=128)] = 48
    idle_turns: Annotated[int, Number(ge=1, le=1000)] = 8
    essential: Annotated[tuple[str, ...], Tidy(rules.listed), Rule(rules.tool_names)] = ()

    def __post_init__(self) -> None:
        if len(self.essential) > self.offered_max - 4:
            raise ValueError(
                f"essential may name {self.offered_max - 4} tools at most: "
                "offered_max, minus four for the tools that find others"
            )


class PolicyConfig(Struct, frozen=True, kw_only=True):
    tools_enabled: bool = True
    voice_total_calls: Annotated[int, Number(ge=1, le=100)] = 3
    voice_retrieval_calls: Annotated[int, Number(ge=0, le=100)] = 2
    voice_latency_ms: Annotated[int, Number(ge=1, le=600_000)] = 1500
    confirmation_s: Seconds = 300.0
    cloud_may: Words = ("glasses", "declared")
    disabled_tools: Denied = ()
    rate_limits: dict[str, RateConfig] = field(default_factory=dict)
    users: dict[str, UserConfig] = field(default_factory=dict)
    strict_registry: bool = False


class RegistryConfig(Struct, frozen=True, kw_only=True):
    per_tool_hardware: bool = False
    locked: bool = True


class AuditConfig(Struct, frozen=True, kw_only=True):
    enabled: bool = True
    args: bool = False
    max_bytes: Annotated[int, Number(ge=64 * 1024, le=1024 * 1024 * 1024)] = 8 * 1024 * 1024
    keep: Annotated[int, Number(ge=0, le=100)] = 4


class KnowledgeConfig(Struct, frozen=True, kw_only=True):
    folder: Path_ = ""


class CalendarConfig(Struct, frozen=True, kw_only=True):
    folder: Path_ = ""
    url: Annotated[str, Rule(rules.url)] = ""
    username: str = ""
    password_file: Path_ = ""
    email: str = ""
    meeting_url: Annotated[str, Rule(rules.url)] = ""

    def __post_init__(self) -> None:
        if self.folder and self.url:
            raise ValueError("folder and url exclude each other: set only one of them")
        if self.password_file and not self.username:
            raise ValueError("password_file needs a username")


class HistoryConfig(Struct, frozen=True, kw_only=True):
    """Whether what is called, shown and said is recorded on this machine, and for how long."""

    enabled: bool = False
    transcripts: bool = False
    """Whether also the words that the microphone recognised."""
    days: Annotated[int, Number(ge=1, le=3650)] = 90
    max_entries: Annotated[int, Number(ge=100, le=100_000)] = 50_000


class McpServerConfig(Struct, frozen=True, kw_only=True):
    """Another MCP server whose tools can be called here: a program to run, or an address.

    `${env.NAME}` in `args`, `env`, `headers` and `url` is a secret; `secret_files` names its file.
    """

    id: Annotated[str, Rule(_SERVER_ID)]
    name: str = ""
    command: str = ""
    args: Words = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: Path_ = ""
    url: Annotated[str, Rule(rules.url)] = ""
    ca_file: Path_ = ""
    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    headers: Annotated[dict[str, str], Rule(rules.headers)] = field(default_factory=dict)
    secret_files: dict[str, Path_] = field(default_factory=dict)
    allowed_tools: Words = ()
    enabled: bool = True
    idle_s: Seconds = 1800.0
    timeout_s: Annotated[float, Number(gt=0, le=600)] = 30.0
    prompt: str = ""
    tool_prompts: dict[str, str] = field(default_factory=dict)
    visible: bool = False
    confirm: Literal["policy", "always", "never"] = "policy"
    trusted: bool = False

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise ValueError("a server is a command or a url: set one of them")
        if self.url and (self.args or self.env or self.cwd):
            raise ValueError("args, env and cwd belong to a command; a url takes headers")
        for_url = (self.headers, self.ca_file, self.client_id, self.client_secret, self.scope)
        if self.command and any(for_url):
            raise ValueError(
                "headers, ca_file, client_id, client_secret and scope belong "
                "to a url; a command takes args and env"
            )
        if self.client_secret and "${env." not in self.client_secret:
            raise ValueError(
                "client_secret must not hold the secret itself: "
                "write ${env.NAME}, and its file into secret_files"
            )


class McpConfig(Struct, frozen=True, kw_only=True):
    """The other MCP servers, `[[mcp.servers]]`."""

    servers: Annotated[tuple[McpServerConfig, ...], Tidy(rules.listed)] = ()

    def __post_init__(self) -> None:
        ids = [server.id for server in self.servers]
        if len(ids) > MAX_SERVERS:
            raise ValueError(f"there may be {MAX_SERVERS} servers at most")
        if twice := next((one for one in ids if ids.count(one) > 1), ""):
            raise ValueError(f"two servers have the id {twice}: each server needs its own id")


class ControlConfig(Struct, frozen=True, kw_only=True):
    socket: Annotated[str, Rule(rules.socket)] = ""
    group: str = "glassd"
    owner_socket: Annotated[str, Rule(rules.socket)] = ""
    owner_group: str = "glassd-owner"


class LogConfig(Struct, frozen=True, kw_only=True):
    level: Literal["debug", "info", "warning", "error"] = "info"


SWITCHED_OFF: Final = "switched off"
"""The reason of a tool that its owner disabled begins with this."""
NOT_CONFIGURED: Final = "not configured"
"""The reason of a tool that needs settings, none of which is there, begins with this."""


class ToolSettings(Struct, frozen=True):
    """The checked settings of single tools (`tool_options.py`): canonical name → values, and
    name → why it is off.
    """

    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    off: Mapping[str, str] = field(default_factory=dict)

    @property
    def wrong(self) -> Mapping[str, str]:
        """Return the tools that are off because their settings are wrong."""
        fine = (SWITCHED_OFF, NOT_CONFIGURED)
        return {name: why for name, why in self.off.items() if not why.startswith(fine)}


NO_SECTIONS: Final = frozenset({"tool", "source"})
"""Fields of `Settings` that are no section of the file."""


class Settings(Struct, frozen=True, kw_only=True):
    """The whole configuration. Every key has a default, so `Settings()` is a working daemon."""

    edge: EdgeConfig = EdgeConfig()
    glasses: GlassesConfig = GlassesConfig()
    uplink: UplinkConfig = UplinkConfig()
    cloud: CloudConfig = CloudConfig()
    audio: AudioConfig = AudioConfig()
    microphone: MicrophoneConfig = MicrophoneConfig()
    wearer: WearerConfig = WearerConfig()
    display: DisplayConfig = DisplayConfig()
    tools: ToolsConfig = ToolsConfig()
    policy: PolicyConfig = PolicyConfig()
    registry: RegistryConfig = RegistryConfig()
    audit: AuditConfig = AuditConfig()
    kb: KnowledgeConfig = KnowledgeConfig()
    calendar: CalendarConfig = CalendarConfig()
    history: HistoryConfig = HistoryConfig()
    mcp: McpConfig = McpConfig()
    control: ControlConfig = ControlConfig()
    log: LogConfig = LogConfig()
    tool: ToolSettings = ToolSettings()
    """From `[tool.PACKAGE.NAME]`, whose keys each tool defines; no section."""
    source: Path | None = None
    """The file of these settings, or None; no section."""

    def __eq__(self, other: object) -> bool:
        """Compare the sections."""
        return isinstance(other, Settings) and self.sections() == other.sections()

    __hash__ = None  # type: ignore[assignment]  # a section holds a dict

    def sections(self) -> dict[str, Struct]:
        """Return each section by its name."""
        names = (name for name in self.__struct_fields__ if name not in NO_SECTIONS)
        return {name: getattr(self, name) for name in names}

    @property
    def spoken_language(self) -> str:
        """The language that the wearer speaks: `de`, `en-GB`."""
        return self.microphone.language or self.audio.voice

    def state_dir(self, env: Env) -> Path:
        return Path(self.edge.state_dir) if self.edge.state_dir else state_dir(env)

    def socket_path(self, env: Env) -> Path:
        return Path(self.control.socket) if self.control.socket else runtime_dir(env) / SOCKET_NAME

    def owner_socket_path(self, env: Env) -> Path:
        """Return the configured path, else the one beside the control socket."""
        named = self.control.owner_socket
        return Path(named) if named else owner_beside(self.socket_path(env))


# ------------------------------------------------------------------ secrets


def credential(configured: str, name: str, env: Env) -> Path | None:
    """Return the file of a secret: the configured one, else systemd's credential, else None."""
    if configured:
        return Path(configured)
    folder = env.get("CREDENTIALS_DIRECTORY")
    path = Path(folder) / name if folder else None
    return path if path is not None and path.is_file() else None


def read_secret(configured: str, name: str, env: Env) -> str | None:
    """Return a secret's text without its last line end; None if there is none. Raise
    `BadSettings`.
    """
    path = credential(configured, name, env)
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SECRET + 1)
    except OSError as e:
        raise BadSettings(f"{path}: cannot be read: {e.strerror}; check who may read it") from None
    if len(raw) > MAX_SECRET:
        raise BadSettings(
            f"{path}: is larger than {MAX_SECRET // 1024} KiB; this cannot be a secret"
        )
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadSettings(f"{path}: is not text; save it as UTF-8") from None
