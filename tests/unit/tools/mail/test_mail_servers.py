"""Reading from a real Dovecot, and sending to an SMTP server that can misbehave."""

import base64
import socket
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from edge.tools.workers import mail
from edge.tools.workers.mail_account import Account
from edge.tools.workers.mail_imap import Mailbox
from tests.e2e.broker import HOST, free_port
from tests.system import needs
from tests.unit.tools.mail.servers import PASSWORD, SmtpServer, token
from tools_cache.errors import ErrorCode, ToolFailure

pytestmark = [pytest.mark.enable_socket, needs("dovecot")]
ID = "<glassd.0123456789@example.com>"
MAIL = {"to": ["eva@example.com"], "subject": "Lunch", "text": "At noon.", "message_id": ID}


@pytest.fixture
def ask(settings):
    def run(do, **more):
        return mail.answer({"do": do, "settings": settings, **more})

    return run


@pytest.fixture
def fails(ask, settings):
    def run(do, **more):
        with pytest.raises(ToolFailure) as raised:
            ask(do, **more)
        error = raised.value.error
        assert PASSWORD not in repr(error)
        assert token(settings["username"]) not in repr(error)
        return error

    return run


def plain(subject="Lunch", text="At noon?", sender="Anna Berg <anna@example.com>", more=""):
    return f"From: {sender}\nTo: me@example.com\nSubject: {subject}\n{more}\n{text}\n"


def multipart(*parts, kind="mixed", head="From: a@example.com\nSubject: parts\n"):
    joined = "".join(f"--x\n{part}\n" for part in parts)
    return f"{head}MIME-Version: 1.0\nContent-Type: multipart/{kind}; boundary=x\n\n{joined}--x--\n"


# ------------------------------------------------------------------ reading


@pytest.mark.requirement("I15-mail-reading")
def test_unread_mail_is_listed_newest_first_and_stays_unread(ask, box):
    box.deliver(plain("one"), plain("two", sender="=?utf-8?q?M=C3=BCller?= <m@example.com>"))
    box.deliver(plain("old"), read=True)
    for _ in range(2):
        found = ask("unread")
        assert found["total"] == 2
        assert [each["subject"] for each in found["messages"]] == ["two", "one"]
    assert found["messages"][0] == {
        "id": found["messages"][0]["id"],
        "from": {"name": "Müller", "address": "m@example.com"},
        "subject": "two",
        "date": "2026-11-21T08:33:22+00:00",
    }
    ask("read", id=found["messages"][0]["id"])
    ask("search", **{"from": "m@example.com"})
    assert sorted(flags.count("S") for flags in box.flags()) == [0, 0, 1], "only the old one"
    assert ask("unread")["total"] == 2


def test_an_empty_mailbox_is_no_error(ask):
    assert ask("unread") == {"messages": [], "total": 0}
    assert ask("search", subject="x") == {"messages": [], "complete": True}
    assert ask("read") == {"none": True}


@pytest.mark.requirement("I15-mail-reading")
@pytest.mark.parametrize(
    ("wanted", "subjects"),
    [
        ({"from": "ANNA"}, ["c", "a"]),
        ({"from": "müller"}, ["b ä"]),
        ({"subject": "ä"}, ["b ä"]),
        ({"text": "groceries"}, ["c"]),
        ({"from": "müller", "subject": "ä", "text": "größe"}, ["b ä"]),
        ({"from": "anna", "text": "größe"}, []),
        ({"from": 'a" OR ALL'}, []),
        ({"from": "anna", "since": "2026-11-21"}, ["c", "a"]),
        ({"since": "2026-11-22"}, []),
    ],
)
def test_a_search_meets_everything_that_is_asked_for(ask, box, wanted, subjects):
    box.deliver(
        plain("a"),
        plain(
            "=?utf-8?q?b_=C3=A4?=",
            text="die Größe",
            sender="=?utf-8?q?M=C3=BCller?= <m@example.com>",
            more="Content-Type: text/plain; charset=utf-8\n",
        ),
        plain("c", text="groceries"),
    )
    found = ask("search", **wanted)
    assert ([each["subject"] for each in found["messages"]], found["complete"]) == (subjects, True)


@pytest.mark.requirement("I15-mail-once")
def test_sent_mail_is_found_by_what_it_says_and_whom_it_went_to(ask, box):
    box.deliver(plain("Lunch"))
    ask("send", **{**MAIL, "to": ["eva@example.com", "bob@example.com"]})
    for wanted in ({"subject": "lunch"}, {"text": "bob@example.com"}):
        [found] = ask("search", sent=True, **wanted)["messages"]
        assert [person["address"] for person in found["to"]] == MAIL["to"] + ["bob@example.com"]
        assert (found["subject"], found.keys()) == ("Lunch", {"to", "subject", "date"})
    assert ask("search", sent=True, subject="dinner")["messages"] == []
    assert [each["from"]["name"] for each in ask("search", subject="lunch")["messages"]] == [
        "Anna Berg"
    ]


