"""Every rule of the build has a folder that breaks it and nothing else; its words name folder,
file and field.
"""

import json
import re

import pytest

from edge.tools.handlers import BadHandler, Handlers
from tests.unit.tools_cache.folders import DOC, HANDLER, SCHEMA, closed, named, write
from tools_cache.api.tool import Source
from tools_cache.builder import compiler, lint
from tools_cache.builder.lint_findings import RULES
from tools_cache.registry import manifest

S, D, H = "schema.json", "doc.md", "handler.py"
CLASS = (
    "from tools_cache.api.base import Tool\nclass Do(Tool):\n    async "
    "def run(self, args):\n        return None\n"
)


def parameters(rule, field, says, schema):
    return (rule, f"{S}: ", field, says, {"parameters": schema})


BROKEN = [
    *(
        ("field-missing", f"{S}: ", field, f"Missing required field: {field}", {"without": [field]})
        for field in lint.REQUIRED
    ),
    *(
        ("file-missing", f"{file}: ", "", f"Missing required file: {file}", {"without": [file]})
        for file in lint.FILES
    ),
    *(
        (
            "section",
            f"{D}: ",
            f"## {name}",
            f"Missing required section: ## {name}",
            {"doc": DOC.replace(f"## {name}", f"### {name}")},
        )
        for name in lint.SECTIONS
    ),
    ("field-unknown", f"{S}: ", "sideEfects", "Unknown field: sideEfects", {"sideEfects": "none"}),
    (
        "tool-id",
        f"{S}: ",
        "toolId",
        'toolId "demo_does" doesn\'t match directory "demo_do" (expected "demo_do")',
        {"toolId": "demo_does", "name": "demo:does"},
    ),
    (
        "name",
        f"{S}: ",
        "name",
        'name "demo:other" doesn\'t match toolId "demo_do"',
        {"name": "demo:other"},
    ),
    ("name", f"{S}: ", "name", "name: must be text", {"name": 1}),
    (
        "category",
        f"{S}: ",
        "category",
        "Invalid category: magic (must be one of: retrieval, action, utility)",
        {"category": "magic"},
    ),
    (
        "side-effects",
        f"{S}: ",
        "sideEffects",
        "Invalid sideEffects: some (must be one of: none, read_only, writes)",
        {"sideEffects": "some"},
    ),
    *(
        (
            "confirmation",
            f"{S}: ",
            "requiresConfirmation",
            "Invalid requiresConfirmation: ",
            {"requiresConfirmation": bad},
        )
        for bad in (True, False, "sometimes", None)
    ),
    ("source", f"{S}: ", "source", "Invalid source: cloud", {"source": "cloud"}),
    *(
        ("modes", f"{S}: ", "allowedModes", "Invalid allowedModes: ", {"allowedModes": bad})
        for bad in ([], ["x"], "text", ["text", 1])
    ),
    ("flag", f"{S}: ", "idempotent", "idempotent: must be true or false", {"idempotent": "no"}),
    ("flag", f"{S}: ", "queueable", "queueable: must be true or false", {"queueable": 1}),
    *(
        ("text", f"{S}: ", field, f"{field}: must be text", {field: bad})
        for field in ("version", "description")
        for bad in (" ", 1)
    ),
    *(
        (
            "number",
            f"{S}: ",
            "latencyBudgetMs",
            "latencyBudgetMs: must be a positive number, not ",
            {"latencyBudgetMs": bad},
        )
        for bad in (0, -1, "5", True, None)
    ),
    (
        "text-long",
        f"{S}: ",
        "description",
        "description: too long (1025 chars, max 1024)",
        {"description": "x" * 1025},
    ),
    ("number", f"{S}: ", "timeoutS", "timeoutS: must be a positive number", {"timeoutS": 0}),
    (
        "running",
        f"{S}: ",
        "rateLimit",
        "rateLimit.calls: ",
        {"rateLimit": {"calls": 0, "window": 1}},
    ),
    ("hardware", f"{S}: ", "hardware", "hardware: must be a list of ", {"hardware": ["DISPLAY"]}),
    (
        "hardware",
        f"{S}: ",
        "hardware",
        "hardware: 0.where.lines.",
        {"hardware": [{"type": "DISPLAY", "level": "REQUIRED", "where": {"lines": {"eval": "1"}}}]},
    ),
    (
        "hardware",
        f"{S}: ",
        "hardware",
        "hardware: 0.where: ",
        {"hardware": [{"type": "DISPLAY", "level": "REQUIRED", "where": "lines > 5"}]},
    ),
    (
        "retrieval-writes",
        f"{S}: ",
        "sideEffects",
        "A retrieval tool cannot have sideEffects: writes",
        {"category": "retrieval", "idempotent": True},
    ),
    (
        "retrieval-repeats",
        f"{S}: ",
        "idempotent",
        "A retrieval tool must be idempotent",
        {"category": "retrieval", "sideEffects": "read_only"},
    ),
    (
        "utility-writes",
        f"{S}: ",
        "sideEffects",
        "A utility tool cannot have sideEffects: writes",
        {"category": "utility"},
    ),
    parameters(
        "parameters-object",
        "parameters.type",
        'parameters.type: must be "object"',
        {"type": "array"},
    ),
    parameters("parameters-object", "parameters.type", 'parameters.type: must be "object"', []),
    *(
        parameters(
            "parameters-closed", "parameters.additionalProperties", "must be exactly false", schema
        )
        for schema in (
            {"type": "object"},
            {"type": "object", "additionalProperties": {}},
            {"type": "object", "additionalProperties": True},
        )
    ),
    parameters(
        "parameters-schema",
        "parameters",
        "Invalid JSON Schema in parameters: ",
        closed(a={"type": "strin"}),
    ),
    parameters(
        "parameters-schema",
        "parameters",
        "Invalid JSON Schema in parameters: ",
        closed(a={"type": "string", "required": True}),
    ),
    parameters(
        "parameters-schema",
        "parameters",
        "Invalid JSON Schema in parameters: ",
        closed(a={"$ref": "http://example.com/x"}),
    ),
    parameters(
        "parameters-keyword",
        "parameters/properties/a/minLenght",
        "no keyword of JSON Schema",
        closed(a={"type": "string", "minLenght": 1}),
    ),
    parameters(
        "parameters-keyword",
        "parameters/properties/a~1b/items/nulable",
        "no keyword",
        closed(**{"a/b": {"type": "array", "items": {"nulable": True}}}),
    ),
    parameters(
        "parameters-format",
        "parameters/properties/a/format",
        "unknown format 'datetime'",
        closed(a={"type": "string", "format": "datetime"}),
    ),
    parameters(
        "parameters-required",
        "parameters/required",
        "'b' is not among the properties",
        {**closed(a={"type": "string"}), "required": ["b"]},
    ),
    parameters(
        "parameters-unused-default",
        "parameters/properties/a/anyOf/0/default",
        "a default is never used there",
        closed(a={"anyOf": [{"type": "integer", "default": 1}]}),
    ),
    parameters(
        "parameters-bad-default",
        "parameters/properties/a/default",
        "'3' does not fit: ",
        closed(a={"type": "integer", "default": "3"}),
    ),
    parameters(
        "parameters-bad-default",
        "parameters/properties/a/default",
        "does not fit: ",
        {**closed(a={"$ref": "#/$defs/A", "default": "x"}), "$defs": {"A": {"type": "integer"}}},
    ),
    (
        "unasked",
        f"{S}: ",
        "unasked",
        "unasked: must be text",
        {"requiresConfirmation": "never", "unasked": " "},
    ),
    (
        "unasked",
        f"{S}: ",
        "unasked",
        "unasked: must be text",
        {"requiresConfirmation": "never", "unasked": True},
    ),
    (
        "unasked",
        f"{S}: ",
        "unasked",
        "only a tool that writes and never asks says why",
        {"unasked": "It only adds."},
    ),
    (
        "unasked",
        f"{S}: ",
        "unasked",
        "only a tool that writes and never asks says why",
        {
            "sideEffects": "none",
            "category": "utility",
            "requiresConfirmation": "never",
            "unasked": "It only adds.",
        },
    ),
    ("summary-empty", "doc_summary.md: ", "", "is empty", {"summary": "\n"}),
    (
        "summary-long",
        "doc_summary.md: ",
        "",
        "too long (251 chars, max 250)",
        {"summary": "x" * 251},
    ),
    (
        "depends-on",
        f"{S}: ",
        "dependsOn",
        "dependsOn: demo:do is this tool itself",
        {"dependsOn": ["demo:do"]},
    ),
    (
        "depends-on",
        f"{S}: ",
        "dependsOn",
        "dependsOn: far:off is no tool here",
        {"dependsOn": ["far:off"]},
    ),
    (
        "wearer",
        f"{S}: ",
        "mentraExtensions.wearer",
        "mentraExtensions.wearer.{{input.what}}: the tool has no such argument",
        {"mentraExtensions": {"wearer": {"later": "I'll do “{{input.what}}” later"}}},
    ),
    (
        "reference",
        f"{S}: ",
        "demo:undo",
        "names demo:undo, which is no tool",
        {"mentraExtensions": {"wearer": {"undo": {"tool": "demo:undo"}}}},
    ),
    ("running", f"{S}: ", "dependsOn", "dependsOn.0: ", {"dependsOn": ["no tool"]}),
    (
        "reference",
        f"{D}: ",
        "demo:done",
        "names demo:done, which is no tool",
        {"doc": DOC + "\nSee demo:done.\n"},
    ),
    (
        "reference",
        f"{D}: ",
        "calendar:propose",
        "names calendar:propose, which is no tool",
        {"doc": DOC + "\nFirst `calendar:propose`.\n"},
    ),
    (
        "reference",
        "doc_summary.md: ",
        "image:draft",
        "names image:draft",
        {"summary": "Like `image:draft`."},
    ),
    (
        "reference",
        f"{S}: ",
        "image:draft",
        "names image:draft",
        {"description": "Like `image:draft`."},
    ),
    ("handler-python", f"{H}: ", "", "is not Python: ", {"handler": "async def execute(:\n"}),
    *(
        (
            "handler-execute",
            f"{H}: ",
            "execute",
            "Handler for demo_do doesn't export execute function",
            {"handler": bad},
        )
        for bad in (
            "x = 1\n",
            "def execute(args, ctx):\n    pass\n",
            f"class A:\n    {HANDLER.replace(chr(10), chr(10) + '    ')}\n",
        )
    ),
    (
        "handler-one",
        f"{H}: ",
        "Do",
        "has both execute and a Tool: Do",
        {"handler": CLASS + HANDLER},
    ),
    (
        "handler-one",
        f"{H}: ",
        "Else",
        "has 2 tools: Do, Else; one a folder",
        {"handler": CLASS + CLASS.partition("\n")[2].replace("Do", "Else")},
    ),
    (
        "handler-run",
        f"{H}: ",
        "Do",
        "class Do has no run",
        {"handler": CLASS.replace("run", "walk")},
    ),
    (
        "handler-run",
        f"{H}: ",
        "Do.run",
        "Do.run must be async def run(self, args)",
        {"handler": CLASS.replace("async ", "")},
    ),
    (
        "handler-run",
        f"{H}: ",
        "Do.run",
        "Do.run must be async def run(self, args)",
        {"handler": CLASS.replace("args", "ctx")},
    ),
    *(
        (
            "handler-parts",
            f"{H}: ",
            "what",
            says,
            {"handler": CLASS + f"    def __init__({asked}): pass\n"},
        )
        for asked, says in (
            ("self, what: int", "Do(what: int) asks for what cannot be handed in; there are: "),
            ("self, what", "Do(what: no annotation)"),
            ("self, *, what: 'x.Socket'", "Do(what: x.Socket)"),
        )
    ),
    (
        "handler-execute",
        f"{H}: ",
        "execute",
        "execute must take exactly (args, ctx)",
        {"handler": HANDLER.replace("ctx", "context")},
    ),
    (
        "handler-import",
        f"{H}: ",
        "edge",
        "imports edge: ",
        {"handler": f"from edge.storage.sqlite import database as db\n{HANDLER}"},
    ),
    (
        "handler-import",
        f"{H}: ",
        "firmware_bridge",
        "imports firmware_bridge: ",
        {"handler": HANDLER.replace("return", "import firmware_bridge.driver; return")},
    ),
    (
        "handler-success",
        f"{H}: ",
        "execute",
        'execute returns "success"',
        {"handler": HANDLER.replace("None", '{"success": True}')},
    ),
    ("loadable", f"{S}: ", "version", "version: ", {"version": "1" * 65}),
    (
        "loadable",
        f"{S}: ",
        "mentraExtensions.activationPhrases",
        "mentraExtensions.activationPhrases: ",
        {"mentraExtensions": {"activationPhrases": "say"}},
    ),
]
ELSEWHERE = {"config", "file-unreadable", "not-json", "not-object", "twice"}
"""Rules whose folders are not made by changing a field: below."""


