"""Task list: stores tasks in a file, one per line, so that running a call twice is visible."""

from typing import Any, Final

from edge.devcloud.apps.state import append_row, read_rows
from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, failure, params, reply, string

TASKS: Final = "tasks.jsonl"
MAX_TASKS: Final = 1000


def _titles(user: str) -> list[str]:
    return [task["title"] for task in read_rows(TASKS) if task["user"] == user]


def _add_tool(args: dict[str, Any], context: CallContext) -> Any:
    title = " ".join(args["title"].split())
    if not title:
        raise ValueError("title: must not be blank")
    if len(read_rows(TASKS)) >= MAX_TASKS:
        return failure("CONFLICT", f"the list is full ({MAX_TASKS} tasks)")
    append_row(TASKS, {"user": context.user_id, "title": title})
    count = len(_titles(context.user_id))
    return reply({"title": title, "count": count}, show=f"Added: {title}\n{count} on your list")


def _list_tool(_: dict[str, Any], context: CallContext) -> Any:
    titles = _titles(context.user_id)
    shown = "\n".join(f"{i}. {t}" for i, t in enumerate(titles, 1)) or "Nothing to do."
    return reply({"tasks": titles, "count": len(titles)}, title=f"{len(titles)} tasks", show=shown)


app = AppServer("com.example.tasks", name="Tasks")
app.register_tool(
    create_tool(
        "add",
        "Adds a task to the wearer's list; may wait for the network.",
        params(["title"], title=string("What to do", 200)),
        _add_tool,
        activation_phrases=["add a task", "add to my list"],
        category="productivity",
        queueable=True,
        wearer={"later": "I'll add it when we're online"},
    )
)
app.register_tool(
    create_tool(
        "list",
        "Shows the wearer's tasks.",
        params(),
        _list_tool,
        activation_phrases=["what's on my list", "show my tasks"],
        category="productivity",
        side_effects="read_only",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
