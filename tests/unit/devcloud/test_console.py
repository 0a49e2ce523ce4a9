"""The developer console and the removed endpoints over HTTP; only the socket is replaced."""

import asyncio
from types import SimpleNamespace

import pytest

from edge.devcloud.app_service import RegistryNotifier
from edge.devcloud.definitions import check_submission
from edge.devcloud.http.legacy_api import legacy_schema
from tests.unit.devcloud.parts import READ, an_app_service
from tests.unit.devcloud.test_api import ME, cloud, execute
from tools_cache.registry.legacy import migrate

LEGACY = {
    "id": "say",
    "description": "says",
    "activationPhrases": ["say it"],
    "parameters": {
        "text": {"type": "string", "description": "what", "required": True},
        "how": {"type": "string", "description": "how", "enum": ["loud", "low"]},
    },
}
OLD = [
    ("GET", "/api/tools/apps/com.x.app/tools"),
    ("GET", "/api/tools/users/local/tools"),
    ("POST", "/api/tools/apps/com.x.app/tool"),
]


# ------------------------------------------------------------------ tools and keys


@pytest.mark.requirement("S0-34")
async def test_a_bad_submission_names_each_field_with_what_to_do(tmp_path):
    bad = {
        "tools": [{"name": "a:b", "description": "d", "inputSchema": {"type": "array"}}],
        "colour": "red",
    }
    async with cloud(tmp_path) as c:
        answer = await c.post("/api/apps/com.n.new/tools", json=bad)
        (field,) = answer.json()["error"]["fields"]
        assert (answer.status_code, field["field"], field["fix"]) == (400, "colour", "remove it")
        answer = await c.post("/api/apps/nodots/tools", json={"tools": bad["tools"]})
        assert [f["field"] for f in answer.json()["error"]["fields"]] == [
            "packageName",
            "tools[0].name",
            "tools[0].inputSchema.type",
        ]
        assert (await c.get("/api/tools", headers=ME)).json()["tools"] == c.registry.listing(
            None
        ), "nothing was stored"


@pytest.mark.requirement("I5-cloud-keys")
async def test_the_console_gives_a_key_once_and_then_wants_it(tmp_path, caplog):
    caplog.set_level("DEBUG")
    async with cloud(tmp_path) as c:
        path = "/api/apps/com.n.new"
        assert (await c.post(f"{path}/key")).status_code == 404
        await c.post(f"{path}/tools", json={"tools": [READ], "publicUrl": "http://app"})
        issued = await c.post(f"{path}/key")
        key = issued.json()["apiKey"]
        assert (
            issued.status_code,
            issued.headers["cache-control"],
            issued.json()["packageName"],
        ) == (201, "no-store", "com.n.new")
        for headers, status in (
            ({}, 401),
            ({"X-App-API-Key": "gak_guess"}, 401),
            ({"X-App-API-Key": key}, 200),
        ):
            assert (
                await c.post(f"{path}/tools", json={"tools": [READ]}, headers=headers)
            ).status_code == status
        assert (await c.post(f"{path}/key")).json()["error"]["code"] == "AUTH"
        assert await execute(c, {"name": "com.n.new:read"}) == (
            200,
            {"success": True, "content": "done"},
        )
        sent = c.network.requests[-1].headers["X-App-API-Key"]
        assert sent == c.registry.app("com.n.new").api_key_hash != key
        for secret in (key, sent):
            assert secret not in caplog.text
            assert secret not in (await c.get("/api/registry")).text


@pytest.mark.requirement("S0-34")
async def test_what_another_process_was_handed_is_listed_and_announced_here(tmp_path):
    async with cloud(tmp_path) as c, an_app_service(tmp_path) as elsewhere:
        await elsewhere.submit(check_submission("com.n.new", [READ]))
        assert "com.n.new:read" in [
            t["name"] for t in (await c.get("/api/tools", headers=ME)).json()["tools"]
        ]
        said = []
        await elsewhere.submit(check_submission("com.n.next", [READ]))
        notifier = RegistryNotifier(c.service, topic="t", url="u")
        notifier.link = SimpleNamespace(
            publish=lambda *args, **_: asyncio.sleep(0, said.append(args))
        )
        await notifier.publish()
        assert said[0][2] == {
            "version": c.registry.version,
            "sha256": c.registry.sha256,
            "url": "u",
        }
        assert c.registry.app("com.n.next") is not None


async def test_where_nothing_can_be_stored_it_is_said_and_nothing_changes(tmp_path):
    async with cloud(tmp_path) as c:
        before = c.registry.body
        await c.service._store._db.close()
        answer = await c.post("/api/apps/com.n.new/tools", json=[READ])
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "TOOL_UNAVAILABLE")
        assert (c.registry.body, c.changes) == (before, [])


# ------------------------------------------------------------------ people