def found(tools):
    return [placed.to_json() for placed in compiler.compile_tools(tools).failures]


@pytest.mark.parametrize(
    ("rule", "file", "field", "says", "broken"),
    BROKEN,
    ids=[f"{b[0]}-{i}" for i, b in enumerate(BROKEN)],
)
@pytest.mark.requirement("I5-lint")
@pytest.mark.requirement("S2-02", "S2-03", "S2-04", "S2-05", "S2-06", "S2-07", "S2-08")
@pytest.mark.requirement(
    "S2-09", "S2-10", "S2-12", "S2-14", "S2-16", "S2-19", "C-19", "C-21", "C-27"
)
def test_a_broken_rule_fails_the_build_and_its_words_name_file_and_field(
    tmp_path, rule, file, field, says, broken
):
    report = compiler.compile_tools(write(tmp_path, **broken))
    assert report.text is None
    assert {f["rule"] for f in found(tmp_path)} == {rule}, "this folder breaks one rule only"
    placed = report.failures[0].to_json()
    assert (placed["folder"], placed["file"], placed["field"]) == (
        "demo_do",
        file.removesuffix(": "),
        field,
    )
    said = str(report.failures[0])
    assert said.startswith(f"demo_do/{file}")
    assert says in said
    assert field.rpartition("/")[2] in said


