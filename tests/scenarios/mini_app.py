"""A mini-app for the stories: it answers with whatever rendering its caller asks for. Knows
nothing else.
"""

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import create_tool, params

PACKAGE = "com.test.echo"


def _answer(args, _context):
    return {"data": args["data"], "render": args.get("render") or {}}


def _fail(args, _context):
    raise RuntimeError(args["text"])


app = AppServer(PACKAGE, name="Echo")
app.register_tool(
    create_tool(
        "fail",
        "Fails with the text it is given.",
        params(["text"], text={"type": "string", "description": "what it says"}),
        _fail,
        side_effects="none",
        idempotent=True,
    )
)
app.register_tool(
    create_tool(
        "answer",
        "Answers with the data and the rendering it is given.",
        params(
            ["data"],
            data={"description": "anything"},
            render={"type": "object", "description": "how to show and say it"},
        ),
        _answer,
        side_effects="none",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
