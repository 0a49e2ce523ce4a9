"""Reads the settings again while the daemon runs, in a child process, so that pydantic and its
13 MiB stay out of this process.

The child runs `main`: the file's name is an argument, the settings are pickled to stdout.
"""

import os
import pickle
import sys
from pathlib import Path
from typing import Final

from edge.config.model import Settings
from edge.config.validators import BadSettings
from edge.runtime.library_imports import leave_out_plugins_of_pydantic
from edge.runtime.paths import Env
from tools_cache import subprocess_call

LIMIT_S: Final = 30.0
"""A Raspberry Pi with a cold disk starts an interpreter and loads pydantic in 3 s."""
_CHILD: Final = "import sys; from edge.config import reload; reload.main(*sys.argv[1:])"


async def read(config: Path | None, env: Env, *, limit_s: float = LIMIT_S) -> Settings:
    """Read the file `config`, or the first there is, with `env`. Raise `BadSettings`."""
    try:
        packed, code = await subprocess_call.ask(
            _CHILD, str(config or ""), env=dict(env), limit_s=limit_s
        )
    except TimeoutError:
        raise BadSettings(f"the configuration was not read in {limit_s:.0f} s") from None
    except OSError as e:
        problem = f"no child process: {e.strerror}"
        raise BadSettings(f"the configuration cannot be read now: {problem}") from None
    return _answer(packed, code)


def _answer(packed: bytes, code: int | None) -> Settings:
    try:
        found: Settings | str = pickle.loads(packed)  # noqa: S301 - from the child process
    except Exception:  # noqa: BLE001 - after an upgrade on disk the child may be of another version
        raise BadSettings(
            f"the configuration could not be read: the process that reads it ended with {code}"
        ) from None
    if isinstance(found, str):
        raise BadSettings(found)
    return found


def main(config: str) -> None:
    """Run as the child process."""
    leave_out_plugins_of_pydantic()
    from edge.config import load  # noqa: PLC0415 - pydantic, for the child alone

    found: Settings | str
    try:
        found = load.load(Path(config) if config else None, os.environ)
    except BadSettings as e:
        found = str(e)
    sys.stdout.buffer.write(pickle.dumps(found))
