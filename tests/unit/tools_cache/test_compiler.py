import json
import os
import re
import subprocess
import sys

import pytest

from tests.unit.tools_cache.folders import DOC, HANDLER, SCHEMA, failures, write
from tools_cache.api.tool import Source
from tools_cache.builder import compiler, lint
from tools_cache.builder.build_info import BuildInfo, stamp, unstamped
from tools_cache.registry import manifest


def test_a_good_folder_compiles(tmp_path):
    report = compiler.compile_tools(write(tmp_path))
    assert (report.failures, report.warnings, report.tools) == ((), (), 1)
    (app,) = manifest.load(report.text.encode(), source=Source.LOCAL).apps
    assert (app.package, [t.name for t in app.tools]) == ("demo", ["demo:do"])


@pytest.mark.parametrize("section", lint.SECTIONS)
@pytest.mark.requirement("C-31")
def test_a_deeper_heading_is_no_section(tmp_path, section):
    assert f"demo_do/doc.md: Missing required section: ## {section}" in failures(
        write(tmp_path, doc=DOC.replace(f"## {section}", f"### {section}"))
    )


def test_a_section_may_say_more(tmp_path):
    assert (
        failures(
            write(tmp_path, doc=DOC.replace("## Common Mistakes", "## Common Mistakes (Do Not)"))
        )
        == ""
    )


def test_a_handler_is_checked_without_being_run(tmp_path):
    marker = tmp_path / "ran"
    write(tmp_path / "tools", handler=f"open({str(marker)!r}, 'w')\n{HANDLER}")
    assert failures(tmp_path / "tools") == ""
    assert not marker.exists()


@pytest.mark.parametrize(("length", "good"), [(250, True), (251, False), (0, False)])
@pytest.mark.requirement("S2-13")
@pytest.mark.requirement("C-30")
def test_a_summary_has_at_most_250_characters_without_its_trailing_newline(tmp_path, length, good):
    assert (failures(write(tmp_path, summary="x" * length + "\n")) == "") is good


@pytest.mark.requirement("S2-17")
def test_every_failure_is_printed_and_nothing_written(tmp_path, capsys):
    tools = tmp_path / "tools"
    write(tools, folder="one", toolId="one", name="o:ne")
    write(tools, folder="two", toolId="two", name="two")
    write(tools, folder="fine", toolId="fine", name="fi:ne", category="magic", sideEffects="x")
    out = tmp_path / "out.json"
    assert compiler.main(["--tools", str(tools), "--out", str(out)]) == 1
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
    assert compiler.compile_tools(a).text == compiler.compile_tools(b).text


@pytest.mark.parametrize(
    "change",
    [
        {"requiresConfirmation": "always"},
        {"allowedModes": ["text"]},
        {"doc": DOC + "more\n"},
        {"handler": HANDLER + "#\n"},
        {"summary": "Other."},
        {"version": "1.0.1"},
        {"category": "utility", "sideEffects": "none"},
        {"hardware": [{"type": "CAMERA", "level": "REQUIRED"}]},
    ],
)
@pytest.mark.requirement("S2-23", "C-09")
def test_every_change_is_a_new_version(tmp_path, change):
    before = compiler.compile_tools(write(tmp_path)).version
    after = compiler.compile_tools(write(tmp_path, **change)).version
    assert re.fullmatch(r"1\.0\.[0-9a-f]{8}", before)
    assert before != after


def test_check_tells_whether_the_artifact_is_up_to_date(tmp_path, capsys):
    tools, out = write(tmp_path / "tools"), tmp_path / "out.json"
    args = ["--tools", str(tools), "--out", str(out)]
    assert compiler.main([*args, "--check"]) == 1
    assert not out.exists()
    assert compiler.main(args) == 0
    assert compiler.main([*args, "--check"]) == 0
    write(tools, description="Else.")
    assert compiler.main([*args, "--check"]) == 1
    assert "run python -m tools_cache.build" in capsys.readouterr().out


