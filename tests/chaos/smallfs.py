"""A file system of its own for the daemon's state, small enough to be filled: a loop image where
allowed, else a tmpfs.

Mounted in a private mount namespace (`enter`), so that it vanishes with the last process in it,
however that ends.
"""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

SIZE_MIB = 48
_INSIDE = "GLASSD_CHAOS_NAMESPACE"


def enter() -> str:
    """Start this very program again inside a mount namespace. Returns, with the reason, only
    where that is not allowed.
    """
    if os.environ.get(_INSIDE):
        return ""
    ways = (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"])
    for way in ways:
        with suppress(OSError):
            if subprocess.run([*way, "true"], capture_output=True, check=False).returncode == 0:
                os.environ[_INSIDE] = "1"
                sys.stdout.flush()
                os.execvp("unshare", [*way, sys.executable, "-m", "tests.chaos", *sys.argv[1:]])
    return "this machine lets us make no mount namespace (root, or user namespaces)"


def mount(folder: Path, *, size_mib: int = SIZE_MIB) -> str:
    """Mount a small file system on `folder`; says which kind, or "" when none can be."""
    folder.mkdir(parents=True, exist_ok=True)
    if not os.environ.get(_INSIDE):
        return ""
    image = folder.with_name(folder.name + ".img")
    with image.open("wb") as file:
        file.truncate(size_mib << 20)
    made = _done("mkfs.ext4", "-q", "-m", "0", "-J", "size=4", str(image)) and _done(
        "mount", "-o", "loop", str(image), str(folder)
    )
    if made:
        return f"ext4 on a loop image, {size_mib} MiB"
    image.unlink()
    return (
        f"tmpfs, {size_mib} MiB"
        if _done("mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "none", str(folder))
        else ""
    )


def _done(*argv: str) -> bool:
    with suppress(OSError):
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0
    return False


def fill(folder: Path, lasts_s: float, *, greedy: bool) -> None:
    """Take every byte that is free, for a while; `greedy` takes again what is given back
    meanwhile.
    """
    filler = folder / "filler"
    end = time.monotonic() + lasts_s
    try:
        with filler.open("ab", buffering=0) as file:
            while True:
                for size in (65536, 512):
                    with suppress(OSError):
                        while file.write(bytes(size)):
                            pass
                time.sleep(0.02 if greedy else lasts_s)
                if time.monotonic() >= end:
                    return
    finally:
        filler.unlink(missing_ok=True)
