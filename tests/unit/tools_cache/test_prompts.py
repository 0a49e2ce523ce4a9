"""What models are told of the tools they may call: summaries, documentation on demand, the
agent loop.
"""

import json
from dataclasses import dataclass, field

import pytest

from tests.unit.tools_cache.folders import DOC, named, write
from tools_cache.api.tool import Mode, Source
from tools_cache.builder import compiler, prompts
from tools_cache.registry import manifest, tool_docs


@dataclass
class Tool:
    name: str
    category: str = "action"
    description: str = "Described."
    requires_confirmation: str = "never"
    source: Source = Source.LOCAL
    raw: dict = field(default_factory=dict)


def with_summary(name, category, text):
    return Tool(name, category, raw={"_meta": {"io.glassd/summary": text}})


@pytest.mark.requirement("S2-57")
def test_summaries_read_so():
    tools = [
        with_summary("kb:search", "retrieval", "Finds."),
        Tool("mail:send", description="Sends mail."),
    ]
    assert (
        prompts.summaries(tools)
        == "**kb:search** (retrieval): Finds.\n\n**mail:send** (action): Sends mail."
    )
    assert prompts.summaries([]) == ""


TOOLS = [
    Tool("notes:add", requires_confirmation="policy"),
    Tool("clock:now", "utility"),
    Tool("kb:search", "retrieval"),
    Tool("cloud:odd", "productivity"),
    Tool("mail:send", requires_confirmation="always"),
]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.requirement("I5-agent-loop", "C-21")
def test_the_agent_loop_names_these_tools_by_their_aliases_and_no_other(mode):
    text = prompts.agent_loop(TOOLS, mode)
    for said in ("kb__search", "mail__send, notes__add", "clock__now, cloud__odd"):
        assert said in text
    assert text.endswith("Tools that ask the wearer before they act: mail__send, notes__add.")
    assert "{" not in text
    assert "(none)" in prompts.agent_loop([], mode)


@pytest.mark.requirement("I5-agent-loop")
def test_the_same_tools_in_any_order_give_the_same_text():
    assert prompts.prompt(TOOLS, Mode.VOICE) == prompts.prompt(TOOLS[::-1], Mode.VOICE)
    assert prompts.prompt(TOOLS, Mode.VOICE) != prompts.prompt(TOOLS[1:], Mode.VOICE)


DOCS = {tool.name: f"# {tool.name} in full" for tool in TOOLS}


@pytest.mark.requirement("S2-116")
def test_voice_never_gets_documentation():
    said = prompts.prompt(TOOLS[:3], Mode.VOICE, documentation=DOCS)
    assert prompts.summaries(sorted(TOOLS[:3], key=lambda t: t.name), called=prompts.alias) in said
    assert "in full" not in said


@pytest.mark.parametrize(
    ("count", "documented"), [(2, False), (3, True), (5, True), (6, True), (7, False)]
)
@pytest.mark.requirement("S2-117")
def test_text_gets_documentation_for_three_to_six_tools(count, documented):
    tools = [Tool(f"a:t{n}") for n in range(count)]
    said = prompts.prompt(
        tools, Mode.TEXT, documentation={tool.name: f"# {tool.name} in full" for tool in tools}
    )
    assert said.count("in full") == (count if documented else 0)
    assert said.count("**a__t") == count
    assert "in full" not in prompts.prompt(tools, Mode.TEXT)


@pytest.mark.parametrize(("count", "told"), [(19, False), (20, True), (60, True)])
@pytest.mark.requirement("S2-118")
def test_with_many_tools_the_prompt_says_how_to_get_documentation(count, told):
    tools = [Tool(prompts.DESCRIBE, "utility"), *(Tool(f"a:t{n}") for n in range(count - 1))]
    assert (
        "Call registry__describe with a tool's name" in prompts.prompt(tools, Mode.TEXT)
    ) is told
    assert "Call registry__describe" not in prompts.prompt(tools[1:], Mode.TEXT)


@pytest.mark.requirement("I5-agent-loop")
def test_the_artifact_holds_the_prompt_of_each_mode(tmp_path):
    named(
        write(tmp_path, allowedModes=["text"]),
        "demo_more",
        summary="Does more.",
        requiresConfirmation="always",
    )
    said = json.loads(compiler.compile_tools(tmp_path).text)["prompts"]
    assert set(said) == {"voice", "text"}
    assert "**demo__more** (action): Does more." in said["voice"]
    assert ("demo__do" in said["text"], "demo__do" in said["voice"]) == (True, False)
    assert "before they act: demo__more." in said["voice"]


# ------------------------------------------------------------------ on demand


def definitions(tools, source=Source.LOCAL):
    body = compiler.compile_tools(tools).text.encode()
    return {t.name: t for app in manifest.load(body, source=source).apps for t in app.tools}


@pytest.mark.requirement("S2-58")
def test_documentation_is_read_when_it_is_asked_for(tmp_path):
    tool = definitions(write(tmp_path))["demo:do"]
    assert tool_docs.documentation(tool, tmp_path) == DOC
    (tmp_path / "demo_do" / "doc.md").write_text(DOC + "More.\n")
    assert tool_docs.documentation(tool, tmp_path) == DOC + "More.\n"
    (tmp_path / "demo_do" / "doc.md").unlink()
    assert tool_docs.documentation(tool, tmp_path) is None


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"_meta": None},
        {"_meta": {"io.glassd/build": "x"}},
        {"_meta": {"io.glassd/build": {"folder": 1}}},
        {"_meta": {"io.glassd/build": {"folder": "../demo_do"}}},
        {"_meta": {"io.glassd/build": {"folder": "."}}},
    ],
)
@pytest.mark.requirement("S2-58")
def test_a_tool_without_documentation_has_none_and_no_path_leads_out(tmp_path, raw):
    write(tmp_path)
    (tmp_path / "doc.md").write_text("outside")
    assert tool_docs.documentation(Tool("demo:do", raw=raw), tmp_path / "demo_do") is None


@pytest.mark.requirement("S2-58")
def test_a_cloud_tool_carries_its_documentation_and_names_no_folder_of_ours(tmp_path):
    tool = definitions(write(tmp_path), Source.CLOUD)["demo:do"]
    assert tool_docs.documentation(tool, tmp_path) is None
    carried = Tool(
        "a:b", source=Source.CLOUD, raw={"_meta": {"io.glassd/documentation": "x" * 70_000}}
    )
    assert tool_docs.documentation(carried, tmp_path) == "x" * tool_docs.MAX_DOCUMENTATION
    assert tool_docs.summary(tool) == "Does it."


@pytest.mark.requirement("S2-59")
def test_the_policy_of_a_tool_is_eight_fields(tmp_path):
    assert tool_docs.metadata(definitions(write(tmp_path))["demo:do"]) == {
        "toolId": "demo:do",
        "version": "1.0.0",
        "category": "action",
        "sideEffects": "writes",
        "idempotent": False,
        "requiresConfirmation": "policy",
        "allowedModes": ["text", "voice"],
        "latencyBudgetMs": 500,
    }


@pytest.mark.requirement("S2-60")
def test_the_tools_of_a_category_are_listed_in_order():
    assert tool_docs.of_category(TOOLS, "action") == ["notes:add", "mail:send"]
    assert tool_docs.of_category(TOOLS, "magic") == []
