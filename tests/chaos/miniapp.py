"""The judge of effects: a mini-app that does something for every call, and writes it down before it
answers.

Standard library only; shares no code and no database with glassd. `python -m tests.chaos.miniapp
PORT RECORD`.
"""

import base64
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.chaos.records import Record, announce

PACKAGE = "com.chaos.recorder"
_ARGS = {
    "type": "object",
    "required": ["token"],
    "additionalProperties": False,
    "properties": {
        "token": {"type": "string"},
        "delay": {"type": "number"},
        "sound": {"type": "boolean"},
    },
}
LIFE_S = 900.0
"""How long a queueable call may wait: longer than any storm's drain, shorter than its day."""


def _tool(
    name: str, effects: str, *, idempotent: bool, queueable: bool, confirm: str = "never"
) -> dict[str, Any]:
    wait = {"queueable": True, "queue_ttl_s": LIFE_S} if queueable else {}
    return {
        "name": name,
        "description": f"Writes down that it was called ({effects}).",
        "inputSchema": _ARGS,
        "version": "1.0.0",
        "sideEffects": effects,
        "idempotent": idempotent,
        "requiresConfirmation": confirm,
        "timeoutS": 20,
        **wait,
    }


MANIFEST = {
    "name": "Recorder",
    "tools": [
        _tool("mark", "writes", idempotent=False, queueable=True),
        _tool("note", "writes", idempotent=True, queueable=True),
        _tool("look", "read_only", idempotent=True, queueable=False),
        _tool("sign", "writes", idempotent=False, queueable=False, confirm="always"),
    ],
}


class App(ThreadingHTTPServer):
    """One thread a connection; `running` are the tokens being worked on now."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, record: Record) -> None:
        super().__init__(("127.0.0.1", port), Door)
        self.record = record
        self.running: dict[str, int] = {}
        self.lock = threading.Lock()

    def work(self, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        """Half of the delay, the effect (on disk), the other half, the answer."""
        token, delay = str(args["token"]), float(args.get("delay", 0.0))
        with self.lock:
            self.running[token] = self.running.get(token, 0) + 1
        try:
            self.record.say(ev="begun", tool=tool, token=token)
            time.sleep(delay / 2)
            self.record.say(ev="effect", tool=tool, token=token, sure=True)
            time.sleep(delay / 2)
            return self._answer(tool, token, sound=bool(args.get("sound")))
        finally:
            with self.lock:
                self.running[token] -= 1
                if not self.running[token]:
                    del self.running[token]

    def _answer(self, tool: str, token: str, *, sound: bool) -> dict[str, Any]:
        render: dict[str, Any] = {"display": {"layout": "text_wall", "text": f"{tool} {token}"}}
        if sound:  # 0.4 s whose samples spell the token, over and over
            pcm = (token.encode().ljust(16, b".") * 800)[:12800]
            render["audio"] = {"pcm": base64.b64encode(pcm).decode()}
        else:
            render["audio"] = {"suppressVoiceResponse": True}
        return {"data": {"token": token, "tool": tool}, "render": render}


class Door(BaseHTTPRequestHandler):
    """`POST /tool`, `GET /health`, and `GET /running` for the killer."""

    protocol_version = "HTTP/1.1"
    server: App

    def do_GET(self) -> None:
        if self.path == "/running":
            with self.server.lock:
                self._say(200, {"running": list(self.server.running)})
        else:
            self._say(
                200, {"status": "ok", "packageName": PACKAGE, "tools": len(MANIFEST["tools"])}
            )

    def do_POST(self) -> None:
        call = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        self._say(200, self.server.work(call["name"], call["arguments"]))

    def _say(self, status: int, body: Any) -> None:
        raw = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)
        except OSError:
            self.close_connection = True  # the worker was killed meanwhile

    def log_message(self, *_: Any) -> None:
        """The record is the log."""

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True


def main() -> None:
    app = App(int(sys.argv[1]), Record(Path(sys.argv[2])))
    announce(port=app.server_address[1])
    app.serve_forever()


if __name__ == "__main__":
    main()
