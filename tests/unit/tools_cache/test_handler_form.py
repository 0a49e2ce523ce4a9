"""The forms a handler may have, told from its text alone. Each rule is said the same way again when
it is loaded (`tests/unit/tools/test_tool_classes.py` runs the very same handlers).
"""

import ast
import json
import runpy
import subprocess
import sys

import pytest

from tests.unit.tools_cache.handlers import BAD, GOOD, STORE
from tests.unit.tools_cache.test_compiler import failures, write
from tools_cache.api.tool import Source
from tools_cache.builder import compiler, config_form, handler_form
from tools_cache.registry import manifest


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.requirement("S4-14", "S4-26")
def test_a_function_or_a_class_compiles(tmp_path, name):
    report = compiler.compile_tools(write(tmp_path, handler=GOOD[name]))
    assert report.failures == ()


@pytest.mark.parametrize("name", BAD)
@pytest.mark.requirement("S4-01", "S4-14", "S4-26")
def test_what_cannot_be_run_is_refused_when_it_is_built(tmp_path, name):
    handler, says, _ = BAD[name]
    assert says in failures(write(tmp_path, handler=handler))


def test_what_a_class_asks_for_is_read_without_importing_it(tmp_path):
    mark = tmp_path / "imported"
    form, wrong = handler_form.read("demo_do", ast.parse(f"open({str(mark)!r}, 'w')\n" + STORE))
    assert (form.tool_class, dict(form.asks), wrong) == (
        "Keep",
        {"db": "Database", "words": "Logger"},
        [],
    )
    assert not mark.exists()


CONFIG = """
from pydantic import BaseModel, Field

class Config(BaseModel):
    enabled: bool = True
    folder: str = Field("", description="Where they are.")
    most: int = Field(default=5, ge=1)
"""


@pytest.mark.requirement("S4-13")
def test_a_config_is_read_without_importing_it():
    settings, wrong = config_form.read(CONFIG)
    assert wrong == []
    assert [(s.name, s.type, s.default, s.description) for s in settings] == [
        ("enabled", "bool", "True", ""),
        ("folder", "str", "''", "Where they are."),
        ("most", "int", "5", ""),
    ]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (
            CONFIG.replace("    enabled: bool = True\n", ""),
            "config.py: Config has no enabled: bool",
        ),
        (CONFIG.replace("enabled: bool", "enabled: str"), "config.py: Config has no enabled: bool"),
        (
            CONFIG.replace("class Config(", "class Settings("),
            "config.py: has no class Config(BaseModel)",
        ),
        (CONFIG.replace("(BaseModel)", ""), "config.py: has no class Config(BaseModel)"),
        (CONFIG.replace("default=5, ", ""), "config.py: most has no default"),
        (CONFIG + "    name: str\n", "config.py: name has no default"),
        ("class", "config.py: is not Python"),
    ],
)
@pytest.mark.requirement("S4-13")
def test_a_config_that_cannot_serve_is_refused_when_it_is_built(tmp_path, config, says):
    (write(tmp_path) / "demo_do" / "config.py").write_text(config)
    assert says in failures(tmp_path)


@pytest.mark.requirement("I15-configured")
def test_a_tool_may_need_settings_if_its_schema_says_so(tmp_path):
    tools = write(tmp_path, availableWhen={"configured": True})
    assert "availableWhen: configured, but config.py has no setting" in failures(tools)
    (tools / "demo_do" / "config.py").write_text(CONFIG + "    url: str\n")
    report = compiler.compile_tools(tools)
    assert report.failures == ()
    notes = json.loads(report.text)["apps"][0]["tools"][0]["_meta"]["io.glassd/build"]
    assert (notes["needs"], "offAtFirst" in notes) == (["url"], False)


def test_tools_of_a_package_may_share_one_config(tmp_path):
    text = "from tools_cache.everyday.contact_book import Config as Config\n"
    assert config_form.read(text)[1][0].text == "has no class Config(BaseModel)"
    text = "from tools_cache.everyday.nowhere import Config as Config\n"
    assert "is not Python" in config_form.read(text)[1][0].text


BASE = """
from pydantic import BaseModel
from elsewhere import Mixin

class Place(BaseModel):
    enabled: bool = False
    most: int = 5

class Lamp(BaseModel):
    lamp: str = ""

class Config(Place, Mixin, Lamp):
    folder: str = "here"
    most: int = 6
"""


def test_settings_of_base_classes_come_first_and_can_be_replaced():
    settings, wrong = config_form.read(BASE)
    assert wrong == []
    assert [(s.name, s.default) for s in settings] == [
        ("lamp", "''"),
        ("enabled", "False"),
        ("most", "6"),
        ("folder", "'here'"),
    ]


@pytest.mark.parametrize(
    "config",
    [
        "class Config(Config):\n    enabled: bool = True",
        "class A(B): pass\nclass B(A): pass\nclass Config(A):\n    enabled: bool = True",
        "from elsewhere import Base\nclass Config(Base):\n    enabled: bool = True",
    ],
)
def test_a_config_whose_base_is_no_model_is_refused(config):
    assert config_form.read(config)[1][0].text == "has no class Config(BaseModel)"


@pytest.mark.parametrize(
    "path", sorted(compiler.TOOLS.glob("*/config.py")), ids=lambda path: path.parent.name
)
def test_the_settings_of_shipped_tools_are_read_as_pydantic_has_them(path):
    config = runpy.run_path(str(path))["Config"]
    read = [(s.name, s.default is None) for s in config_form.read(path.read_text())[0]]
    assert read == [(name, field.is_required()) for name, field in config.model_fields.items()]


def test_a_config_that_changes_makes_a_new_version_of_the_registry(tmp_path):
    tools = write(tmp_path)
    versions = [compiler.compile_tools(tools).version]
    for config in (CONFIG, CONFIG.replace("5", "6")):
        (tools / "demo_do" / "config.py").write_text(config)
        versions.append(compiler.compile_tools(tools).version)
    assert len(set(versions)) == 3


@pytest.mark.requirement("S4-01")
def test_a_tool_without_run_cannot_be_made():
    from tools_cache.api.base import Tool

    class Half(Tool):
        pass

    with pytest.raises(TypeError, match="run"):
        Half()


def test_neither_words_nor_base_bring_a_heavy_library():
    code = (
        "import sys, tools_cache.api.base, tools_cache.builder.handler_form, "
        "tools_cache.builder.config_form; print({m.partition('.')[0] for m in sys.modules} & "
        "{'pydantic', 'sqlite3', 'cryptography', 'asyncio'})"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert ran.stdout.strip() == "set()"


@pytest.mark.requirement("S4-02")
def test_parameters_refuse_what_they_do_not_know(tmp_path):
    assert "additionalProperties: must be exactly false" in failures(
        write(tmp_path, parameters={"type": "object"})
    )
    shipped = [
        t.input_schema
        for app in manifest.load(compiler.compile_tools().text.encode(), source=Source.LOCAL).apps
        for t in app.tools
    ]
    assert shipped
    assert all(s["additionalProperties"] is False for s in shipped)


@pytest.mark.requirement("S0-07", "S0-08")
def test_a_local_tool_with_a_colon_in_its_name_is_refused(
    tmp_path,
):
    write(tmp_path, "demo_a_b", toolId="demo_a_b", name="demo:a:b")
    write(tmp_path)
    assert (
        failures(tmp_path) == 'demo_a_b/schema.json: name: Tool name cannot contain ":". Got: a:b'
    )