@pytest.mark.requirement("I13-wearer")
def test_the_arguments_of_an_undo_are_those_of_its_tool(tmp_path):
    wearer = {"undo": {"tool": "demo:back", "args": {"id": "{{data.id}}"}}}
    write(tmp_path, mentraExtensions={"wearer": wearer})
    named(tmp_path, "demo_back", parameters=closed(number={"type": "integer"}))
    (broken,) = compiler.compile_tools(tmp_path).failures
    assert str(broken) == (
        "demo_do/schema.json: mentraExtensions.wearer.undo: demo:back has no argument id"
    )
    named(tmp_path, "demo_back", parameters=closed(id={"type": "integer"}))
    assert compiler.compile_tools(tmp_path).text


def test_every_rule_has_a_folder_that_breaks_it():
    assert {rule for rule, *_ in BROKEN} | ELSEWHERE == set(RULES)
    assert all(RULES.values())


@pytest.mark.parametrize(
    ("rule", "file", "content"),
    [
        ("not-json", S, b"{"),
        ("not-json", S, b"[" * 100_000),
        ("not-object", S, b"[]"),
        ("file-unreadable", D, b"\xff"),
        ("file-unreadable", S, b"\xff"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_failure_by_its_name(tmp_path, rule, file, content):
    write(tmp_path)
    (tmp_path / "demo_do" / file).write_bytes(content)
    (only,) = found(tmp_path)
    assert (only["rule"], only["file"], only["folder"]) == (rule, file, "demo_do")


@pytest.mark.parametrize(
    "source",
    [
        CLASS,
        HANDLER,
        (
            "import logging\nfrom tools_cache.api.handed import Database\nfrom "
            "tools_cache.api.tool import ToolContext\n"
        )
        + CLASS
        + "    def __init__(self, db: 'Database', log: logging.Logger, ctx: ToolContext): pass\n",
        CLASS.replace(
            "from tools_cache.api.base import Tool", "from tools_cache import base as b"
        ).replace("(Tool)", "(b.Tool)"),
        CLASS.replace(
            "from tools_cache.api.base import Tool", "import tools_cache.api.base"
        ).replace("(Tool)", "(tools_cache.api.base.Tool)"),
        CLASS.replace("class Do(Tool)", "class Base(Tool):\n    pass\nclass Do(Base)"),
        "class Tool:\n    pass\nclass Helper(Tool):\n    pass\n" + HANDLER,
    ],
)
@pytest.mark.requirement("S2-15")
def test_a_handler_is_one_function_or_one_class_of_tool_and_loads(tmp_path, source):
    """What the lint takes the loader takes."""
    assert found(write(tmp_path, handler=source)) == []
    (tool,) = (
        manifest.load(compiler.compile_tools(tmp_path).text.encode(), source=Source.LOCAL)
        .apps[0]
        .tools
    )
    assert callable(Handlers(tmp_path).find(tool))


@pytest.mark.parametrize(
    "source", ["x = 1\n", "def execute(args, ctx):\n    pass\n", "execute = 3\n"]
)
@pytest.mark.requirement("S2-15")
def test_a_handler_without_execute_is_refused_again_when_it_is_loaded(tmp_path, source):
    (tool,) = (
        manifest.load(compiler.compile_tools(write(tmp_path)).text.encode(), source=Source.LOCAL)
        .apps[0]
        .tools
    )
    (tmp_path / "demo_do" / H).write_text(source)
    with pytest.raises(BadHandler, match=r"^Handler for demo_do doesn't export execute function$"):
        Handlers(tmp_path).find(tool)


def test_two_folders_that_make_one_tool_are_a_failure(tmp_path):
    write(write(tmp_path), folder="demo-do")
    (only,) = found(tmp_path)
    assert (only["rule"], only["folder"]) == ("twice", "demo_do")
    assert "demo:do is made by the folder demo-do already" in only["problem"]


@pytest.mark.requirement("S2-12")
def test_a_folder_may_be_written_with_dashes(tmp_path):
    assert found(write(tmp_path, folder="demo-do")) == []


@pytest.mark.requirement("S2-17")
def test_all_failures_of_all_folders_are_found_at_once(tmp_path):
    named(tmp_path, "one_a", category="magic", sideEffects="x", summary="")
    named(tmp_path, "two_b", without=["doc.md", "handler.py"])
    assert sorted((f["folder"], f["rule"]) for f in found(tmp_path)) == [
        ("one_a", "category"),
        ("one_a", "side-effects"),
        ("one_a", "summary-empty"),
        ("two_b", "file-missing"),
        ("two_b", "file-missing"),
    ]


SEND_IMAGE = {
    "name": "send_image",
    "description": "Send an image.",
    "parameters": {"type": "object", "properties": {"url": {"type": "string", "required": True}}},
}


@pytest.mark.requirement("C-29")
def test_the_send_image_sample_of_the_seed_is_no_tool(tmp_path):
    """It has three files, a name for an id, `required` inside a property, open parameters,
    `context.ws` and `success`.
    """
    folder = tmp_path / "send_image"
    folder.mkdir()
    (folder / S).write_text(json.dumps(SEND_IMAGE))
    (folder / D).write_text("# send_image")
    (folder / H).write_text(
        "async def execute(args, context):\n    "
        'context.ws.send(args)\n    return {"success": True}\n'
    )
    assert {f["problem"] for f in found(tmp_path)} == {"Missing required file: doc_summary.md"}
    (folder / "doc_summary.md").write_text("Sends.")
    assert {f["rule"] for f in found(tmp_path)} == {
        "field-missing",
        "section",
        "handler-execute",
        "handler-success",
    }
    mended = {**SCHEMA, **SEND_IMAGE, "toolId": "send_image", "name": "send:image"}
    (folder / S).write_text(json.dumps(mended))
    assert {f["rule"] for f in found(tmp_path)} == {
        "parameters-closed",
        "parameters-schema",
        "section",
        "handler-execute",
        "handler-success",
    }


@pytest.mark.requirement("S2-11")
def test_an_action_that_writes_without_confirmation_is_warned_of_and_built(tmp_path):
    report = compiler.compile_tools(write(tmp_path, requiresConfirmation="never"))
    said = (
        "demo_do/schema.json: requiresConfirmation: action that writes asks for no "
        'confirmation; if that is right, say why in "unasked"'
    )
    assert [str(w) for w in report.warnings] == [said]
    assert report.text is not None


@pytest.mark.requirement("S2-11")
def test_an_action_that_says_why_it_writes_unasked_is_not_warned_of(tmp_path):
    report = compiler.compile_tools(
        write(tmp_path, requiresConfirmation="never", unasked="It only adds.")
    )
    assert (report.failures, report.warnings) == ((), ())
    assert "It only adds." not in report.text, "a word for who reviews it, not for who calls it"


@pytest.mark.requirement("S2-11")
def test_our_own_tools_are_built_without_a_warning():
    """Whoever adds an action that writes and never asks says why, in `unasked` of its
    schema.json.
    """
    assert [str(w) for w in compiler.compile_tools().warnings] == []


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (
            {**closed(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "string"}}},
            ["/properties/a/$ref: some models do not understand it"],
        ),
        (
            closed(a={"oneOf": [{"type": "string"}, {"type": "null"}]}),
            ["/properties/a/oneOf: some models do not understand it"],
        ),
        (
            closed(a={"type": "integer", "enum": [1, 2]}),
            ["/properties/a/enum: some models take enums of text only"],
        ),
        (
            closed(a=closed(b=closed(c=closed(d={"type": "string"})))),
            ["/properties/a/properties/b/properties/c: nested deeper than 2 levels of objects"],
        ),
        (closed(a=closed(b=closed(c={"type": "string"}))), []),
        (closed(a=closed(b={"type": "string", "enum": ["x", None]})), []),
    ],
)
def test_what_not_every_model_understands_is_warned_of(tmp_path, schema, says):
    report = compiler.compile_tools(write(tmp_path, parameters=schema))
    assert [str(w) for w in report.warnings] == [
        f"demo_do/schema.json: parameters{s}" for s in says
    ]


