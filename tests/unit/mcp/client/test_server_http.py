"""One MCP server over HTTP: what the network and the server may do to us, and what a call makes
of it.
"""

import asyncio
import gzip
import json
import ssl

import httpx2
import pytest

from edge.mcp.client.http import Bounded, _trusted
from edge.mcp.client.models import CallFault, McpServer, Status
from edge.mcp.client.server import serving
from tests.unit.mcp.client.office import OBJECT, Office, Site, echo, text
from tests.unit.mcp.client.places import SOON_S, until
from tests.unit.mcp.client.web import reply, result, web

pytestmark = pytest.mark.enable_socket


def ask(server, tool, args=None, *, timeout_s=SOON_S, **more):
    return server.call(tool, args or {}, timeout_s=timeout_s, **more)


def place(origin, **more):
    return McpServer(id="web", url=origin + "/mcp", **more)


# ------------------------------------------------------------------ answers that are none


async def null(request, write):
    return result(request, None)


async def huge(request, write):
    return text(request, "x" * 10_000_000)


async def packed(request, write):
    return reply(
        200, gzip.compress(b"x" * 1000), content_type="application/json", content_encoding="gzip"
    )


async def cut(request, write):
    await write(
        b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n"
        b'content-length: 1000\r\n\r\n{"jsonrpc":'
    )


async def slammed(request, write):
    return None


async def broken(request, write):
    return reply(500, b"oops")


async def forbidden(request, write):
    return reply(403, b"no")


async def elsewhere(request, write):
    return reply(307, b"", location="http://127.0.0.1:9/mcp")


async def long_event(request, write):
    await write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\ndata: ")
    while True:
        await write(b"x" * 65536)


async def many_events(request, write):
    await write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n")
    note = json.dumps(
        {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": "x" * 50_000},
        }
    )
    while True:
        await write(f"data: {note}\n\n".encode())


async def page(request, write):
    return reply(200, b"<html>", content_type="text/html")


@pytest.mark.requirement("S1-26")
async def test_an_invalid_answer_has_a_clear_outcome_and_the_next_call_works():
    site = Site(
        echo=echo,
        null=null,
        huge=huge,
        packed=packed,
        cut=cut,
        slammed=slammed,
        broken=broken,
        forbidden=forbidden,
        elsewhere=elsewhere,
        long_event=long_event,
        many_events=many_events,
        page=page,
    )
    async with web(site) as origin, serving(place(origin, max_answer_bytes=200_000)) as server:
        for tool, kind, words in [
            ("null", CallFault.INVALID, "no MCP"),
            ("huge", CallFault.TOO_LARGE, "200000 bytes"),
            ("packed", CallFault.INVALID, "compresses"),
            ("cut", CallFault.LOST, "lost"),
            ("slammed", CallFault.LOST, "lost"),
            ("broken", CallFault.FAILED, "HTTP 500"),
            ("forbidden", CallFault.DENIED, "403"),
            ("elsewhere", CallFault.FAILED, "not followed"),
            ("long_event", CallFault.TOO_LARGE, "200000 bytes"),
            ("many_events", CallFault.TOO_LARGE, "bytes"),
            ("page", CallFault.FAILED, "text/html"),
        ]:
            outcome = await ask(server, tool)
            assert (outcome.fault, outcome.is_error) == (kind, True), outcome
            assert words in outcome.message, outcome
            assert site.calls(tool) == 1
        assert (await ask(server, "echo", {"a": [1]})).structured == {"a": [1]}
        assert server.in_progress == 0
        assert server.news.status is Status.CONNECTED


@pytest.mark.requirement("S1-31")
async def test_a_restarted_server_is_found_again_and_a_missing_one_reported():
    site = Site(echo=echo, slammed=slammed)
    async with web(site) as origin:
        port = int(origin.rpartition(":")[2])
        async with serving(place(origin)) as server:
            assert (await ask(server, "echo")).ok
            twice = await ask(server, "slammed", idempotent=True)
            assert (twice.fault, twice.attempts, site.calls("slammed")) == (CallFault.LOST, 2, 2)
            server.close()
    async with serving(place(origin), chance=lambda: 1.0) as server:
        gone = await ask(server, "echo")
        assert gone.fault is CallFault.UNSENT
        assert f"127.0.0.1:{port} cannot be reached" in gone.message
        async with web(site, port):
            server.refresh()
            await until(lambda: server.news.status is Status.CONNECTED)
            assert (await ask(server, "echo")).ok


