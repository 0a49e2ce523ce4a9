"""`glassd servers`: what is printed about other MCP servers, and how a sign-in is completed, on
given answers of the daemon.
"""

from argparse import Namespace
from io import StringIO

import pytest

from edge.commands import servers
from edge.commands.shared.console import Screen
from edge.control.dependencies import NoServer
from edge.control.http import Request, RequestRefused
from edge.control.mcp_servers import ServerRoutes
from edge.runtime.errors import UserError

URL = "https://auth.example/authorize?state=s%201&client_id=x"
ONE = {
    "id": "files",
    "name": "Files",
    "enabled": True,
    "status": "connected",
    "error": "",
    "tools": ["files:read"],
    "available": True,
}
WANTS = {
    **ONE,
    "id": "web",
    "status": "authorizing",
    "error": "sign in",
    "authorize_url": URL,
    "sign_in_code": "7KQF-2M0X",
}


@pytest.fixture
def daemon(monkeypatch):
    """The answers of the daemon, and the requests it got."""
    asked = []

    def ask(_args, method, path, body=None, **_more):
        asked.append((method, path, body))
        return (
            {"servers": [ONE, WANTS]}
            if method == "GET"
            else {**WANTS, "status": "connected", "error": ""}
        )

    monkeypatch.setattr(servers, "ask", ask)
    return asked


def run(*, as_json=False, **words):
    out, err = StringIO(), StringIO()
    code = servers.servers(
        Namespace(**{"act": None, "server": None, "code": None, **words}),
        Screen(out, err, {}, as_json=as_json),
    )
    return code, out.getvalue() + err.getvalue()


@pytest.mark.requirement("S1-35")
def test_servers_are_listed_with_what_to_do(daemon, monkeypatch):
    code, told = run()
    assert code == 0
    assert "files" in told
    assert "1 tool" in told
    assert f"sign in at {URL}" in told
    monkeypatch.setattr(servers, "ask", lambda *_a, **_k: {"servers": []})
    code, told = run()
    assert (code, "[[mcp.servers]]" in told) == (0, True)
    left = {**ONE, "not_allowed": [f"t{n}" for n in range(20)], "left_out": ["files:x: no object"]}
    monkeypatch.setattr(servers, "ask", lambda *_a, **_k: {"servers": [left]})
    assert "not in allowed_tools: t0, t1" in run()[1]


@pytest.mark.requirement("S1-48", "S1-34")
@pytest.mark.parametrize("word", ["web", "7KQF-2M0X", "7kqf2mox"])
def test_a_sign_in_is_found_by_its_server_or_by_the_code_on_the_lens(daemon, word):
    code, told = run(act="authorize", server=word)
    assert (code, URL in told) == (0, True)


@pytest.mark.parametrize(
    ("brought", "body"),
    [
        ("abc", {"code": "abc"}),
        (
            "http://127.0.0.1:8765/callback?code=a%2Fb&state=s+1&iss=https%3A%2F%2Fa",
            {"code": "a/b", "state": "s 1", "iss": "https://a"},
        ),
        ("code=x&state=y", {"code": "x", "state": "y"}),
    ],
)
def test_a_sign_in_is_finished_with_a_code_or_with_the_whole_address(daemon, brought, body):
    code, _ = run(act="authorize", server="web", code=brought)
    assert (code, daemon[-1]) == (0, ("POST", "/v1/servers/web/authorize", body))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ({"act": "authorize", "server": "files"}, "needs no sign-in now"),
        ({"act": "authorize", "server": "gone"}, "there is no server gone"),
        ({"act": "refresh"}, "needs a server's id"),
        (
            {"act": "authorize", "server": "web", "code": "http://x/?error=access_denied"},
            "was refused: access_denied",
        ),
        (
            {"act": "authorize", "server": "web", "code": "http://x/?state=1"},
            "no code in this address",
        ),
    ],
)
def test_an_impossible_request_is_refused(daemon, words, problem):
    with pytest.raises(UserError, match=problem):
        run(**words)


def test_a_refresh_shows_the_new_state(daemon):
    assert run(act="refresh", server="web")[0] == 0
    assert daemon[-1][:2] == ("POST", "/v1/servers/web/refresh")
    assert run(act="refresh", server="web", as_json=True)[1].startswith("{")


# ------------------------------------------------------------------ the daemon's side


class Desk:
    def __init__(self):
        self.done = []

    def describe(self):
        return [ONE, WANTS]

    async def refresh(self, server):
        if server != "web":
            raise NoServer(f"there is no server {server}")

    async def authorize(self, *said):
        self.done.append(said)


def request(body=b"{}"):
    return Request("POST", "/v1/servers", {}, {}, body)


async def test_the_state_of_a_sign_in_may_be_left_out(daemon):
    desk = Desk()
    routes = ServerRoutes(desk)
    reply = await routes.authorize(request(b'{"code": "c"}'), "web")
    assert (reply.status, reply.body["id"], desk.done) == (200, "web", [("web", "c", "s 1", None)])
    assert len((await routes.show(request())).body["servers"]) == 2
    with pytest.raises(RequestRefused) as caught:
        await routes.refresh(request(), "gone")
    assert caught.value.reply.status == 404
    assert (await ServerRoutes(None).show(request())).body == {"servers": []}
    with pytest.raises(RequestRefused) as caught:
        await ServerRoutes(None).refresh(request(), "web")
    assert caught.value.reply.status == 501