def test_a_server_without_sent_mail_says_so(fails, monkeypatch):
    monkeypatch.setattr(Mailbox, "sent_name", lambda _box: None)
    error = fails("search", sent=True, subject="lunch")
    assert (error.code, "no folder of sent messages" in error.message) == (
        ErrorCode.TOOL_UNAVAILABLE,
        True,
    )


@pytest.mark.requirement("I15-mail-hostile")
@pytest.mark.parametrize(
    "says", [b"* OK " + b"x" * 70_000, b"* OK here\r\n* 1 FETCH (X {60000000}\r\n"]
)
def test_a_server_that_does_not_end_its_answer_is_left(fails, settings, dovecot, says):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = dovecot.authority.folder
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    sent = 0
    with socket.create_server((HOST, 0)) as server:
        settings["imap_port"] = server.getsockname()[1]

        def talk():
            nonlocal sent
            with context.wrap_socket(server.accept()[0], server_side=True) as connection:
                connection.settimeout(20)
                with suppress(OSError):
                    connection.sendall(says)
                    while sent < 80_000_000:
                        connection.sendall(b"x" * 10_000)
                        sent += 10_000

        thread = threading.Thread(target=talk)
        thread.start()
        assert fails("unread").code is ErrorCode.NETWORK_ERROR
        thread.join(20)
    assert sent < 8_000_000, "what the kernel holds of it"


@pytest.mark.requirement("I15-mail-reading")
def test_html_is_read_as_text_and_attachments_are_only_named(ask, box):
    pdf = base64.encodebytes(b"p" * 300_000).decode()
    box.deliver(
        multipart(
            f"Content-Type: application/pdf; name=plan.pdf\n"
            f"Content-Transfer-Encoding: base64\nContent-Disposition: attachment\n\n{pdf}",
            "Content-Type: text/html; charset=iso-8859-1\n"
            "Content-Transfer-Encoding: quoted-printable\n\n<p>Gr=FC=DFe<br>Anna</p>",
        )
    )
    found = ask("read")
    assert (found["body"], found["cut"]) == ("Grüße\nAnna", False)
    assert found["attachments_total"] == 1
    attached = found["attachments"][0]
    assert (attached["name"], attached["type"]) == ("plan.pdf", "application/pdf")
    assert 300_000 <= attached["size"] < 310_000


def test_of_alternatives_the_plain_text_is_read(ask, box):
    parts = ("Content-Type: text/plain\n\nplain", "Content-Type: text/html\n\n<b>bold</b>")
    box.deliver(multipart(*parts, kind="alternative"))
    assert ask("read")["body"] == "plain"
    box.deliver(multipart(parts[1], kind="alternative"))
    assert ask("read")["body"] == "bold"


def test_a_message_says_who_gets_an_answer(ask, box):
    box.deliver(plain("Re: Lunch", more="Reply-To: list@example.com\nCc: Bob <bob@example.com>\n"))
    found = ask("read")
    assert found["reply"] == {"to": ["list@example.com"], "subject": "Re: Lunch"}
    assert [each["address"] for each in found["to"]] == ["me@example.com", "bob@example.com"]


def test_an_id_of_another_mailbox_or_a_missing_message_is_refused(ask, fails, box):
    box.deliver(plain())
    known = ask("unread")["messages"][0]["id"]
    validity, uid = known.split("-")
    for wrong in (f"{validity}-{int(uid) + 5}", f"{int(validity) + 1}-{uid}"):
        error = fails("read", id=wrong)
        assert (error.code, "/id" in error.message) == (ErrorCode.INVALID_ARGUMENTS, True)


@contextmanager
def suppress_unreadable():
    """Allow the one refusal that there is for a message itself."""
    try:
        yield
    except ToolFailure as failure:
        why = failure.error
    else:
        return
    assert why.message == "This message is built in a way that cannot be read here"


