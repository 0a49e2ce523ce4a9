"""The machine that this process runs on, as the checks see it. The only module of the doctor that
reads the process itself.
"""

import grp
import os
import platform
import pwd
import secrets
import shutil
import sys
from collections.abc import Mapping
from importlib import resources, util
from pathlib import Path
from typing import Final

from edge import __version__
from edge.display.typesetting.fonts import wheel_folders
from edge.doctor.machine import Machine, Who
from edge.runtime.clock import wall_is_set

REGISTRY: Final = Path(str(resources.files("tools_cache"))) / "tool_registry.json"


def this_machine(env: Mapping[str, str], sockets: tuple[Path, ...] = ()) -> Machine:
    """Describe this machine. `sockets`: the daemon's sockets, if they were named."""
    uname = platform.uname()
    return Machine(
        env=env,
        me=_me(),
        sockets=sockets,
        clock_is_set=wall_is_set,
        system=uname.system,
        release=uname.release,
        processor=uname.machine,
        bits=64 if sys.maxsize > 2**32 else 32,
        python=sys.version_info[:3],
        interpreter=sys.executable,
        glassd=_program_name(env),
        unique=secrets.token_hex(3),
        has=_has,
        wheels=tuple(wheel_folders()),
        user=_user,
        gid=_gid,
        registry=REGISTRY,
        version=__version__,
    )


def _me() -> Who:
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Who(uid, name, frozenset({os.getgid(), *os.getgroups()}))


def _user(name: str) -> Who | None:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    return Who(found.pw_uid, name, frozenset(os.getgrouplist(name, found.pw_gid)))


def _gid(group: str) -> int | None:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        return None


def _has(library: str) -> bool:
    try:
        return util.find_spec(library) is not None
    except (ImportError, ValueError):
        return False


def _program_name(env: Mapping[str, str]) -> str:
    """Return how a shell calls this program: by its name if the PATH finds it, else by the path of
    the one beside this Python.
    """
    beside = Path(sys.executable).with_name("glassd")
    found = shutil.which("glassd", path=env.get("PATH"))
    on_path = found and Path(found).resolve() == beside.resolve()
    return "glassd" if on_path or not beside.exists() else str(beside)