@pytest.mark.requirement("C-20")
@pytest.mark.parametrize("word", lint.CONFIRMATIONS)
def test_confirmation_is_one_of_three_words(tmp_path, word):
    assert found(write(tmp_path, requiresConfirmation=word)) == []


@pytest.mark.requirement("S2-18")
def test_only_folders_whose_names_do_not_begin_with_a_dot_are_tools(tmp_path):
    write(write(tmp_path), folder=".hidden")
    (tmp_path / "README").write_text("x")
    assert (compiler.compile_tools(tmp_path).tools, found(tmp_path)) == (1, [])


@pytest.mark.requirement("S2-01")
def test_a_tool_is_there_with_its_folder_and_gone_without(tmp_path):
    def names():
        return [tool["name"] for tool in json.loads(compiler.compile_tools(tmp_path).text)["tools"]]

    named(write(tmp_path), "demo_more")
    assert names() == ["demo:do", "demo:more"]
    for file in (tmp_path / "demo_more").iterdir():
        file.unlink()
    (tmp_path / "demo_more").rmdir()
    assert names() == ["demo:do"]


def test_a_tool_that_is_broken_is_there_for_those_that_name_it(tmp_path):
    write(tmp_path, doc=f"{DOC}\nSee demo:more.\n")
    named(tmp_path, "demo_more")
    (tmp_path / "demo_more" / "schema.json").write_text("{")
    assert [
        str(placed).partition(":")[0] for placed in compiler.compile_tools(tmp_path).failures
    ] == ["demo_more/schema.json"]


