"""Where things lie on this machine: configuration, state, the control sockets.

Names only, worked out from an environment; nothing is touched. Light imports, so short verbs start
fast.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SOCKET_NAME: Final = "control.sock"
_OWNER_NAME: Final = "owner.sock"
_SYSTEM_CONFIG: Final = Path("/etc/glassd/glassd.toml")
_SYSTEM_RUN: Final = Path("/run/glassd")
_SESSIONS: Final = Path("/run/user")

Env = Mapping[str, str]


def config_candidates(env: Env) -> tuple[Path, ...]:
    """List the configuration files looked for when none is named, best first."""
    return (_SYSTEM_CONFIG, _xdg(env, "XDG_CONFIG_HOME", ".config") / "glassd" / "glassd.toml")


def state_dir(env: Env) -> Path:
    """Return the directory of everything that must survive a restart; it may not exist yet."""
    own = _systemd_directory(env, "STATE_DIRECTORY")
    return own or _xdg(env, "XDG_STATE_HOME", ".local/state") / "glassd"


def runtime_dir(env: Env, *, uid: int | None = None) -> Path:
    """Return the directory of the control socket; it may not exist yet.

    Without systemd and a login session (containers) root uses `/run/glassd`, others the state
    directory.
    """
    own = _systemd_directory(env, "RUNTIME_DIRECTORY")
    if own is not None:
        return own
    if env.get("XDG_RUNTIME_DIR"):
        return Path(env["XDG_RUNTIME_DIR"]) / "glassd"
    return _SYSTEM_RUN if (os.getuid() if uid is None else uid) == 0 else state_dir(env)


def client_sockets(env: Env, *, uid: int | None = None) -> tuple[Path, ...]:
    """Return the sockets a client tries when none is named, best first.

    Agents start their MCP servers with PATH and HOME and hardly more, so a session's directory is
    also looked for in its usual place.
    """
    if env.get("GLASSD_SOCKET"):
        return (Path(env["GLASSD_SOCKET"]),)
    user = str(os.getuid() if uid is None else uid)
    session = Path(env.get("XDG_RUNTIME_DIR") or _SESSIONS / user)
    return tuple(place / SOCKET_NAME for place in (session / "glassd", _SYSTEM_RUN, state_dir(env)))


def owner_beside(control: Path) -> Path:
    """Return the owner's socket of this control socket: `owner.sock`, or `NAME-owner.sock`.

    Other daemons may have their sockets in the same folder.
    """
    other = f"{control.stem}-owner{control.suffix}"
    return control.with_name(_OWNER_NAME if control.name == SOCKET_NAME else other)


def owner_socket(control: Path, env: Env) -> Path:
    """Name the owner's socket of the daemon whose control socket this is."""
    path = env.get("GLASSD_OWNER_SOCKET")
    return Path(path) if path else owner_beside(control)


def _systemd_directory(env: Env, name: str) -> Path | None:
    """Read one of systemd's directory variables; several directories are separated by colons."""
    first = env.get(name, "").partition(":")[0]
    return Path(first) if first else None


def _xdg(env: Env, name: str, below_home: str) -> Path:
    """Apply the XDG rule: a relative value counts as unset."""
    value = env.get(name, "")
    if value.startswith("/"):
        return Path(value)
    return Path(env.get("HOME") or Path.home()) / below_home
