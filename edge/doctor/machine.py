"""The machine that is examined, and what the checks have learned of it so far.

Only what was passed in is read: every path lies below `root`.
"""

import shutil
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from edge.cloud.enrolment.credentials import Enrolled
from edge.cloud.mqtt.client import UplinkOptions
from edge.cloud.mqtt.tls import MakeContext
from edge.config.model import Settings
from edge.daemon.cloud_config import CloudSource
from edge.doctor.models import Fix, run
from edge.doctor.subprocesses import Ran, program
from edge.runtime.clock import Clock
from firmware_bridge.transports.bluez.probe import ProbeResult

UNIT: Final = "glassd.service"


@dataclass(frozen=True, slots=True)
class Who:
    """A user: the one who asks, or the one the daemon runs as."""

    uid: int
    name: str
    groups: frozenset[int] = frozenset()

    @property
    def is_root(self) -> bool:
        return self.uid == 0


@dataclass(frozen=True, slots=True)
class Unit:
    """What systemd says of our unit. `manager` is the words to reach it: systemctl, or
    systemctl --user.
    """

    manager: str
    properties: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.properties.get(name, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What there is to look at. `root` is `/` unless a test builds a small one."""

    env: Mapping[str, str]
    me: Who
    sockets: tuple[Path, ...]
    root: Path = Path("/")
    clock: Clock = field(default_factory=Clock.system)
    clock_is_set: Callable[[], bool] = lambda: True
    system: str = "Linux"
    release: str = ""
    processor: str = "x86_64"
    bits: int = 64
    """Of the userland: a 32-bit one runs on 64-bit kernels too."""
    python: tuple[int, int, int] = (3, 11, 0)
    interpreter: str = "python3"
    glassd: str = "glassd"
    """How this program is called, for fixes that call it."""
    word: str = "0"
    """A word nobody else uses now, for the names the broker is told."""
    has: Callable[[str], bool] = lambda _library: True
    """Tells whether a library is installed."""
    user: Callable[[str], Who | None] = lambda _name: None
    """Looks a user up by name."""
    gid: Callable[[str], int | None] = lambda _group: None
    registry: Path = Path("tool_registry.json")
    version: str = ""

    def path(self, absolute: str) -> Path:
        return self.root / absolute.lstrip("/")

    def read(self, absolute: str) -> str | None:
        """Read a small file of the system; None when it cannot be read."""
        try:
            with self.path(absolute).open("rb") as file:
                return file.read(64 * 1024).decode("utf-8", "replace").strip()
        except OSError:
            return None

    def which(self, program: str) -> str | None:
        """Find a program in the PATH that was passed in."""
        return shutil.which(program, path=self.env.get("PATH"))

    async def ask(self, *argv: str) -> Ran:
        """Run one of the system's programs, found by the PATH that was handed in."""
        return await program(
            argv, {**self.env, "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}
        )

    @property
    def has_systemd(self) -> bool:
        return self.path("/run/systemd/system").is_dir()

    def start(self, service: str) -> Fix:
        """Give the fix that starts one of the system's services, now and with the machine."""
        return self.as_root(
            f"systemctl enable --now {service}" if self.has_systemd else f"service {service} start"
        )

    def as_root(self, *commands: str) -> Fix:
        """Give a fix that needs root, as the one who asks has to type it."""
        return run(*(command if self.me.is_root else f"sudo {command}" for command in commands))


@dataclass(slots=True)
class ExaminedMachine:
    """What is known so far. Checks write only what they found out themselves, and read what
    those before them wrote.
    """

    machine: Machine
    config: Path | None = None
    settings: Settings | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """The daemon's environment as far as systemd's unit tells it; ours where there is no unit."""
    unit: Unit | None = None
    status: Mapping[str, Any] | None = None
    """The running daemon's status document."""
    bluez: ProbeResult | None = None
    cloud_time: float | None = None
    """What the cloud's clock said, seconds since 1970, when it was asked; and by ours at that
    moment.
    """
    asked_cloud_at: float = 0.0
    enrolled: Enrolled | None = None
    choice: CloudSource | None = None
    """Which cloud counts, as the daemon decides it; asking it for the uplink reads the secrets."""
    place: UplinkOptions | None = None
    """The uplink without its secrets."""
    cloud_context: MakeContext | None = None
    """What an enrolled edge trusts its cloud's HTTP door by."""
    closing: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def state_dir(self) -> Path:
        assert self.settings is not None
        return self.settings.state_dir(self.env)

    @property
    def serves(self) -> Who:
        """Return the user the daemon runs as: the unit's user, else the one who runs the doctor."""
        name = self.unit["User"] if self.unit and self.unit.manager == "systemctl" else ""
        return (self.machine.user(name) if name else None) or self.machine.me

    @property
    def edge_id(self) -> str:
        """The edge's name as the daemon has it; never makes one."""
        assert self.settings is not None
        named = self.settings.edge.id or str((self.status or {}).get("edge_id", ""))
        if named:
            return named
        with suppress(OSError, UnicodeDecodeError):
            return (self.state_dir / "edge_id").read_text(encoding="ascii")[:64].strip() or "edge"
        return "edge"

    @property
    def radio(self) -> str:
        """The running daemon's radio, which may be another than the one of the configuration
        examined here.
        """
        said = self.layer("adapter").get("radio")
        configured = self.settings.glasses.radio if self.settings else "bluez"
        return said if isinstance(said, str) and said else configured

    def layer(self, name: str) -> Mapping[str, Any]:
        """One layer of the daemon's status; empty when it does not say."""
        found = (self.status or {}).get(name)
        return found if isinstance(found, dict) else {}
