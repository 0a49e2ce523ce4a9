"""A real CardDAV server, Radicale, on loopback, with one user's address book."""

import http.client
import logging
import threading
from base64 import b64encode
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from urllib.parse import quote
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from radicale.app import Application
from radicale.config import load as load_config

LOOPBACK = "127.0.0.1"
USER, PASSWORD = "eva", "Pass word ä"
BOOK = "/eva/contacts/"
_MAKE = """<?xml version="1.0"?><D:mkcol xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav">
<D:set><D:prop><D:resourcetype><D:collection/><C:addressbook/></D:resourcetype></D:prop></D:set>
</D:mkcol>"""


class AddressBookServer:
    """What another device of the user does: `put`, `delete`. `seen` has the methods of all requests
    that were not its own.
    """

    def __init__(self, port):
        self.port = port
        self.url = f"http://{LOOPBACK}:{port}{BOOK}"
        self.seen = []

    def put(self, name, text):
        self.do("PUT", f"{BOOK}{quote(name)}.vcf", text, "text/vcard; charset=utf-8")

    def delete(self, name):
        self.do("DELETE", f"{BOOK}{quote(name)}.vcf")

    def fill(self, texts):
        """Replace the whole address book."""
        self.do("PUT", BOOK, "".join(texts), "text/vcard; charset=utf-8")

    def make(self):
        self.do("MKCOL", BOOK, _MAKE, "application/xml")

    def do(self, method, path, body="", kind="text/plain"):
        login = b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "Content-Type": kind, "X-Other-Device": "1"}
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=20)
        connection.request(method, path, body.encode(), headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status < 300, (method, path, answer.status)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def serving(folder):
    """Run the server with its data in `folder` until the block ends."""
    (folder / "passwords").write_text(f"{USER}:{PASSWORD}\n", encoding="utf-8")
    settings = load_config()
    settings.update(
        {
            "auth": {
                "type": "htpasswd",
                "htpasswd_filename": str(folder / "passwords"),
                "htpasswd_encryption": "plain",
                "delay": "0",
            },
            "storage": {"filesystem_folder": str(folder / "data"), "_filesystem_fsync": "False"},
        },
        "test",
        privileged=True,
    )
    logging.getLogger("radicale").setLevel(logging.CRITICAL)
    app = Application(settings)
    seen = []

    def noting(environ, start):
        if "HTTP_X_OTHER_DEVICE" not in environ:
            seen.append(environ["REQUEST_METHOD"])
        return app(environ, start)

    server = make_server(LOOPBACK, 0, noting, _Server, _Quiet)
    found = AddressBookServer(server.server_address[1])
    found.seen = seen
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        found.make()
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
