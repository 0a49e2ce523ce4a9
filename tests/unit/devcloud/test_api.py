"""The cloud's HTTP face, literally as the seed says; only the socket is replaced."""

import contextlib
import json

import httpx
import pytest
from starlette.applications import Starlette

from edge.devcloud.edges import ConnectedEdge
from edge.devcloud.http.api import Api, matches
from edge.devcloud.http.auth import Authentication
from edge.devcloud.http.console import Console
from edge.devcloud.http.legacy_api import LegacyApi
from edge.devcloud.registry import InstalledApp
from edge.devcloud.worker.activation import ActivationTimeout
from edge.devcloud.worker.runner import Runner
from tests.unit.devcloud.parts import APP, NOWHERE, READ, FakeApp, a_runner, an_app_service

CAMERA = InstalledApp(
    "com.x.photo", "P", (READ,), ({"type": "CAMERA", "level": "REQUIRED"},), public_url="http://app"
)
ME = {"X-User-Id": "local"}


@contextlib.asynccontextmanager
async def cloud(tmp_path, *, token="", app=None, legacy=False):
    changes = []

    async def changed():
        changes.append(registry.version)

    async with (
        an_app_service(tmp_path, apps=[APP, NOWHERE, CAMERA]) as service,
        a_runner(tmp_path, app) as (made, network),
    ):
        registry = service.registry
        runner = Runner(registry, made._launcher, made._http, installed=service.has)
        auth = Authentication(service, token=token)
        routes = [*Api(auth, runner).routes(), *Console(auth, changed=changed).routes()]
        if legacy:
            routes += LegacyApi(auth, runner).routes()
        transport = httpx.ASGITransport(Starlette(routes=routes))
        async with httpx.AsyncClient(transport=transport, base_url="http://cloud") as client:
            client.service, client.registry, client.edges = service, registry, service._edges
            client.changes, client.network, client.launcher = changes, network, made._launcher
            yield client


async def test_the_registry_has_an_etag_and_says_304_to_who_has_it(tmp_path):
    async with cloud(tmp_path) as c:
        first = await c.get("/api/registry")
        assert first.json()["sha256"] == c.registry.sha256
        assert first.headers["etag"] == f'"{c.registry.sha256}"'
        again = await c.get("/api/registry", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content, again.headers["etag"]) == (
            304,
            b"",
            first.headers["etag"],
        )
        assert (await c.get("/api/registry", headers={"If-None-Match": '"old"'})).status_code == 200


async def test_half_a_surrogate_pair_is_the_callers_mistake(tmp_path, caplog):
    async with cloud(tmp_path) as c:
        for text in (
            rb'{"name": "com.x.app:read", "arguments": {"n": "\ud800"}}',
            rb'{"name": "com.x.app:read", "\uD800": 1}',
        ):
            answer = await c.post("/api/tools/execute", content=text, headers=ME)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
            assert "surrogate" in answer.json()["error"]["message"]
        whole = await c.post(
            "/api/tools/execute",
            content=rb'{"name": "com.x.app:read", "arguments": {"n": 1}, "x": "\ud83d\ude00"}',
            headers=ME,
        )
        assert whole.status_code == 200
        assert not caplog.records or all(r.exc_info is None for r in caplog.records)


@pytest.mark.parametrize(
    ("header", "same"),
    [
        ('"a"', True),
        ('W/"a"', True),
        ('"b", "a"', True),
        ("*", True),
        ('"b"', False),
        ("", False),
        ("a", False),
    ],
)
def test_if_none_match_is_a_list_of_tags(header, same):
    assert matches(header, '"a"') is same


async def test_the_registry_is_unfiltered_and_needs_no_user(tmp_path):
    async with cloud(tmp_path) as c:
        assert [a["packageName"] for a in (await c.get("/api/registry")).json()["apps"]] == [
            "com.x.app",
            "com.x.nowhere",
            "com.x.photo",
        ]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/tools"), ("POST", "/api/tools/execute")]
)
@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, {"error": "Missing X-User-Id header"}),
        ({"X-User-Id": "stranger"}, {"error": "No active session for user"}),
    ],
)
@pytest.mark.requirement("S0-26", "C-12")
async def test_an_unknown_user_is_401_word_for_word(tmp_path, method, path, headers, body):
    async with cloud(tmp_path) as c:
        answer = await c.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()) == (401, body)


