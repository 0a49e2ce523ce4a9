"""Real mail servers for tests, on free loopback ports with TLS: a Dovecot of our own, and an SMTP
server that can misbehave at any step.
"""

import base64
import grp
import hmac
import json
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.e2e.broker import HOST, free_port
from tests.system import program
from tests.unit.doctor.certificates import Authority

PASSWORD = "correct horse ä"
TOKEN_KEY = b"the key that tokens are signed with"
FIRST = 1_795_250_000
"""When the first message of each mailbox arrived: 2026-11-21 08:33:20 UTC."""
USERS = 200
_CONFIG = """\
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = {host}
ssl = required
ssl_cert = <{folder}/server.pem
ssl_key = <{folder}/server.key
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 0
auth_mechanisms = plain login xoauth2
auth_failure_delay = 0
mail_location = maildir:~/Maildir
passdb {{
  driver = passwd-file
  args = scheme=PLAIN {folder}/passwords
}}
passdb {{
  driver = oauth2
  mechanisms = xoauth2
  args = {folder}/oauth2
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={folder}/home/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {port}
    ssl = yes
  }}
}}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service stats {{
  chroot =
}}
namespace inbox {{
  inbox = yes
  mailbox "Gesendet ä" {{
    special_use = \\Sent
    auto = create
  }}
}}
"""


