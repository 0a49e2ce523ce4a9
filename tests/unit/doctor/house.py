"""A small machine to examine: its files below a folder, its programs a shim, every question
really asked. `Sandbox.sees(id)` runs the checks that one check needs, and that one;
`Sandbox.cures(finding)` runs the fix as printed.
"""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from edge.doctor.checks import every
from edge.doctor.machine import ExaminedMachine, Machine, Who
from edge.doctor.models import FixKind, Mark
from edge.doctor.runner import CheckRunner
from edge.runtime.clock import Clock
from tests.system import program

SHIM = Path(__file__).with_name("shim.sh")
FAKE_BLUEZ = Path(__file__).with_name("fake_bluez.py")
PROGRAMS = (
    "sudo",
    "service",
    "systemctl",
    "sysctl",
    "apt-get",
    "reboot",
    "bluetoothctl",
    "date",
    "timedatectl",
    "journalctl",
    "usermod",
    "udevadm",
    "systemd-sysusers",
)
UNIT = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "SubState": "running",
    "Result": "success",
    "User": "glassd",
    "NRestarts": "0",
    "WatchdogUSec": "30s",
    "UnitFileState": "enabled",
    "StateDirectory": "glassd",
    "RuntimeDirectory": "glassd",
    "Environment": "",
    "NeedDaemonReload": "no",
    "MainPID": "1",
    "PrivateDevices": "yes",
}
BUS = """<busconfig><type>system</type><listen>{address}</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/><allow user="*"/></policy></busconfig>"""  # noqa: E501
NOW = 1_790_000_000.0
"""A wall clock of September 2026."""