async def test_a_hanging_server_is_left_at_the_deadline():
    async def hang(request, write):
        await asyncio.sleep(600)

    async with web(Site(hang=hang, echo=echo)) as origin, serving(place(origin)) as server:
        await server.connected(SOON_S)
        assert (await ask(server, "hang", timeout_s=0.3)).fault is CallFault.TIMEOUT
        assert (await ask(server, "echo")).ok
        assert server.in_progress == 0


async def test_a_session_that_the_server_forgot_is_replaced():
    sessions = []

    async def handle(request, write):
        if request.method != "POST":
            return reply(405 if request.method == "GET" else 200)
        method = request.message["method"]
        if method == "server/discover":
            return reply(400, b"what?")
        if method == "initialize":
            sessions.append(f"s{len(sessions)}")
            found = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
            return result(request, found, mcp_session_id=sessions[-1])
        if "id" not in request.message:
            return reply(202)
        if request.headers.get("mcp-session-id") != sessions[-1]:
            return reply(404)
        if method == "tools/list":
            return result(request, {"tools": [{"name": "echo", "inputSchema": OBJECT}]})
        return result(request, {"content": []})

    async with web(handle) as origin, serving(place(origin)) as server:
        assert (await ask(server, "echo")).ok
        assert server.news.protocol == "2025-11-25"
        sessions.append("of another process")
        outcome = await ask(server, "echo")  # not idempotent: the 404 says that nothing was done
        assert outcome.ok, outcome
        assert outcome.attempts == 2


# ------------------------------------------------------------------ who we are


@pytest.mark.requirement("S1-32")
@pytest.mark.requirement("S1-34")
async def test_an_unauthorised_server_is_authorizing_and_its_calls_fail_with_auth():
    site = Site(echo=echo)

    async def gate(request):
        return None if request.headers.get("authorization") == "Bearer right-one" else reply(401)

    site.gate = gate
    async with web(site) as origin:
        async with serving(place(origin, bearer="right-one", headers={"x-team": "blue"})) as server:
            assert (await ask(server, "echo")).ok
            assert {r.headers["x-team"] for r in site.asked} == {"blue"}
        async with serving(place(origin, bearer="wrong-one")) as server:
            outcome = await ask(server, "echo")
            assert outcome.fault is CallFault.AUTH
            assert "wrong-one" not in outcome.message
            await until(lambda: server.news.status is Status.AUTHORIZING)
            assert "HTTP 401" in server.news.error
            assert not server.news.available
    assert "right-one" not in repr(place(origin, bearer="right-one", headers={"x": "right-one"}))


def test_tls_is_always_verified(tmp_path):
    context = _trusted(place("https://x"))
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    with pytest.raises(OSError, match="No such file"):
        _trusted(place("https://x", ca_file=str(tmp_path / "none.pem")))


@pytest.mark.requirement("I6-hostile")
async def test_sign_in_documents_are_not_unpacked_nor_fetched_without_tls():
    asked = []

    def packed(request):
        asked.append(str(request.url))
        return httpx2.Response(
            200,
            headers={"content-encoding": "gzip"},
            stream=httpx2.ByteStream(gzip.compress(b" " * 100_000_000)),
        )

    client = httpx2.AsyncClient(
        transport=Bounded(httpx2.MockTransport(packed), place("https://tools.example"))
    )
    async with client:
        found = await client.get("https://login.example/.well-known/oauth-authorization-server")
        assert (found.status_code, "compresses" in found.text) == (503, True)
        for url in (
            "http://169.254.169.254/latest/",
            "http://localhost/token",
            "file:///etc/passwd",
        ):
            assert "without TLS" in (await client.get(url)).text
    assert asked == ["https://login.example/.well-known/oauth-authorization-server"]


async def test_a_redirect_keeps_headers_on_the_same_host_only():
    elsewhere, site = (
        [],
        Site(long=lambda request, write: asyncio.sleep(0, text(request, "x" * 600_000))),
    )

    async def other(request, write):
        elsewhere.append(request)
        return reply(404)

    async def onward(request):
        return reply(307, b"", location="/mcp/") if request.path == "/mcp" else None

    async with web(other) as there, web(site) as origin:
        site.gate = onward
        async with serving(place(origin, bearer="hush")) as server:
            assert len((await ask(server, "long")).content[0]["text"]) == 600_000

            async def away(request):
                return reply(307, b"", location=there + "/mcp")

            site.gate = away
            assert "not followed" in (await ask(server, "long")).message
    assert elsewhere == []


