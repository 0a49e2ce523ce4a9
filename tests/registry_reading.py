"""Reads registries in this process, for daemons of tests that are not about how they are read.

A child needs a third of a second for its imports, and nearly every test with a daemon would start
one. The child itself is tested in `unit/tools_cache/test_reader.py`; each daemon that runs as a
process of its own has it as well.
"""

from msgspec.structs import replace

from tools_cache.registry.reader_process import RegistryDocument, document, uncompilable


async def read_here(
    body: bytes,
    *,
    kind: str,
    per_tool_hardware: bool = False,
    known_sha256: str = "",
    limit_s: float = 0.0,
) -> RegistryDocument:
    """Return what `tools_cache.registry.reader.read` returns. Raise `BadManifest`."""
    found = document(body, kind=kind, per_tool_hardware=per_tool_hardware)
    refused = found.refused
    if refused is None:
        tools = [tool for app in found.registry.apps for tool in app.tools]
        new = found.registry.sha256 != known_sha256
        refused = uncompilable({t.name: t.input_schema for t in tools}) if new else {}
    return replace(found, body=found.body or body, refused=refused)
