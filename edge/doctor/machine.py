"""The machine that is examined, and what the checks have learned of it so far.

Only what was passed in is read: every path lies below `root`.
"""

import os
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
from edge.doctor.models import Finding, Fix, run, skip
from edge.doctor.subprocesses import Ran, program
from edge.runtime.clock import Clock
from firmware_bridge.transports.bluez.probe import ProbeResult

UNIT: Final = "glassd.service"


@dataclass(frozen=True, slots=True)
class Who:
    """A user: the one who runs the doctor, or the one the daemon runs as."""

    uid: int
    name: str
    groups: frozenset[int] = frozenset()

    @property
    def is_root(self) -> bool:
        return self.uid == 0


@dataclass(frozen=True, slots=True)
class Unit:
    """What systemd knows of the unit. `manager` is the command to reach it: systemctl, or
    systemctl --user.
    """

    manager: str
    properties: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.properties.get(name, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What is examined. `root` is `/` unless a test builds a small one."""

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
    """How a shell calls this program, for fixes."""
    unique: str = "0"
    """A part of the client id and the topic that no other client of the broker uses."""
    has: Callable[[str], bool] = lambda _library: True
    """Return whether a library is installed."""
    wheels: tuple[str, ...] = ()
    """Folders in which wheels of fonts are installed."""
    user: Callable[[str], Who | None] = lambda _name: None
    """Look a user up by name."""
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
        """Run a program of the system, found by the PATH that was passed in."""
        return await program(
            argv, {**self.env, "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}
        )

    @property
    def has_systemd(self) -> bool:
        return self.path("/run/systemd/system").is_dir()

    def start(self, service: str) -> Fix:
        """Return the fix that starts a service of the system, now and at every boot."""
        return self.as_root(
            f"systemctl enable --now {service}" if self.has_systemd else f"service {service} start"
        )

    def as_root(self, *commands: str) -> Fix:
        """Return a fix that needs root, as the user has to type it."""
        return run(*(command if self.me.is_root else f"sudo {command}" for command in commands))

    def by_writer(self, folder: Path, command: str) -> Fix:
        """Return a fix that changes something in a folder: as root if the user may not write."""
        return run(command) if os.access(folder, os.W_OK) else self.as_root(command)


@dataclass(slots=True)
class ExaminedMachine:
    """What is known so far. A check writes only what it found out itself, and reads what earlier
    checks wrote.
    """

    machine: Machine
    config: Path | None = None
    settings: Settings | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """The daemon's environment, as far as the unit shows it; without a unit that of the doctor."""
    unit: Unit | None = None
    status: Mapping[str, Any] | None = None
    """The running daemon's status document."""
    bluez: ProbeResult | None = None
    cloud_time: float | None = None
    """The time by the cloud's clock, in seconds since 1970."""
    asked_cloud_at: float = 0.0
    """The time by this machine's clock at that moment."""
    enrolled: Enrolled | None = None
    choice: CloudSource | None = None
    """Which cloud is used, as the daemon decides it; its `uplink()` reads the secrets."""
    place: UplinkOptions | None = None
    """The uplink without its secrets."""
    cloud_context: MakeContext | None = None
    """Makes the TLS context for the HTTP server of the cloud that this edge is enrolled with."""
    closing: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def state_dir(self) -> Path:
        assert self.settings is not None
        return self.settings.state_dir(self.env)

    @property
    def source(self) -> Path | str:
        """Return the file of the configuration, or where it belongs."""
        return (self.settings and self.settings.source) or "/etc/glassd/glassd.toml"

    @property
    def serves(self) -> Who:
        """Return the user the daemon runs as: the unit's user, else the one who runs the doctor."""
        name = self.unit["User"] if self.unit and self.unit.manager == "systemctl" else ""
        return (self.machine.user(name) if name else None) or self.machine.me

    @property
    def edge_id(self) -> str:
        """Return the edge's name as the daemon has it; never creates one."""
        assert self.settings is not None
        named = self.settings.edge.id or str((self.status or {}).get("edge_id", ""))
        if named:
            return named
        with suppress(OSError, UnicodeDecodeError):
            return (self.state_dir / "edge_id").read_text(encoding="ascii")[:64].strip() or "edge"
        return "edge"

    @property
    def radio(self) -> str:
        """Return the running daemon's radio, which may differ from that of the configuration."""
        running = self.layer("adapter").get("radio")
        configured = self.settings.glasses.radio if self.settings else "bluez"
        return running if isinstance(running, str) and running else configured

    def layer(self, name: str) -> Mapping[str, Any]:
        """Return one layer of the daemon's status; empty if it has none of that name."""
        found = (self.status or {}).get(name)
        return found if isinstance(found, dict) else {}


class CheckGroup:
    """Base of the checks of one subject."""

    def __init__(self, examined: ExaminedMachine) -> None:
        self._examined = examined
        self._machine = examined.machine

    @property
    def _settings(self) -> Settings:
        """Return the configuration, for checks that need `config`."""
        assert self._examined.settings is not None
        return self._examined.settings

    def _not_allowed(self, what: str) -> Finding:
        return skip(f"you may not {what}", self._machine.as_root("glassd doctor"))
