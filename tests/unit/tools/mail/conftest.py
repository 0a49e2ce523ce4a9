"""Mail servers for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.broker import HOST
from tests.unit.tools.mail.servers import PASSWORD, Dovecot, Maildir, SmtpServer, token


@pytest.fixture(scope="module")
def dovecot() -> Iterator[Dovecot]:
    server = Dovecot()
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture
def box(dovecot: Dovecot) -> Maildir:
    return dovecot.mailbox()


@pytest.fixture
def smtp(dovecot: Dovecot, box: Maildir) -> Iterator[SmtpServer]:
    server = SmtpServer(dovecot.authority)
    server.user = box.user
    yield server
    server.close()


@pytest.fixture
def settings(dovecot: Dovecot, box: Maildir, smtp: SmtpServer, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    (tmp_path / "token").write_text(f"{token(box.user)}\n", encoding="utf-8")
    return {
        "imap_host": "localhost",
        "imap_port": dovecot.port,
        "smtp_host": HOST,
        "smtp_port": smtp.port,
        "username": box.user,
        "address": "me@example.com",
        "password_file": str(tmp_path / "password"),
        "ca_file": str(dovecot.authority.ca),
    }