def _state(url):
    assert "code_challenge_method=S256" in url
    return url.partition("&state=")[2].partition("&")[0]


@pytest.mark.requirement("S1-48")
@pytest.mark.requirement("S1-36")
async def test_a_person_authorises_once_and_the_tokens_are_private(tmp_path):
    office, kept = Office(echo=echo), tmp_path / "tokens.json"
    async with web(office) as origin:
        office.origin = origin
        config = place(origin, tokens_file=str(kept))
        async with serving(config) as server:
            outcome = await ask(server, "echo")
            assert outcome.fault is CallFault.AUTH
            assert outcome.authorize_url.startswith(origin + "/authorize?")
            assert (server.news.status, server.news.authorize_url) == (
                Status.AUTHORIZING,
                outcome.authorize_url,
            )
            server.authorize("good", _state(outcome.authorize_url))
            await until(lambda: server.news.status is Status.CONNECTED)
            assert server.news.authorize_url == ""
            assert (await ask(server, "echo")).ok
        assert kept.stat().st_mode & 0o777 == 0o600
        async with serving(config) as server:  # after a restart nobody is asked again
            assert (await ask(server, "echo")).ok
        assert office.grants == ["authorization_code"]
        old = json.loads(kept.read_text())
        kept.write_text(json.dumps({**old, "expires_at": 1.0}))
        async with serving(config) as server:  # what has run out is renewed
            assert (await ask(server, "echo")).ok
        assert office.grants == ["authorization_code", "refresh_token"]


async def test_a_wrong_code_ends_the_attempt_and_the_next_one_asks_again():
    office = Office(echo=echo)
    async with web(office) as origin:
        office.origin = origin
        async with serving(place(origin)) as server:
            first = await ask(server, "echo")
            server.authorize("bad", _state(first.authorize_url))
            await until(lambda: server.news.authorize_url == "")
            assert server.news.status is Status.AUTHORIZING
            assert "Token exchange failed" in server.news.error
            second = await ask(server, "echo")
            assert second.authorize_url not in ("", first.authorize_url)
            server.authorize("good", "not what was sent")
            await until(lambda: server.news.authorize_url == "")
            third = await ask(server, "echo")
            server.authorize("good", _state(third.authorize_url))
            await until(lambda: server.news.status is Status.CONNECTED)


async def test_tokens_that_are_withdrawn_while_connected_make_it_ask_again():
    office = Office(echo=echo)
    async with web(office) as origin:
        office.origin = origin
        async with serving(place(origin)) as server:
            first = await ask(server, "echo")
            server.authorize("good", _state(first.authorize_url))
            await until(lambda: server.news.status is Status.CONNECTED)
            office.good.clear()
            outcome = await ask(server, "echo")
            assert outcome.fault is CallFault.AUTH
            await until(lambda: server.news.authorize_url not in ("", first.authorize_url))
            assert office.calls("echo") == 1
            server.authorize("good", _state(server.news.authorize_url))
            await until(lambda: server.news.status is Status.CONNECTED)
            assert (await ask(server, "echo")).ok


@pytest.mark.requirement("I6-hostile")
async def test_a_server_that_denies_one_thing_is_not_asked_repeatedly():
    office, told = Office(echo=echo), []

    async def gate(request):
        if request.path != "/mcp":
            return await office._gate(request)
        if request.message["method"] == "server/discover":
            said = {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": True}},
                "ttlMs": 0,
                "cacheScope": "public",
            }
            return result(request, {"resultType": "complete", **said})
        return (
            await office._gate(request)
            if request.message["method"] == "subscriptions/listen"
            else None
        )

    office.gate = gate
    async with web(office) as origin:
        office.origin = origin
        async with serving(place(origin), report=told.append, chance=lambda: 1000.0) as server:
            server.start()
            again = await until(lambda: server._timers.get("retry"))
            assert told[-1].status is Status.AUTHORIZING
            assert again.when() > asyncio.get_running_loop().time() + 100
