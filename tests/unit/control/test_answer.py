"""The client's HTTP, against what a socket may bring."""

import socket

import pytest

from edge.control.answer import MAX_HEAD_LINE, MAX_HEADERS, Answer, BadAnswer, head

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def answer(raw):
    """Read the head of an answer after which the other side is gone."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(raw)
        theirs.shutdown(socket.SHUT_WR)
        made = Answer(ours)
        try:
            made.read_head()
        except BaseException:
            made.close()
            raise
        return made


@pytest.mark.parametrize(
    "raw",
    [
        OK + b"Content-Length: 7\r\n\r\n{}\n[1]\nrest",
        CHUNKED + b"3\r\n{}\n\r\n4;x=y\r\n[1]\n\r\n0\r\n\r\n",
        CHUNKED + b"2\r\n{}\r\n5\r\n\n[1]\n\r\n0\r\n\r\n",
        OK + b"\r\n{}\n[1]\n",
    ],
    ids=["length", "chunks", "chunks across lines", "until the end"],
)
def test_a_body_is_read_whole_or_by_lines(raw):
    assert answer(raw).read(1000) == b"{}\n[1]\n"
    assert answer(raw).read(4) == b"{}\n["
    by_lines = answer(raw)
    assert [by_lines.readline(1000) for _ in range(3)] == [b"{}\n", b"[1]\n", b""]
    assert answer(raw).readline(2) == b"{}"


def test_status_and_headers_are_read():
    found = answer(b"HTTP/1.1 404 Not Found\r\nContent-Type:  application/json \r\n\r\n")
    assert (found.status, found.headers) == (404, {"content-type": "application/json"})


def test_an_answer_without_content_is_not_waited_for():
    assert answer(b"HTTP/1.1 204 No Content\r\n\r\n").read(10) == b""


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        OK,
        OK + b"A: b",
        OK + b"A: " + b"x" * MAX_HEAD_LINE + b"\r\n\r\n",
    ],
    ids=["nothing", "no head", "half a header", "a long header"],
)
def test_a_head_that_ends_too_soon_is_a_lost_connection(raw):
    with pytest.raises(ConnectionError):
        answer(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 huh\r\n\r\n",
        OK + b"".join(b"H%d: x\r\n" % n for n in range(MAX_HEADERS + 1)) + b"\r\n",
    ],
    ids=["another protocol", "no status", "too many headers"],
)
def test_what_is_no_http_is_refused(raw):
    with pytest.raises(BadAnswer):
        answer(raw)


@pytest.mark.parametrize(
    "raw", [CHUNKED + b"-1\r\n", CHUNKED + b"\r\n", CHUNKED + b"0x2\r\n{}\r\n"]
)
def test_a_chunk_without_a_size_is_refused(raw):
    with pytest.raises(BadAnswer):
        answer(raw).read(10)


@pytest.mark.parametrize(
    "raw", [OK + b"Content-Length: 7\r\n\r\n{}", CHUNKED + b"7\r\n{}", CHUNKED + b"2\r\n{}\r\n"]
)
def test_a_body_that_ends_too_soon_is_a_lost_connection(raw):
    with pytest.raises(ConnectionError):
        answer(raw).read(10)


def test_a_request_names_the_length_of_its_body():
    assert head("POST", "/v1/say", {"A": "b"}, b"{}") == (
        b"POST /v1/say HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\nA: b\r\n"
        b"Content-Length: 2\r\n\r\n"
    )
    assert b"Content-Length: 0\r\n" in head("PUT", "/", {}, None)
    assert b"Content-Length" not in head("GET", "/", {}, None)


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/ä"])
def test_a_path_that_would_break_the_request_is_not_sent(path):
    with pytest.raises(ValueError, match="not a path"):
        head("GET", path, {}, None)
