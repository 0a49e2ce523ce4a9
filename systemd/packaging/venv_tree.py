"""Makes the venv in /opt/glassd out of wheels, for one version of Python, without running that
Python.

So the tree can be made below a DESTDIR, for another suite and for another processor. Refuses to
know systemd and packages.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from places import OPT, ROOT

EXTRAS: Final = "calendar,contacts,sim,devcloud,ears,enrol,images,mcp,voice,metrics,scripts,web"
"""Everything: radios of our own, mock glasses and `glassd demo` need no second installation."""
GLIBC: Final = range(36, 16, -1)
"""2.36 is Debian 12's; a wheel that wants a newer one would not load there."""
MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
"""Debian's name → Python's. 32-bit systems: several libraries have no wheels."""
OLDEST: Final = (3, 11)
_UNUSED: Final = ("moonshine_voice/libmoonshine.so", "moonshine_voice.libs")
"""63 MiB of a library of which only the model is used."""
_SOURCES: Final = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "edge",
    "firmware_bridge",
    "tools_cache",
    "systemd/glassd.toml",
)


class CannotBuild(Exception):
    """What is missing and how to get it."""


@dataclass(frozen=True, slots=True)
class Target:
    """The Python the venv is for: its path on the target machine, its version, the machine's
    processor.
    """

    python: str
    version: str
    arch: str

    @property
    def site(self) -> str:
        return f"lib/python{self.version}/site-packages"


def this_arch() -> str:
    machine = os.uname().machine
    found = next((debian for debian, name in MACHINES.items() if name == machine), None)
    if found is None:
        raise CannotBuild(
            f"this machine is {machine}; glassd's libraries have wheels "
            f"for {' and '.join(MACHINES)} only"
        )
    return found


def find_python(version: str) -> Path:
    """Find a Python of this version here, with pip or venv. Behind pyenv's shims one may exist
    and yet fail, so each is run.
    """
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    named = shutil.which(f"python{version}")
    candidates = [
        f"/usr/bin/python{version}",
        sys.executable,
        named or "",
        *map(str, sorted(root.glob(f"versions/{version}.*/bin/python"))),
    ]
    for candidate in filter(None, candidates):
        if version_of(Path(candidate)) == version:
            return Path(candidate)
    raise CannotBuild(
        f"no Python {version} on this machine; its wheels are chosen and "
        f"compiled by it (apt-get install python{version})"
    )


