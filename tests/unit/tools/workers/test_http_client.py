"""HTTP requests of workers, against a real server: where they may go, and what they take."""

import gzip
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from edge.tools.workers import http_client
from edge.tools.workers.http_client import HttpClient, check_status, is_public
from tests.e2e.certificates import Authority
from tests.unit.tools.workers.local_server import LOOPBACK, Names, serving
from tools_cache.errors import ErrorCode, ErrorType, ToolFailure

pytestmark = pytest.mark.enable_socket
PAGE = (200, {"Content-Type": "Text/HTML; charset=utf-8"}, b"<p>page</p>")


@pytest.fixture
def server():
    with serving() as local:
        local.answers["/page"] = PAGE
        yield local


@pytest.fixture
def client():
    return HttpClient([LOOPBACK, "one.example", "two.example"])


def refused(client, method, url, **more):
    with pytest.raises(ToolFailure) as raised:
        client.request(method, url, **more)
    return raised.value.error


# ------------------------------------------------------------------ where requests may go


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "fec0::1",
        "ff02::1",
        "::7f00:1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::a00:1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe",
    ],
)
def test_an_address_that_is_not_of_the_internet_is_private(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["9.9.9.9", "2620:fe::9", "::ffff:9.9.9.9", "64:ff9b::909:909"])
def test_an_address_of_the_internet_is_public(address):
    assert is_public(address)


@pytest.mark.parametrize("host", [LOOPBACK, "localhost", "127.1", "2130706433", "0x7f000001"])
def test_a_private_host_is_refused_unless_it_is_named(server, client, host):
    error = refused(HttpClient([]), "GET", server.url("/page", host=host))
    assert error.code is ErrorCode.DENIED
    assert error.message == f"{host} is not on the public internet (127.0.0.1)"
    assert server.seen == []
    assert client.request("GET", server.url("/page")).body == PAGE[2]


@pytest.mark.requirement("I15-web-public")
def test_a_redirect_to_a_private_address_is_refused(server, monkeypatch):
    names = Names(monkeypatch, inner_example=[LOOPBACK])
    server.redirects("/go", server.url("/page", host="inner.example"))
    error = refused(HttpClient([LOOPBACK]), "GET", server.url("/go"))
    assert error.message == "inner.example is not on the public internet (127.0.0.1)"
    assert server.paths() == ["/go"]
    assert names.asked == ["inner.example"]


@pytest.mark.requirement("I15-web-public")
@pytest.mark.parametrize("found", [["9.9.9.9", LOOPBACK], [LOOPBACK, "9.9.9.9"]])
def test_a_name_with_a_public_and_a_private_address_is_refused(server, monkeypatch, found):
    Names(monkeypatch, both_example=found)
    error = refused(HttpClient([]), "GET", server.url("/page", host="both.example"))
    assert error.code is ErrorCode.DENIED
    assert server.seen == []


@pytest.mark.requirement("I15-web-public")
def test_a_name_is_looked_up_once_and_that_address_is_used(server, monkeypatch):
    names = Names(monkeypatch, one_example=[LOOPBACK])
    monkeypatch.setattr(http_client, "is_public", lambda address: address == LOOPBACK)
    answer = HttpClient([]).request("GET", server.url("/page?a=1", host="one.example"))
    assert (answer.body, names.asked) == (PAGE[2], ["one.example"])
    (_, path, headers, _) = server.seen[0]
    assert (path, headers["Host"]) == ("/page?a=1", f"one.example:{server.port}")


def test_the_next_address_is_used_if_one_does_not_connect(server, client, monkeypatch):
    Names(monkeypatch, one_example=["::1", LOOPBACK])
    assert client.request("GET", server.url("/page", host="one.example")).status == 200


def test_a_name_in_another_script_is_sent_as_servers_know_it(server, monkeypatch):
    names = Names(monkeypatch, **{"xn--kln-sna_example": [LOOPBACK]})
    client = HttpClient(["Köln.example"])
    assert client.request("GET", server.url("/page", host="köln.example")).status == 200
    assert names.asked == ["xn--kln-sna.example"]
    assert server.seen[0][2]["Host"] == f"xn--kln-sna.example:{server.port}"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/",
        "file:///etc/passwd",
        "http://",
        "http://a.example:0/",
        "http://[::1/",
        "http://a.example:99999/",
        "http://a.example/a b",
        "http://a.example/\n",
        "page",
        "http://a.example/" + "x" * http_client.MAX_URL,
    ],
)
def test_what_is_no_address_of_the_web_is_refused(client, url):
    error = refused(client, "GET", url)
    assert error.code is ErrorCode.INVALID_ARGUMENTS
    assert "is no address of the web" in error.message


# ------------------------------------------------------------------ redirects


def test_five_redirects_are_followed_and_six_are_not(server, client):
    for n in range(1, 7):
        server.redirects(f"/{n}", f"/{n - 1}" if n > 1 else "/page")
    answer = client.request("GET", server.url("/5"))
    assert (answer.url, answer.type) == (server.url("/page"), "text/html")
    error = refused(client, "GET", server.url("/6"))
    assert error.message == "127.0.0.1 redirects more than 5 times"
    assert not error.partial_side_effects


