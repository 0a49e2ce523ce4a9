import json
import re
import subprocess
import sys

import pytest

from tools_cache import build, lint, manifest
from tools_cache.stamp import unstamped
from tools_cache.tool import Source

SCHEMA = {
    "toolId": "demo_do", "name": "demo:do", "version": "1.0.0", "description": "Does it.", "category": "action",
    "sideEffects": "writes", "idempotent": False, "requiresConfirmation": "policy", "allowedModes": ["text", "voice"],
    "latencyBudgetMs": 500, "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
}  # fmt: skip
HANDLER = "async def execute(args, ctx):\n    return None\n"
DOC = "# demo\n" + "".join(f"\n## {s}\n\nText.\n" for s in lint.SECTIONS)


def write(tools, folder="demo_do", *, summary="Does it.", doc=DOC, handler=HANDLER, without=(), **changes):
    path = tools / folder
    path.mkdir(parents=True, exist_ok=True)
    schema = {k: v for k, v in {**SCHEMA, **changes}.items() if k not in without}
    files = {"schema.json": json.dumps(schema), "doc_summary.md": summary, "doc.md": doc, "handler.py": handler}
    for name, text in files.items():
        if name not in without:
            (path / name).write_text(text)
    return tools


def failures(tools):
    return "\n".join(map(str, build.compile_tools(tools).failures))


def test_a_good_folder_compiles(tmp_path):
    report = build.compile_tools(write(tmp_path))
    assert (report.failures, report.warnings, report.tools) == ((), (), 1)
    (app,) = manifest.load(report.text.encode(), source=Source.LOCAL).apps
    assert (app.package, [t.name for t in app.tools]) == ("demo", ["demo:do"])


@pytest.mark.parametrize("field", ["toolId", "version", "description", "category", "sideEffects", "idempotent",
                                   "requiresConfirmation", "allowedModes", "latencyBudgetMs", "parameters", "name"])  # fmt: skip
def test_every_required_field_is_missed_by_name(tmp_path, field):
    assert f"demo_do/schema.json: Missing required field: {field}" in failures(write(tmp_path, without=[field]))


@pytest.mark.parametrize("file", lint.FILES)
def test_every_missing_file_is_a_failure(tmp_path, file):
    assert f"demo_do/{file}: Missing required file: {file}" in failures(write(tmp_path, without=[file]))


@pytest.mark.parametrize("section", lint.SECTIONS)
@pytest.mark.requirement("C-31")
def test_every_missing_section_is_a_failure_and_a_deeper_heading_does_not_count(tmp_path, section):
    assert f"demo_do/doc.md: Missing required section: ## {section}" in failures(write(tmp_path, doc=DOC.replace(f"## {section}", f"### {section}")))


def test_a_section_may_say_more(tmp_path):
    assert failures(write(tmp_path, doc=DOC.replace("## Common Mistakes", "## Common Mistakes (Do Not)"))) == ""


@pytest.mark.parametrize(("change", "says"), [
    ({"category": "magic"}, "Invalid category: magic (must be one of: retrieval, action, utility)"),
    ({"sideEffects": "some"}, "Invalid sideEffects"),
    ({"requiresConfirmation": True}, "Invalid requiresConfirmation"),
    ({"source": "cloud"}, "Invalid source"),
    ({"allowedModes": []}, "Invalid allowedModes"),
    ({"allowedModes": ["x"]}, "Invalid allowedModes"),
    ({"allowedModes": "text"}, "Invalid allowedModes"),
    ({"latencyBudgetMs": 0}, "latencyBudgetMs: must be a positive number"),
    ({"latencyBudgetMs": -1}, "latencyBudgetMs: must be a positive number"),
    ({"latencyBudgetMs": "5"}, "latencyBudgetMs: must be a positive number"),
    ({"timeoutS": True}, "timeoutS: must be a positive number"),
    ({"idempotent": "no"}, "idempotent: must be true or false"),
    ({"description": " "}, "description: must be text"),
    ({"parameters": {"type": "array"}}, 'parameters.type: must be "object"'),
    ({"parameters": {"type": "object"}}, "additionalProperties: must be exactly false"),
    ({"parameters": {"type": "object", "additionalProperties": 0}}, "additionalProperties: must be exactly false"),
    ({"parameters": {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "strin"}}}},
     "Invalid JSON Schema in parameters: "),
    ({"parameters": {"type": "object", "additionalProperties": False, "properties": {"a": {"anyOf": [{"default": 1}]}}}},
     "parameters/properties/a/anyOf/0/default: a default is never used there"),
    ({"category": "retrieval"}, "A retrieval tool cannot have sideEffects: writes"),
    ({"category": "retrieval", "sideEffects": "read_only"}, "A retrieval tool must be idempotent"),
    ({"category": "utility"}, "A utility tool cannot have sideEffects: writes"),
    ({"toolId": "other"}, 'toolId "other" doesn\'t match directory "demo_do" (expected "demo_do")'),
    ({"name": "demo:other"}, 'name "demo:other" doesn\'t match toolId "demo_do"'),
    ({"name": "demo_do"}, "Invalid tool name format"),
    ({"name": "a:b:c"}, 'Tool name cannot contain ":"'),
    ({"hardware": ["DISPLAY"]}, "hardware: must be a list of"),
    ({"hardware": [{"type": "DISPLAY", "level": "REQUIRED", "where": {"lines": {"eval": "1"}}}]}, "hardware: 0.where.lines."),
    ({"hardware": [{"type": "DISPLAY", "level": "REQUIRED", "where": "lines > 5"}]}, "hardware: 0.where: "),
    ({"sideEfects": "none"}, "Unknown field: sideEfects"),
])  # fmt: skip
def test_a_broken_rule_fails_the_build_by_its_name(tmp_path, change, says):
    assert says in failures(write(tmp_path, **change))