async def test_an_edge_that_was_heard_has_a_session(tmp_path):
    async with cloud(tmp_path) as c:
        c.edges._all["edge-7"] = ConnectedEdge()
        assert (await c.get("/api/tools", headers={"X-User-Id": "edge-7"})).status_code == 200


@pytest.mark.requirement("S0-28")
@pytest.mark.parametrize(("camera", "shown"), [(None, True), (True, True), (False, False)])
async def test_the_list_follows_the_glasses_of_the_user(tmp_path, camera, shown):
    async with cloud(tmp_path) as c:
        if camera is not None:
            report = {"camera": {"value": camera, "origin": "firmware", "ageS": 1.0}}
            c.edges._all["edge-7"] = ConnectedEdge(capabilities={"capabilities": report})
        names = [t["name"] for t in (await c.get("/api/tools", headers=ME)).json()["tools"]]
        assert ("com.x.photo:read" in names) is shown
        assert "com.x.app:read" in names


async def execute(c, body):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await c.post("/api/tools/execute", headers=ME, content=content)
    return answer.status_code, answer.json()


@pytest.mark.requirement("S0-29")
async def test_execute_runs_and_arguments_default_to_none_at_all(tmp_path):
    async with cloud(tmp_path) as c:
        assert await execute(c, {"name": "com.x.app:read"}) == (
            200,
            {"success": True, "content": "done"},
        )
        assert c.network.bodies[0]["arguments"] == {"n": 7}
        assert c.network.bodies[0]["context"]["userId"] == "local"


@pytest.mark.parametrize("body", [{}, {"name": 5}, {"name": ""}, [], {"name": None}])
async def test_a_missing_or_invalid_name_is_400_word_for_word(tmp_path, body):
    async with cloud(tmp_path) as c:
        assert await execute(c, body) == (
            400,
            {
                "success": False,
                "error": {"code": "INVALID_REQUEST", "message": "Missing or invalid tool name"},
            },
        )


@pytest.mark.requirement("S0-31")
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "com.x.app:gone"}, 404, "TOOL_NOT_FOUND"),
        ({"name": "com.x.app:read", "arguments": {"n": "x"}}, 400, "INVALID_ARGUMENTS"),
        ({"name": "nocolon"}, 500, "INVALID_TOOL_NAME"),
        ({"name": "com.x.nowhere:read"}, 500, "APP_NOT_AVAILABLE"),
        ({"name": "com.x.app:read", "arguments": 5}, 400, "INVALID_REQUEST"),
        (b"{", 400, "INVALID_REQUEST"),
        (b'"' + b"x" * (1 << 20) + b'"', 413, "INVALID_REQUEST"),
    ],
)
async def test_failures_have_the_seeds_statuses(tmp_path, body, status, code):
    async with cloud(tmp_path) as c:
        found, told = await execute(c, body)
        assert (found, told["success"], told["error"]["code"]) == (status, False, code)


async def test_a_failing_app_is_500(tmp_path):
    async with cloud(tmp_path, app=FakeApp(lambda r: httpx.Response(503, text="x"))) as c:
        assert await execute(c, {"name": "com.x.app:read"}) == (
            500,
            {
                "success": False,
                "error": {"code": "HTTP_ERROR", "message": "HTTP 503: x", "retryable": True},
            },
        )


async def test_the_console_stores_and_a_new_version_is_announced(tmp_path):
    async with cloud(tmp_path) as c:
        before = c.registry.version
        answer = await c.post(
            "/api/apps/com.n.new/tools", json={"tools": [READ], "publicUrl": "http://app"}
        )
        assert (answer.status_code, answer.json()["tools"]) == (201, ["read"])
        assert answer.json()["version"] == c.registry.version != before
        assert c.changes == [c.registry.version]
        assert await execute(c, {"name": "com.n.new:read"}) == (
            200,
            {"success": True, "content": "done"},
        )
        assert (await c.post("/api/apps/com.n.new/tools", json={"tools": []})).status_code == 200


async def test_a_bad_submission_changes_nothing_and_names_the_fields(tmp_path):
    async with cloud(tmp_path) as c:
        before = c.registry.body
        answer = await c.post(
            "/api/apps/com.n.new/tools", json={"tools": [READ, {**READ, "name": "a:b"}]}
        )
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], [f["field"] for f in error["fields"]]) == (
            400,
            "INVALID_DEFINITION",
            ["tools[1].name"],
        )
        assert (c.registry.body, c.changes) == (before, [])


