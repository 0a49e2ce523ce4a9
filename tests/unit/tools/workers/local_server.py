"""A real HTTP server on loopback for the tests of workers, and names that lead to it."""

import http.server
import socket
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

from edge.tools.workers import http_client

LOOPBACK = "127.0.0.1"


@dataclass
class LocalServer:
    """What it answers, by path: `(status, headers, body)`, or a function that writes the answer
    itself. `seen` has each request: `(method, path, headers, body)`.
    """

    answers: dict = field(default_factory=dict)
    seen: list = field(default_factory=list)
    port: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the test is over: an answer that never ends waits for it."""

    def url(self, path="/", host=LOOPBACK):
        return f"http://{host}:{self.port}{path}"

    def redirects(self, path, target, status=302, **headers):
        self.answers[path] = (status, {"Location": target, **headers}, b"")

    def paths(self):
        return [path for _, path, _, _ in self.seen]


@contextmanager
def serving(certificate=None):
    """Run a server until the block ends; with a `certificate` (a file with its key) it has TLS."""
    local = LocalServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            local.seen.append((self.command, self.path, self.headers, body))
            found = local.answers.get(self.path.partition("?")[0], (404, {}, b"none"))
            if callable(found):
                found(self)
                return
            status, headers, content = found
            self.send_response(status)
            for key, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - names of http.server
        do_PROPFIND = do_REPORT = answer  # noqa: N815 - as above

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            pass  # the client went away, as some tests want it

    server = Server((LOOPBACK, 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    local.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield local
    finally:
        local.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Names:
    """Answers of a name server, in place of the machine's: name → addresses. `asked` has those
    of these names that were looked up."""

    def __init__(self, monkeypatch, **names):
        self.addresses = {name.replace("_", "."): found for name, found in names.items()}
        self.asked = []
        self._real = socket.getaddrinfo
        monkeypatch.setattr(http_client.socket, "getaddrinfo", self._look_up)

    def _look_up(self, host, port, *more, **options):
        if host in self.addresses:
            self.asked.append(host)
        return [
            entry
            for address in self.addresses.get(host, [host])
            for entry in self._real(address, port, *more, **options)
        ]
