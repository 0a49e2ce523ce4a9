"""MCP servers over HTTP of which a test decides what the tools answer; one of them has its own
authorisation server.
"""

import base64
import hashlib
import json
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.unit.mcp.client.web import reply, result

OBJECT = {"type": "object"}


class Site:
    """A modern MCP server of which a test decides what tools answer; remembers what it was
    asked.
    """

    def __init__(self, **tools):
        self.tools = tools
        self.asked = []
        self.gate = None

    async def __call__(self, request, write):
        self.asked.append(request)
        if self.gate is not None and (refused := await self.gate(request)) is not None:
            return refused
        if request.method != "POST":
            return reply(405)
        method = request.message["method"]
        if method == "server/discover":
            return result(
                request,
                {
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                    "ttlMs": 0,
                    "cacheScope": "public",
                },
            )
        if method == "tools/list":
            listed = [{"name": name, "inputSchema": OBJECT} for name in self.tools]
            return result(
                request,
                {"resultType": "complete", "tools": listed, "ttlMs": 0, "cacheScope": "public"},
            )
        return await self.tools[request.message["params"]["name"]](request, write)

    def calls(self, tool):
        return sum(
            r.path == "/mcp"
            and r.method == "POST"
            and r.message.get("params", {}).get("name") == tool
            for r in self.asked
        )


def text(request, said="done"):
    return result(request, {"resultType": "complete", "content": [{"type": "text", "text": said}]})


async def echo(request, write):
    return text(request, json.dumps(request.message["params"]["arguments"]))


class Office(Site):
    """An MCP server with its own authorisation server: registers, grants, refreshes."""

    def __init__(self, **tools):
        super().__init__(**tools)
        self.origin = ""
        self.good = set()
        self.tokens = 0
        self.grants = []
        self.visited = []
        self.word = "token"
        self.gate = self._gate

    async def _gate(self, request):
        path = request.path
        if path == "/mcp":
            known = request.headers.get("authorization", "")[7:] in self.good
            return (
                None
                if known
                else reply(
                    401,
                    b"",
                    www_authenticate=(
                        f'Bearer resource_metadata="{self.origin}/.well-'
                        'known/oauth-protected-resource"'
                    ),
                )
            )
        if path.startswith("/.well-known/oauth-protected-resource"):
            return reply(
                200, {"resource": self.origin + "/mcp", "authorization_servers": [self.origin]}
            )
        if path.startswith("/.well-known/oauth-authorization-server"):
            return reply(
                200,
                {
                    "issuer": self.origin,
                    "authorization_endpoint": self.origin + "/authorize",
                    "token_endpoint": self.origin + "/token",
                    "registration_endpoint": self.origin + "/register",
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                },
            )
        if path == "/register":
            return reply(201, {**json.loads(request.body), "client_id": "us"})
        if path.startswith("/authorize?"):
            return self._visited(
                {key: values[0] for key, values in parse_qs(urlsplit(path).query).items()}
            )
        if path == "/token":
            return self._token(request.form)
        return reply(404)

    def _visited(self, asked):
        """A person came with a browser and agrees: it is sent back with a code."""
        self.visited.append(asked)
        back = {"code": "good", "state": asked["state"]}
        return reply(302, b"", location=asked["redirect_uri"] + "?" + urlencode(back))

    def _proved(self, form):
        """Whether who brings the code is who began the last visit (PKCE, RFC 7636 §4.6)."""
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        return (
            not self.visited
            or base64.urlsafe_b64encode(digest).decode().rstrip("=")
            == self.visited[-1]["code_challenge"]
        )

    def _token(self, form):
        self.grants.append(form["grant_type"])
        if form["grant_type"] == "authorization_code" and not (
            form["code"] == "good" and self._proved(form)
        ):
            return reply(400, {"error": "invalid_grant"})
        self.tokens += 1
        new = f"{self.word}-{self.tokens}"
        self.good = {new}
        return reply(
            200,
            {
                "access_token": new,
                "token_type": "Bearer",
                "expires_in": 3600,
                "refresh_token": f"{self.word}-again",
            },
        )