class Dovecot:
    """One server with an empty mailbox for each test. It runs as an ordinary user, also where tests
    are root's: its login process refuses root. Skips the test where there is none.
    """

    def __init__(self, more: str = "") -> None:
        """`more`: lines of its configuration."""
        self._program = program("dovecot")
        self.folder = Path(tempfile.mkdtemp(prefix="dv", dir="/tmp"))  # short: it makes sockets
        self.authority = Authority(self.folder)
        self.authority.server("localhost", HOST)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._given = 0
        user, group = os.getuid(), os.getgid()
        self.other: dict[str, Any] = {}
        if user == 0:
            user, group = pwd.getpwnam("nobody").pw_uid, pwd.getpwnam("nobody").pw_gid
            self.other = {"user": user, "group": group, "extra_groups": []}
        self.owner = user, group
        (self.folder / "passwords").write_text(
            "".join(f"user{n}:{PASSWORD}\n" for n in range(USERS)), encoding="utf-8"
        )
        names = {"user": pwd.getpwuid(user).pw_name, "group": grp.getgrgid(group).gr_name}
        (self.folder / "dovecot.conf").write_text(
            _CONFIG.format(folder=self.folder, host=HOST, port=self.port, **names) + more,
            encoding="utf-8",
        )
        keys = self.folder / "keys" / "default" / "HS256"
        keys.mkdir(parents=True)
        (keys / "default").write_bytes(base64.b64encode(TOKEN_KEY))
        (self.folder / "oauth2").write_text(
            "introspection_mode = local\n"
            f"local_validation_key_dict = fs:posix:prefix={self.folder}/keys/\n"
        )
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, *self.owner)

    def start(self) -> "Dovecot":
        self._process = subprocess.Popen(
            [self._program, "-F", "-c", str(self.folder / "dovecot.conf")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self.other,
        )
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection((HOST, self.port), timeout=0.2):
                return self
            time.sleep(0.02)
        raise RuntimeError(self.log() or "dovecot did not start")

    def stop(self) -> None:
        """End it and all its connections; `start` may follow."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace") if log.exists() else ""

    def mailbox(self) -> "Maildir":
        """Return a mailbox that no test had before."""
        self._given += 1
        return Maildir(self, f"user{self._given}")


def token(user: str) -> str:
    """Return an access token (RFC 7519) that lets this user in."""
    parts = (
        {"alg": "HS256", "typ": "JWT"},
        {"sub": user, "email": user, "exp": 4_000_000_000, "iat": 1},
    )
    signed = b".".join(_url_base64(json.dumps(part).encode()) for part in parts)
    signature = hmac.digest(TOKEN_KEY, signed, "sha256")
    return b".".join((signed, _url_base64(signature))).decode()


def _url_base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class Maildir:
    """One user's mail, as files."""

    def __init__(self, server: Dovecot, user: str) -> None:
        self.server, self.user = server, user
        self.folder = server.folder / "home" / user / "Maildir"
        self._count = 0
        for name in ("new", "cur", "tmp"):
            (self.folder / name).mkdir(parents=True)
        for path in (self.folder.parents[1], self.folder.parent, *self.folder.glob("**")):
            os.chown(path, *server.owner)

    def deliver(self, *messages: bytes | str, read: bool = False) -> None:
        """Put messages into the inbox, the last as the newest."""
        for message in messages:
            self._count += 1
            name = f"{1_700_000_000 + self._count}.M{self._count}.test"
            path = self.folder / ("cur" if read else "new") / (name + (":2,S" if read else ""))
            path.write_bytes(message.encode() if isinstance(message, str) else message)
            os.utime(path, (FIRST + self._count, FIRST + self._count))
            os.chown(path, *self.server.owner)

    def sent(self) -> list[bytes]:
        """Return what is in the folder of sent messages."""
        found = [path for path in self.folder.glob(".*/[cn]*/*") if path.is_file()]
        return [path.read_bytes() for path in found]

    def flags(self) -> list[str]:
        """Return the flags of each message of the inbox."""
        files = [*(self.folder / "cur").iterdir(), *(self.folder / "new").iterdir()]
        return [path.name.partition(":2,")[2] for path in files]


class SmtpServer:
    """Takes mail over TLS. `misbehave` names the step at which it does something else:

    `drop-data` ends the connection once it has the whole message, `drop-early` before it takes any;
    `refuse-data`, `refuse-rcpt`, `busy` (a 451 for the sender), `echo` (repeats what it was sent in
    its refusal), `echo-later` (takes the sign-in, and repeats it when it refuses the sender).
    """

    def __init__(self, authority: Authority, *, starttls: bool = False) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(
            authority.folder / "server.pem", authority.folder / "server.key"
        )
        self.user, self.starttls, self.given = "", starttls, ""
        self.misbehave, self.offers = "", "PLAIN LOGIN XOAUTH2"
        self.confirms_after_s = 0.0
        self.received: list[tuple[str, list[str], bytes]] = []
        self.signed_in: list[str] = []
        self.names: list[str] = []
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError, ValueError):
                connection.settimeout(20)
                self._talk(connection)

    def _talk(self, plain: socket.socket) -> None:
        tls: socket.socket | None = None
        if not self.starttls:
            tls = self.context.wrap_socket(plain, server_side=True)
        with Conversation(tls or plain) as said:
            said.say("220 here")
            if not self.starttls:
                self._session(said)
                return
            while (line := said.line()) and line != "STARTTLS":
                said.say(
                    "250-here\r\n250 STARTTLS" if line[:4].upper() == "EHLO" else "530 TLS first"
                )
            said.say("220 go")
        tls = self.context.wrap_socket(plain, server_side=True)
        with Conversation(tls) as said:
            self._session(said)

    def _session(self, said: "Conversation") -> None:
        sender, recipients, signed_in = "", [], False
        while line := said.line():
            verb = line.partition(" ")[0].upper()
            if verb == "EHLO":
                self.names.append(line[5:])
                said.say(f"250-here\r\n250 AUTH {self.offers}")
            elif verb == "AUTH":
                signed_in = self._sign_in(said, line)
            elif verb == "QUIT":
                said.say("221 bye")
                return
            elif not signed_in:
                said.say("530 sign in first")
            elif verb == "MAIL":
                sender, recipients = line[11:-1], []
                replies = {"busy": "451 busy", "echo-later": f"554 no: {self.given}"}
                said.say(replies.get(self.misbehave, "250 ok"))
            elif verb == "RCPT":
                if self.misbehave == "refuse-rcpt" and recipients:
                    said.say("550 no such person")
                else:
                    recipients.append(line[9:-1])
                    said.say("250 ok")
            elif verb == "DATA":
                if self.misbehave == "drop-early":
                    return
                said.say("354 go on")
                if not self._take(said, sender, recipients):
                    return
            else:
                said.say("500 what")

    def _take(self, said: "Conversation", sender: str, recipients: list[str]) -> bool:
        body = said.until_dot()
        if self.misbehave == "refuse-data":
            said.say("554 5.7.1 looks like spam")
            return True
        self.received.append((sender, recipients, body))
        if self.misbehave == "drop-data":
            return False
        time.sleep(self.confirms_after_s)
        said.say("250 taken")
        return True

    def _sign_in(self, said: "Conversation", line: str) -> bool:
        _, way, *first = line.split(" ")
        if way == "LOGIN":
            said.say("334 UGFzc3dvcmQ6")
            given = [base64.b64decode(first[0]).decode(), base64.b64decode(said.line()).decode()]
            good = given == [self.user, PASSWORD]
        else:
            given = [base64.b64decode(first[0]).decode()]
            good = given[0] in (
                f"\0{self.user}\0{PASSWORD}",
                f"user={self.user}\x01auth=Bearer {token(self.user)}\x01\x01",
            )
        if not good and way == "XOAUTH2":
            said.say("334 eyJzdGF0dXMiOiI0MDEifQ==")
            assert said.line() == ""
        self.signed_in.append(way)
        self.given = " ".join((*first, *given)).replace("\0", " ").replace("\x01", " ")
        echoed = " ".join(given).replace("\0", " ")
        said.say("235 ok" if good else f"535 no: {echoed if self.misbehave == 'echo' else ''}")
        return good


class Conversation:
    """Lines over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if isinstance(self._connection, ssl.SSLSocket):
            self._connection.close()

    def say(self, line: str) -> None:
        self._connection.sendall(line.encode() + b"\r\n")

    def line(self) -> str:
        return self._file.readline(10_000).decode().rstrip("\r\n")

    def until_dot(self) -> bytes:
        lines = []
        while (line := self._file.readline()) not in (b".\r\n", b""):
            assert re.fullmatch(rb"[^\r\n]{0,998}\r\n", line)
            lines.append(line.removeprefix(b"."))
        return b"".join(lines)
