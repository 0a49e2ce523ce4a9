"""A child for the daemon's handle that has no servers: it does what the name of the called tool
says. Written without ours.
"""

import json
import os
import signal
import struct
import sys
import time
from pathlib import Path

NOTES = Path(sys.argv[1])
TOOLS = [
    {
        "name": "echo",
        "description": "",
        "title": "",
        "input_schema": {},
        "output_schema": None,
        "annotations": {},
        "meta": {},
    }
]


def say(**frame):
    body = json.dumps(frame).encode()
    sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
    sys.stdout.buffer.flush()


def news(server, status, tools=None):
    say(
        say="news",
        news={
            "server": server,
            "status": status,
            "error": "",
            "tools": tools,
            "notes": [],
            "authorize_url": "",
            "title": "",
            "version": "",
            "instructions": "",
            "protocol": "",
        },
    )


def outcome(id_, **more):
    plain = {
        "content": [],
        "structured": None,
        "is_error": False,
        "meta": {},
        "fault": None,
        "message": "",
        "code": None,
        "authorize_url": "",
        "input_requests": None,
        "request_state": None,
        "attempts": 1,
    }
    say(say="outcome", id=id_, outcome={**plain, **more})


def note(line):
    with NOTES.open("a") as file:
        file.write(line + "\n")


def first(name):
    mark = NOTES.with_name(name)
    new = not mark.exists()
    mark.touch()
    return new


def call(frame):
    id_, tool = frame["id"], frame["tool"]
    note(f"{tool} {frame['attempt']}")
    if tool == "dies-unsent" or (tool == "dies-unsent-once" and first(tool)):
        os._exit(1)
    if tool != "babbles-and-sends":  # that one says it behind what nobody reads
        say(say="sending", id=id_)
    if tool == "dies-for-good":
        NOTES.with_name("dead").touch()
        os._exit(1)
    if tool == "dies-sent" or (tool == "dies-sent-once" and first(tool)):
        os._exit(1)
    if tool == "stuck":
        time.sleep(600)
    if tool == "babbles" and first(tool):
        sys.stdout.buffer.write(b"hello, world! this is no frame")
        sys.stdout.buffer.flush()
        time.sleep(600)
    if tool == "babbles-and-sends":
        sys.stdout.buffer.write(struct.pack("<I", 3) + b"no!" + struct.pack("<I", 3) + b"no!")
        sys.stdout.buffer.flush()
        time.sleep(600)
    if tool == "waits":
        return
    if tool == "steps":
        say(
            say="progress",
            id=id_,
            progress={"call_id": id_, "progress": 1, "total": 2, "message": "half"},
        )
    outcome(
        id_, structured={"args": frame["args"], "env": dict(os.environ)} if tool == "echo" else None
    )
    if tool == "rests":
        news("a", "disconnected", TOOLS)
        say(say="idle")


if NOTES.with_name("dead").exists():
    sys.exit("no more of me")
signal.signal(signal.SIGINT, signal.SIG_IGN)
while head := sys.stdin.buffer.read(4):
    frame = json.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
    if frame["do"] == "configure":
        note(
            "configure "
            + " ".join(
                f"{s['config']['id']}:{'start' if s['start'] else 'rest'}" for s in frame["servers"]
            )
        )
        for server in frame["servers"]:
            news(server["config"]["id"], "connected" if server["start"] else "disconnected", TOOLS)
    elif frame["do"] == "call":
        call(frame)
    elif frame["do"] == "cancel":
        note("cancel")
        outcome(frame["id"], fault="cancelled", is_error=True)
    else:
        note(frame["do"])
note("end")
