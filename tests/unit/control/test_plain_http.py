"""What the plain form of HTTP takes, h11 takes alike; and its replies are those of h11."""

import h11
import pytest
from hypothesis import example, given, settings, strategies as st

from edge.control import plain_http

BODY = b'{"tool":"notes:add"}'
HEAD = b"Host: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(BODY)
PLAIN = b"POST /v1/call?x=1 HTTP/1.1\r\n" + HEAD + b"\r\n" + BODY


def parse(data, *, most_head=1000, most_body=1000):
    return plain_http.parse(data, most_head=most_head, most_body=most_body)


def by_h11(data):
    """The one request that this is, and nothing more."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    head = connection.next_event()
    assert isinstance(head, h11.Request)
    body = b""
    while isinstance(event := connection.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert connection.trailing_data == (b"", False)
    assert not connection.they_are_waiting_for_100_continue
    assert connection.their_state is h11.DONE
    names = {name.decode(): value.decode("latin-1") for name, value in head.headers}
    return head.method, head.target, names, body


def test_a_whole_request_is_read_at_once():
    method, target, headers, body = parse(PLAIN)
    assert (method, target, body) == (b"POST", b"/v1/call?x=1", BODY)
    assert headers == {"host": "x", "content-type": "application/json", "content-length": "20"}
    assert (method, target, headers, body) == by_h11(PLAIN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"POST", b"HEAD"),
        (b"POST", b"CONNECT"),
        (b"POST ", b"POST  "),
        (b"/v1/call", b"/v1/c\xe4ll"),
        (b"Host: x\r\n", b""),
        (b"Host: x\r\n", b"Host: x\r\nHost: y\r\n"),
        (b"Host: x\r\n", b"Host: x\n"),
        (b"Host: x\r\n", b"Host : x\r\n"),
        (b"Host: x\r\n", b"Host: x\r\n folded\r\n"),
        (b"Host: x", b"Host: \x00"),
        (b"Host: x\r\n", b"Host: x\r\nConnection: close\r\n"),
        (b"Host: x\r\n", b"Host: x\r\nExpect: 100-continue\r\n"),
        (b"Host: x\r\n", b"Host: x\r\nUpgrade: h2c\r\n"),
        (b"Host: x\r\n", b"Host: x\r\nTransfer-Encoding: chunked\r\n"),
        (b"Host: x\r\n", b"Host: x\r\n" + b"A: b\r\n" * 64),
        (b": 20\r\n", b": 21\r\n"),
        (b": 20\r\n", b": 19\r\n"),
        (b": 20\r\n", b": -1\r\n"),
        (b": 20\r\n", b": 20, 20\r\n"),
        (b": 20\r\n", b": 20\r\nContent-Length: 20\r\n"),
        (b": 20\r\n", b": 0000000020\r\n"),
        (b"}", b"}" + PLAIN),
    ],
)
def test_what_is_not_plain_is_left_to_h11(old, new):
    assert old in PLAIN
    assert parse(PLAIN.replace(old, new, 1)) is None


def test_its_bounds_hold():
    assert parse(PLAIN, most_head=len(PLAIN) - len(BODY), most_body=len(BODY))
    assert parse(PLAIN, most_head=len(PLAIN) - len(BODY) - 1) is None
    assert parse(PLAIN, most_body=len(BODY) - 1) is None
    assert not any(parse(PLAIN[:cut]) for cut in range(len(PLAIN)))


HEADERS = st.lists(
    st.sampled_from(
        [
            b"Host: x",
            b"Content-Length: 0",
            b"Content-Length:2 ",
            b"content-length: 02",
            b"Content-Length: +2",
            b"Accept: \t*/*",
            b"Accept: a\x7f",
            b"X-Y: ",
            b"X-Y: \xff",
            b"Connection: keep-alive",
            b"Transfer-Encoding: identity",
            b"x=y: z",
            b"a b: c",
        ]
    ),
    max_size=5,
)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from([b"GET", b"POST", b"DELETE", b"PUT", b"get"]),
    st.sampled_from([b"/", b"/v1/tools?all=1", b"*", b"http://x/", b"/\x7f"]),
    HEADERS,
    st.sampled_from([b"", b"{}", b"\r\n", b"GET / HTTP/1.1\r\n"]),
)
@example(b"GET", b"/", [b"Host: x"], b"")
@example(b"POST", b"/", [b"Host: x", b"Content-Length:2 "], b"{}")
def test_h11_reads_the_same_from_whatever_is_taken(method, target, headers, body):
    data = b"\r\n".join([method + b" " + target + b" HTTP/1.1", *headers, b"", body])
    found = parse(data)
    if found is not None:
        assert tuple(found) == by_h11(data)


def test_the_head_of_a_reply_is_what_h11_writes():
    headers = [("Content-Type", "application/json"), ("Content-Length", "2"), ("ETag", '"a"')]
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(PLAIN)
    while not isinstance(connection.next_event(), h11.EndOfMessage):
        continue
    written = connection.send(h11.Response(status_code=404, headers=headers))
    assert plain_http.head_of_reply(404, headers) == written
