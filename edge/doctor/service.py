"""Checks of the running daemon: its systemd unit, and whether it answers on the control socket."""

import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from edge.control.client import ControlClient
from edge.doctor.machine import UNIT, CheckGroup, ExaminedMachine, Unit
from edge.doctor.models import Finding, Fix, Mark, do, fail, ok, quoted, run, skip, warn
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


class ServiceChecks(CheckGroup):
    """Whether the daemon runs. `named`: a configuration or a socket was named, so the unit is not
    the daemon to examine.
    """

    def __init__(self, examined: ExaminedMachine, *, named: bool) -> None:
        super().__init__(examined)
        self._named = named

    # -------------------------------------------------------------- the unit

    async def unit(self) -> Finding:
        m = self._machine
        if self._named:
            return skip("another configuration or socket was named than the service's")
        if not m.has_systemd:
            return skip("systemd does not run this machine")
        unit = self._examined.unit = await self._found()
        if unit is None:
            return skip(
                "glassd is not installed as a service; it runs while somebody runs it",
                do("install it: sudo make install (in the checkout)"),
            )
        self._examined.env = self._environment(unit)
        return self._judge(unit)

    async def _found(self) -> Unit | None:
        for words in MANAGERS:
            ran = await self._machine.ask(*words, "show", UNIT, f"--property={','.join(_SHOWN)}")
            properties = dict(line.split("=", 1) for line in ran.out.splitlines() if "=" in line)
            if ran.code == 0 and properties.get("LoadState") not in {None, "not-found"}:
                return Unit(" ".join(words), properties)
        return None

    def _environment(self, unit: Unit) -> Mapping[str, str]:
        """Return the environment that systemd gives the daemon."""
        m = self._machine
        env = dict(pair.partition("=")[::2] for pair in _words(unit["Environment"]))
        if unit.manager != "systemctl":
            return {**m.env, **env}
        state = m.path("/var/lib") / (unit["StateDirectory"].split(" ")[0] or "glassd")
        runtime = m.path("/run") / (unit["RuntimeDirectory"].split(" ")[0] or "glassd")
        loaded, config = m.path(f"/run/credentials/{UNIT}"), m.path("/etc/glassd/glassd.toml")
        named = {"GLASSD_CONFIG": str(config)} if _exists(config) else {}
        credentials = loaded if _exists(loaded) else m.path("/etc/credstore")
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
        user = unit["User"] if unit.manager == "systemctl" else ""
        if unit["LoadState"] != "loaded":
            fix = self._systemctl("unmask", "enable --now")
            return fail(f"the unit is {unit['LoadState']}", fix)
        if user and self._machine.user(user) is None:
            fix = self._machine.as_root(
                "systemd-sysusers", "systemctl daemon-reload", "systemctl restart glassd"
            )
            return fail(f"there is no user {user}, as whom the unit runs", fix)
        if unit["NeedDaemonReload"] == "yes":
            fix = self._systemctl("daemon-reload", "restart")
            return warn(f"{state}, but the unit file was changed since", fix)
        if unit["ActiveState"] == "failed" or unit["SubState"] == "auto-restart":
            problem = f"{state}: {unit['Result']}, restarted {unit['NRestarts'] or 0} times"
            fix = self._systemctl("reset-failed", "restart")
            return fail(f"{problem}; why: journalctl -u glassd -n 20", fix)
        if unit["ActiveState"] not in {"active", "activating", "reloading"}:
            return fail(f"not running: {state}", self._systemctl("enable --now"))
        return self._running(unit, state)

    def _running(self, unit: Unit, state: str) -> Finding:
        user = unit["User"] or ("root" if unit.manager == "systemctl" else self._machine.me.name)
        facts = (
            f"{state} as {user}, watchdog {unit['WatchdogUSec'] or 'off'}, "
            f"restarted {unit['NRestarts'] or 0} times"
        )
        revert = self._systemctl("revert", "restart")
        if unit["WatchdogUSec"] in {"", "0", "infinity"}:
            return warn(f"{facts}: a daemon that hangs is not restarted", revert)
        if user == "root" and unit.manager == "systemctl":
            return warn(f"{facts}: it needs no root", revert)
        if unit["UnitFileState"] == "disabled":
            return warn(f"{facts}; does not start with the machine", self._systemctl("enable"))
        return ok(facts)

    def _systemctl(self, *actions: str) -> Fix:
        manager = self._examined.unit.manager if self._examined.unit else "systemctl"
        commands = [
            f"{manager} {a}" if a == "daemon-reload" else f"{manager} {a} glassd" for a in actions
        ]
        return self._machine.as_root(*commands) if manager == "systemctl" else run(*commands)

    # -------------------------------------------------------------- the control socket

    async def daemon(self) -> Finding:
        unit = self._examined.unit
        if unit is not None and unit["ActiveState"] not in {"active", "reloading"}:
            return skip("its unit does not run")
        client = ControlClient(self._sockets())
        ask = partial(client.request, "GET", "/v1/status", timeout_s=ANSWER_S)
        try:
            _, status = await in_thread(ask)
        except UserError as e:
            return self._no_answer(e)
        if not isinstance(status, dict):
            return fail("something else than glassd answers on the control socket", self._restart())
        self._examined.status = status
        found = self._running_well(status)
        return await self._owners(found) if found.mark is Mark.OK else found

    async def _owners(self, found: Finding) -> Finding:
        """Return a warning if this user may not confirm and configure (the owner's group may)."""
        env = self._machine.env
        owner = ControlClient(tuple(owner_socket(socket, env) for socket in self._sockets()))
        try:
            await in_thread(lambda: owner.request("GET", "/v1/confirm", timeout_s=OWNER_S))
        except UserError as e:
            if e.code == "PERMISSION":
                problem = "you may call and read, but not confirm, pair and configure"
                return warn(f"{found.said}; {problem}: {e.message}", self._let_in(e))
        return found

    def _sockets(self) -> tuple[Path, ...]:
        """Return the socket that was named, else the configured one, else the usual ones."""
        if self._machine.sockets:
            return self._machine.sockets
        settings = self._examined.settings
        if settings and settings.control.socket:
            return (Path(settings.control.socket),)
        ours, theirs = client_sockets(self._machine.env), client_sockets(self._examined.env)
        return tuple(dict.fromkeys((*ours, *theirs)))

    def _no_answer(self, e: UserError) -> Finding:
        if e.code == "PERMISSION":
            return fail(e.message, self._let_in(e))
        if e.code == "NOT_RUNNING" and not self._examined.unit:
            config = self._examined.config
            option = f" --config {quoted(config)}" if config else ""
            fix = do(f"start it, in a terminal of its own: glassd run{option}")
            return fail(e.message, fix)
        return fail(e.message, self._restart())

    def _let_in(self, e: UserError) -> Fix:
        """Return the fix that lets this user use the socket: join its group, which the error's fix
        names; a user who is in it already has to log in again.
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
            if self._examined.unit
            else do("stop glassd run, and start it again")
        )

    def _running_well(self, status: Mapping[str, Any]) -> Finding:
        version, ours = str(status.get("version", "")), self._machine.version
        facts = f"version {version}, edge {status.get('edge_id', '')}"
        crashed = [
            s
            for s in status.get("services") or ()
            if isinstance(s, dict) and s.get("state") == "crashed"
        ]
        if crashed:
            name, error = crashed[0].get("name"), crashed[0].get("error")
            return fail(f"{facts}: service {name} keeps failing: {error}", self._restart())
        if version != ours:
            return warn(f"{facts}: it still runs the version before {ours}", self._restart())
        alarms = status.get("alarms") or {}
        if alarms:
            return warn(f"{facts}: {next(iter(alarms.values()))}", self._restart())
        radio, settings = self._examined.radio, self._examined.settings
        if settings and radio != settings.glasses.radio:
            again = (
                self._restart()
                if self._examined.unit
                else do("examine what it was started with: glassd doctor --config FILE")
            )
            configured = f"the configuration examined here says {settings.glasses.radio}"
            return warn(f"{facts}: its radio is {radio}, {configured}", again)
        return ok(facts)


def _exists(path: Path) -> bool:
    """Return whether there is such a path. One that may not be read exists for the service."""
    try:
        return path.exists()
    except PermissionError:
        return True


def _words(text: str) -> list[str]:
    try:
        return [word for word in shlex.split(text) if "=" in word]
    except ValueError:
        return []
