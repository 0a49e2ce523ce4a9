"""`make deb`: one Debian package a suite, for a venv serves one version of Python only. Plain
dpkg-deb, no debhelper.

The same commit gives the same bytes. It installs nothing, here or elsewhere (`make
deb-test` does).
"""

import argparse
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from places import OPT, ROOT, Layout, files
from venv_tree import CannotBuild, Target, collect, compile_all, make, our_version, this_arch

SCRIPTS: Final = Path(__file__).resolve().parent / "debian"
DOC: Final = "/usr/share/doc/glassd"


@dataclass(frozen=True, slots=True)
class Suite:
    """One Debian release: its number sorts versions over releases, its Python decides what is
    inside.
    """

    name: str
    number: int
    python: str
    next_python: str


SUITES: Final = (Suite("bookworm", 12, "3.11", "3.12"), Suite("trixie", 13, "3.13", "3.14"))


def build(suite: Suite, arch: str, *, out: Path, wheels: Path | None, epoch: int) -> Path:
    """Build one package into `out`; gives its path. Raises `CannotBuild`."""
    target = Target(f"/usr/bin/python{suite.python}", suite.python, arch)
    with tempfile.TemporaryDirectory(prefix="glassd-deb-") as scratch:
        root, fetched = Path(scratch) / "root", Path(scratch) / "wheels"
        if wheels is None:
            collect(fetched, target=target)
        make(root / OPT[1:], wheels or fetched, target=target)
        compile_all(root / OPT[1:], target=target)
        upstream = our_version(wheels or fetched)
        version = f"{upstream}-1~deb{suite.number}u1"
        _lay_out(root, suite, version=version, epoch=epoch)
        _control(root, suite, version=version, arch=arch)
        out.mkdir(parents=True, exist_ok=True)
        package = out / f"glassd_{version}_{arch}.deb"
        _same_times(root, epoch)
        # zstd: 150 MiB of libraries take seconds, where xz takes minutes, also to unpack on a Pi;
        # both suites read it.
        command = [
            "dpkg-deb",
            "--root-owner-group",
            "-Zzstd",
            "-z10",
            "--build",
            str(root),
            str(package),
        ]
        ran = subprocess.run(
            command,
            env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise CannotBuild(f"dpkg-deb failed:\n{ran.stderr}")
    return package


def _lay_out(root: Path, suite: Suite, *, version: str, epoch: int) -> None:
    layout = Layout("/usr")
    for path, content in files(layout).items():
        packed = "/man/" in path
        _put(root, path + ".gz" if packed else path, _gz(content) if packed else content)
    command = root / layout.command[1:]
    command.parent.mkdir(parents=True, exist_ok=True)
    command.symlink_to(f"{OPT}/bin/glassd")
    _put(root, f"{DOC}/copyright", _copyright(root).encode())
    _put(root, f"{DOC}/changelog.Debian.gz", _gz(_changelog(suite, version, epoch).encode()))
    _put(root, "/usr/share/lintian/overrides/glassd", (SCRIPTS / "lintian-overrides").read_bytes())


def _put(root: Path, path: str, content: bytes) -> None:
    where = root / path[1:]
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_bytes(content)
    where.chmod(0o644)


def _gz(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def _changelog(suite: Suite, version: str, epoch: int) -> str:
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch))
    return (
        f"glassd ({version}) {suite.name}; urgency=medium\n\n  * What changed "
        "is in CHANGELOG.md of the sources.\n\n"
        f" -- The glassd project <glassd@localhost>  {date}\n"
    )


def _copyright(root: Path) -> str:
    """Our licence, and that of every library in the venv; each one's own text lies in its
    .dist-info folder.
    """
    lines = (SCRIPTS / "copyright").read_text(encoding="utf-8").rstrip("\n").splitlines()
    for name, version, licence in sorted(_bundled(root)):
        lines.append(f" {name} {version}: {licence}")
    return "\n".join(lines) + "\n"


def _bundled(root: Path) -> Iterator[tuple[str, str, str]]:
    for metadata in root.glob(f"{OPT[1:]}/lib/*/site-packages/*.dist-info/METADATA"):
        head = HeaderParser().parsestr(metadata.read_text(encoding="utf-8"))
        said = (
            head["License-Expression"]
            or (head["License"] or "").splitlines()[:1]
            or head.get_all("Classifier", [])
        )
        licence = (
            said
            if isinstance(said, str)
            else "; ".join(s.rpartition(" :: ")[2] for s in said if "::" not in s or "License" in s)
        )
        yield head["Name"], head["Version"], licence or "see its .dist-info"


# ------------------------------------------------------------------ dpkg's own files


def _control(root: Path, suite: Suite, *, version: str, arch: str) -> None:
    control = root / "DEBIAN"
    control.mkdir()
    size = sum(p.lstat().st_size for p in root.rglob("*") if not p.is_dir()) // 1024
    text = (
        (SCRIPTS / "control.in")
        .read_text(encoding="utf-8")
        .format(
            version=version,
            arch=arch,
            size=size,
            python=suite.python,
            next_python=suite.next_python,
        )
    )
    _put(root, "/DEBIAN/control", text.encode())
    sums = [
        (_md5(p), p.relative_to(root))
        for p in sorted(root.rglob("*"))
        if p.is_file() and not p.is_symlink() and control not in p.parents
    ]
    _put(root, "/DEBIAN/md5sums", "".join(f"{digest}  {path}\n" for digest, path in sums).encode())
    for script in ("preinst", "postinst", "prerm", "postrm"):
        _put(root, f"/DEBIAN/{script}", (SCRIPTS / script).read_bytes())
        (control / script).chmod(0o755)


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()


def _same_times(root: Path, epoch: int) -> None:
    for path in (*root.rglob("*"), root):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def _epoch() -> int:
    """When this commit was made: the only time a package knows."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given.isdecimal():
        return int(given)
    ran = subprocess.run(
        ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"],
        capture_output=True,
        text=True,
        check=False,
    )
    return int(ran.stdout) if ran.stdout.strip().isdecimal() else 1577836800


# ------------------------------------------------------------------ the command line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help="bookworm, trixie (default: all)"
    )
    parser.add_argument("--arch", default="", help="amd64 or arm64 (default: this machine's)")
    parser.add_argument("--out", default="dist")
    parser.add_argument("--wheels", default="", help="a folder of wheels: no network is needed")
    args = parser.parse_args()
    if unknown := sorted(set(args.suites) - {s.name for s in SUITES}):
        parser.error(
            f"{', '.join(unknown)}: no package is made for it; "
            f"there are {', '.join(s.name for s in SUITES)}"
        )
    os.umask(0o022)
    failed = False
    for suite in (s for s in SUITES if not args.suites or s.name in args.suites):
        try:
            wheels = Path(args.wheels) if args.wheels else None
            package = build(
                suite, args.arch or this_arch(), out=Path(args.out), wheels=wheels, epoch=_epoch()
            )
        except (CannotBuild, OSError) as e:
            failed = True
            print(f"NOT BUILT for {suite.name}: {e}", file=sys.stderr)
        else:
            print(f"{package}  {package.stat().st_size / 2**20:.1f} MiB", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
