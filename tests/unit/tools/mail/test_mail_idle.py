"""Waiting for a mail server to say that there may be new mail: a server that misbehaves costs the
daemon neither memory nor time.
"""

import socket
import ssl
import threading
import time
from contextlib import suppress

import pytest

from edge.tools.announcements import mail_idle
from edge.tools.announcements.mail_idle import MAX_WAIT, MailIdle
from edge.tools.workers import mail_connection
from edge.tools.workers.mail_connection import Limits
from tests.e2e.broker import HOST
from tests.unit.doctor.certificates import Authority
from tests.unit.tools.mail.servers import Conversation
from tools_cache.errors import ErrorCode, ToolFailure

pytestmark = [pytest.mark.enable_socket, pytest.mark.requirement("I15-mail-hostile")]
PASSWORD = "correct horse"
ABLE = "IMAP4rev1 IDLE AUTH=PLAIN"
LATEST_S = 10.0


class Server:
    """Serves one connection. `says`: verb, or `greeting`, `go` and `DONE` → what it says then,
    instead of what a good server says; after `go` it waits for more commands, unless `leaves`.
    """

    def __init__(self, folder, says, *, leaves=False, able=ABLE, dribbles=""):
        self.authority = Authority(folder)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*self.authority.server("localhost"))
        self._says, self._leaves, self._dribbles = says, leaves, dribbles
        self._good = {
            "greeting": ["* OK here"],
            "CAPABILITY": [f"* CAPABILITY {able}", "{tag} OK done"],
            "AUTHENTICATE": ["+ ", "{tag} OK done"],
            "LOGIN": ["{tag} OK done"],
            "EXAMINE": ["* 3 EXISTS", "* 1 RECENT", "{tag} OK done"],
            "IDLE": ["+ go"],
            "go": [],
            "DONE": ["WAIT OK done"],
        }
        self.got, self.sent, self.accepted = [], 0, False
        self.idles, self.ended = threading.Event(), threading.Event()
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(20)

    def _serve(self):
        with suppress(OSError):
            plain, _ = self._listener.accept()
            self.accepted = True
            plain.settimeout(20)
            with self._context.wrap_socket(plain, server_side=True) as connection:
                with Conversation(connection) as said, suppress(OSError):
                    self._talk(said, connection)
                self.ended.set()

    def _talk(self, said, connection):
        self._say(connection, "greeting", "")
        while line := said.line():
            self.got.append(line)
            tag, _, verb = line.partition(" ")
            verb = (verb or tag).partition(" ")[0].upper()
            if verb == "AUTHENTICATE" and verb not in self._says:
                said.say("+ ")
                self.got.append(said.line())
                said.say(f"{tag} OK done")
                continue
            self._say(connection, verb, tag)
            if verb == "IDLE":
                self.idles.set()
                self._say(connection, "go", tag)
                if self._leaves:
                    return

    def _say(self, connection, verb, tag):
        for line in self._says.get(verb, self._good.get(verb, ["{tag} BAD what"])):
            raw = line if isinstance(line, bytes) else f"{line}\r\n".encode()
            raw = raw.replace(b"{tag}", tag.encode())
            if verb != self._dribbles:
                connection.sendall(raw)
                self.sent += len(raw)
                continue
            for at in range(len(raw)):
                connection.sendall(raw[at : at + 1])
                time.sleep(0.02)  # the server is slow; nothing is waited for


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a server, and returns it with what waits for it."""
    servers = []

    def run(says, *, idle_s=0.2, **more):
        server = Server(tmp_path, says, **more)
        servers.append(server)
        (tmp_path / "password").write_text(PASSWORD)
        settings = {
            "imap_host": "localhost",
            "imap_port": server.port,
            "smtp_host": HOST,
            "username": "me",
            "address": "me@example.com",
            "password_file": str(tmp_path / "password"),
            "ca_file": str(server.authority.ca),
        }
        calls = []
        idle = MailIdle(settings, lambda: calls.append(len(server.got)), idle_s=idle_s)
        idle.calls, idle.settings = calls, settings
        return server, idle

    yield run
    for each in servers:
        each.close()


def fails(idle, code=ErrorCode.NETWORK_ERROR):
    """Return why it ended, in words."""
    before = time.monotonic()
    with pytest.raises(ToolFailure) as raised:
        idle.run()
    assert time.monotonic() - before < LATEST_S
    error = raised.value.error
    assert error.code is code
    assert PASSWORD not in repr(error)
    return error.message


def start_waiting(idle):
    thread = threading.Thread(target=lambda: fails(idle), daemon=True)
    thread.start()
    return thread


# ------------------------------------------------------------------ what is said


@pytest.mark.parametrize(
    ("lines", "calls"),
    [
        ([], 0),
        (["* 4 EXISTS"], 1),
        (["* 4 EXISTS", "* 4 EXISTS"], 1),
        (["* 4 exists", "* 6 EXISTS"], 2),
        (["* 3 EXISTS"], 0),
        (["* 2 EXISTS", "* 3 EXISTS"], 1),
        (["* 1 EXPUNGE", "* 3 EXISTS"], 1),
        (["* 1 EXPUNGE", "* 1 EXPUNGE", "* 1 EXISTS"], 0),
        (["* 1 RECENT"], 0),
        (["* 2 RECENT"], 1),
        (
            [
                "* OK still here",
                "* 1 FETCH (FLAGS (\\Seen))",
                "* 4 EXISTS x",
                "4 EXISTS",
                "x * 4 EXISTS",
            ],
            0,
        ),
        (["* 99999999999999999999 EXISTS"], 0),
    ],
)
def test_only_a_mailbox_that_grew_is_worth_a_look(start, lines, calls):
    _, idle = start({"go": lines}, leaves=True, idle_s=3600.0)
    assert "closed the connection" in fails(idle)
    assert len(idle.calls) == 1 + calls, "and once at the beginning"


def test_what_is_said_before_the_wait_begins_counts(start):
    _, idle = start({"IDLE": ["* 4 EXISTS", "+ go"]}, leaves=True, idle_s=3600.0)
    fails(idle)
    assert len(idle.calls) == 2


def test_a_wait_is_begun_again_before_the_server_would_end_it(start):
    server, idle = start({"DONE": ["* 4 EXISTS", "WAIT OK done"]}, idle_s=0.05)
    waiting = start_waiting(idle)
    until = time.monotonic() + LATEST_S
    while server.got.count("WAIT IDLE") < 4 and time.monotonic() < until:
        server.idles.wait(0.01)
    idle.close()
    waiting.join(LATEST_S)
    waits = server.got[server.got.index("WAIT IDLE") :]
    assert waits[:6] == ["WAIT IDLE", "DONE"] * 3
    assert len(idle.calls) >= 5, "at first, after each wait, and for the mail that came"


@pytest.mark.parametrize(
    "says", [{"IDLE": ["{tag} BAD no"]}, {"IDLE": ["{tag} NO no"]}, {"CAPABILITY": []}]
)
def test_a_server_that_does_not_wait_is_left(start, says):
    able = ABLE.replace("IDLE ", "")
    server, idle = start(says if "IDLE" in says else {}, able=ABLE if "IDLE" in says else able)
    idle.run()
    assert server.ended.wait(LATEST_S)
    assert "DONE" not in server.got


# ------------------------------------------------------------------ limits

LONG = [b"* OK ", *[b"x" * 10_000] * 8_000]
MANY = [b"* 1 FETCH (FLAGS (x))\r\n" * 500] * 8_000
LARGE = [b"* 1 FETCH (X {500000}\r\n", *[b"x" * 10_000] * 8_000]


@pytest.mark.parametrize("verb", ["greeting", "CAPABILITY", "AUTHENTICATE", "EXAMINE", "IDLE"])
@pytest.mark.parametrize("says", [LONG, MANY, LARGE], ids=["line", "lines", "literal"])
def test_a_server_that_does_not_end_its_answer_is_left_early(start, verb, says):
    server, idle = start({verb: says})
    fails(idle)
    assert server.ended.wait(LATEST_S)
    assert server.sent < MAX_WAIT + 6_000_000, "what the kernel holds of it"


@pytest.mark.parametrize("says", [LONG, MANY, LARGE], ids=["line", "lines", "literal"])
def test_a_server_that_says_too_much_while_it_is_waited_for_is_left(start, says):
    server, idle = start({"go": says}, idle_s=3600.0)
    fails(idle)
    assert server.ended.wait(LATEST_S)
    assert server.sent < MAX_WAIT + 6_000_000


def test_no_more_is_read_than_the_limits_allow(start, monkeypatch):
    taken, receive = [], mail_connection.Connection._receive

    def counted(self):
        found = receive(self)
        taken.append(len(self._held))
        return found

    monkeypatch.setattr(mail_connection.Connection, "_receive", counted)
    for says in ({"go": LONG}, {"EXAMINE": LONG}):
        _, idle = start(says, idle_s=3600.0)
        fails(idle)
        assert mail_idle.MAX_LINE < max(taken) <= mail_idle.MAX_LINE + mail_connection.CHUNK


@pytest.mark.parametrize("verb", ["greeting", "CAPABILITY", "EXAMINE", "IDLE", "DONE"])
@pytest.mark.parametrize("dribbles", [False, True])
def test_a_server_that_is_silent_or_slow_is_left_at_the_deadline(
    start, monkeypatch, verb, dribbles
):
    for name in ("SIGN_IN", "START"):
        limits = getattr(mail_idle, name)._replace(seconds=0.5)
        monkeypatch.setattr(mail_idle, name, limits)
    says = {verb: ["* OK " + "x" * 2_000] if dribbles else []}
    _, idle = start(says, dribbles=verb if dribbles else "")
    assert "no answer in time" in fails(idle)


def test_the_whole_of_a_slow_answer_has_a_deadline(start, monkeypatch):
    assert mail_idle.SIGN_IN.seconds == 30.0
    assert Limits().seconds < 130.0, "the parent's"
    monkeypatch.setattr(mail_connection, "TIMEOUT_S", 0.3)
    _, idle = start({"greeting": []})
    assert "no answer in time" in fails(idle)


@pytest.mark.parametrize(
    "says",
    [
        {"greeting": ["hello"]},
        {"greeting": [b"\xff\xfe\0" * 10 + b"\r\n"]},
        {"greeting": ["* PREAUTH hello"], "CAPABILITY": ["* CAPABILITY IDLE", "{tag} OK done"]},
        {"CAPABILITY": ["* CAPABILITY {3}", b"abc\r\n", "{tag} OK done"]},
        {"CAPABILITY": [b"* CAPABILITY IMAP4rev1 \xff\r\n", "{tag} OK done"]},
        {"CAPABILITY": ["{tag} OK done"]},
        {"CAPABILITY": ["* CAPABILITY {3}", "abc IMAP4rev1 AUTH=PLAIN", "{tag} OK done"]},
        {"EXAMINE": ["* EXISTS abc", "{tag} OK done"]},
        {"EXAMINE": [f"* {'9' * 9_000} EXISTS", "{tag} OK done"]},
        {"EXAMINE": ["{tag} NO 5"]},
        {"EXAMINE": ["+ what"] * 3},
        {"EXAMINE": ["* BYE"]},
        {"IDLE": ["+ go", "WAIT OK ended"]},
        {"go": ["WAIT OK ended"]},
        {"DONE": ["DONE BAD", "* BYE"]},
    ],
)
def test_an_answer_that_makes_no_sense_is_a_failure_of_the_server(start, monkeypatch, says):
    monkeypatch.setattr(mail_idle, "START", mail_idle.START._replace(seconds=0.5))
    monkeypatch.setattr(mail_idle, "SIGN_IN", mail_idle.SIGN_IN._replace(seconds=0.5))
    _, idle = start(says, idle_s=0.2)
    message = fails(idle)
    assert "The mail server localhost" in message
    assert "no name of a server" not in message


# ------------------------------------------------------------------ ending, secrets


def test_it_ends_at_once_when_it_is_closed(start):
    server, idle = start({}, idle_s=3600.0)
    waiting = start_waiting(idle)
    assert server.idles.wait(LATEST_S)
    idle.close()
    waiting.join(LATEST_S)
    assert not waiting.is_alive()
    assert server.ended.wait(LATEST_S), "the server sees it, too"


def test_nothing_is_sent_after_it_was_closed(start):
    server, idle = start({})
    idle.close()
    fails(idle)
    assert server.ended.wait(LATEST_S)
    assert server.got == []


@pytest.mark.requirement("I15-mail-secrets")
@pytest.mark.parametrize("able", [ABLE, "IMAP4rev1 IDLE"])
def test_a_connection_keeps_no_password(start, monkeypatch, able):
    kept, allow = [], mail_connection.Connection.allow

    def look(self, *args, **options):
        kept.append(repr(vars(self)))
        allow(self, *args, **options)

    monkeypatch.setattr(mail_connection.Connection, "allow", look)
    server, idle = start({}, able=able, leaves=True, idle_s=3600.0)
    fails(idle)
    assert any("LOGIN" in line for line in server.got) is (able != ABLE)
    assert kept
    assert not any(PASSWORD in each for each in kept)


@pytest.mark.requirement("I15-mail-secrets")
def test_the_secret_is_read_at_each_connection_and_sent_to_a_verified_server_only(start, tmp_path):
    (tmp_path / "other").mkdir()
    server, idle = start({})
    idle.settings["ca_file"] = str(Authority(tmp_path / "other").ca)
    assert "certificate" in fails(idle, ErrorCode.TOOL_UNAVAILABLE)
    assert server.got == []
    _, idle = start({})
    idle.settings["imap_host"] = HOST
    assert "certificate" in fails(idle, ErrorCode.TOOL_UNAVAILABLE), "it is not of this name"
    server, idle = start({})
    (tmp_path / "password").unlink()
    assert "password_file cannot be read" in fails(idle, ErrorCode.TOOL_UNAVAILABLE)
    assert not server.accepted, "there is nothing to sign in with"
