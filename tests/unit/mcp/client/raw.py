"""An MCP server over stdio without the SDK, so that it can break every rule. One tool a
misdeed; flags change the rest.
"""

import json
import os
import sys
import time
from pathlib import Path

FLAGS = set(sys.argv[1:])
VALUES = {k: v for k, _, v in (f.partition("=") for f in FLAGS) if v}
OBJECT = {"type": "object"}
TOOLS = {
    name: {"name": name, "inputSchema": OBJECT}
    for name in (
        "echo",
        "die",
        "die_once",
        "hang",
        "big",
        "endless",
        "null",
        "deep",
        "garbage",
        "silly",
        "flood",
        "ask",
        "steps",
        "env",
        "whisper",
        "error",
        "change",
        "text",
        "fail",
        "close",
        "list",
        "wide",
        "roots",
    )
}
TOOLS["lie"] = {
    "name": "lie",
    "inputSchema": OBJECT,
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
waiting = {}


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def send(**message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def head(id_):
    return f'{{"jsonrpc":"2.0","id":{id_},"result":'


def answer(id_, **result):
    send(id=id_, result={"resultType": "complete", **result} if "modern" in FLAGS else result)


def texts(id_, *lines, **more):
    answer(id_, content=[{"type": "text", "text": line} for line in lines], **more)


def note(line):
    with Path(VALUES["notes"]).open("a") as file:
        file.write(line + "\n")


def tools_page(cursor):
    tools = list(TOOLS.values())
    if "circle" in FLAGS:
        return {
            "tools": tools if cursor is None else [{"name": f"x{cursor}", "inputSchema": OBJECT}],
            "nextCursor": "a" if cursor != "a" else "b",
        }
    if "endless-list" in FLAGS:
        n = int(cursor or 0)
        return {"tools": [{"name": f"t{n}", "inputSchema": OBJECT}], "nextCursor": str(n + 1)}
    if "crowd" in FLAGS:
        return {"tools": [{"name": f"t{n}", "inputSchema": OBJECT} for n in range(2000)]}
    if "odd-schemas" in FLAGS:
        deep = OBJECT
        for _ in range(90):
            deep = {"type": "object", "properties": {"x": deep}}
        far = {"type": "object", "properties": {"x": {"$ref": VALUES["far"] + "/schema.json"}}}
        return {
            "tools": [
                {"name": "echo", "inputSchema": OBJECT},
                {"name": "deep", "inputSchema": deep},
                {"name": "far", "inputSchema": far},
                {"name": "shapeless"},
                "not even an object",
                {"name": "echo", "inputSchema": OBJECT, "description": "again"},
            ]
        }
    if "odd-numbers" in FLAGS:
        return {
            "tools": [
                *tools,
                {"name": "nan", "inputSchema": OBJECT, "_meta": {"x": float("nan")}},
                {"name": "x" * 256, "inputSchema": OBJECT},
            ]
        }
    if "heavy" in FLAGS:
        n = int(cursor or 0)
        crowd = [
            {"name": f"t{n}.{m}", "inputSchema": OBJECT, "_meta": {"x": "é" * 30_000}}
            for m in range(10)
        ]
        return {"tools": [*tools, *crowd], **({"nextCursor": str(n + 1)} if n < 9 else {})}
    return {"tools": tools}


def call(id_, name, args, params):
    if name == "echo":
        answer(
            id_,
            content=[{"type": "text", "text": json.dumps(args), "annotations": {"priority": 0.5}}],
            _meta={"x.y/z": 1},
        )
    elif name == "text":
        answer(id_, content=args["content"], **args.get("more", {}))
    elif name == "fail":
        texts(id_, "no such \u001b[31mlist", isError=True)
    elif name == "die":
        note("die")
        os._exit(3)
    elif name == "die_once":
        note("die_once")
        died = Path(VALUES["notes"] + ".died")
        if not died.exists():
            died.touch()
            os._exit(3)
        texts(id_, "alive")
    elif name == "hang":
        note(f"hang {id_}")
        waiting[id_] = name
    elif name == "big":
        texts(id_, "x" * args["size"])
    elif name == "wide":
        write(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": id_,
                    "result": {"content": [], "structuredContent": {"n": [[]] * args["size"]}},
                }
            )
            + "\n"
        )
    elif name == "endless":
        write(head(id_) + '{"content":[{"type":"text","text":"')
        while True:
            write("x" * 65536)
    elif name == "null":
        write(head(id_) + "null}\n")
    elif name == "deep":
        write(
            head(id_)
            + '{"content":[],"structuredContent":'
            + '{"a":' * 5000
            + "1"
            + "}" * 5002
            + "\n"
        )
    elif name == "garbage":
        write("warming up…\n\n{not json\n[1,2]\n" * args.get("times", 1))
        texts(id_, "after all")
    elif name == "silly":
        write(head(id_) + '"yes"}\n')
    elif name == "lie":
        texts(id_, "lie", structuredContent={"n": "one"})
    elif name == "flood":
        for n in range(args["times"]):
            send(method="notifications/message", params={"level": "info", "data": n})
        texts(id_, "done")
    elif name == "steps":
        token = params.get("_meta", {}).get("progressToken")
        for n in (1, 2, 3):
            if token is not None:
                send(
                    method="notifications/progress",
                    params={
                        "progressToken": token,
                        "progress": n,
                        "total": 3,
                        "message": f"step {n}",
                    },
                )
                time.sleep(0.15)
        texts(id_, "done" if token is not None else "nobody asked")
    elif name == "ask" and "modern" in FLAGS:
        if params.get("inputResponses"):
            texts(
                id_,
                json.dumps({"got": params["inputResponses"], "state": params.get("requestState")}),
            )
        else:
            wish = {
                "mode": "form",
                "message": "sure?",
                "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
            }
            send(
                id=id_,
                result={
                    "resultType": "input_required",
                    "inputRequests": {"q": {"method": "elicitation/create", "params": wish}},
                    "requestState": "sealed",
                },
            )
    elif name == "ask":
        form = {"message": "and?", "requestedSchema": {**OBJECT, "properties": {}}}
        for number in range(args.get("more", 0)):
            send(id=f"more{number}", method="elicitation/create", params=form)
        waiting[f"e{id_}"] = id_
        send(
            id=f"e{id_}",
            method="elicitation/create",
            params={
                "message": args.get("message", "sure?"),
                "requestedSchema": {"type": "object", "properties": args.get("form", {})},
            },
        )
    elif name == "roots":
        if params.get("inputResponses"):
            texts(id_, json.dumps(params["inputResponses"]))
        else:
            send(
                id=id_,
                result={
                    "resultType": "input_required",
                    "inputRequests": {"r": {"method": "roots/list"}},
                    "requestState": "s",
                },
            )
    elif name == "env":
        texts(id_, json.dumps(dict(os.environ, PID=str(os.getpid()))))
    elif name == "whisper":
        sys.stderr.write("one\x1b[2J line\n" + "y" * 100_000 + "\n")
        sys.stderr.flush()
        texts(id_, "whispered")
    elif name == "change":
        TOOLS["fresh"] = {"name": "fresh", "inputSchema": OBJECT}
        send(method="notifications/tools/list_changed")
        texts(id_, "changed")
    elif name == "close":
        texts(id_, "bye")
        os.close(1)
        os.close(0)
        time.sleep(60)
    elif name == "error":
        send(id=id_, error={"code": args["code"], "message": "not \u001b[31mtoday"})
    else:
        send(id=id_, error={"code": -32602, "message": f"Unknown tool: {name}"})