HOSTILE = {
    "header of 10 MB": "From: a@example.com\nSubject: big\nX-A: " + "x" * 10_000_000 + "\n\nbody\n",
    "subject of 10 MB": f"From: a@example.com\nSubject: {'big ' * 2_500_000}\n\nbody\n",
    "nested": "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(5_000)
    )
    + "\nend\n",
    "parts": multipart(*["Content-Type: text/plain\n\nx"] * 9_000),
    "no header": "\n\nbody\n",
    "binary": bytes(range(256)) * 4_000,
    "no end": "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/html\n\n<p",
    "base64": "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n"
    + base64.encodebytes(b"<p>" * 4_000_000).decode(),
    "charset": "Content-Type: text/plain; charset=punycode\n\n" + "abc-" * 100_000,
    "addresses": "From: " + "((((" * 20_000 + "\nSubject: x\n\nbody",
    "message in itself": "Content-Type: message/rfc822\n\n" * 400 + "\nx",
}


@pytest.mark.requirement("I15-mail-hostile")
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_message_harms_no_other(ask, box, kind):
    box.deliver(plain("before"), HOSTILE[kind], plain("after"))
    before = time.monotonic()
    found = ask("unread")["messages"]
    assert [found[0]["subject"], found[-1]["subject"]] == ["after", "before"]
    assert len(found) == 3
    assert len(repr(found)) < 20_000
    with suppress_unreadable():
        body = ask("read", id=found[1]["id"])
        assert len(body["body"]) <= 256 * 1024
        assert len(body["attachments"]) <= 50
    assert time.monotonic() - before < 10


def test_no_more_than_256_kib_of_a_text_are_fetched(ask, box):
    box.deliver(plain(text="0123456 89\n" * 100_000))
    found = ask("read")
    assert found["cut"]
    assert 230_000 < len(found["body"]) <= 256 * 1024


def test_direction_characters_do_not_reach_the_answer(ask, box):
    turned = "\u202egpj.exe"
    kind = "Content-Type: text/plain; charset=utf-8\n"
    box.deliver(
        plain(f"=?utf-8?b?{base64.b64encode(turned.encode()).decode()}?=", turned, more=kind)
    )
    found = ask("read")
    assert (found["subject"], found["body"]) == ("gpj.exe", "gpj.exe")


@pytest.mark.requirement("I15-mail-reading")
def test_two_thousand_messages_are_no_burden(ask, box):
    box.deliver(*(plain(f"message {n}", f"text {n} of many") for n in range(2_000)))
    before = time.monotonic()
    found = ask("unread")
    assert (found["total"], len(found["messages"])) == (2_000, 20)
    assert found["messages"][0]["subject"] == "message 1999"
    assert len(ask("search", text="many")["messages"]) == 20
    hit = ask("search", text="text 7 of")
    assert [each["subject"] for each in hit["messages"]] == ["message 7"]
    assert time.monotonic() - before < 12


# ------------------------------------------------------------------ signing in


@pytest.mark.requirement("I15-mail-secrets")
def test_a_wrong_password_names_the_setting_and_never_itself(fails, settings, tmp_path, smtp):
    (tmp_path / "wrong").write_text("hunter2 wrong")
    settings["password_file"] = str(tmp_path / "wrong")
    smtp.misbehave = "echo"
    for error in (fails("unread"), fails("send", **MAIL)):
        assert error.code is ErrorCode.AUTH
        assert error.suggestion == "Check username and password_file in [tool.email]"
        assert "hunter2" not in repr(error)
    assert smtp.received == []


@pytest.mark.requirement("I15-mail-secrets")
@pytest.mark.parametrize("way", ["password_file", "token_file"])
def test_a_server_that_repeats_the_secret_later_does_not_give_it_away(
    fails, settings, tmp_path, smtp, box, way
):
    secret = PASSWORD if way == "password_file" else token(box.user)
    (tmp_path / "secret").write_text(secret, encoding="utf-8")
    settings[way] = str(tmp_path / "secret")
    smtp.misbehave = "echo-later"
    error = fails("send", **MAIL)
    assert "refuses the sender: 554 no: ***" in error.message
    assert secret[:12] not in repr(error)
    assert base64.b64encode(secret.encode()).decode()[:12] not in repr(error)
    assert smtp.given.split()[0][:20] not in repr(error)


@pytest.mark.requirement("I15-mail-secrets")
def test_a_secret_is_read_at_each_use(ask, fails, settings, tmp_path):
    file = tmp_path / "changing"
    settings["password_file"] = str(file)
    assert "password_file cannot be read: No such file" in fails("unread").message
    for content in (b"", b"a\nb", b"\xff\xfe", b"x" * 5_000):
        file.write_bytes(content)
        assert fails("unread").code is ErrorCode.TOOL_UNAVAILABLE
    file.write_text(PASSWORD, encoding="utf-8")
    assert ask("unread")["total"] == 0
    settings["password_file"] = ""
    assert "Set password_file or token_file" in (fails("unread").suggestion or "")


