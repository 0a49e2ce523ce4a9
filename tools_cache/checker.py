"""Compile foreign schemas in a child process: (name → why it does not compile).

The daemon neither pays the validator's memory for a registry nobody calls, nor dies of a schema that breaks it.
Run as `python -m tools_cache.checker` it is that child: JSON on stdin, JSON on stdout.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Final

from tools_cache.errors import BadDefinition
from tools_cache.schema import check_schema
from tools_cache.tool import Json

LIMIT_S: Final = 30.0
"""1,000 schemas compile in 0.04 s on a PC; a Raspberry Pi also starts an interpreter."""
MAX_ANSWER: Final = 4 * 1024 * 1024


class CheckerFailed(Exception):
    """The child did not answer; nothing is known of the schemas."""


async def unusable(schemas: Mapping[str, Json], *, limit_s: float = LIMIT_S) -> dict[str, str]:
    """Name the schemas that do not compile, and why. Raises `CheckerFailed`."""
    if not schemas:
        return {}
    question = json.dumps(dict(schemas)).encode()
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tools_cache.checker", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL)  # fmt: skip
    try:
        async with asyncio.timeout(limit_s):
            answer, _ = await child.communicate(question)
    except TimeoutError:
        raise CheckerFailed(f"no answer in {limit_s:.0f} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return _answer(answer, child.returncode)


def _answer(answer: bytes, code: int | None) -> dict[str, str]:
    try:
        found = json.loads(answer[:MAX_ANSWER])
    except ValueError:
        raise CheckerFailed(f"it ended with {code}") from None
    return {str(name): str(why) for name, why in found.items()}


def check_all(schemas: Mapping[str, Json]) -> dict[str, str]:
    """Compile each; gives (name → why not)."""
    found = {}
    for name, schema in schemas.items():
        try:
            check_schema(schema)
        except BadDefinition as e:
            found[name] = str(e)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(check_all(json.load(sys.stdin))))
