"""Composes a message and sends it by SMTP: to all its recipients or to none."""

import base64
import re
import smtplib
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any, Final

from edge.tools.workers.mail_account import (
    TIMEOUT_S,
    UNUSABLE,
    Account,
    Server,
    faults,
    unreachable,
)
from edge.tools.workers.mail_text import one_line
from tools_cache.errors import ErrorCode, ToolFailure

MAX_RECIPIENTS: Final = 20
MAX_SUBJECT: Final = 200
MAX_TEXT: Final = 20_000
MAX_REFERENCES: Final = 10
REPLY_S: Final = 15.0
"""How long a server may take to accept a message that it has whole: it may look for viruses."""
_GREETING: Final = "[127.0.0.1]"
"""What this machine calls itself: its own name is nobody's business."""
_ATOM: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS: Final = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")
_MESSAGE_ID: Final = re.compile(r"<[A-Za-z0-9!#$%&'*+/=?^_`{|}~.@-]{1,250}>")


def is_address(text: str) -> bool:
    """Return whether this is a plain e-mail address, in ASCII."""
    local = text.partition("@")[0]
    return len(text) <= 254 and len(local) <= 64 and _ADDRESS.fullmatch(text) is not None


def message_ids(text: str) -> list[str]:
    """Return the well-formed message ids of a header."""
    return _MESSAGE_ID.findall(text[:8_000])


def compose(
    account: Account, request: Mapping[str, Any], references: Sequence[str] = ()
) -> EmailMessage:
    """Return the message. Raise `ToolFailure` naming the field that is wrong. `references`: the ids
    of the messages that it answers, the last of them directly.
    """
    recipients, subject, text = request["to"], request["subject"], request["text"]
    _check(not is_address(account.address), "address", "is no e-mail address", "setting")
    _check(not 1 <= len(recipients) <= MAX_RECIPIENTS, "/to", f"must be 1 to {MAX_RECIPIENTS}")
    for number, address in enumerate(recipients):
        _check(not is_address(address), f"/to/{number}", "is no e-mail address")
    _check(len(subject) > MAX_SUBJECT, "/subject", f"is longer than {MAX_SUBJECT} characters")
    controls = any(ord(ch) < 32 or ch in "\x7f\x85\u2028\u2029" for ch in subject)
    _check(controls, "/subject", "must be one line without control characters")
    _check(not text.strip() or len(text) > MAX_TEXT, "/text", f"must be 1 to {MAX_TEXT} characters")
    _check("\0" in text or not _writable(subject + text), "/text", "has characters that are none")
    made = EmailMessage(policy=SMTP)
    made["From"] = account.address
    made["To"] = ", ".join(recipients)
    made["Subject"] = subject
    made["Date"] = format_datetime(datetime.now(UTC))
    made["Message-ID"] = request["message_id"]
    if references:
        kept = [*references[:1], *references[1:][-(MAX_REFERENCES - 1) :]]
        made["In-Reply-To"] = references[-1]
        made["References"] = " ".join(kept)
    made.set_content(text, charset="utf-8", cte="quoted-printable")
    return made


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check(wrong: bool, field: str, problem: str, what: str = "") -> None:  # noqa: FBT001
    if wrong and what:
        raise ToolFailure.of(
            ErrorCode.TOOL_UNAVAILABLE,
            f"The setting {field} {problem}",
            suggestion=f"Correct {field} in [tool.email]",
        )
    if wrong:
        raise ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: {field} {problem}")


def send(account: Account, recipients: Sequence[str], message: bytes) -> None:
    """Hand a message over. Raise `ToolFailure`: with `partial_side_effects` if the server had all
    of it and gave no answer, so that nobody knows whether it was sent; else it was not.
    """
    with _session(account) as smtp:
        _ask(smtp, f"MAIL FROM:<{account.address}>", account, "the sender")
        for number, address in enumerate(recipients):
            _ask(smtp, f"RCPT TO:<{address}>", account, f"the recipient {address}", field=number)
        _ask(smtp, "DATA", account, "the message", good=354)
        smtp.send(_dotted(message))
        _finish(smtp, account)


def _finish(smtp: smtplib.SMTP, account: Account) -> None:
    """Send the final dot and wait for the answer."""
    try:
        if smtp.sock is not None:
            smtp.sock.settimeout(REPLY_S)
        smtp.send(b".\r\n")
        code, said = smtp.getreply()
    except (OSError, smtplib.SMTPException):
        raise ToolFailure.of(
            ErrorCode.NETWORK_ERROR,
            f"The mail server {account.smtp.name} took the message and did not confirm it: nobody"
            " knows whether it was sent",
            suggestion="Look for it with email:search, in: sent, before sending it again",
            partial_side_effects=True,
            for_wearer="Nobody knows whether the mail was sent.",
        ) from None
    if code != 250:
        raise _refusal(account, "the message", code, said)