def test_a_certificate_of_another_authority_or_name_is_refused(fails, settings, smtp, monkeypatch):
    ca = settings.pop("ca_file")
    for error in (fails("unread"), fails("send", **MAIL)):
        assert error.code is ErrorCode.TOOL_UNAVAILABLE
        assert "The certificate of the mail server" in error.message
        assert "ca_file" in error.suggestion
    settings |= {"ca_file": ca, "imap_host": "mail.example.com"}
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _, *more, **opts: resolve(HOST, *more, **opts)
    )
    assert "mail.example.com" in fails("unread").message
    assert fails("unread").for_wearer == "The mail server's certificate is not valid."
    settings["ca_file"] = "/nowhere/ca.pem"
    assert "ca_file cannot be used: No such file" in fails("unread").message
    assert smtp.received == []


@pytest.mark.requirement("I15-mail-secrets")
def test_nothing_is_sent_to_a_server_without_tls(fails, settings):
    heard = bytearray()
    with socket.create_server((HOST, 0)) as server:
        settings |= {"smtp_port": server.getsockname()[1], "smtp_security": "starttls"}

        def talk():
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"220 here\r\n")
                while data := connection.recv(1000):
                    heard.extend(data)
                    connection.sendall(b"250 here\r\n")

        thread = threading.Thread(target=talk)
        thread.start()
        error = fails("send", **MAIL)
        thread.join(10)
    assert "it offers no STARTTLS" in error.message
    assert b"AUTH" not in heard


def test_a_server_that_is_away_is_a_network_error(fails, settings):
    settings |= {"imap_port": free_port(), "smtp_port": free_port()}
    for error, setting in ((fails("unread"), "imap_host"), (fails("send", **MAIL), "smtp_host")):
        assert (error.code, error.partial_side_effects) == (ErrorCode.NETWORK_ERROR, False)
        assert "Connection refused" in error.message
        assert setting in error.suggestion
    settings["imap_host"] = "no-such-host.invalid"
    assert fails("unread").code is ErrorCode.NETWORK_ERROR


# ------------------------------------------------------------------ sending


@pytest.mark.requirement("I15-mail-once")
def test_a_message_arrives_whole_and_is_kept_as_sent(ask, box, smtp):
    text = "Grüße 🙂\n.dot\n..two\nFrom here\n" + "long " * 500
    assert ask("send", **{**MAIL, "subject": "Grüße 🙂", "text": text}) == {"stored": True}
    [(sender, recipients, raw)] = smtp.received
    made = message_from_bytes(raw, policy=policy.default)
    assert (sender, recipients) == ("me@example.com", ["eva@example.com"])
    assert (made["From"], made["To"], made["Subject"]) == (
        "me@example.com",
        "eva@example.com",
        "Grüße 🙂",
    )
    assert made["Message-ID"] == ID
    assert made.get_content().split("\r\n") == [*text.split("\n"), ""]
    assert smtp.names == ["[127.0.0.1]"], "the name of this machine is not sent"
    [kept] = box.sent()
    assert message_from_bytes(kept)["Message-ID"] == ID
    assert ask("find_sent", message_id=ID) == {"there": True}
    assert ask("find_sent", message_id="<other@example.com>") == {"there": False}


@pytest.mark.parametrize("way", ["LOGIN", "PLAIN"])
def test_both_ways_of_a_password_work_also_after_starttls(ask, settings, dovecot, box, way):
    server = SmtpServer(dovecot.authority, starttls=True)
    server.user, server.offers = box.user, way
    settings |= {"smtp_port": server.port, "smtp_security": "starttls"}
    ask("send", **MAIL)
    server.close()
    assert (server.signed_in, len(server.received)) == ([way], 1)


def test_an_access_token_is_used_and_a_refused_one_reported(ask, fails, settings, tmp_path, smtp):
    settings["token_file"] = str(tmp_path / "token")
    assert ask("send", **MAIL) == {"stored": True}
    assert smtp.signed_in == ["XOAUTH2"]
    (tmp_path / "token").write_text(token("somebody"))
    for error in (fails("unread"), fails("send", **MAIL)):
        assert (error.code, "token_file" in error.suggestion) == (ErrorCode.AUTH, True)
    assert len(smtp.received) == 1


