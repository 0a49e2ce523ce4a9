"""Task list: stores tasks in a file, one per line, so that running a call twice is visible."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, failure, params, reply

STATE_ENV: Final = "GLASSD_APP_STATE_DIR"
MAX_TASKS: Final = 1000


class TaskFile:
    """Tasks of one person per line, appended and synced; small enough to be read whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        return [
            json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines() if line
        ]

    def add(self, user: str, title: str) -> int:
        """Append and give the number of tasks this user has now."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"user": user, "title": title}, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return len(self.of(user))

    def of(self, user: str) -> list[str]:
        return [task["title"] for task in self.read() if task["user"] == user]


def _file() -> TaskFile:
    return TaskFile(Path(os.environ.get(STATE_ENV) or tempfile.gettempdir()) / "tasks.jsonl")


def _add_tool(args: dict[str, Any], context: CallContext) -> Any:
    tasks, title = _file(), " ".join(args["title"].split())
    if not title:
        raise ValueError("title: must not be blank")
    if len(tasks.read()) >= MAX_TASKS:
        return failure("CONFLICT", f"the list is full ({MAX_TASKS} tasks)")
    count = tasks.add(context.user_id, title)
    return reply({"title": title, "count": count}, show=f"Added: {title}\n{count} on your list")


def _list_tool(_: dict[str, Any], context: CallContext) -> Any:
    titles = _file().of(context.user_id)
    shown = "\n".join(f"{i}. {t}" for i, t in enumerate(titles, 1)) or "Nothing to do."
    return reply({"tasks": titles, "count": len(titles)}, title=f"{len(titles)} tasks", show=shown)


app = AppServer("com.example.tasks", name="Tasks")
app.register_tool(
    create_tool(
        "add",
        "Adds a task to the wearer's list; may wait for the network.",
        params(
            ["title"],
            title={"type": "string", "minLength": 1, "maxLength": 200, "description": "What to do"},
        ),
        _add_tool,
        activation_phrases=["add a task", "add to my list"],
        category="productivity",
        queueable=True,
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