@pytest.mark.requirement("I5-cloud-sessions")
async def test_a_user_is_served_while_a_session_is_open(tmp_path):
    ann = {"X-User-Id": "ann"}
    refused = (401, {"error": "No active session for user"})
    async with cloud(tmp_path) as c:

        async def asked():
            answer = await c.get("/api/tools", headers=ann)
            return answer.status_code, answer.json()

        assert await asked() == refused
        opened = await c.put("/devcloud/sessions/ann")
        assert (opened.status_code, opened.json()) == (201, {"user": "ann", "leftS": 86400.0})
        assert (await asked())[0] == 200
        assert list((await c.get("/devcloud/sessions")).json()["sessions"]) == ["ann"]
        assert (await c.delete("/devcloud/sessions/ann")).json() == {"ended": True}
        assert await asked() == refused
        assert (await c.put("/devcloud/sessions/" + "x" * 201)).status_code == 400


@pytest.mark.requirement("I5-cloud-sessions")
async def test_an_app_that_a_user_took_off_is_neither_listed_nor_found(tmp_path):
    async with cloud(tmp_path, legacy=True) as c:
        path = "/devcloud/users/local/apps/com.x.app"
        assert (await c.delete(path)).json() == {
            "user": "local",
            "packageName": "com.x.app",
            "installed": False,
        }
        assert not any(
            t["name"].startswith("com.x.app:")
            for t in (await c.get("/api/tools", headers=ME)).json()["tools"]
        )
        assert not any(
            t["appPackageName"] == "com.x.app"
            for t in (await c.get("/api/tools/users/local/tools")).json()
        )
        assert await execute(c, {"name": "com.x.app:read"}) == (
            404,
            {
                "success": False,
                "error": {"code": "TOOL_NOT_FOUND", "message": "Tool com.x.app:read not found"},
            },
        )
        assert c.network.requests == []
        await c.put(path)
        assert (await execute(c, {"name": "com.x.app:read"}))[0] == 200
        assert (await c.put("/devcloud/users/local/apps/com.n.gone")).status_code == 404


async def test_a_token_guards_console_and_sessions_too(tmp_path):
    async with cloud(tmp_path, token="hush", legacy=True) as c:
        for method, path in (
            ("POST", "/api/apps/com.x.app/tools"),
            ("POST", "/api/apps/com.x.app/key"),
            ("GET", "/devcloud/sessions"),
            ("PUT", "/devcloud/sessions/a"),
            ("DELETE", "/devcloud/users/a/apps/com.x.app"),
            *OLD,
        ):
            assert (await c.request(method, path, json={})).status_code == 401, path


# ------------------------------------------------------------------ the removed endpoints


@pytest.mark.requirement("S0-67")
@pytest.mark.parametrize(("method", "path"), OLD)
@pytest.mark.parametrize(("legacy", "gone"), [(False, True), (True, False)])
async def test_the_removed_endpoints_are_there_only_where_the_cloud_says_so(
    tmp_path, method, path, legacy, gone
):
    async with cloud(tmp_path, legacy=legacy) as c:
        answer = await c.request(method, path, json={"toolId": "read", "userId": "local"})
        assert (answer.status_code == 404) is gone


@pytest.mark.requirement("S0-68")
async def test_with_the_flag_old_clients_list_and_call_as_they_did(tmp_path):
    async with cloud(tmp_path, legacy=True) as c:
        await c.post(
            "/api/apps/com.n.old/tools", json={"tools": [LEGACY], "publicUrl": "http://app"}
        )
        assert (await c.get("/api/tools/apps/com.n.old/tools")).json() == [LEGACY]
        mine = (await c.get("/api/tools/users/local/tools")).json()
        assert [t for t in mine if t["appPackageName"] == "com.n.old"] == [
            {**LEGACY, "appPackageName": "com.n.old"}
        ]
        call = {"toolId": "say", "userId": "local", "toolParameters": {"text": "hi"}}
        answer = await c.post("/api/tools/apps/com.n.old/tool", json=call)
        assert (answer.status_code, answer.json()) == (200, {"status": "success", "reply": "done"})
        assert (c.network.bodies[-1]["name"], c.network.bodies[-1]["arguments"]) == (
            "say",
            {"text": "hi"},
        )
        answer = await c.post("/api/tools/apps/com.n.old/tool", json={**call, "toolParameters": {}})
        assert (answer.status_code, answer.json()["status"]) == (500, "error")


@pytest.mark.requirement("S0-68")
@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "Missing or invalid toolId"),
        ({"toolId": "read"}, 400, "Missing or invalid userId"),
        ([], 400, "Missing or invalid toolId"),
        (
            {"toolId": "read", "userId": "local", "toolParameters": 5},
            400,
            "Missing or invalid toolParameters",
        ),
        ({"toolId": "read", "userId": "stranger"}, 401, "No active session for user"),
    ],
)
async def test_a_bad_old_call_is_refused(tmp_path, body, status, words):
    async with cloud(tmp_path, legacy=True) as c:
        answer = await c.post("/api/tools/apps/com.x.app/tool", json=body)
        assert (answer.status_code, answer.json()) == (status, {"error": words})
        assert c.network.requests == []


async def test_an_app_that_is_not_there_has_no_old_tools(tmp_path):
    async with cloud(tmp_path, legacy=True) as c:
        assert (await c.get("/api/tools/apps/com.n.gone/tools")).status_code == 404


def test_a_legacy_schema_reverses_the_migration():
    assert legacy_schema(migrate(LEGACY)) == LEGACY
    assert legacy_schema({"name": "x", "description": "d", "inputSchema": {"type": "object"}}) == {
        "id": "x",
        "description": "d",
    }
