#!/usr/bin/env python3
"""`make install` and `make uninstall`: the venv in /opt/glassd, the command, and the files systemd
and the shells look for.

Keeps a list of what it wrote, removes exactly that, and leaves settings and state alone unless told
to purge them.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from places import CONFIG, OPT, STATE, Layout, files
from venv_tree import (
    EXTRAS,
    OLDEST,
    CannotBuild,
    Target,
    collect,
    compile_all,
    make,
    python_version_in,
    this_arch,
    version_of,
)

MANIFEST: Final = f"{OPT}/manifest"
HIDDEN: Final = ("/root/", "/home/")
"""Where a Python may not live: the unit's ProtectHome= hides these from the daemon."""


class Refused(Exception):
    """Why nothing was done, and what to do."""


class Machine:
    """One machine's file system: the real one, or a tree that will become one (DESTDIR)."""

    def __init__(self, destdir: str) -> None:
        self.destdir = destdir.rstrip("/")
        self.real = not self.destdir

    def at(self, path: str) -> Path:
        return Path(self.destdir + path)

    def run(self, *command: str) -> None:
        """Tell the running system, where there is one; it may lack any of these tools."""
        if self.real and shutil.which(command[0]):
            subprocess.run(command, check=False)

    @property
    def systemd(self) -> bool:
        return self.real and Path("/run/systemd/system").is_dir()

    def systemctl(self, *words: str) -> None:
        if self.systemd:
            self.run("systemctl", *words)


# ------------------------------------------------------------------ install


