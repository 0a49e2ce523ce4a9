"""What the stories of glasses families share; each has glasses and daemon as two processes."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edge.testing import WornGlasses


@contextmanager
def worn(folder: Path, model: str, config: str = "", tools: str = "") -> Iterator[WornGlasses]:
    """Simulated glasses, and a daemon that is ready to use them."""
    with WornGlasses(folder, model) as glasses:
        glasses.start(config, tools)
        yield glasses


def glassd(glasses: WornGlasses, *words: str) -> str:
    """Run a command against this daemon and return what it printed."""
    ran = subprocess.run(
        [sys.executable, "-m", "edge.cli", *words],
        env=glasses.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def drop_and_return(glasses: WornGlasses) -> None:
    """Lose the link, and wait until the glasses are ready again."""
    glasses.mock.do("away:1")
    state = lambda: glasses.status()["glasses"]["state"]  # noqa: E731
    glasses.wait_for(lambda: state() != "ready", what="the link to be lost")
    glasses.wait_for(lambda: state() == "ready", what="the glasses to be back", within_s=60.0)
