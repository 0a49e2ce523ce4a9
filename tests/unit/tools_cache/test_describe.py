"""A tool told to a person: from the texts of its folder, none of which is run."""

import pytest

from tests.unit.tools_cache.handlers import STORE
from tests.unit.tools_cache.test_compiler import write
from tests.unit.tools_cache.test_handler_form import CONFIG
from tools_cache.api.tool import Source
from tools_cache.builder import compiler, describe
from tools_cache.registry import manifest

PARAMETERS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "description": "What to keep."},
        "most": {"type": ["integer", "null"], "default": 5},
        "n": {"type": "number"},
    },
}


def built(tools):
    report = compiler.compile_tools(tools)
    assert report.failures == ()
    return {
        t.name: t
        for app in manifest.load(report.text.encode(), source=Source.LOCAL).apps
        for t in app.tools
    }


@pytest.mark.requirement("S4-10")
def test_a_description_tells_parameters_settings_and_what_is_asked_for(tmp_path):
    mark = tmp_path / "imported"
    run_it = f"open({str(mark)!r}, 'w')\n"
    tools = write(
        tmp_path / "tools", parameters=PARAMETERS, handler=run_it + STORE, dependsOn=["demo:other"]
    )
    write(tools, "demo_other", toolId="demo_other", name="demo:other")
    (tools / "demo_do" / "config.py").write_text(run_it + CONFIG)
    tool = built(tools)["demo:do"]
    assert (
        describe.text(tool, describe.read(tool, tools))
        == """\
demo:do: Does it.
parameters
  text  string, required  What to keep.
  most  integer|null = 5
  n     number, optional
settings [tool.demo.do]
  enabled  bool = True
  folder   str = ''     Where they are.
  most     int = 5
asks for
  db     Database
  words  Logger
depends on demo:other"""
    )
    assert not mark.exists()
    data = describe.data(tool, describe.read(tool, tools))
    assert (data["form"], data["asks"], data["dependsOn"]) == (
        "class",
        {"db": "Database", "words": "Logger"},
        ["demo:other"],
    )
    assert data["settings"][1] == {
        "name": "folder",
        "type": "str",
        "default": "''",
        "description": "Where they are.",
    }


@pytest.mark.requirement("S4-09", "S4-10")
def test_a_plain_function_depends_on_nothing_and_can_be_switched_off(tmp_path):
    tool = built(write(tmp_path))["demo:do"]
    assert tool.depends_on == ()
    assert (
        describe.text(tool, describe.read(tool, tmp_path))
        == "demo:do: Does it.\nsettings [tool.demo.do]\n  enabled  bool = True"
    )
    assert describe.data(tool, describe.read(tool, tmp_path))["form"] == "function"


def test_a_missing_or_broken_folder_is_described_as_far_as_possible(tmp_path):
    tool = built(write(tmp_path))["demo:do"]
    (tmp_path / "demo_do" / "handler.py").write_text("class")
    (tmp_path / "demo_do" / "config.py").write_bytes(b"\xff")
    assert describe.read(tool, tmp_path) == describe.Written()
    assert describe.read(tool, tmp_path / "nowhere") == describe.Written()
