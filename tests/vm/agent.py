"""Serves the host inside the guest: runs commands, asks the daemon's control socket, writes files,
plugs the adapter in and out.

Standard library only; knows no story. One JSON object a line each way; every request is answered
once, in any order.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

DOOR = globals().get("DOOR", 0)
"""The open port to the host, handed over by the door."""
MAX_OUTPUT = 1 << 20
BRIDGE = "/payload/bridge.py"


class Wire:
    """Lines to and from the host; many threads may answer."""

    def __init__(self, fd):
        self._fd = fd
        self._lock = threading.Lock()

    def lines(self):
        pending = b""
        while True:
            fresh = os.read(self._fd, 65536)
            if not fresh:
                threading.Event().wait(0.02)  # nothing while no host is connected
                continue
            *whole, pending = (pending + fresh).split(b"\n")
            yield from whole

    def say(self, reply):
        line = json.dumps(reply).encode() + b"\n"
        with self._lock:
            while line:
                line = line[os.write(self._fd, line) :]


class Adapter:
    """The process between /dev/vhci and the host's controller; it stays, the adapter comes and
    goes.
    """

    def __init__(self):
        self._process = None
        self._lock = threading.Lock()

    def turn(self, word):
        """Say `in` or `out` to it; give what it answers."""
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", BRIDGE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    bufsize=1,
                )
            print(word, file=self._process.stdin, flush=True)
            return self._process.stdout.readline().strip()


class UnixHttp(http.client.HTTPConnection):
    """HTTP on a unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def run(request):
    """Run a shell command; output and errors together, the tail of it when it is long."""
    try:
        ran = subprocess.run(
            ["sh", "-c", request["command"]],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=request["timeout"],
            input=request.get("input", "").encode(),
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return {"code": 124, "out": (late.output or b"").decode(errors="replace")[-MAX_OUTPUT:]}
    return {"code": ran.returncode, "out": ran.stdout.decode(errors="replace")[-MAX_OUTPUT:]}


def ask(request):
    """One question to a unix socket that speaks HTTP; status 0 when nobody is there."""
    wire = UnixHttp(request["socket"], request["timeout"])
    try:
        body = None if request.get("body") is None else json.dumps(request["body"])
        wire.request(
            request["method"],
            request["path"],
            body,
            {"Content-Type": "application/json"} if body else {},
        )
        answer = wire.getresponse()
        return {"status": answer.status, "text": answer.read().decode(errors="replace")}
    except (OSError, http.client.HTTPException) as error:
        return {"status": 0, "text": repr(error)}
    finally:
        wire.close()


def put(request):
    """Write a file, with its folders."""
    path = Path(request["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(request["text"], encoding="utf-8")
    path.chmod(request.get("mode", 0o644))
    return {}


def serve(wire, adapter, request):
    """Answer one request, whatever becomes of it."""
    acts = {
        "run": run,
        "http": ask,
        "put": put,
        "adapter": lambda r: {"said": adapter.turn(r["word"])},
    }
    try:
        reply = acts[request["do"]](request)
    except Exception as error:  # noqa: BLE001 - the host is told, and judges
        reply = {"error": repr(error)}
    wire.say({"id": request["id"], **reply})


def main():
    wire, adapter = Wire(DOOR), Adapter()
    os.environ.update(
        HOME="/root",
        LANG="C.UTF-8",
        PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    )
    wire.say({"awake": True})
    for line in wire.lines():
        threading.Thread(target=serve, args=(wire, adapter, json.loads(line)), daemon=True).start()


if __name__ == "__main__":
    main()