def take(message):
    method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None and str(id_).startswith("more"):
        note(f"answered {id_} {(message.get('result') or {}).get('action')}")
    elif method is None and id_ in waiting:
        said = message.get("result") or {}
        texts(waiting.pop(id_), json.dumps(said), isError=said.get("action") != "accept")
    elif method == "server/discover" and "modern" in FLAGS:
        answer(
            id_,
            supportedVersions=["2026-07-28"],
            capabilities={"tools": {}},
            ttlMs=0,
            cacheScope="public",
        )
    elif method == "server/discover" and "dies-of-questions" in FLAGS:
        sys.exit(1)
    elif method == "initialize":
        answer(
            id_,
            protocolVersion="2025-11-25",
            capabilities={"tools": {"listChanged": True}},
            serverInfo={"name": "raw", "version": "9"},
        )
    elif method == "tools/list":
        if "notes" in VALUES:
            note("list")
        answer(
            id_,
            **tools_page(params.get("cursor")),
            **({"ttlMs": 0, "cacheScope": "public"} if "modern" in FLAGS else {}),
        )
    elif method == "tools/call":
        call(id_, params["name"], params.get("arguments") or {}, params)
    elif method == "notifications/cancelled":
        note(f"cancelled {params['requestId']}")
    elif id_ is not None and method is not None:
        send(id=id_, error={"code": -32601, "message": "Method not found"})


if "mute" in FLAGS:
    sys.stdin.read()
if "stubborn" in FLAGS:
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        note(f"grandchild {os.getpid()}")
        time.sleep(600)
for line in sys.stdin:
    take(json.loads(line))
if "stubborn" in FLAGS or "deaf" in FLAGS:
    time.sleep(600)
