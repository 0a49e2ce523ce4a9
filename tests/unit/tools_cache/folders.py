"""A good tool folder, to be broken one way at a time."""

import json

from tools_cache.builder import compiler, lint

SCHEMA = {
    "toolId": "demo_do",
    "name": "demo:do",
    "version": "1.0.0",
    "description": "Does it.",
    "category": "action",
    "sideEffects": "writes",
    "idempotent": False,
    "requiresConfirmation": "policy",
    "allowedModes": ["text", "voice"],
    "latencyBudgetMs": 500,
    "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
}
HANDLER = "async def execute(args, ctx):\n    return None\n"
DOC = "# demo\n" + "".join(f"\n## {s}\n\nText.\n" for s in lint.SECTIONS)


def write(
    tools, folder="demo_do", *, summary="Does it.", doc=DOC, handler=HANDLER, without=(), **changes
):
    path = tools / folder
    path.mkdir(parents=True, exist_ok=True)
    schema = {k: v for k, v in {**SCHEMA, **changes}.items() if k not in without}
    files = {
        "schema.json": json.dumps(schema),
        "doc_summary.md": summary,
        "doc.md": doc,
        "handler.py": handler,
    }
    for name, text in files.items():
        if name not in without:
            (path / name).write_text(text)
    return tools


def named(tools, tool_id, **changes):
    """A second good folder, of another name."""
    return write(
        tools, folder=tool_id, toolId=tool_id, name=tool_id.replace("_", ":", 1), **changes
    )


def closed(**properties):
    return {"type": "object", "properties": properties, "additionalProperties": False}


def failures(tools):
    return "\n".join(map(str, compiler.compile_tools(tools).failures))
