"""What strangers send becomes plain text, in time that grows with its length only."""

import base64
import time

import pytest

from edge.tools.workers import mail_text
from edge.tools.workers.mail_structure import BadStructure, leaves, parse

LONG = 256 * 1024


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("=?utf-8?q?Gr=C3=BC=C3=9Fe?= =?iso-8859-1?q?_aus_K=F6ln?= !", "Grüße aus Köln !"),
        ("=?utf-8?b?TcO8bGxlcg==?=", "Müller"),
        ("=?utf-8?b?TcO8bGxlcg=?=", "Müller"),
        ("=?no-such-charset?q?caf=E9?=", "café"),
        ("=?punycode?q?abc?=", "abc"),
        ("=?utf-8?q?a=0D=0ABcc:_x@y.z?=", "a Bcc: x@y.z"),
        ("=?utf-8?q?=E2=80=AEgpj.exe?=", "gpj.exe"),
        (b"caf\xe9", "café"),
        (b"caf\xc3\xa9", "café"),
    ],
)
def test_a_header_is_decoded_to_one_line_of_plain_words(raw, text):
    assert mail_text.header(raw) == text


def test_direction_and_invisible_characters_are_removed():
    hidden = "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b\ufeff\u00ad"
    tags = "".join(chr(0xE0000 + ord(ch)) for ch in "obey")
    assert mail_text.clean(f"a{hidden}{tags}\x00\x1b[31mb\x7f") == "a[31mb"
    assert mail_text.clean("e" + "\u0301" * 50) == "e" + "\u0301" * 4
    assert mail_text.clean("a\u2028b\u00a0c\td") == "a\nb c d"
    assert mail_text.clean("👩\u200d🚀") == "👩\u200d🚀"


def test_a_name_cannot_pretend_to_be_an_address():
    raw = "=?utf-8?q?Boss_=3Cboss=40corp.example=3E=2C?= <evil@example.net>"
    assert mail_text.addresses(raw) == [("Boss <boss@corp.example>,", "evil@example.net")]
    assert mail_text.addresses('"Berg, Anna" <anna@example.com>, bob@example.com') == [
        ("Berg, Anna", "anna@example.com"),
        ("", "bob@example.com"),
    ]


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        (b"gr\xfc\xdfe", "iso-8859-1", "grüße"),
        (b"gr\xfc\xdfe", "utf-8", "grüße"),
        ("grüße".encode(), "us-ascii", "grüße"),
        ("grüße".encode(), "", "grüße"),
        ("grüße".encode()[:-2], "utf-8", "grü"),
        ("привет".encode("koi8-r"), "KOI8-R", "привет"),
        ("日本".encode("iso-2022-jp"), '"iso-2022-jp"', "日本"),
        (b"abc", "zlib", "abc"),
        (b"abc", "idna", "abc"),
        (b"abc", "iso-8859-99", "abc"),
    ],
)
def test_a_wrong_or_unknown_charset_is_guessed(data, charset, text):
    assert mail_text.decode(data, charset) == text


def test_cut_and_damaged_encodings_give_what_is_readable():
    whole = base64.encodebytes(b"hello world")
    assert mail_text.unpack(whole, "BASE64") == b"hello world"
    assert mail_text.unpack(whole[:10], "base64") == b"hello w"
    assert mail_text.unpack(b"!!" + whole, "base64") == b"hello world"
    assert mail_text.unpack(b"=E4=F", "quoted-printable").startswith(b"\xe4")
    assert mail_text.unpack(b"plain", "x-unknown") == b"plain"


def test_html_becomes_lines_of_text():
    source = """<!DOCTYPE html><html><head><title>No</title><style>p {color: red}</style></head>
    <body><!-- <p>hidden</p> --><h1>Hello&nbsp;&amp; welcome</h1><p title="a>b">One<br>two
    three</p><ul><li>milk<li>bread</ul><script>alert("<p>x</p>")</script>
    <table><tr><td>1</td><td>2</td></tr></table>3 < 4<p>end"""
    assert mail_text.tidy(mail_text.from_html(source)) == (
        "Hello & welcome\n\nOne\ntwo three\n\n- milk\n- bread\n\n1 2\n\n3 < 4\nend"
    )


@pytest.mark.parametrize(
    "unit",
    [
        "<!--",
        "<",
        '<a ="',
        "<a =\"'>",
        "<script>",
        "</",
        "<p",
        "&#",
        "&",
        "<![CDATA[",
        "<p>",
        "(((",
    ],
)
def test_hostile_markup_takes_no_more_than_a_moment(unit):
    source = unit * (LONG // len(unit))
    before = time.process_time()
    mail_text.tidy(mail_text.from_html(source))
    mail_text.addresses(source)
    mail_text.header(source)
    mail_text.fields(source.encode())
    assert time.process_time() - before < 3.0


def test_a_structure_gives_texts_and_attachments():
    start = (
        b'1 (UID 7 BODYSTRUCTURE ((("text" "plain" ("charset" "utf-8") NIL NIL "quoted-printable"'
        b' 12 1 NIL NIL NIL NIL)("text" "html" ("charset" "utf-8") NIL NIL "base64" 40 1 NIL NIL'
        b' NIL NIL) "alternative" ("boundary" "x") NIL NIL NIL)("application" "pdf" ("name" {9}'
    )
    rest = (
        b') NIL NIL "base64" 4000 NIL ("attachment" ("filename*" "utf-8\'\'Pl%C3%A4ne.pdf")) NIL'
        b' NIL) "mixed" ("boundary" "y") NIL NIL NIL))'
    )
    body = parse([(start, b"Plan\xc3\xa4.pdf"), rest])[1][3]
    text, plan = leaves(body)
    assert (text.number, text.kind, text.charset, text.size) == ("1.1", "text/plain", "utf-8", 12)
    assert plan.about() == {"name": "Pläne.pdf", "type": "application/pdf", "size": 3000}


@pytest.mark.parametrize("raw", [b"(" * 500, b")", b"()" * 100_000])
def test_a_hostile_structure_is_refused(raw):
    with pytest.raises(BadStructure):
        parse([raw])
