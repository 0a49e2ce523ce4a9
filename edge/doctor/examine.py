"""One examination from beginning to end: the machine as it is, the ladder climbed, everything given back.

The only place of the doctor that touches the process it runs in; the checks get a `Machine`.
"""

import grp
import logging
import os
import platform
import pwd
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import util
from pathlib import Path
from typing import Final

from edge import __version__
from edge.doctor.checks import every
from edge.doctor.ladder import Ladder
from edge.doctor.patient import Machine, Patient, Who
from edge.doctor.words import Entry
from edge.store.stamps import wall_is_set
from firmware_bridge.deadlines import timeout
from tools_cache import build

LEAVE_S: Final = 1.5
"""For saying goodbye to the broker."""

log = logging.getLogger(__name__)


def this_machine(env: Mapping[str, str], sockets: tuple[Path, ...] = ()) -> Machine:
    """Describe the machine we run on. `sockets`: where the daemon is said to be."""
    uname = platform.uname()
    return Machine(
        env=env, me=_me(), sockets=sockets, clock_is_set=wall_is_set, system=uname.system, release=uname.release,
        processor=uname.machine, bits=64 if sys.maxsize > 2**32 else 32, python=sys.version_info[:3], interpreter=sys.executable,
        glassd=_called(env), word=secrets.token_hex(3), has=_has, user=_user, gid=_gid, registry=build.ARTIFACT, version=__version__,
    )  # fmt: skip


@asynccontextmanager
async def examining(
    machine: Machine, *, config: Path | None = None, named: bool = False
) -> AsyncIterator[tuple[Patient, AsyncIterator[Entry]]]:
    """Examine `machine`: inside, the entries come in order, and the patient knows more with each."""
    patient = Patient(machine, config=config, env=machine.env)
    ladder = Ladder(every(patient, named=named), now=machine.clock.boot)
    try:
        async with ladder.climbing() as entries:
            yield patient, entries
    finally:
        with suppress(TimeoutError):
            async with timeout(LEAVE_S):
                await patient.closing.aclose()


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


def _called(env: Mapping[str, str]) -> str:
    """How a shell reaches this very program: by its name where the PATH finds it, else by its place beside our Python."""
    beside = Path(sys.executable).with_name("glassd")
    found = shutil.which("glassd", path=env.get("PATH"))
    return "glassd" if found and Path(found).resolve() == beside.resolve() else str(beside) if beside.exists() else "glassd"