def version_of(python: Path) -> str | None:
    """Give `3.11` of an interpreter, None when it does not run."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        ran = subprocess.run(
            [python, "-I", "-c", ask], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stdout.strip()


# ------------------------------------------------------------------ wheels


def collect(wheels: Path, *, target: Target, extras: str = EXTRAS) -> None:
    """Build glassd's wheel and fetch those it needs into `wheels`, at the versions of
    constraints.txt.
    """
    wheels.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="glassd-build-") as scratch:
        pip = _pip(target.version, Path(scratch))
        source = copy_of_sources(Path(scratch) / "source")
        constraints = ROOT / "constraints.txt"
        env = {
            **os.environ,
            "PIP_CONSTRAINT": str(constraints),
            "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "1577836800"),
        }
        _run(
            [*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), str(source)],
            env=env,
        )
        ours = f"{_our_wheel(wheels)}{with_extras(extras)}"
        _run(
            [
                *pip,
                "download",
                "--quiet",
                *_for(target),
                "--constraint",
                str(constraints),
                "--dest",
                str(wheels),
                ours,
            ]
        )


def with_extras(extras: str) -> str:
    """Give the extras as a requirement has them; none are no brackets."""
    words = [word.strip() for word in extras.split(",") if word.strip()]
    return f"[{','.join(words)}]" if words else ""


def copy_of_sources(to: Path) -> Path:
    """Build from a copy, so that a build as root leaves nothing of root's in the checkout."""
    to.mkdir()
    for name in _SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name,
                to / name,
                ignore=shutil.ignore_patterns("__pycache__", "tool_registry.json"),
            )
        else:
            (to / name).parent.mkdir(exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def _our_wheel(wheels: Path) -> Path:
    found = sorted(wheels.glob("glassd-*.whl"))
    if len(found) != 1:
        raise CannotBuild(
            f"{wheels}: should hold one glassd-*.whl, "
            f"holds {len(found)}; make wheels makes such a folder"
        )
    return found[0]


def our_version(wheels: Path) -> str:
    return _our_wheel(wheels).name.split("-")[1]


def _for(target: Target) -> Iterator[str]:
    """Say "what runs there" in pip's words: no compiling, no wheel for a newer C library."""
    machine = MACHINES[target.arch]
    yield from ("--only-binary=:all:", f"--python-version={target.version}", "--implementation=cp")
    platforms = [
        *(f"manylinux_2_{minor}" for minor in GLIBC),
        "manylinux2014",
        "manylinux_2_12",
        "manylinux2010",
        "manylinux_2_5",
        "manylinux1",
    ]
    yield from (f"--platform={name}_{machine}" for name in platforms)


def _pip(version: str, scratch: Path) -> list[str]:
    """Give pip's command line; a Debian Python without pip makes itself a venv that has one."""
    python = find_python(version)
    options = ["--disable-pip-version-check", "--no-input"]
    if (
        subprocess.run(
            [python, "-m", "pip", "--version"], capture_output=True, check=False
        ).returncode
        == 0
    ):
        return [str(python), "-m", "pip", *options]
    made = subprocess.run(
        [python, "-m", "venv", scratch / "pip"], capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise CannotBuild(f"{python} has neither pip nor venv: apt-get install python3-venv")
    return [str(scratch / "pip" / "bin" / "python"), "-m", "pip", *options]


def _run(command: list[str], *, env: dict[str, str] | None = None) -> None:
    ran = subprocess.run(
        command, env=env or dict(os.environ), capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise CannotBuild(f"pip {command[5]} failed:\n{(ran.stderr or ran.stdout)[-2000:]}")


# ------------------------------------------------------------------ the tree


def make(tree: Path, wheels: Path, *, target: Target, extras: str = EXTRAS) -> None:
    """Lay the venv out in `tree`, to be found at /opt/glassd."""
    site = tree / target.site
    site.mkdir(parents=True)
    what = f"glassd{with_extras(extras)}=={our_version(wheels)}"
    with tempfile.TemporaryDirectory(prefix="glassd-pip-") as scratch:
        pip = _pip(target.version, Path(scratch))
        _run(
            [
                *pip,
                "install",
                "--quiet",
                "--no-index",
                "--find-links",
                str(wheels),
                *_for(target),
                "--no-compile",
                "--no-warn-conflicts",
                "--root-user-action=ignore",
                "--target",
                str(site),
                what,
            ]
        )
    shutil.rmtree(
        site / "bin", ignore_errors=True
    )  # other packages' commands are nobody's business
    remove_unused(site)
    (tree / "bin").mkdir()
    (tree / "bin" / "python3").symlink_to(target.python)
    (tree / "bin" / "python").symlink_to("python3")
    command = tree / "bin" / "glassd"
    command.write_text(
        f"#!{OPT}/bin/python3\nimport sys\n\nfrom edge.cli import main\n\nsys.exit(main())\n",
        encoding="ascii",
    )
    command.chmod(0o755)
    home = target.python.rpartition("/")[0]
    config = (
        f"home = {home}\ninclude-system-site-packages = false\nversion = "
        f"{target.version}\nexecutable = {target.python}\n"
    )
    (tree / "pyvenv.cfg").write_text(config, encoding="ascii")


def remove_unused(site: Path) -> None:
    for name in _UNUSED:
        path = site / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def compile_all(tree: Path, *, target: Target) -> bool:
    """Compile to bytecode that names the paths of the target machine; False when no Python of
    that version is here.
    """
    try:
        python = find_python(target.version)
    except CannotBuild:
        return False
    options = [
        "-q",
        "-j",
        "0",
        "-s",
        str(tree / "lib"),
        "-p",
        f"{OPT}/lib",
        "--invalidation-mode",
        "unchecked-hash",
    ]
    subprocess.run(
        [python, "-I", "-m", "compileall", *options, tree / "lib"], capture_output=True, check=False
    )
    return True


def python_version_in(path: str) -> str | None:
    """Read 3.13 from /usr/bin/python3.13."""
    found = re.fullmatch(r".*/python(3\.\d+)", path)
    return found[1] if found else None
