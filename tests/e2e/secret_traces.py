"""Where secrets may not be: their forms, the traces they leave, and servers that repeat them."""

import base64
import json
import socket
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from tests.e2e.broker import HOST

LOOK_S = 0.005
"""Seconds between two looks at the processes: a worker lives for a second or so."""


def forms(secret: str, user: str) -> dict[str, bytes]:
    """Return what a secret may look like, by the name of the form."""
    raw, name = secret.encode(), user.encode()
    found = {
        "plain": raw,
        "JSON": json.dumps(secret)[1:-1].encode(),
        "escaped bytes": str(raw)[2:-1].encode(),
        "URL": quote(secret, safe="").encode(),
        "form": quote_plus(secret, safe="").encode(),
        "hexadecimal": raw.hex().encode(),
        "base64": base64.b64encode(raw),
        "SASL PLAIN": base64.b64encode(b"\0" + name + b"\0" + raw),
        "HTTP Basic": base64.b64encode(name + b":" + raw),
        "XOAUTH2": base64.b64encode(b"user=" + name + b"\1auth=Bearer " + raw + b"\1\1"),
    }
    return {form: text.rstrip(b"=") for form, text in found.items()}


class Secrets:
    """The secrets of a test: where each is found, in any form."""

    def __init__(self) -> None:
        self._forms: dict[str, bytes] = {}

    def add(self, name: str, secret: str, user: str = "") -> str:
        self._forms |= {f"{name}, {form}": text for form, text in forms(secret, user).items()}
        return secret

    def add_bytes(self, name: str, secret: bytes) -> None:
        self._forms |= {f"{name}, bytes": secret, f"{name}, base64 of bytes": _base64(secret)}
        self._forms[f"{name}, hexadecimal"] = secret.hex().encode()

    def found(self, texts: Mapping[str, bytes]) -> list[str]:
        """Return "place: secret, form" of each that is in one of these texts."""
        return [
            f"{place}: {form}"
            for place, text in texts.items()
            for form, secret in self._forms.items()
            if secret in text
        ]


def _base64(raw: bytes) -> bytes:
    return base64.b64encode(raw).rstrip(b"=")


def contents(path: Path) -> dict[str, bytes]:
    """Return every file of a folder, or every member of an archive, by name."""
    if path.is_dir():
        files = [found for found in path.rglob("*") if found.is_file()]
        return {str(found.relative_to(path.parent)): found.read_bytes() for found in files}
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        read = {member.name: archive.extractfile(member) for member in members}
        return {f"{path.name}/{name}": file.read() for name, file in read.items() if file}


class ProcessWatch:
    """Looks at a process and its descendants, again and again: `seen` has each command line and
    each environment there was.
    """

    def __init__(self, pid: int) -> None:
        self.seen: dict[str, bytes] = {}
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join(10)

    @property
    def workers(self) -> set[str]:
        """The workers that were seen, by their names."""
        lines = [text for place, text in self.seen.items() if place.startswith("cmdline")]
        return {line.split(b"\0")[-2].decode() for line in lines if b"edge.tools.workers" in line}

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            for pid in self._descendants(self._pid):
                for name in ("cmdline", "environ"):
                    with suppress(OSError):
                        text = Path(f"/proc/{pid}/{name}").read_bytes()
                        self.seen.setdefault(f"{name} {hash(text)}", text)

    def _descendants(self, pid: int) -> Iterator[int]:
        yield pid
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                for child in task.read_text().split():
                    yield from self._descendants(int(child))


class EchoServer:
    """Repeats every request in its refusal: `status`, all headers, and the body."""

    def __init__(self) -> None:
        self.status = 401
        self.requests: list[bytes] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                seen = f"{self.requestline}\n{self.headers}".encode() + body
                outer.requests.append(seen)
                line = " ".join(str(self.headers).split())[:400]
                self.send_response(outer.status, line)
                self.send_header("X-Seen", line)
                self.send_header("WWW-Authenticate", 'Basic realm="here"')
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(seen)))
                self.end_headers()
                self.wfile.write(seen)

            def log_message(self, *_: Any) -> None:
                pass

            do_GET = do_POST = do_PUT = do_REPORT = do_PROPFIND = do_OPTIONS = _answer  # noqa: N815 - names of HTTP methods

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self.url = f"http://{HOST}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def got(self, secret: bytes) -> bool:
        return any(secret in request for request in self.requests)


class EchoBroker:
    """Sends back what an MQTT client said first, which is no MQTT answer."""

    def __init__(self) -> None:
        self.received = b""
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(5)
                    said = connection.recv(4096)
                    self.received += said
                    connection.sendall(said)
                    time.sleep(0.05)
