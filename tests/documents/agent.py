"""A client of MCP servers as agents start them: by a command, over its standard input and
output.
"""

import json
import subprocess


class Agent:
    """An MCP client over the standard input and output of a command."""

    def __init__(self, place, command):
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=place.folder,
            env=place.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._id = 0
        self.ask(
            "initialize",
            protocolVersion="2025-11-25",
            capabilities={},
            clientInfo={"name": "test", "version": "0"},
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message):
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def ask(self, method, **params):
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == self._id:
                assert "result" in answer, answer
                return answer["result"]
        raise AssertionError(f"{method}: no answer")

    def close(self):
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