def test_a_folder_may_be_written_with_dashes(tmp_path):
    assert failures(write(tmp_path, folder="demo-do")) == ""


@pytest.mark.parametrize(("handler", "says"), [
    ("x = 1\n", "Handler for demo_do doesn't export execute function"),
    ("def execute(args, ctx):\n    pass\n", "Handler for demo_do doesn't export execute function"),
    ("class A:\n    async def execute(args, ctx):\n        pass\n", "doesn't export execute"),
    ("async def execute(args):\n    pass\n", "exactly (args, ctx)"),
    ("async def execute(:\n", "is not Python"),
])  # fmt: skip
def test_a_handler_must_export_execute(tmp_path, handler, says):
    assert says in failures(write(tmp_path, handler=handler))


def test_a_handler_is_judged_without_being_run(tmp_path):
    marker = tmp_path / "ran"
    write(tmp_path / "tools", handler=f"open({str(marker)!r}, 'w')\n{HANDLER}")
    assert failures(tmp_path / "tools") == ""
    assert not marker.exists()


@pytest.mark.parametrize(("length", "good"), [(250, True), (251, False), (0, False)])
@pytest.mark.requirement("S2-13")
@pytest.mark.requirement("C-30")
def test_a_summary_has_at_most_250_characters_without_its_trailing_newline(tmp_path, length, good):
    assert (failures(write(tmp_path, summary="x" * length + "\n")) == "") is good


def test_a_schema_that_is_not_json_or_not_an_object_is_a_failure(tmp_path):
    write(tmp_path)
    for text in ("{", "[]"):
        (tmp_path / "demo_do" / "schema.json").write_text(text)
        assert "schema.json" in failures(tmp_path)


def test_hidden_folders_and_files_are_not_tools(tmp_path):
    write(tmp_path)
    write(tmp_path, folder=".hidden")
    (tmp_path / "README").write_text("x")
    assert build.compile_tools(tmp_path).tools == 1


def test_an_action_that_writes_without_confirmation_is_only_warned_about(tmp_path):
    report = build.compile_tools(write(tmp_path, requiresConfirmation="never"))
    assert [str(w) for w in report.warnings] == ["demo_do/schema.json: requiresConfirmation: action that writes asks for no confirmation"]
    assert report.text is not None


@pytest.mark.requirement("S2-17")
def test_every_failure_is_printed_and_nothing_written(tmp_path, capsys):
    tools = tmp_path / "tools"
    write(tools, folder="one", toolId="one", name="o:ne")
    write(tools, folder="two", toolId="two", name="two")
    write(tools, folder="fine", toolId="fine", name="fi:ne", category="magic", sideEffects="x")
    out = tmp_path / "out.json"
    assert build.main(["--tools", str(tools), "--out", str(out)]) == 1
    printed = capsys.readouterr().out
    assert all(f"error: {name}/schema.json: " in printed for name in ("one", "two", "fine"))
    assert printed.count("error: fine/schema.json: Invalid") == 2
    assert not out.exists()