def test_a_failed_write_leaves_the_old_artifact_and_no_litter(tmp_path, monkeypatch):
    out = tmp_path / "out.json"
    out.write_text("old")
    monkeypatch.setattr(compiler.os, "fsync", lambda fd: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        compiler.write("new", out)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("out.json", "old")]


def test_hardware_and_summary_travel_in_meta(tmp_path):
    needs = [{"type": "CAMERA", "level": "REQUIRED"}]
    report = compiler.compile_tools(write(tmp_path, hardware=needs))
    (tool,) = json.loads(report.text)["apps"][0]["tools"]
    assert tool["_meta"]["io.glassd/hardware"] == needs
    assert tool["_meta"]["io.glassd/summary"] == "Does it."


# ------------------------------------------------------------------ what we ship


def test_the_shipped_tools_compile_and_are_these():
    report = compiler.compile_tools()
    assert report.failures == ()
    registry = manifest.load(report.text.encode(), source=Source.LOCAL)
    assert registry.dropped == ()
    tools = {t.name: t for app in registry.apps for t in app.tools}
    assert set(tools) >= {
        "calendar:create_event",
        "calendar:get_availability",
        "clock:now",
        "contacts:extract",
        "glasses:ask",
        "glasses:clear",
        "glasses:say",
        "glasses:show_text",
        "glasses:status",
        "kb:get",
        "kb:search",
        "notes:add",
        "notes:list",
        "notes:search",
        "registry:describe",
        "registry:invoke",
        "registry:load",
        "registry:search",
        "session:ignore_user",
        "timer:cancel",
        "timer:list",
        "timer:start",
        "voice:end",
        "voice:start",
    }
    assert {n for n, t in tools.items() if t.source is Source.GLASSES} == {
        n for n in tools if n.startswith("glasses:")
    }
    needs = {
        name: [r.type for r in rs]
        for app in registry.apps
        for name, rs in app.tool_requirements.items()
    }
    assert needs == {
        "glasses:show_text": ["DISPLAY"],
        "glasses:captions": ["DISPLAY", "MICROPHONE"],
        "glasses:clear": ["DISPLAY"],
        "glasses:say": ["SPEAKER"],
        "glasses:set": ["DISPLAY", "DISPLAY", "DISPLAY"],
        "glasses:notify": ["DISPLAY"],
        "glasses:dismiss": ["DISPLAY"],
        "glasses:show_card": ["DISPLAY"],
        "glasses:show_image": ["DISPLAY", "DISPLAY"],
        "glasses:take_photo": ["CAMERA"],
        "glasses:light": ["LIGHT", "LIGHT", "LIGHT"],
        "glasses:wifi": ["WIFI"],
        "glasses:hotspot": ["WIFI"],
        "glasses:record_video": ["CAMERA"],
        "glasses:end_video": ["CAMERA"],
        "glasses:motion": ["IMU"],
        "glasses:dashboard": ["DISPLAY"],
        "glasses:join_wifi": ["WIFI"],
        "glasses:leave_wifi": ["WIFI"],
        "glasses:gallery": ["CAMERA"],
        "glasses:record_sound": ["MICROPHONE"],
        "glasses:set_microphone": ["MICROPHONE"],
        "glasses:navigate": ["DISPLAY"],
        "glasses:preferences": ["DISPLAY"],
        "glasses:restart": ["DISPLAY"],
        "glasses:vibrate": ["EXIST"],
        "glasses:translate": ["DISPLAY"],
        "glasses:voice_notes": ["MICROPHONE"],
        "glasses:remove_voice_note": ["MICROPHONE"],
    }
    assert {n for n, t in tools.items() if t.open_to_cloud} == {
        "clock:now",
        "pager:deliver",
        "registry:describe",
        "registry:invoke",
        "registry:load",
        "registry:search",
        "session:ignore_user",
        "timer:start",
        "voice:end",
        "voice:start",
    }, "nothing that reads or changes what is the wearer's"
    assert {"note that", "remember that"} <= set(tools["notes:add"].activation_phrases)
    assert "set a timer" in tools["timer:start"].activation_phrases
    assert "what time is it" in tools["clock:now"].activation_phrases


