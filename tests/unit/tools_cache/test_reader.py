"""A fetched registry is read in a child: the same as here, and whatever it does to the child is
survived.
"""

import json
import logging
import subprocess
import sys

import pytest

from tools_cache.errors import BadManifest
from tools_cache.frozen import Packed
from tools_cache.registry import manifest, reader
from tools_cache.registry.reader import ReaderFailed, read
from tools_cache.registry.reader_process import document, uncompilable

pytestmark = pytest.mark.enable_socket

SCHEMAS = {
    "a:good": {"type": "object"},
    "a:bad": {"type": "object", "properties": {"x": {"type": "strin"}}},
    "a:bomb": {"type": "object", "anyOf": [{}] * 3000},
}


def body(schemas=SCHEMAS, **tool):
    tools = [
        {"name": name.partition(":")[2], "description": "", "inputSchema": schema, **tool}
        for name, schema in schemas.items()
    ]
    apps = [
        {
            "packageName": "a",
            "name": "A",
            "hardwareRequirements": [{"type": "CAMERA"}],
            "tools": tools,
        }
    ]
    return json.dumps({"version": "1", "sha256": manifest.digest(apps), "apps": apps}).encode()


def test_only_what_does_not_compile_is_named():
    assert sorted(uncompilable(SCHEMAS)) == ["a:bad", "a:bomb"]


async def test_a_child_reads_what_we_would_read_here():
    found = await read(body(), kind="registry")
    here = document(body(), kind="registry")
    assert (found.body, found.registry, found.nameless) == (here.body, here.registry, here.nameless)
    assert sorted(found.refused) == ["a:bad", "a:bomb"]
    raw = found.registry.apps[0].tools[0].raw
    assert isinstance(raw, Packed)
    with pytest.raises(TypeError, match="read-only"):
        raw["name"] = "other"


async def test_a_tool_list_becomes_a_document_there_too():
    tools = [
        {"name": "a:x", "description": "", "inputSchema": {"type": "object"}},
        {"name": "nameless"},
    ]
    found = await read(json.dumps({"tools": tools}).encode(), kind="tools")
    assert [tool.name for app in found.registry.apps for tool in app.tools] == ["a:x"]
    assert [dropped.name for dropped in found.nameless] == ["nameless"]


async def test_what_we_have_already_is_not_compiled_again():
    known = document(body(), kind="registry").registry.sha256
    assert (await read(body(), kind="registry", known_sha256=known)).refused == {}


async def test_a_bad_document_is_refused_in_the_same_words():
    with pytest.raises(BadManifest) as here:
        document(b"{}", kind="registry")
    with pytest.raises(BadManifest) as there:
        await read(b"{}", kind="registry")
    assert str(there.value) == str(here.value)


async def test_what_is_said_in_the_child_is_said_here(caplog):
    with caplog.at_level(logging.WARNING):
        await read(body({"a:x": {"type": "object"}}, category="nonsense"), kind="registry")
    assert any("category 'nonsense' is unknown" in line for line in caplog.messages)


async def test_a_child_that_dies_is_an_error(monkeypatch):
    monkeypatch.setattr(reader.subprocess_call.sys, "executable", "/bin/false")
    with pytest.raises(ReaderFailed, match="ended with"):
        await read(body(), kind="registry")


async def test_a_child_that_crashes_on_the_schemas_loses_only_their_check(monkeypatch, caplog):
    monkeypatch.setattr(
        reader,
        "_CHILD",
        reader._CHILD.replace(
            "reader_process.main",
            "reader_process.uncompilable = lambda _: __import__('os')._exit(9); "
            "reader_process.main",
        ),
    )
    found = await read(body(), kind="registry")
    assert found.refused is None
    assert len(found.registry.apps[0].tools) == 3
    assert "not checked before their first call" in caplog.text


async def test_a_child_that_hangs_is_ended(monkeypatch, tmp_path):
    slow = tmp_path / "slow"
    slow.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    slow.chmod(0o755)
    monkeypatch.setattr(reader.subprocess_call.sys, "executable", str(slow))
    with pytest.raises(ReaderFailed, match="no answer"):
        await read(body(), kind="registry", limit_s=0.1)


def test_the_child_loads_no_event_loop():
    code = (
        "import sys; from tools_cache.registry import reader_process as child;"
        "child.document(sys.stdin.buffer.read(), kind='registry');"
        "child.uncompilable({'a:b': {}}); sys.exit('asyncio' in sys.modules)"
    )
    subprocess.run([sys.executable, "-P", "-c", code], input=body(), timeout=60, check=True)


async def test_without_a_child_it_is_read_here(monkeypatch):
    monkeypatch.setattr(reader.subprocess_call.sys, "executable", "/nonexistent/python")
    assert (await read(body(), kind="registry")).registry == document(
        body(), kind="registry"
    ).registry


def test_reading_takes_no_memory_of_the_daemon():
    code = (
        "import asyncio, sys; from tools_cache.registry import reader;"
        f"asyncio.run(reader.read({body()!r}, kind='registry'));"
        "sys.exit('pydantic' in sys.modules or 'jsonschema_rs' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