def install(machine: Machine, layout: Layout, *, python: str, wheels: str, extras: str) -> None:
    """Install or upgrade. What was there before keeps working until the new venv stands
    complete beside it.
    """
    _may_write(machine)
    _check_command(machine.at(layout.command))
    target = _target(machine, python)
    before = _manifest(machine)
    fresh = machine.at(f"{OPT}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="glassd-wheels-") as scratch:
        if not wheels:
            print("collecting wheels (WHEELS=DIR uses yours, without a network)", flush=True)
            collect(Path(scratch), target=target, extras=extras)
        make(fresh, Path(wheels or scratch), target=target, extras=extras)
    compiled = compile_all(fresh, target=target)
    written = files(layout)
    _write_manifest(fresh, [*written, layout.command])
    _swap(machine.at(OPT), fresh)
    for path, content in written.items():
        _write(machine.at(path), content)
    _link(machine.at(layout.command))
    for gone in before - written.keys() - {layout.command}:
        _remove(machine, gone)
    _first_settings(machine, layout)
    _tell_the_system(machine, layout)
    _say_what_is_next(machine, layout, compiled=compiled)


def _may_write(machine: Machine) -> None:
    if machine.real and os.geteuid() != 0:
        raise Refused(
            f"only root may write to {OPT} and /etc: "
            "sudo make install (or DESTDIR=DIR, to look first)"
        )
    if machine.at("/var/lib/dpkg/info/glassd.list").exists():
        raise Refused(
            "glassd is installed as a Debian package, "
            "which owns these files: apt-get remove glassd, then try again"
        )


def _check_command(command: Path) -> None:
    ours = command.is_symlink() and str(command.readlink()) == f"{OPT}/bin/glassd"
    if not ours and os.path.lexists(command):
        raise Refused(f"{command}: is there already and is not ours; move it away")


def _target(machine: Machine, python: str) -> Target:
    """Find out what the venv is for. Below a DESTDIR the name tells the version: that Python
    need not run here.
    """
    if machine.real:
        python = os.path.realpath(python)
        if python.startswith(HIDDEN):
            raise Refused(
                f"{python}: the service cannot see into home directories; "
                "use the system's: SYSTEM_PYTHON=/usr/bin/python3"
            )
    version = python_version_in(python) or version_of(Path(python))
    if version is None:
        raise Refused(
            f"{python}: does not run here; name it with its version: "
            "SYSTEM_PYTHON=/usr/bin/python3.11"
        )
    if tuple(map(int, version.split("."))) < OLDEST:
        raise Refused(
            f"{python}: is Python {version}; glassd needs {OLDEST[0]}.{OLDEST[1]} or newer"
        )
    return Target(python, version, this_arch())


def _swap(place: Path, fresh: Path) -> None:
    old = place.with_name(place.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    fresh.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content)
    fresh.chmod(0o644)
    fresh.replace(path)


def _link(command: Path) -> None:
    command.parent.mkdir(parents=True, exist_ok=True)
    command.unlink(missing_ok=True)
    command.symlink_to(f"{OPT}/bin/glassd")


def _first_settings(machine: Machine, layout: Layout) -> None:
    """Put the sample where a person will look for it; settings that are there are theirs."""
    if not machine.at(CONFIG).exists():
        _write(machine.at(CONFIG), machine.at(f"{layout.share}/glassd/glassd.toml").read_bytes())


def _tell_the_system(machine: Machine, layout: Layout) -> None:
    if machine.real and not shutil.which("systemd-sysusers"):
        print(
            "NOTE: this machine has no systemd, so there is no service and no "
            "user glassd; run it yourself: glassd run"
        )
    machine.run("systemd-sysusers", layout.config("sysusers.d/glassd.conf"))
    machine.systemctl("daemon-reload")
    machine.systemctl("reload", "dbus.service")
    machine.systemctl("try-restart", "glassd.service", "glassd-mcp.service")


def _say_what_is_next(machine: Machine, layout: Layout, *, compiled: bool) -> None:
    print(f"glassd is in {machine.at(OPT)}, its command is {machine.at(layout.command)}")
    if not compiled:
        print(
            "NOTE: no bytecode was made, as no Python of that version is "
            "here; the first start will take longer"
        )
    if machine.real:
        print(
            "next: systemctl enable --now glassd && usermod -aG "
            "glassd,glassd-owner YOU && glassd status"
        )
    else:
        print(
            "there, once: systemd-sysusers && systemctl daemon-reload && "
            "systemctl reload dbus && systemctl enable --now glassd"
        )


# ------------------------------------------------------------------ uninstall


def uninstall(machine: Machine, *, purge: bool) -> None:
    """Remove what was installed. State, settings and secrets stay, unless they are to be purged."""
    _may_write(machine)
    paths = _manifest(machine)
    if not paths and not purge and not machine.at(OPT).exists():
        print("glassd is not installed here")
        return
    machine.systemctl(
        "disable", "--now", "glassd.service", "glassd-mcp.socket", "glassd-mcp.service"
    )
    for path in paths:
        _remove(machine, path)
    for tree in (OPT, f"{OPT}.new", f"{OPT}.old"):
        shutil.rmtree(machine.at(tree), ignore_errors=True)
    machine.systemctl("daemon-reload")
    machine.systemctl("reload", "dbus.service")
    if purge:
        _purge(machine)
    else:
        print(
            f"kept: {', '.join(STATE)}, secrets and the user glassd "
            "(make uninstall PURGE=1 removes them)"
        )


def _purge(machine: Machine) -> None:
    for tree in STATE:
        shutil.rmtree(machine.at(tree), ignore_errors=True)
    for secret in machine.at("/etc/credstore").glob("glassd-*"):
        secret.unlink()
    machine.run("userdel", "glassd")
    machine.run("groupdel", "glassd-owner")
    print("state, settings, secrets and the user are gone")


def _remove(machine: Machine, path: str) -> None:
    """Remove a file, and the folders that were there for it alone."""
    where = machine.at(path)
    where.unlink(missing_ok=True)
    for folder in where.parents:
        if folder.name not in {"glassd", "radio", "bluetooth.service.d"}:
            return
        try:
            folder.rmdir()
        except OSError:
            return


# ------------------------------------------------------------------ what was written


def _manifest(machine: Machine) -> set[str]:
    try:
        lines = machine.at(MANIFEST).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return set()
    return {line for line in lines if line.startswith("/") and ".." not in line}


def _write_manifest(tree: Path, paths: list[str]) -> None:
    (tree / "manifest").write_text("".join(f"{path}\n" for path in sorted(paths)), encoding="utf-8")


# ------------------------------------------------------------------ the command line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("install", "uninstall", "wheels"))
    parser.add_argument("--prefix", default="/usr/local")
    parser.add_argument("--destdir", default="", help="a tree that will become a machine's")
    parser.add_argument(
        "--python", default="/usr/bin/python3", help="the Python there, for the venv"
    )
    parser.add_argument(
        "--wheels",
        default="",
        help="a folder of wheels: no network is needed (wheels: where to put them)",
    )
    parser.add_argument("--extras", default=EXTRAS)
    parser.add_argument(
        "--purge", action="store_true", help="uninstall: also state, settings, secrets and the user"
    )
    args = parser.parse_args()
    machine = Machine(args.destdir)
    os.umask(0o022)
    try:
        if args.action == "install":
            install(
                machine,
                _layout(args.prefix),
                python=args.python,
                wheels=args.wheels,
                extras=args.extras,
            )
        elif args.action == "uninstall":
            uninstall(machine, purge=args.purge)
        else:
            collect(
                Path(args.wheels or "dist/wheels"),
                target=_target(machine, args.python),
                extras=args.extras,
            )
    except (Refused, CannotBuild, OSError) as e:
        print(f"make {args.action}: {e}", file=sys.stderr)
        return 1
    return 0


def _layout(prefix: str) -> Layout:
    if not prefix.startswith("/") or ".." in prefix or prefix.rstrip("/") == "":
        raise Refused(f"PREFIX={prefix}: must be an absolute path, and not /")
    return Layout(prefix.rstrip("/"))


if __name__ == "__main__":
    sys.exit(main())