def test_what_only_looks_like_a_reference_is_none(tmp_path):
    text = (
        'At 12:30, see http://demo.example/x, `{"a":"b"}`, `notes:`, '
        "VALIDATION: no. Also `demo:do` and demo:do."
    )
    assert found(write(tmp_path, doc=f"{DOC}\n{text}\n")) == []


@pytest.mark.requirement("C-21")
@pytest.mark.parametrize("text", ["Use `calendar:propose` first.", "Use {planning} first."])
def test_a_prompt_that_names_what_is_not_there_fails_the_build(tmp_path, text):
    texts = tmp_path / "texts"
    texts.mkdir()
    for mode in ("voice", "text"):
        (texts / f"{mode}.md").write_text("Call {action}, for instance `demo:do`.")
    assert compiler.compile_tools(write(tmp_path / "tools"), texts).failures == ()
    (texts / "voice.md").write_text(text)
    (only,) = compiler.compile_tools(tmp_path / "tools", texts).failures
    assert (only.finding.rule, str(only).partition(":")[0]) == ("reference", "texts/voice.md")


def test_the_table_of_rules_for_authors_is_what_is_held():
    page = (compiler.TOOLS.parents[1] / "docs" / "tools.md").read_text(encoding="utf-8")
    rules = page.partition("## What may go wrong")[2]
    assert re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", rules, re.MULTILINE)[: len(RULES)] == list(
        RULES.items()
    )


def test_the_guide_names_the_fields_and_sections_that_are_required():
    page = (compiler.TOOLS.parents[1] / "docs" / "tools.md").read_text(encoding="utf-8")
    fields, _, sections = page.partition("The eleven fields")[2].partition("The seven sections")
    assert re.findall(r"^\| `(\w+)` \|", fields, re.MULTILINE) == list(lint.REQUIRED)
    assert re.findall(r"`([A-Z][\w ]+)`", sections.partition("\n\n")[0]) == list(lint.SECTIONS)