@pytest.mark.requirement("I15-web-secrets")
def test_credentials_and_cookies_are_not_carried_to_another_host(server, client, monkeypatch):
    Names(monkeypatch, one_example=[LOOPBACK], two_example=[LOOPBACK])
    there = server.url("/page", host="two.example")
    server.redirects("/same", "/go")
    server.redirects("/go", there, **{"Set-Cookie": "id=7; Path=/"})
    secret = {"Authorization": "Bearer s3cret", "X-Key": "s3cret"}
    client.request("GET", server.url("/same", host="one.example"), headers=secret)
    first, second, last = (headers for _, _, headers, _ in server.seen)
    assert first["Authorization"] == second["Authorization"] == "Bearer s3cret"
    assert (last["Host"], last["Authorization"], last["X-Key"], last["Cookie"]) == (
        f"two.example:{server.port}",
        None,
        None,
        None,
    )


def test_a_connection_is_not_used_for_another_host(server, client, monkeypatch):
    Names(monkeypatch, one_example=[LOOPBACK], two_example=[LOOPBACK])
    ports = []
    server.answers["/port"] = lambda handler: _tell_port(handler, ports)
    for host in ("one.example", "two.example"):
        client.request("GET", server.url("/port", host=host))
    assert len(set(ports)) == 2


def _tell_port(handler, ports):
    ports.append(handler.client_address[1])
    handler.send_response(200)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "PUT", "GET"),
        (307, "POST", "POST"),
        (308, "PUT", "PUT"),
        (301, "DELETE", "DELETE"),
        (303, "HEAD", "HEAD"),
    ],
)
def test_a_redirect_keeps_the_method_or_makes_it_get(server, client, status, method, then):
    server.redirects("/go", "/page", status)
    client.request(method, server.url("/go"), body=None if method == "HEAD" else b"x")
    assert [(seen[0], seen[3]) for seen in server.seen[1:]] == [
        (then, b"x" if then == method != "HEAD" else b"")
    ]


@pytest.mark.requirement("I15-web-secrets")
def test_a_body_is_not_sent_on_to_another_host(server, client, monkeypatch):
    Names(monkeypatch, one_example=[LOOPBACK], two_example=[LOOPBACK])
    server.redirects("/go", server.url("/page", host="two.example"), 307)
    error = refused(client, "POST", server.url("/go", host="one.example"), body=b"private")
    assert error.message == (
        f"one.example wants the request at another address: http://two.example:{server.port}"
    )
    assert error.partial_side_effects
    assert server.paths() == ["/go"]


@pytest.mark.parametrize("target", ["http://[::1", "ftp://a.example/x", "http://a.example/\x00"])
def test_a_redirect_to_no_address_is_the_fault_of_the_server(server, client, target):
    server.redirects("/go", target)
    error = refused(client, "GET", server.url("/go"))
    assert error.code in (ErrorCode.HTTP_ERROR, ErrorCode.NETWORK_ERROR)
    assert error.type is not ErrorType.VALIDATION


def test_a_failure_after_a_redirected_post_is_uncertain(server, client):
    server.redirects("/go", "http://10.0.0.1/", 303)
    assert refused(client, "POST", server.url("/go")).partial_side_effects
    assert not refused(client, "GET", server.url("/go")).partial_side_effects
    server.redirects("/loop", "/loop", 307)
    assert refused(client, "POST", server.url("/loop")).partial_side_effects


# ------------------------------------------------------------------ answers


def test_a_long_answer_is_cut(server, client):
    server.answers["/long"] = (200, {}, b"x" * 5000)
    answer = client.request("GET", server.url("/long"), max_bytes=4999)
    assert (len(answer.body), answer.cut) == (4999, True)
    answer = client.request("GET", server.url("/long"), max_bytes=5000)
    assert (len(answer.body), answer.cut) == (5000, False)
    server.answers["/json"] = (200, {}, b" " * http_client.MAX_BODY + b"1")
    with pytest.raises(ToolFailure, match="too long"):
        client.get_json(server.url("/json"), {})


def test_an_answer_that_is_compressed_is_refused(server, client):
    server.answers["/zip"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(b"x" * 99))
    error = refused(client, "GET", server.url("/zip"))
    assert error.message == "127.0.0.1 compresses although that was not asked for"
    assert server.seen[0][2]["Accept-Encoding"] == "identity"
    assert refused(client, "POST", server.url("/zip")).partial_side_effects
    assert client.request("HEAD", server.url("/zip")).status == 200


@pytest.mark.parametrize(
    ("header", "wait_ms"),
    [
        ({"Retry-After": "7"}, 7000),
        ({}, 60_000),
        ({"Retry-After": "soon"}, 60_000),
        ({"Retry-After": "9" * 400}, 3_600_000),
        ({"Retry-After": "0"}, 1000),
    ],
)
def test_a_server_that_is_asked_too_often_says_when_again(server, client, header, wait_ms):
    server.answers["/busy"] = (429, header, b"")
    with pytest.raises(ToolFailure, match="asked too often") as raised:
        check_status(client.request("GET", server.url("/busy")))
    error = raised.value.error
    assert (error.code, error.retry_after_ms) == (ErrorCode.RATE_LIMIT, wait_ms)