def test_the_module_builds_from_the_command_line(tmp_path):
    out = tmp_path / "registry.json"
    done = subprocess.run(
        [sys.executable, "-m", "tools_cache.builder.compiler", "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert unstamped(out.read_text()) == compiler.compile_tools().text


def test_importing_the_manifest_does_not_load_the_validator():
    code = (
        "import sys, tools_cache.registry.manifest, tools_cache.schema; "
        "sys.exit('jsonschema_rs' in sys.modules or 'rfc8785' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0


# ------------------------------------------------------------------ the artifact


def built(tools):
    return json.loads(compiler.compile_tools(tools).text)


@pytest.mark.requirement("S2-21")
def test_the_artifact_says_what_it_is_and_what_it_was_built_from(tmp_path):
    report, out = compiler.compile_tools(write(tmp_path / "tools")), tmp_path / "out.json"
    compiler.write(report.text, out, made=BuildInfo("abc1234", "2026-11-22T08:00:00Z"))
    document = json.loads(out.read_text())
    assert list(document) == [
        "version",
        "sha256",
        "gitCommit",
        "buildTimestamp",
        "envelopeVersion",
        "apps",
        "tools",
        "prompts",
    ]
    assert (document["gitCommit"], document["buildTimestamp"]) == (
        "abc1234",
        "2026-11-22T08:00:00Z",
    )
    assert out.read_text().splitlines()[1].startswith('  "version": "1.0.'), (
        "two blanks a level, for people and diffs"
    )
    assert compiler.up_to_date(report.text, out), "a commit is no part of what was built"


@pytest.mark.requirement("S2-22")
def test_the_artifact_holds_everything_of_a_tool(tmp_path):
    document = built(
        write(tmp_path, hardware=[{"type": "CAMERA", "level": "REQUIRED"}], source="glasses")
    )
    run, told = document["apps"][0]["tools"][0], document["tools"][0]
    assert set(run) >= {
        "name",
        "version",
        "category",
        "sideEffects",
        "idempotent",
        "requiresConfirmation",
        "allowedModes",
        "latencyBudgetMs",
        "inputSchema",
        "source",
    }
    assert run["_meta"]["io.glassd/hardware"] == [{"type": "CAMERA", "level": "REQUIRED"}]
    assert {
        key: told[key]
        for key in ("name", "toolId", "encodedName", "summary", "documentation", "handlerPath")
    } == {
        "name": "demo:do",
        "toolId": "demo_do",
        "encodedName": "demo__do",
        "summary": "Does it.",
        "documentation": "demo_do/doc.md",
        "handlerPath": "demo_do/handler.py",
    }
    assert set(told["providerSchemas"]) >= {"openai", "geminiNative"}


POLICY = [
    {"category": "utility", "sideEffects": "none"},
    {"sideEffects": "read_only"},
    {"idempotent": True},
    {"requiresConfirmation": "always"},
    {"allowedModes": ["text"]},
    {"latencyBudgetMs": 501},
    {"timeoutS": 9},
    {"queueable": True},
    {"queue_ttl_s": 5},
    {"version": "2"},
    {"description": "Else."},
    {"source": "glasses"},
    {"rateLimit": {"calls": 1, "window": 1}},
    {"availableWhen": {"worn": True}},
    {"pendingTtlS": 60},
    {"hardware": [{"type": "CAMERA", "level": "OPTIONAL"}]},
    {"mentraExtensions": {"activationPhrases": ["do it"]}},
    {"parameters": {**SCHEMA["parameters"], "properties": {"a": {"type": "string"}}}},
]


@pytest.mark.parametrize("change", POLICY, ids=[next(iter(p)) for p in POLICY])
@pytest.mark.requirement("S2-24", "C-09")
def test_a_flip_of_any_field_is_a_new_version(tmp_path, change):
    before = built(write(tmp_path))
    after = built(write(tmp_path, **change))
    assert before["version"] != after["version"]
    assert after["version"] == f"1.0.{after['sha256'][:8]}" != before["version"]


@pytest.mark.requirement("S2-24")
def test_the_order_of_folders_does_not_show(tmp_path):
    for name in ("b_z", "b-a", "a_b", "a.b_c"):
        write(
            tmp_path,
            folder=name,
            toolId=name.replace("-", "_"),
            name=name.replace("-", "_")[::-1].replace("_", ":", 1)[::-1],
        )
    document = built(tmp_path)
    assert [tool["name"] for tool in document["tools"]] == ["a.b:c", "a:b", "b:a", "b:z"]
    assert [app["packageName"] for app in document["apps"]] == ["a", "a.b", "b"]


@pytest.mark.requirement("S2-25")
def test_outside_a_repository_nobody_knows_the_commit(tmp_path):
    assert stamp(tmp_path, {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": "/"}) == (
        None,
        None,
    )
    assert stamp(tmp_path, {"PATH": "/nowhere"}) == (None, None)
    assert stamp(tmp_path, {"PATH": "/nowhere", "SOURCE_DATE_EPOCH": "0"}) == (
        None,
        "1970-01-01T00:00:00Z",
    )
    assert stamp(tmp_path, {"PATH": "/nowhere", "SOURCE_DATE_EPOCH": "9" * 30}) == (None, None)


@pytest.mark.requirement("S2-25")
def test_inside_a_repository_the_stamp_is_its_last_commit(tmp_path):
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
    }
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (
        ["init", "--quiet"],
        [*who, "commit", "--quiet", "--allow-empty", "--message", "x"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *words], env=env, check=True, timeout=30)
    (tmp_path / "tools").mkdir()
    made = stamp(tmp_path / "tools", {**env, "GIT_DIR": "/nowhere"})
    assert re.fullmatch(r"[0-9a-f]{7,}", made.commit)
    assert made.time == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"b": 1, "a": {"d": [3, {"z": None, "y": True}], "c": "x"}},
            '{"a":{"c":"x","d":[3,{"y":true,"z":null}]},"b":1}',
        ),
        ([3, 1, 2], "[3,1,2]"),
        ({}, "{}"),
        ('a\u2028"\\/\n', '"a\u2028\\"\\\\/\\n"'),
        ([1.0, -0.0, 1e21, 1e-7, 0.1, 100.0], "[1,0,1e+21,1e-7,0.1,100]"),
        ({"\ue000": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\ue000":1}'),
        ({"ä": 1, "z": 2}, '{"z":2,"ä":1}'),
        (None, "null"),
    ],
)
@pytest.mark.requirement("S2-26")
def test_hashes_are_over_the_canonical_form_of_rfc_8785(value, text):
    """Keys in the order of their UTF-16 code units, numbers as JavaScript writes them, arrays
    as they are.
    """
    assert manifest.canonical(value).decode() == text


@pytest.mark.requirement("S2-32")
def test_the_artifact_is_made_not_kept_and_made_again_when_anything_it_is_made_of_changes():
    root = compiler.TOOLS.parents[1]
    ignored = (root / ".gitignore").read_text().split()
    assert any(line.endswith("tool_registry.json") for line in ignored)
    done = subprocess.run(
        ["make", "--dry-run", "--print-data-base", "registry"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    (needs,) = [
        line
        for line in done.stdout.splitlines()
        if line.startswith("tools_cache/tool_registry.json:")
    ]
    for source in (
        "tools/notes_add/doc.md",
        "build.py",
        "builder/lint_parameters.py",
        "providers/openai.py",
        "prompt_texts/voice.md",
    ):
        assert f" tools_cache/{source}" in needs, source
