"""The Inspector's command line, asked one thing at a time; its JSON, or why there is none.

It knows nothing of glassd but its command: `glassd` is a program on the PATH, as an agent finds it.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.node import ROOT, Node

ASKED_S = 90


@dataclass(frozen=True, slots=True)
class Inspector:
    """`home` is a folder of its own: HOME, a PATH on which `glassd` is this checkout's, and
    where its socket lies.
    """

    node: Node
    home: Path

    @classmethod
    def at(cls, home: Path) -> "Inspector":
        (home / "bin").mkdir()
        command = home / "bin" / "glassd"
        run = (
            f'XDG_RUNTIME_DIR="{home}" PYTHONPATH="{ROOT}" exec "{sys.executable}" -m edge.cli "$@"'
        )
        command.write_text(f"#!/bin/sh\n{run}\n")
        command.chmod(0o755)
        return cls(Node.ready(), home)

    def ask(self, *words: str) -> dict[str, Any]:
        """Ask once. Raises AssertionError with all that was said when it fails."""
        env = {
            **os.environ,
            "HOME": str(self.home),
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
            "MCP_INSPECTOR_SECRET_STORE": "memory",
        }
        done = subprocess.run(
            self.node.inspector(*words, "--format", "json"),
            cwd=self.home,
            env=env,
            capture_output=True,
            text=True,
            timeout=ASKED_S,
            check=False,
        )
        assert done.returncode == 0, (
            f"exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        )
        return dict(json.loads(done.stdout)["result"])
