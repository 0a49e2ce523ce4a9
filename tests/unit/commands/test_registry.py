"""`glassd registry`: building, checking and showing tools."""

import json

import pytest

from edge import cli
from edge.commands import options
from tests.unit.tools_cache.folders import DOC, closed, named, write
from tools_cache.builder import compiler
from tools_cache.providers.forms import PROVIDERS


@pytest.fixture
def desk(tmp_path, capsys):
    """`glassd registry …` on folders of the test: (folders, run); run returns (code, out, err)."""
    folders = tmp_path / "tools"
    folders.mkdir()

    def run(*words):
        code = cli.main(
            [
                "registry",
                words[0],
                "--file",
                str(tmp_path / "r.json"),
                "--tools",
                str(folders),
                *words[1:],
            ]
        )
        return code, *capsys.readouterr()

    return folders, run


@pytest.mark.requirement("I5-check")
def test_check_fails_until_a_changed_tool_was_built(desk):
    folders, run = desk
    write(folders)
    code, _, err = run("check")
    assert (code, "there is no such file" in err) == (1, True)
    assert run("build")[0] == 0
    assert run("check")[0] == 0
    for change in (
        {"description": "Else."},
        {"doc": DOC + "More.\n"},
        {"requiresConfirmation": "always"},
    ):
        write(folders, **change)
        code, _, err = run("check")
        assert (code, "does not match the tools\nnext:  glassd registry build" in err) == (
            1,
            True,
        )
        assert run("build")[0] == 0
        assert run("check")[0] == 0


@pytest.mark.requirement("I5-check", "I5-lint")
@pytest.mark.parametrize("action", ["build", "check"])
def test_a_lint_failure_names_folder_file_and_field(desk, action, tmp_path):
    folders, run = desk
    write(folders)
    run("build")
    before = (tmp_path / "r.json").read_text()
    named(folders, "other_one", category="magic", summary="")
    code, out, err = run(action)
    assert (code, out) == (1, "")
    assert "other_one/schema.json: Invalid category: magic" in err
    assert "other_one/doc_summary.md: is empty" in err
    code, out, err = run(action, "--json")
    error = json.loads(out)["error"]
    assert (code, err, error["code"]) == (1, "", "DOES_NOT_COMPILE")
    assert [(f["folder"], f["file"], f["field"], f["rule"]) for f in error["failures"]] == [
        ("other_one", "schema.json", "category", "category"),
        ("other_one", "doc_summary.md", "", "summary-empty"),
    ]
    assert (tmp_path / "r.json").read_text() == before


@pytest.mark.requirement("I5-withheld", "S2-30")
def test_build_prints_withheld_tools_and_losses(desk):
    folders, run = desk
    write(folders, parameters=closed(**{"a-b": {"type": "string", "minLength": 1}}))
    code, out, err = run("build")
    assert code == 0
    assert (
        "note: demo:do is withheld from gemini: /properties/a-b: Gemini takes parameter names"
        in err
    )
    assert "forms: mcp 1, openai 1, openaiStrict 1, anthropic 1, gemini 0, geminiNative 0" in out
    assert (
        "demo:do for openaiStrict: /properties/a-b: minLength is left out"
        in run("build", "--losses")[1]
    )
    report = json.loads(run("build", "--json")[1])
    assert report["losses"] == {
        "demo:do": {"openaiStrict": ["/properties/a-b: minLength is left out"]}
    }
    assert set(report["withheld"]["demo:do"]) == {"gemini", "geminiNative"}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.requirement("S2-27", "S2-28", "S2-29")