class Sandbox:
    """One machine; `config` is its configuration, `machine` what the doctor gets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.bin = folder / "bin"
        self.state = folder / "state"
        self.config = folder / "glassd.toml"
        self.bus = f"unix:path={folder}/bus"
        self.named = True
        self.changed: dict = {}
        self._children: list[subprocess.Popen] = []
        for place in (self.root, self.bin, self.state, folder / "units", folder / "hooks"):
            place.mkdir()
        self.state.chmod(0o700)
        for name in PROGRAMS:
            (self.bin / name).symlink_to(SHIM)
        (folder / "wall").write_text(str(int(NOW)))
        (folder / "synchronised").touch()
        self.configure()

    # -------------------------------------------------------------- what it is like

    def configure(self, **sections) -> None:
        sections = {"edge": {"id": "edge-doctored", "state_dir": str(self.state)}, **sections}
        lines = ["version = 1"]
        for name, keys in sections.items():
            lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in keys.items())]
        self.config.write_text("\n".join(lines) + "\n")

    def unit(self, name: str, **properties) -> None:
        """systemd runs this machine and has this unit."""
        (self.root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
        (self.folder / "units" / name).write_text(
            "".join(f"{k}={v}\n" for k, v in {**UNIT, **properties}.items())
        )

    def write(self, path: str, text: str) -> Path:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def hook(self, name: str, script: str) -> None:
        file = self.folder / "hooks" / name
        file.write_text(f"#!/bin/bash\n{script}\n")
        file.chmod(0o755)

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "SANDBOX": str(self.folder),
            "HOME": str(self.folder / "home"),
            "DBUS_SYSTEM_BUS_ADDRESS": self.bus,
            "PYTHONPATH": str(Path.cwd()),
        }

    @property
    def machine(self) -> Machine:
        me = Who(os.getuid(), "wearer", frozenset({os.getgid()}))
        wall = self.folder / "wall"
        return Machine(
            **{
                "env": self.env,
                "me": me,
                "sockets": (self.folder / "c.sock",),
                "root": self.root,
                "release": "6.12.0",
                "unique": "w0rd",
                "clock": Clock(wall=lambda: float(wall.read_text())),
                "version": "0.1.0",
                "user": lambda _name: me,
                "python": sys.version_info[:3],
                "clock_is_set": (self.folder / "synchronised").exists,
                "registry": Path(),
                **self.changed,
            }
        )

    @property
    def ran(self) -> str:
        """Every program of the system that was run."""
        file = self.folder / "ran"
        return file.read_text() if file.exists() else ""

    # -------------------------------------------------------------- what runs on it

    def start(self, *argv: str, ready: str = "") -> subprocess.Popen:
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=self.env)
        self._children.append(child)
        if ready:
            assert child.stdout.readline().startswith(ready)
        return child

    def start_bus(self, config: str = BUS) -> subprocess.Popen:
        needs_dbus()
        file = self.folder / "bus.conf"
        file.write_text(config.format(address=self.bus))
        return self.start(
            "dbus-daemon",
            f"--config-file={file}",
            "--nofork",
            "--print-address=1",
            "--nosyslog",
            ready=self.bus,
        )

    def start_bluez(self, *words: str) -> subprocess.Popen:
        return self.start(sys.executable, str(FAKE_BLUEZ), self.bus, *words, ready="ready")

    def stop(self) -> None:
        for child in reversed(self._children):
            child.kill()
            child.wait(10)
            child.stdout.close()
        for pid in self.folder.glob("*.pid"):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid.read_text()), signal.SIGTERM)

    def install(self) -> None:
        """Make `glassd` a command of this machine."""
        program = self.bin / "glassd"
        program.write_text(f'#!/bin/bash\nexec {sys.executable} -m edge.cli "$@"\n')
        program.chmod(0o755)

    def starts(self, finding) -> None:
        """Start in a terminal what a manual fix ends with, and leave it running."""
        assert finding.fix.kind is FixKind.DO, finding
        self.start("bash", "-c", "exec " + finding.fix.text.rpartition(": ")[2])

    async def comes_to_see(self, name: str, within_s: float = 60.0):
        """Check again until it is OK: what was started needs a moment."""
        async with asyncio.timeout(within_s):
            while (finding := await self.sees(name)).mark is not Mark.OK:
                await asyncio.sleep(0.05)
        return finding

    # -------------------------------------------------------------- the doctor comes

    async def sees(self, name: str):
        """Run the checks that one check needs, and return its finding."""
        patient = ExaminedMachine(self.machine, config=self.config, env=self.machine.env)
        checks = needed(every(patient, named=self.named), name)
        try:
            async with CheckRunner(checks, now=time.monotonic).running() as entries:
                found = {entry.check.id: entry.finding async for entry in entries}
        finally:
            await patient.closing.aclose()
        return found[name]

    async def cures(self, finding) -> None:
        """Run the printed command, in a shell, as a reader of the report does."""
        assert finding.fix.kind is FixKind.RUN, finding
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-c",
            finding.fix.text,
            env=self.env,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, (finding.fix.text, said.decode())

    async def fails_until_cured(self, name: str, *words: str, mark: Mark = Mark.FAIL):
        """Check that a fault is found and named, and that its printed fix turns it OK."""
        finding = await self.sees(name)
        assert finding.mark is mark, finding
        for word in words:
            assert word in finding.said, finding
        await self.cures(finding)
        after = await self.sees(name)
        assert after.mark is Mark.OK, (finding.fix, after)
        return finding

    def edits(self, finding, **known) -> None:
        """Apply the printed edit to the file it names; `known` are the values that only the
        owner knows, one for each <place>. Anything that cannot be read as an edit fails.
        """
        assert finding.fix.kind is FixKind.EDIT, finding
        file, section, change = re.fullmatch(r"in (\S+): \[(\w+)\] (.+)", finding.fix.text).groups()
        if renamed := re.fullmatch(r"write (\w+) instead of (\w+)", change):
            right, wrong = renamed.groups()
            text = Path(file).read_text()
            assert len(re.findall(rf"(?m)^{wrong} = ", text)) == 1
            Path(file).write_text(re.sub(rf"(?m)^{wrong} = ", f"{right} = ", text))
            return
        said = re.sub(r" \(.*\)$", "", change)
        pairs = _PAIR.findall(said)
        assert ", ".join(f"{key} = {value}" for key, value in pairs) == said, (
            f"nobody can do this edit as it stands: {said}"
        )
        for key, value in pairs:
            _write(Path(file), section, key, _toml(known.pop(key)) if "<" in value else value)
        assert not known, f"the edit leaves no place for {known}"

    async def does(self, finding, *, ends=0) -> str:
        """Run the command that a manual fix ends with."""
        assert finding.fix.kind is FixKind.DO, finding
        command = finding.fix.text.rpartition(": ")[2]
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", command, env=self.env, cwd=self.folder, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == ends, command
        return said.decode()


def needed(checks, name: str):
    """The checks that one check waits for, in their order."""
    by_id = {check.id: check for check in checks}
    wanted, new = {name}, {name}
    while new:
        new = {id_ for one in new for id_ in (*by_id[one].needs, *by_id[one].after)} - wanted
        wanted |= new
    return tuple(check for check in checks if check.id in wanted)


_PAIR = re.compile(r'(\w+) = ("[^"]*"|<[^>]*>|\d+|true|false)')


def _write(file: Path, section: str, key: str, value: str) -> None:
    """Set one key of a section; a missing section is added."""
    kept = [line for line in file.read_text().splitlines() if not line.startswith(f"{key} = ")]
    if f"[{section}]" not in kept:
        kept.append(f"[{section}]")
    kept.insert(kept.index(f"[{section}]") + 1, f"{key} = {value}")
    file.write_text("\n".join(kept) + "\n")


def _toml(value) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else str(value)
        if isinstance(value, int)
        else f'"{value}"'
    )


def needs_dbus() -> None:
    program("dbus-daemon")
    program("dbus-send")


def copied(source: Path, to: Path) -> Path:
    shutil.copy(source, to)
    return to


@contextmanager
def forbidden(folder, *, groups):
    """Run as the user nobody in `groups` for a while, at a folder for the group daemon."""
    for place in (folder, *folder.glob("c.sock")):
        os.chown(place, 0, 1)
        place.chmod(0o770)
    ours = os.getgroups()
    os.setgroups(list(groups))
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(ours)


@contextmanager
def closed(folder):
    folder.chmod(0)
    try:
        yield
    finally:
        folder.chmod(0o700)