@pytest.mark.requirement("S2-23", "C-09")
def test_the_same_folders_give_the_same_bytes(tmp_path):
    a, b = write(tmp_path / "a"), write(tmp_path / "b")
    for tools, order in ((a, ("x", "y")), (b, ("y", "x"))):
        for name in order:
            write(tools, folder=f"demo_{name}", toolId=f"demo_{name}", name=f"demo:{name}")
    assert build.compile_tools(a).text == build.compile_tools(b).text


@pytest.mark.parametrize("change", [
    {"requiresConfirmation": "always"}, {"allowedModes": ["text"]}, {"doc": DOC + "more\n"}, {"handler": HANDLER + "#\n"},
    {"summary": "Other."}, {"version": "1.0.1"}, {"category": "utility", "sideEffects": "none"}, {"hardware": [{"type": "CAMERA", "level": "REQUIRED"}]},
])  # fmt: skip
@pytest.mark.requirement("S2-23", "C-09")
def test_every_change_is_a_new_version(tmp_path, change):
    before = build.compile_tools(write(tmp_path)).version
    after = build.compile_tools(write(tmp_path, **change)).version
    assert re.fullmatch(r"1\.0\.[0-9a-f]{8}", before)
    assert before != after


def test_check_tells_whether_the_artifact_is_up_to_date(tmp_path, capsys):
    tools, out = write(tmp_path / "tools"), tmp_path / "out.json"
    args = ["--tools", str(tools), "--out", str(out)]
    assert build.main([*args, "--check"]) == 1
    assert not out.exists()
    assert build.main(args) == 0
    assert build.main([*args, "--check"]) == 0
    write(tools, description="Else.")
    assert build.main([*args, "--check"]) == 1
    assert "run python -m tools_cache.build" in capsys.readouterr().out


def test_a_failed_write_leaves_the_old_artifact_and_no_litter(tmp_path, monkeypatch):
    out = tmp_path / "out.json"
    out.write_text("old")
    monkeypatch.setattr(build.os, "fsync", lambda fd: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        build.write("new", out)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("out.json", "old")]


def test_hardware_and_summary_travel_in_meta(tmp_path):
    needs = [{"type": "CAMERA", "level": "REQUIRED"}]
    report = build.compile_tools(write(tmp_path, hardware=needs))
    (tool,) = json.loads(report.text)["apps"][0]["tools"]
    assert tool["_meta"]["io.glassd/hardware"] == needs
    assert tool["_meta"]["io.glassd/summary"] == "Does it."


# ------------------------------------------------------------------ what we ship


def test_the_shipped_tools_compile_and_are_these():
    report = build.compile_tools()
    assert report.failures == ()
    registry = manifest.load(report.text.encode(), source=Source.LOCAL)
    assert registry.dropped == ()
    tools = {t.name: t for app in registry.apps for t in app.tools}
    assert set(tools) >= {
        "calendar:create_event", "calendar:get_availability", "clock:now", "contacts:extract", "glasses:ask", "glasses:clear", "glasses:say",
        "glasses:show_text", "glasses:status", "kb:get", "kb:search", "notes:add", "notes:list", "notes:search", "registry:describe",
        "registry:invoke", "registry:load", "registry:search", "session:ignore_user",
        "timer:cancel", "timer:list", "timer:start", "voice:end", "voice:start"}  # fmt: skip
    assert {n for n, t in tools.items() if t.source is Source.GLASSES} == {n for n in tools if n.startswith("glasses:")}
    needs = {name: [r.type for r in rs] for app in registry.apps for name, rs in app.tool_requirements.items()}
    assert needs == {
        "glasses:show_text": ["DISPLAY"], "glasses:clear": ["DISPLAY"], "glasses:say": ["SPEAKER"], "glasses:set": ["DISPLAY", "DISPLAY"],
        "glasses:notify": ["DISPLAY"], "glasses:dismiss": ["DISPLAY"]}
    assert {"note that", "remember that"} <= set(tools["notes:add"].activation_phrases)
    assert "set a timer" in tools["timer:start"].activation_phrases
    assert "what time is it" in tools["clock:now"].activation_phrases


def test_the_module_builds_from_the_command_line(tmp_path):
    out = tmp_path / "registry.json"
    done = subprocess.run([sys.executable, "-m", "tools_cache.build", "--out", str(out)], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    assert unstamped(out.read_text()) == build.compile_tools().text


def test_importing_the_manifest_does_not_load_the_validator():
    code = "import sys, tools_cache.manifest, tools_cache.schema; sys.exit('jsonschema_rs' in sys.modules or 'rfc8785' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