def test_show_prints_the_form_of_a_provider_for_piping(desk, provider, tmp_path):
    folders, run = desk
    write(folders, parameters=closed(n={"type": "integer", "maximum": 3}))
    run("build")
    code, out, err = run("show", "demo:do", "--provider", provider)
    form = json.loads(out)
    assert (code, (form.get("function") or form)["name"]) == (0, "demo__do")
    assert ("note: /properties/n: maximum is left out" in err) is (provider == "geminiNative")
    assert json.loads(run("show", "demo__do", "--provider", provider, "--json")[1])["form"] == form
    document = json.loads((tmp_path / "r.json").read_text())
    del document["tools"][0]["providerSchemas"][provider]
    (tmp_path / "r.json").write_text(json.dumps(document))
    code, out, err = run("show", "demo:do", "--provider", provider)
    assert (code, out) == (1, "")
    assert f"Tool demo:do missing {provider} schema" in err


@pytest.mark.requirement("S2-58", "S2-59")
def test_show_prints_all_details_of_a_tool(desk):
    folders, run = desk
    write(folders)
    run("build")
    code, out, _ = run("show", "demo:do")
    assert code == 0
    for said in (
        "encodedName           demo__do",
        "requiresConfirmation  policy",
        "summary               Does it.",
        "## Failure Modes",
    ):
        assert said in out
    known = json.loads(run("show", "demo:do", "--json")[1])
    assert (known["documentation"], known["providers"]) == (DOC, sorted(PROVIDERS))
    assert known["parameters"] == closed()
    code, _, err = run("show", "demo:none")
    assert (code, "there is no tool demo:none" in err) == (4, True)


def test_a_missing_folder_is_reported(desk):
    folders, run = desk
    folders.rmdir()
    code, _, err = run("build")
    assert (code, f"{folders}: cannot be read: No such file" in err) == (1, True)


def test_a_provider_without_a_tool_is_wrong_usage(desk):
    folders, run = desk
    write(folders)
    run("build")
    code, _, err = run("show", "--provider", "openai")
    assert (code, "--provider needs a tool" in err) == (2, True)


@pytest.mark.parametrize("mode", ["voice", "text"])
@pytest.mark.requirement("I5-agent-loop")
def test_show_prints_the_prompt_of_a_mode(desk, mode, tmp_path):
    folders, run = desk
    write(folders)
    run("build")
    code, out, _ = run("show", "--prompt", mode)
    assert (code, "**demo__do** (action): Does it." in out) == (0, True)
    assert json.loads(run("show", "--prompt", mode, "--json")[1]) == {
        "prompt": mode,
        "text": out.rstrip() + "\n",
    }


@pytest.mark.requirement("S0-64")
def test_the_whole_registry_is_exported_as_it_was_built(desk, tmp_path):
    folders, run = desk
    named(write(folders), "a_first")
    run("build")
    document = json.loads(run("show", "--json")[1])
    assert document == json.loads((tmp_path / "r.json").read_text())
    exported = [
        f"{app['packageName']}:{tool['name']}" for app in document["apps"] for tool in app["tools"]
    ]
    assert exported == ["a:first", "demo:do"] == [tool["name"] for tool in document["tools"]]


def test_the_command_line_knows_every_form():
    assert options.FORMS == PROVIDERS


def test_own_folders_never_overwrite_the_installed_registry(tmp_path, capsys, monkeypatch):
    installed = tmp_path / "installed" / "tool_registry.json"
    monkeypatch.setattr(compiler, "ARTIFACT", installed)
    tools = write(tmp_path / "mine")
    (tools / "demo_do" / "config.py").write_text(
        "from pydantic import BaseModel\n\nclass Config(BaseModel):\n    "
        "enabled: bool = True\n    most: int = 5\n"
    )

    def run(*words):
        return cli.main(["registry", *words, "--tools", str(tools)]), *capsys.readouterr()

    code, _, err = run("check")
    assert (code, f"next:  glassd registry build --tools {tools}\n" in err) == (1, True)
    assert run("build")[0] == run("check")[0] == 0
    assert (tools / "tool_registry.json").exists()
    assert not installed.parent.exists()
    code, out, _ = run("show", "demo:do")
    assert (code, "most     int = 5" in out, "allowedModes          text, voice\n" in out) == (
        0,
        True,
        True,
    )
