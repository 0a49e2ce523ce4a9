"""A server on the control socket that replies with the status document in a file. Run:
fake_daemon.py SOCKET STATUS_FILE.
"""

import socketserver
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        body = Path(sys.argv[2]).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "unix"

    def log_message(self, *_args):
        """Log nothing."""


if __name__ == "__main__":
    with Server(sys.argv[1], Answer) as server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        server.serve_forever()
