"""The tools of this repository as the build compiles them: once for all tests of a worker."""

import functools

from tools_cache.builder import compiler


@functools.cache
def shipped() -> str:
    """Return the text of the registry."""
    return compiler.compile_tools().text
