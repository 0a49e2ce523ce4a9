"""Node 22, the conformance suite and the Inspector, by npm into `.node/` (which git ignores), by
the versions of package.json.

It does not know what is done with them. Where npm or its registry is missing they are `Missing`,
and that is said loudly.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
WANTED: Final = Path(__file__).with_name("package.json")
INSTALL_S: Final = 600
_ARCH: Final = {"x86_64": "x64", "aarch64": "arm64"}
_QUIET: Final = (
    "--no-package-lock",
    "--no-audit",
    "--no-fund",
    "--ignore-scripts",
    "--loglevel=error",
)


class Missing(Exception):
    """What the checks need is not here; the text says what and why."""


class Node:
    """An installed set. `ready()` makes it; each method gives an argument vector."""

    def __init__(self, folder: Path) -> None:
        self._modules = folder / "node_modules"

    @classmethod
    def ready(cls, folder: Path = ROOT / ".node") -> "Node":
        """Install what is not there yet. Raises `Missing`."""
        stamp, wanted = folder / "installed.json", WANTED.read_bytes()
        if not (stamp.is_file() and stamp.read_bytes() == wanted):
            _install(folder, wanted)
            stamp.write_bytes(wanted)
        return cls(folder)

    @property
    def node(self) -> str:
        return str(
            self._modules
            / f"node-linux-{_ARCH.get(platform.machine(), platform.machine())}"
            / "bin"
            / "node"
        )

    def conformance(self, *words: str) -> list[str]:
        return [
            self.node,
            str(self._modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
            *words,
        ]

    def requirements(self, revision: str) -> str:
        """What a revision requires, as the suite tells it."""
        return (
            self._modules
            / "@modelcontextprotocol"
            / "conformance"
            / "requirements"
            / f"{revision}.yaml"
        ).read_text(encoding="utf-8")

    def inspector(self, *words: str) -> list[str]:
        return [self.node, str(self._modules / ".bin" / "mcp-inspector"), "--cli", *words]


def _install(folder: Path, wanted: bytes) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Missing(
            "npm is not installed (on Debian: apt-get install npm; "
            "any version: it brings its own Node 22)"
        )
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_bytes(wanted)
    try:
        done = subprocess.run(
            [npm, "install", *_QUIET],
            cwd=folder,
            timeout=INSTALL_S,
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "CI": "true"},
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"npm install did not end in {INSTALL_S} s") from None
    if done.returncode:
        raise Missing(f"npm install failed: {done.stderr.strip()[-600:]}")
