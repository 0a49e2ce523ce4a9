"""What a guest is made of, built once and kept: Debian with BlueZ, frozen after its boot, and the
disk with our code on it.

Knows packages, files and the cache; a running guest is machine.py's.
"""

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
REPO = HERE.parents[1]
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}
NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "depmod": "kmod",
    "xz": "xz-utils",
    "zstd": "zstd",
}
"""Program → the Debian package it is in."""
PAYLOAD_MIB = 512
"""Size of the second disk; always the same, because the frozen machine knows it."""
BUILD_S = 1200


class NoMachine(Exception):
    """No guest can be had here; the message says why, and what would help. `by_nature`: this
    computer cannot, nothing broke.
    """

    def __init__(self, why: str, *, by_nature: bool = False) -> None:
        super().__init__(why)
        self.by_nature = by_nature


@dataclass(frozen=True)
class Image:
    """One suite's guest, as files in `folder`."""

    suite: str
    folder: Path

    @property
    def python(self) -> str:
        return PYTHONS[self.suite]


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "glassd" / "vm"


def image(suite: str) -> Image:
    """Give the image of `suite`, built now when this recipe was never built. Raises `NoMachine`."""
    _tools()
    key = _hash((HERE / name).read_bytes() for name in ("image.sh", "door.py"))
    wanted = Image(suite, cache() / f"{suite}-{key}")
    with _locked(f"{suite}.lock"):
        if not (wanted.folder / "root.img").exists():
            log.warning("building the %s guest, once: about two minutes", suite)
            for old in cache().glob(f"{suite}-*"):
                shutil.rmtree(old)
            _run(
                ["bash", str(HERE / "image.sh"), suite, str(wanted.folder)],
                f"building the {suite} image",
            )
    return wanted


def payload(of: Image) -> Path:
    """Give the disk with this checkout installed for that image's Python, and the agent; made
    when the checkout changed.
    """
    key = _hash(
        [
            of.folder.name.encode(),
            *(name.encode() + (REPO / name).read_bytes() for name in _tracked()),
        ]
    )
    disk = cache() / f"payload-{of.suite}-{key}.img"
    with _locked(f"payload-{of.suite}.lock"):
        if not disk.exists():
            log.warning("installing glassd for the %s guest", of.suite)
            for old in cache().glob(f"payload-{of.suite}-*"):
                old.unlink()
            with tempfile.TemporaryDirectory(dir=of.folder / "root" / "tmp") as inside:
                place = Path(inside)
                _install(of, place / "tree")
                for ours in ("agent.py", "bridge.py"):
                    shutil.copy(HERE / ours, place)
                place.chmod(0o755)
                fresh = _empty(disk.with_suffix(".part"))
                _run(
                    [
                        "mke2fs",
                        "-q",
                        "-F",
                        "-t",
                        "ext4",
                        "-m",
                        "0",
                        "-O",
                        "^has_journal,^metadata_csum",
                        "-d",
                        inside,
                        str(fresh),
                    ],
                    "the payload",
                )
                fresh.rename(disk)
    return disk


def blank(into: Path) -> Path:
    """An empty disk of the payload's size, for the boot that is frozen."""
    return _empty(into / "payload.img")


def _empty(disk: Path) -> Path:
    disk.touch()
    os.truncate(disk, PAYLOAD_MIB << 20)
    return disk


# ------------------------------------------------------------------ parts


def _tracked() -> list[str]:
    """Every file an installation is made of, and what runs in the guest beside it."""
    parts = (
        "edge",
        "firmware_bridge",
        "tools_cache",
        "systemd",
        "pyproject.toml",
        "constraints.txt",
        "tests/vm",
    )
    listed = subprocess.run(
        [
            "git",
            "-C",
            str(REPO),
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            *parts,
        ],
        capture_output=True,
        check=True,
    )
    return sorted(
        name for name in listed.stdout.decode().split("\0") if name and (REPO / name).is_file()
    )


def _install(of: Image, tree: Path) -> None:
    """`make install` into a folder, for the guest's Python; byte-compiled by that Python, which
    runs here in the image's tree.
    """
    _run(
        [
            sys.executable,
            "-B",
            str(REPO / "systemd/packaging/install.py"),
            "install",
            "--destdir",
            str(tree),
            "--python",
            f"/usr/bin/python{of.python}",
            "--extras",
            "metrics",
        ],
        "make install",
    )
    root = of.folder / "root"
    inside = f"/{(tree / 'opt').relative_to(root)}"
    _run(
        [
            "chroot",
            str(root),
            "python3",
            "-m",
            "compileall",
            "-q",
            "-f",
            "--invalidation-mode",
            "unchecked-hash",
            inside,
        ],
        "compiling",
    )


def _tools() -> None:
    """Have every program that is needed; install what is missing where we may."""
    if os.uname().machine != "x86_64":
        raise NoMachine(
            f"the guest is x86_64, this machine is {os.uname().machine}", by_nature=True
        )
    missing = sorted(package for program, package in NEEDED.items() if not _there(program))
    if missing and (os.geteuid() != 0 or not shutil.which("apt-get")):
        raise NoMachine(
            f"missing here, and only root may install them: {' '.join(missing)}", by_nature=True
        )
    if missing:
        log.warning("installing %s", " ".join(missing))
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        _run(["apt-get", "update", "-qq"], "apt-get update", env=quiet)
        _run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing],
            "installing the machine's parts",
            env=quiet,
        )
    if os.geteuid() != 0:
        raise NoMachine(
            "building a guest needs root (chroot, and files that belong to others)", by_nature=True
        )


def _there(program: str) -> bool:
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None


def _run(argv: list[str], doing: str, env: dict[str, str] | None = None) -> None:
    """Run a step of the build; its own words end up in the error."""
    path = {**(env or os.environ), "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    ran = subprocess.run(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=BUILD_S,
        env=path,
        check=False,
    )
    if ran.returncode != 0:
        raise NoMachine(f"{doing} failed ({ran.returncode}):\n{ran.stdout[-2000:]}")


def _hash(parts: Iterator[bytes] | list[bytes]) -> str:
    sum_ = hashlib.sha256()
    for part in parts:
        sum_.update(len(part).to_bytes(8, "big") + part)
    return sum_.hexdigest()[:12]


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    """Let one process build at a time."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
