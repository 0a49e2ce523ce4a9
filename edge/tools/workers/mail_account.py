"""The owner's account: its secret, verified TLS, and what goes wrong on the way to its servers.

The daemon imports this, too, while it waits for new mail.
"""

import base64
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from imaplib import IMAP4
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools_cache.errors import ErrorCode, ToolFailure

TIMEOUT_S: Final = 8.0
"""Of each step on the network. The parent's deadline is longer: the error names the reason."""
MAX_SECRET: Final = 4096
SECTION: Final = "[tool.email]"
_HASHED: Final = re.compile(r"[0-9a-f]{8}\.\d+")
"""The name of an authority's file, from the hash of its subject (openssl-rehash)."""
UNUSABLE: Final = "it gave an answer that cannot be used"


class Server(NamedTuple):
    """Which of the two servers, and the settings that name it."""

    kind: str
    host: str
    port: int

    @property
    def name(self) -> str:
        return f"{self.host}, port {self.port}"


class Account:
    """The settings of one request."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self.user: str = settings["username"]
        self.address: str = settings["address"]
        self.starttls: bool = settings.get("smtp_security", "tls") == "starttls"
        self.imap = Server("imap", settings["imap_host"], settings.get("imap_port", 993))
        self.smtp = Server("smtp", settings["smtp_host"], settings.get("smtp_port", 465))

    @property
    def by_token(self) -> bool:
        return bool(self._settings.get("token_file"))

    @property
    def secret_setting(self) -> str:
        return "token_file" if self.by_token else "password_file"

    def secret(self) -> str:
        """Read the password or the access token. Raise `ToolFailure` if there is none."""
        setting = self.secret_setting
        file = self._settings.get(setting, "")
        if not file:
            raise _unusable(
                "The account has no password",
                f"Set password_file or token_file in {SECTION} to a file that has it",
            )
        try:
            with Path(file).open("rb") as source:
                raw = source.read(MAX_SECRET + 1)
        except OSError as e:
            raise _unusable(
                f"The file of {setting} cannot be read: {e.strerror}", f"See {setting} in {SECTION}"
            ) from None
        try:
            found = raw.decode().strip()
        except UnicodeDecodeError:
            found = ""
        if not found or len(raw) > MAX_SECRET or not found.isprintable():
            raise _unusable(
                f"The file of {setting} must hold one line of text, 1 to {MAX_SECRET} bytes",
                f"See {setting} in {SECTION}",
            )
        return found

    def without_secret(self, text: str) -> str:
        """Return a server's text without the secret, in the forms in which it was sent."""
        secret = self.secret()
        sent = (self.xoauth2(secret), f"\0{self.user}\0{secret}", secret)
        for form in (*(base64.b64encode(one.encode()).decode() for one in sent), secret):
            text = text.replace(form.rstrip("="), "***")
        return text

    def xoauth2(self, token: str) -> str:
        """Return what an access token is sent as."""
        return f"user={self.user}\x01auth=Bearer {token}\x01\x01"

    def tls(self) -> ssl.SSLContext:
        """Return a context that verifies certificates and names. Raise `ToolFailure` if the file of
        `ca_file` cannot be used.
        """
        file = self._settings.get("ca_file", "")
        try:
            return ssl.create_default_context(cafile=file) if file else _system_trust()
        except (OSError, ValueError) as e:
            reason = getattr(e, "strerror", "") or "it holds no certificates"
            raise _unusable(
                f"The file of ca_file cannot be used: {reason}", f"See ca_file in {SECTION}"
            ) from None

    def refused(self, server: Server) -> ToolFailure:
        """Return the failure of a server that does not accept the secret. What it says is left out:
        it may repeat what it was sent.
        """
        what = "the access token" if self.by_token else "the user name or the password"
        return ToolFailure.of(
            ErrorCode.AUTH,
            f"The mail server {server.host} does not accept {what}",
            suggestion=f"Check username and {self.secret_setting} in {SECTION}",
            for_wearer="The mail server does not accept the password.",
        )


def _system_trust() -> ssl.SSLContext:
    """Return a context that trusts the authorities of the system. Where they are in a folder by
    their hashes, as on Debian, OpenSSL reads those that a server needs: all of them would take 1
    MiB for as long as the daemon waits for mail.
    """
    paths = ssl.get_default_verify_paths()
    names = [each.name for each in Path(paths.capath).iterdir()] if paths.capath else []
    hashed = any(map(_HASHED.fullmatch, names)) and paths.openssl_cafile_env not in os.environ
    return ssl.create_default_context(capath=paths.capath if hashed else None)


def _unusable(text: str, suggestion: str) -> ToolFailure:
    return ToolFailure.of(ErrorCode.TOOL_UNAVAILABLE, text, suggestion=suggestion)


def unreachable(server: Server, reason: str) -> ToolFailure:
    """Return the failure of a server that is away, or went away."""
    return ToolFailure.of(
        ErrorCode.NETWORK_ERROR,
        f"The mail server {server.name} cannot be reached: {reason}",
        suggestion=f"Check the network, and {server.kind}_host and {server.kind}_port in {SECTION}",
        for_wearer="The mail server cannot be reached.",
    )


@contextmanager
def faults(server: Server) -> Iterator[None]:
    """Raise what goes wrong on the way to a server as `ToolFailure`."""
    try:
        yield
    except ssl.SSLCertVerificationError as e:
        raise ToolFailure.of(
            ErrorCode.TOOL_UNAVAILABLE,
            f"The certificate of the mail server {server.name} is not valid: {e.verify_message}",
            suggestion=f"Check {server.kind}_host, the clock of this machine, or name the"
            f" authority's file as ca_file in {SECTION}",
            for_wearer="The mail server's certificate is not valid.",
        ) from None
    except ssl.SSLError:
        raise unreachable(server, "it does not speak TLS there") from None
    except TimeoutError:
        raise unreachable(server, "no answer in time") from None
    except (IMAP4.abort, EOFError):
        raise unreachable(server, "it closed the connection") from None
    except (IMAP4.error, UnicodeDecodeError):
        raise unreachable(server, UNUSABLE) from None
    except UnicodeError:
        raise unreachable(server, "this is no name of a server") from None
    except OSError as e:
        raise unreachable(server, e.strerror or "no connection") from None