@pytest.mark.parametrize(
    ("content", "status"), [(b"{", 400), (b"[" + b"0," * (1 << 20) + b"0]", 413)]
)
async def test_an_unreadable_submission_is_refused(tmp_path, content, status):
    async with cloud(tmp_path) as c:
        answer = await c.post("/api/apps/com.n.new/tools", content=content)
        assert (answer.status_code, answer.json()["error"]["fields"][0]["field"]) == (
            status,
            "body",
        )


@pytest.mark.parametrize(
    ("token", "said", "status"),
    [
        ("hush", "Bearer hush", 200),
        ("hush", "Bearer of-edge-1", 200),
        ("", "Bearer of-edge-1", 200),
        ("hush", "Bearer else", 401),
        ("", "Bearer else", 401),
        ("", "Bearer ", 401),
        ("hush", "", 401),
        ("", "", 401),
    ],
)
async def test_the_clouds_token_and_its_edges_tokens_give_the_same_access(
    tmp_path, token, said, status
):
    async with an_app_service(tmp_path, apps=[APP]) as service, a_runner(tmp_path) as (runner, _):
        auth = Authentication(service, token=token, knows=lambda shown: shown == "of-edge-1")
        transport = httpx.ASGITransport(Starlette(routes=Api(auth, runner).routes()))
        async with httpx.AsyncClient(transport=transport, base_url="http://cloud") as client:
            assert (
                await client.get("/api/registry", headers={"Authorization": said} if said else {})
            ).status_code == status


async def test_a_request_without_the_token_is_refused(tmp_path):
    async with cloud(tmp_path, token="hush") as c:
        for path in ("/api/registry", "/api/tools"):
            assert (await c.get(path, headers=ME)).status_code == 401
            assert (
                await c.get(path, headers={**ME, "Authorization": "Bearer hus"})
            ).status_code == 401
            assert (
                await c.get(path, headers={**ME, "Authorization": "Bearer hush"})
            ).status_code == 200
        assert (await c.post("/api/apps/com.n.new/tools", json=[])).status_code == 401


@pytest.mark.requirement("S0-67")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/tools/apps/com.x.app/tools"),
        ("GET", "/api/tools/users/local/tools"),
        ("POST", "/api/tools/apps/com.x.app/tool"),
    ],
)
async def test_the_old_endpoints_are_gone(tmp_path, method, path):
    async with cloud(tmp_path) as c:
        assert (await c.request(method, path, headers=ME)).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "part", "body"),
    [
        ("GET", "/api/tools", "listing", {"error": "Internal server error"}),
        (
            "POST",
            "/api/tools/execute",
            "find",
            {
                "success": False,
                "error": {
                    "code": "EXECUTION_ERROR",
                    "message": "Internal server error",
                    "retryable": False,
                },
            },
        ),
    ],
)
async def test_an_unexpected_error_is_500_and_its_text_stays_in_the_log(
    tmp_path, caplog, monkeypatch, method, path, part, body
):
    def breaks(*_args, **_more):
        raise RuntimeError("secret words")

    async with cloud(tmp_path) as c:
        monkeypatch.setattr(c.registry, part, breaks)
        answer = await c.request(method, path, headers=ME, json={"name": "com.x.app:read"})
        assert (answer.status_code, answer.json()) == (500, body)
        assert "secret words" in caplog.text


@pytest.mark.requirement("S0-29")
async def test_null_arguments_are_no_arguments(tmp_path):
    async with cloud(tmp_path) as c:
        assert (await execute(c, {"name": "com.x.app:read", "arguments": None}))[0] == 200
        assert c.network.bodies[0]["arguments"] == {"n": 7}


@pytest.mark.requirement("C-12", "S0-31")
async def test_an_activation_that_times_out_is_500_on_the_seeds_route(tmp_path):
    async with cloud(tmp_path) as c:

        async def ensure(_):
            raise ActivationTimeout("App com.x.app did not connect within 10000ms")

        c.launcher.ensure = ensure
        assert await execute(c, {"name": "com.x.app:read"}) == (
            500,
            {
                "success": False,
                "error": {
                    "code": "APP_ACTIVATION_TIMEOUT",
                    "message": "App com.x.app did not connect within 10000ms",
                    "retryable": True,
                },
            },
        )
        assert c.network.requests == []