def _dotted(message: bytes) -> bytes:
    """Return lines as SMTP sends them: those that begin with a dot get another."""
    lines = message.replace(b"\r\n", b"\n").replace(b"\r", b"\n").removesuffix(b"\n").split(b"\n")
    return b"".join((b"." if line[:1] == b"." else b"") + line + b"\r\n" for line in lines)


@contextmanager
def _smtp_faults(server: Server) -> Iterator[None]:
    """Raise what `smtplib` raises as `ToolFailure`."""
    try:
        yield
    except smtplib.SMTPServerDisconnected:
        raise unreachable(server, "it closed the connection") from None
    except smtplib.SMTPNotSupportedError:
        raise unreachable(server, "it offers no STARTTLS") from None
    except smtplib.SMTPException as e:
        code = getattr(e, "smtp_code", "")
        raise unreachable(server, f"{UNUSABLE} {code}".strip()) from None


@contextmanager
def _session(account: Account) -> Iterator[smtplib.SMTP]:
    secret, context, server = account.secret(), account.tls(), account.smtp
    with faults(server), _smtp_faults(server):
        smtp = _connect(account, context)
        try:
            _sign_in(smtp, account, secret)
            yield smtp
        finally:
            if smtp.sock is not None:  # a server that left needs no goodbye
                with suppress(OSError, smtplib.SMTPException):
                    smtp.sock.settimeout(1.0)
                    smtp.quit()
            smtp.close()


def _connect(account: Account, context: ssl.SSLContext) -> smtplib.SMTP:
    host, port = account.smtp.host, account.smtp.port
    if not account.starttls:
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(
            host, port, _GREETING, timeout=TIMEOUT_S, context=context
        )
    else:
        smtp = smtplib.SMTP(host, port, _GREETING, timeout=TIMEOUT_S)
        try:
            smtp.starttls(context=context)
        except BaseException:
            smtp.close()
            raise
    smtp.ehlo()
    return smtp


def _sign_in(smtp: smtplib.SMTP, account: Account, secret: str) -> None:
    ways = smtp.esmtp_features.get("auth", "").upper().split()
    if account.by_token:
        code, _ = smtp.docmd("AUTH", f"XOAUTH2 {_base64(account.xoauth2(secret))}")
        if code == 334:
            code, _ = smtp.docmd("")  # it explains the refusal, and wants an empty answer
    elif "PLAIN" in ways or "LOGIN" not in ways:
        code, _ = smtp.docmd("AUTH", f"PLAIN {_base64(f'{chr(0)}{account.user}{chr(0)}{secret}')}")
    else:
        code, _ = smtp.docmd("AUTH", f"LOGIN {_base64(account.user)}")
        if code == 334:
            code, _ = smtp.docmd(_base64(secret))
    if code == 235:
        return
    if 400 <= code < 500:
        raise smtplib.SMTPResponseException(code, b"")
    raise account.refused(account.smtp)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _ask(
    smtp: smtplib.SMTP,
    command: str,
    account: Account,
    what: str,
    *,
    good: int = 250,
    field: int | None = None,
) -> None:
    """Send one command. Raise `ToolFailure` if the server refuses it: nothing was sent. `field`:
    the number of the recipient that it is about.
    """
    code, said = smtp.docmd(command)
    if code not in (good, 251):
        raise _refusal(account, what, code, said, field=field)


def _refusal(
    account: Account, what: str, code: int, said: bytes, *, field: int | None = None
) -> ToolFailure:
    """Return the failure of a server that refuses a message. Its text is kept, as only that
    gives the reason, without the secret: it has it from signing in.
    """
    text = one_line(account.without_secret(said.decode("utf-8", "replace")), 200)
    where, found = "", ErrorCode.TOOL_UNAVAILABLE
    if 400 <= code < 500:
        found = ErrorCode.NETWORK_ERROR
    elif field is not None:
        where, found = f"Invalid parameters: /to/{field} ", ErrorCode.INVALID_ARGUMENTS
    return ToolFailure.of(
        found,
        f"{where}The mail server {account.smtp.host} refuses {what}: {code} {text}. Nothing was"
        " sent",
        for_wearer="The mail server refuses this mail. Nothing was sent.",
    )
