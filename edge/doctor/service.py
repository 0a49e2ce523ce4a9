"""Checks of the running daemon: its systemd unit, and whether it answers on the control socket."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from edge.control.client import ControlClient
from edge.doctor.machine import UNIT, ExaminedMachine, Unit
from edge.doctor.models import Check, Finding, Fix, Mark, do, fail, ok, quoted, run, skip, warn
from edge.doctor.subprocesses import in_thread
from edge.runtime.errors import UserError
from edge.runtime.paths import client_sockets, owner_socket

_SHOWN: Final = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "User",
    "NRestarts",
    "WatchdogUSec",
    "UnitFileState",
    "StateDirectory",
    "RuntimeDirectory",
    "Environment",
    "NeedDaemonReload",
    "MainPID",
    "PrivateDevices",
)
ANSWER_S: Final = 2.0
OWNER_S: Final = 0.5
"""Only whether the owner's socket may be opened counts."""
MANAGERS: Final = (("systemctl",), ("systemctl", "--user"))


class ServiceChecks:
    """The checks of this layer. `named`: somebody named a configuration or a socket, so the
    unit is not the daemon meant.
    """

    def __init__(self, patient: ExaminedMachine, *, named: bool) -> None:
        self._patient = patient
        self._machine = patient.machine
        self._named = named

    def checks(self) -> tuple[Check, ...]:
        return (
            Check(
                id="unit", layer="service", title="systemd unit", examine=self._unit, effect=True
            ),
            Check(
                id="daemon",
                layer="service",
                title="daemon",
                examine=self._daemon,
                after=("config",),
                effect=True,
            ),
        )

    # -------------------------------------------------------------- the unit

    async def _unit(self) -> Finding:
        m = self._machine
        if self._named:
            return skip("another configuration or socket was named than the service's")
        if not m.has_systemd:
            return skip("systemd does not run this machine")
        unit = self._patient.unit = await self._found()
        if unit is None:
            return skip(
                "glassd is not installed as a service; it runs while somebody runs it",
                do("install it: sudo make install (in the checkout)"),
            )
        self._patient.env = self._environment(unit)
        return self._judge(unit)

    async def _found(self) -> Unit | None:
        for words in MANAGERS:
            ran = await self._machine.ask(*words, "show", UNIT, f"--property={','.join(_SHOWN)}")
            properties = dict(line.split("=", 1) for line in ran.out.splitlines() if "=" in line)
            if ran.code == 0 and properties.get("LoadState") not in {None, "not-found"}:
                return Unit(" ".join(words), properties)
        return None

    def _environment(self, unit: Unit) -> Mapping[str, str]:
        """Work out what systemd gives the daemon, so that we look where it looks."""
        m = self._machine
        env = dict(pair.partition("=")[::2] for pair in _words(unit["Environment"]))
        if unit.manager != "systemctl":
            return {**m.env, **env}
        state = m.path("/var/lib") / (unit["StateDirectory"].split(" ")[0] or "glassd")
        runtime = m.path("/run") / (unit["RuntimeDirectory"].split(" ")[0] or "glassd")
        handed, config = m.path(f"/run/credentials/{UNIT}"), m.path("/etc/glassd/glassd.toml")
        named = {"GLASSD_CONFIG": str(config)} if _there(config) else {}
        credentials = handed if _there(handed) else m.path("/etc/credstore")
        return {
            "HOME": str(state),
            "STATE_DIRECTORY": str(state),
            "RUNTIME_DIRECTORY": str(runtime),
            "CREDENTIALS_DIRECTORY": str(credentials),
            **named,
            **env,
        }

    def _judge(self, unit: Unit) -> Finding:
        state = f"{unit['ActiveState']} ({unit['SubState']})"
        if unit["LoadState"] != "loaded":
            return fail(
                f"the unit is {unit['LoadState']}", self._systemctl("unmask", "enable --now")
            )
        if (
            unit.manager == "systemctl"
            and unit["User"]
            and self._machine.user(unit["User"]) is None
        ):
            fix = self._machine.as_root(
                "systemd-sysusers", "systemctl daemon-reload", "systemctl restart glassd"
            )
            return fail(f"there is no user {unit['User']}, as whom the unit runs", fix)
        if unit["NeedDaemonReload"] == "yes":
            return warn(
                f"{state}, but the unit file was changed since",
                self._systemctl("daemon-reload", "restart"),
            )
        if unit["ActiveState"] == "failed" or unit["SubState"] == "auto-restart":
            said = (
                f"{state}: {unit['Result']}, restarted {unit['NRestarts'] or 0} "
                "times; why: journalctl -u glassd -n 20"
            )
            return fail(said, self._systemctl("reset-failed", "restart"))
        if unit["ActiveState"] not in {"active", "activating", "reloading"}:
            return fail(f"not running: {state}", self._systemctl("enable --now"))
        return self._running(unit, state)

    def _running(self, unit: Unit, state: str) -> Finding:
        user = unit["User"] or ("root" if unit.manager == "systemctl" else self._machine.me.name)
        said = (
            f"{state} as {user}, watchdog {unit['WatchdogUSec'] or 'off'}, "
            f"restarted {unit['NRestarts'] or 0} times"
        )
        if unit["WatchdogUSec"] in {"", "0", "infinity"}:
            return warn(
                f"{said}: a daemon that hangs is not restarted",
                self._systemctl("revert", "restart"),
            )
        if user == "root" and unit.manager == "systemctl":
            return warn(f"{said}: it needs no root", self._systemctl("revert", "restart"))
        if unit["UnitFileState"] == "disabled":
            return warn(f"{said}; does not start with the machine", self._systemctl("enable"))
        return ok(said)

    def _systemctl(self, *actions: str) -> Fix:
        manager = self._patient.unit.manager if self._patient.unit else "systemctl"
        commands = [
            f"{manager} {a}" if a == "daemon-reload" else f"{manager} {a} glassd" for a in actions
        ]
        return self._machine.as_root(*commands) if manager == "systemctl" else run(*commands)

    # -------------------------------------------------------------- the control socket

    async def _daemon(self) -> Finding:
        unit = self._patient.unit
        if unit is not None and unit["ActiveState"] not in {"active", "reloading"}:
            return skip("its unit does not run")
        client = ControlClient(self._sockets())
        try:
            _, status = await in_thread(
                lambda: client.request("GET", "/v1/status", timeout_s=ANSWER_S)
            )
        except UserError as e:
            return self._no_answer(e)
        if not isinstance(status, dict):
            return fail("something else than glassd answers on the control socket", self._restart())
        self._patient.status = status
        found = self._well(status)
        return await self._owners(found) if found.mark is Mark.OK else found

    async def _owners(self, found: Finding) -> Finding:
        """Add whether this user may also confirm and configure: that needs a second group."""
        env = self._machine.env
        owner = ControlClient(tuple(owner_socket(socket, env) for socket in self._sockets()))
        try:
            await in_thread(lambda: owner.request("GET", "/v1/confirm", timeout_s=OWNER_S))
        except UserError as e:
            if e.code == "PERMISSION":
                return warn(
                    f"{found.said}; you may call and read, but not confirm, "
                    f"pair and configure: {e.message}",
                    self._let_in(e),
                )
        return found

    def _sockets(self) -> tuple[Path, ...]:
        """The one that was named, else the one of the configuration, else the usual ones."""
        if self._machine.sockets:
            return self._machine.sockets
        settings = self._patient.settings
        if settings and settings.control.socket:
            return (Path(settings.control.socket),)
        return tuple(
            dict.fromkeys((*client_sockets(self._machine.env), *client_sockets(self._patient.env)))
        )

    def _no_answer(self, e: UserError) -> Finding:
        if e.code == "PERMISSION":
            return fail(e.message, self._let_in(e))
        if e.code == "NOT_RUNNING":
            start = (
                self._systemctl("restart")
                if self._patient.unit
                else do(f"start it, in a terminal of its own: glassd run{self._of_config}")
            )
            return fail(e.message, start)
        return fail(e.message, self._restart())

    @property
    def _of_config(self) -> str:
        return f" --config {quoted(self._patient.config)}" if self._patient.config else ""

    def _let_in(self, e: UserError) -> Fix:
        """The group's name stands in the error's fix; who is in it already needs a fresh login
        only.
        """
        if "-aG " not in e.fix:
            return do(e.fix)
        m = self._machine
        group = e.fix.partition("-aG ")[2].partition(" ")[0] or "glassd"
        account = m.user(m.me.name)
        if account is not None and m.gid(group) in account.groups:
            return do(
                f"log out and in again: you are in the group {group} "
                f"since; for this shell: newgrp {group}"
            )
        return m.as_root(f"usermod -aG {group} {m.me.name}")

    def _restart(self) -> Fix:
        return (
            self._systemctl("restart")
            if self._patient.unit
            else do("stop glassd run, and start it again")
        )

    def _well(self, status: Mapping[str, Any]) -> Finding:
        version, ours = str(status.get("version", "")), self._machine.version
        said = f"version {version}, edge {status.get('edge_id', '')}"
        crashed = [
            s
            for s in status.get("services") or ()
            if isinstance(s, dict) and s.get("state") == "crashed"
        ]
        if crashed:
            return fail(
                f"{said}: service {crashed[0].get('name')} keeps "
                f"failing: {crashed[0].get('error')}",
                self._restart(),
            )
        if version != ours:
            return warn(f"{said}: it still runs the version before {ours}", self._restart())
        alarms = status.get("alarms") or {}
        if alarms:
            return warn(f"{said}: {next(iter(alarms.values()))}", self._restart())
        radio, settings = self._patient.radio, self._patient.settings
        if settings and radio != settings.glasses.radio:
            again = (
                self._restart()
                if self._patient.unit
                else do("examine what it was started with: glassd doctor --config FILE")
            )
            return warn(
                f"{said}: its radio is {radio}, the configuration examined "
                f"here says {settings.glasses.radio}",
                again,
            )
        return ok(said)


def _there(path: Path) -> bool:
    """Tell whether there is such a path; what we may not look at is there for the service."""
    try:
        return path.exists()
    except PermissionError:
        return True


def _words(text: str) -> list[str]:
    try:
        return [word for word in shlex.split(text) if "=" in word]
    except ValueError:
        return []