@pytest.mark.requirement("I15-mail-once")
@pytest.mark.parametrize(
    ("misbehave", "code", "says"),
    [
        ("refuse-rcpt", ErrorCode.INVALID_ARGUMENTS, "/to/1"),
        ("refuse-data", ErrorCode.TOOL_UNAVAILABLE, "554 5.7.1 looks like spam"),
        ("busy", ErrorCode.NETWORK_ERROR, "451 busy"),
        ("drop-early", ErrorCode.NETWORK_ERROR, "closed the connection"),
    ],
)
def test_what_was_refused_was_sent_to_nobody(fails, box, smtp, misbehave, code, says):
    smtp.misbehave = misbehave
    error = fails("send", **{**MAIL, "to": ["eva@example.com", "bob@example.com"]})
    assert (error.code, error.partial_side_effects) == (code, False)
    assert says in error.message
    assert (smtp.received, box.sent()) == ([], [])


@pytest.mark.requirement("I15-mail-once")
def test_a_message_without_an_answer_has_an_unknown_fate(fails, box, smtp):
    smtp.misbehave = "drop-data"
    error = fails("send", **MAIL)
    assert (error.code, error.partial_side_effects) == (ErrorCode.NETWORK_ERROR, True)
    assert (len(smtp.received), box.sent()) == (1, [])


@pytest.mark.requirement("I15-mail-injection")
@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("subject", "x\r\nBcc: evil@example.net", "/subject"),
        ("subject", "x\nBcc: evil@example.net", "/subject"),
        ("subject", "x\u2028Bcc: evil@example.net", "/subject"),
        ("subject", "x" * 201, "/subject"),
        ("to", ["eva@example.com\r\nBcc: evil@example.net"], "/to/0"),
        ("to", ["a@example.com", "eva@example.com>\r\nRCPT TO:<evil@example.net"], "/to/1"),
        ("to", ["eva@example.com,evil@example.net"], "/to/0"),
        ("to", ["Eva <eva@example.com>"], "/to/0"),
        ("to", ["eva@exämple.com"], "/to/0"),
        ("to", [f"a{n}@example.com" for n in range(21)], "/to"),
        ("to", [], "/to"),
        ("text", "x" * 20_001, "/text"),
        ("text", " \n ", "/text"),
        ("text", "a\0b", "/text"),
    ],
)
def test_no_field_can_add_a_header_or_a_recipient(fails, smtp, field, value, says):
    error = fails("send", **{**MAIL, field: value})
    assert error.code is ErrorCode.INVALID_ARGUMENTS
    assert f"Invalid parameters: {says} " in error.message
    assert smtp.signed_in == []


def test_a_text_that_looks_like_the_end_is_only_text(ask, smtp):
    ask("send", **{**MAIL, "text": "a\r\n.\r\nMAIL FROM:<evil@example.net>\n.\nb"})
    [(_, _, raw)] = smtp.received
    text = message_from_bytes(raw, policy=policy.default).get_content()
    assert text.split() == ["a", ".", "MAIL", "FROM:<evil@example.net>", ".", "b"]


def test_an_answer_refers_to_its_message_and_goes_to_nobody_else(ask, fails, box, smtp):
    box.deliver(plain(more="Message-ID: <q1@example.com>\nReferences: <q0@example.com>\n"))
    name = ask("unread")["messages"][0]["id"]
    ask("send", **{**MAIL, "id": name, "to": ["anna@example.com"]})
    made = message_from_bytes(smtp.received[0][2])
    assert made["In-Reply-To"] == "<q1@example.com>"
    assert made["References"] == "<q0@example.com> <q1@example.com>"
    error = fails("send", **{**MAIL, "id": name, "to": ["anna@example.com", "evil@example.net"]})
    assert "/to/1 evil@example.net is nobody in that message" in error.message
    assert len(smtp.received) == 1


def test_servers_are_tested_as_an_ordinary_user(ask, dovecot):
    ask("unread")
    assert dovecot.owner[0] != 0
    assert "Login: user=" in dovecot.log()


def test_a_message_that_the_server_kept_as_sent_is_not_kept_twice(ask, box):
    ask("send", **MAIL)
    assert ask("send", **MAIL) == {"stored": True}
    assert len(box.sent()) == 1


@needs("openssl")
def test_of_the_systems_authorities_only_what_a_server_needs_is_read(
    ask, fails, settings, tmp_path, monkeypatch
):
    authority, folder = Path(settings.pop("ca_file")), tmp_path / "certs"
    folder.mkdir()
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    assert fails("unread").code is ErrorCode.TOOL_UNAVAILABLE
    words = ["openssl", "x509", "-noout", "-hash", "-in", str(authority)]
    hashed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    (folder / f"{hashed}.0").write_bytes(authority.read_bytes())
    assert ask("unread")["total"] == 0
    assert Account(settings).tls().cert_store_stats()["x509"] == 0
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    assert Account(settings).tls().cert_store_stats()["x509"] == 1
