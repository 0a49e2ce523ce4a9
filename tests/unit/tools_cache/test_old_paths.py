"""Tools that were written before the modules moved: their imports keep working."""

import ast
import subprocess
import sys
from importlib import import_module

import pytest

from tools_cache.api import handed, tool
from tools_cache.builder import handler_form
from tools_cache.old_paths import MOVED, OLD_NAMES


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_path_gives_the_very_module_that_moved(old, new):
    assert import_module(old) is import_module(new)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("pictures", "Pictures", handed.Pictures),
        ("pictures", "PictureContext", tool.ToolContext),
        ("sessions", "FAREWELL", tool.FAREWELL),
        ("sessions", "SessionContext", tool.ToolContext),
        ("toolbox", "Toolbox", handed.Toolbox),
        ("toolbox", "ToolboxContext", tool.ToolContext),
        ("wearer", "Wearer", handed.Wearer),
        ("wearer", "WearerContext", tool.ToolContext),
        ("calendars", "CalendarContext", tool.ToolContext),
        ("knowledge", "KnowledgeContext", tool.ToolContext),
    ],
)
def test_an_old_name_is_what_it_was(module, old, new):
    assert getattr(import_module(f"tools_cache.{module}"), old) is new


def test_every_old_name_is_one_of_these():
    assert sum(map(len, OLD_NAMES.values())) == 10


def test_an_old_path_works_in_every_form_of_import():
    code = """
import tools_cache.base
import tools_cache.tool as words
from tools_cache import handed
from tools_cache.agenda import free
from tools_cache.tool import ToolError
import tools_cache.api.base, tools_cache.api.tool
assert tools_cache.base.Tool is tools_cache.api.base.Tool
assert words.ToolError is ToolError is tools_cache.api.tool.ToolError
assert handed.__name__ == "tools_cache.api.handed"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_an_unknown_module_is_still_unknown():
    with pytest.raises(ModuleNotFoundError, match=r"tools_cache\.never"):
        import_module("tools_cache.never")


WAYS = [
    (
        "from tools_cache.base import Tool\nfrom tools_cache.handed import Database",
        "Tool",
        "Database",
    ),
    (
        "import tools_cache.base\nimport tools_cache.handed",
        "tools_cache.base.Tool",
        "tools_cache.handed.Database",
    ),
    ("from tools_cache import base, handed", "base.Tool", "handed.Database"),
    ("import tools_cache.base as b\nimport tools_cache.handed as h", "b.Tool", "h.Database"),
]


@pytest.mark.parametrize(("imports", "base", "asked"), WAYS)
def test_a_tool_class_by_its_old_imports_is_known_to_the_lint(imports, base, asked):
    code = f"""
{imports}

class Hello({base}):
    def __init__(self, db: {asked}):
        self.db = db

    async def run(self, args):
        return {{"text": "hello"}}
"""
    form, findings = handler_form.read("hello_there", ast.parse(code))
    assert (form.tool_class, dict(form.asks), findings) == ("Hello", {"db": "Database"}, [])