def test_the_time_to_ask_again_may_be_a_date(server, client):
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=300), usegmt=True)
    server.answers["/busy"] = (429, {"Retry-After": at}, b"")
    with pytest.raises(ToolFailure) as raised:
        check_status(client.request("GET", server.url("/busy")))
    assert 200_000 < raised.value.error.retry_after_ms <= 300_000


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, ErrorCode.AUTH),
        (403, ErrorCode.AUTH),
        (404, ErrorCode.HTTP_ERROR),
        (500, ErrorCode.NETWORK_ERROR),
        (503, ErrorCode.NETWORK_ERROR),
        (304, ErrorCode.HTTP_ERROR),
    ],
)
def test_a_status_of_failure_has_its_own_error(server, client, status, code):
    server.answers["/no"] = (status, {}, b"")
    with pytest.raises(ToolFailure, match=str(status)) as raised:
        client.get_json(server.url("/no"), {"q": "a b&c"})
    assert raised.value.error.code is code
    assert server.paths() in (["/no?q=a+b%26c"], ["/no?q=a%20b%26c"])


def test_an_api_answers_json_and_does_not_redirect(server, client):
    server.answers["/json"] = (200, {}, b'{"a": 1}')
    assert client.get_json(server.url("/json"), {}) == {"a": 1}
    server.redirects("/moved", "/json")
    with pytest.raises(ToolFailure, match=r"redirects to another address"):
        client.get_json(server.url("/moved"), {})
    for body in (b"<html>", b"[" * 100_000, b"\xff"):
        server.answers["/json"] = (200, {}, body)
        with pytest.raises(ToolFailure, match="something else than JSON"):
            client.get_json(server.url("/json"), {})


# ------------------------------------------------------------------ what goes wrong on the way


def test_a_server_that_is_not_there_is_named(client):
    with serving() as gone:
        pass
    error = refused(client, "POST", gone.url())
    assert (error.code, error.partial_side_effects) == (ErrorCode.NETWORK_ERROR, False)
    assert error.message.startswith("127.0.0.1 cannot be reached: ")


def test_a_name_that_nobody_knows_is_named(client, monkeypatch):
    def unknown(*_, **__):
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr(http_client.socket, "getaddrinfo", unknown)
    error = refused(client, "GET", "http://no.example/")
    assert (error.code, error.message) == (ErrorCode.NETWORK_ERROR, "no.example cannot be found")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_connection_that_ends_early_is_uncertain_for_a_post(server, client, method):
    server.answers["/cut"] = lambda handler: (
        handler.send_response(200),
        handler.send_header("Content-Length", "10"),
        handler.end_headers(),
        setattr(handler, "close_connection", True),
    )
    error = refused(client, method, server.url("/cut"))
    assert error.code is ErrorCode.NETWORK_ERROR
    assert error.message.startswith("127.0.0.1 did not answer: ")
    assert error.partial_side_effects == (method == "POST")


def _silent(local):
    return lambda _handler: local.over.wait(30)


def _dripping(local):
    def drip(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not local.over.wait(0.05):
            handler.wfile.write(b"x")

    return drip


@pytest.mark.parametrize(
    ("answer", "says"), [(_silent, "did not answer"), (_dripping, "takes too long")]
)
def test_an_answer_that_is_too_slow_ends_the_request(server, answer, says):
    server.answers["/slow"] = answer(server)
    error = refused(HttpClient([LOOPBACK], timeout_s=0.4), "GET", server.url("/slow"))
    assert error.code is ErrorCode.NETWORK_ERROR
    assert says in error.message


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def _certificate(authority, host):
    pair = authority.sign(host, names=(host,))
    file = authority.folder / f"{host}.both.pem"
    file.write_bytes(pair.cert.read_bytes() + pair.key.read_bytes())
    return file


def test_a_certificate_that_nobody_vouches_for_is_refused(authority, monkeypatch):
    Names(monkeypatch, one_example=[LOOPBACK])
    with serving(_certificate(authority, "one.example")) as local:
        url = f"https://one.example:{local.port}/"
        error = refused(HttpClient(["one.example"]), "POST", url, body=b"x")
        assert local.seen == []
    assert error.message == (
        "one.example cannot be reached: its certificate is not valid: "
        "unable to get local issuer certificate"
    )
    assert not error.partial_side_effects


def test_a_certificate_must_be_for_the_name_that_was_asked(authority, monkeypatch):
    Names(monkeypatch, one_example=[LOOPBACK], two_example=[LOOPBACK])
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    client = HttpClient(["one.example", "two.example"])
    with serving(_certificate(authority, "one.example")) as local:
        local.answers["/"] = PAGE
        assert client.request("GET", f"https://one.example:{local.port}/").body == PAGE[2]
        error = refused(client, "GET", f"https://two.example:{local.port}/")
    assert "certificate is not valid: Hostname mismatch" in error.message
