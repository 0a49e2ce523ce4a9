"""A mini-app over HTTP, the server's own socket replaced by ASGI."""

import asyncio
import json

import httpx
import pytest

from edge.devcloud import appserver
from edge.devcloud.app_service import hashed
from edge.devcloud.appserver import AppServer
from edge.devcloud.definitions import BadSubmission, check_submission
from edge.devcloud.sdk import Progress, create_tool, params

ANY = params()


def app_with(handler, **more):
    app = AppServer("com.x.y", **more)
    app.register_tool(create_tool("go", "goes", {"type": "object"}, handler))
    return app


async def post(app, body, *, headers=None):
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app.asgi()), base_url="http://app"
    ) as client:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await client.post("/tool", content=content, headers=headers or {})


@pytest.mark.requirement("S0-62")
async def test_an_unknown_tool_is_404_with_its_code():
    answer = await post(app_with(lambda a, c: 1), {"name": "nope"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "TOOL_NOT_FOUND")


async def test_a_handler_gets_arguments_and_context():
    answer = await post(
        app_with(lambda a, c: {"data": [a, c.user_id, c.activated_for_tool]}),
        {"name": "go", "arguments": {"n": 1}, "context": {"userId": "u", "activatedForTool": True}},
    )
    assert answer.json() == {"data": [{"n": 1}, "u", True]}


async def test_an_awaiting_handler_is_awaited():
    async def handler(args, context):
        await asyncio.sleep(0)
        return {"data": "ok"}

    assert (await post(app_with(handler), {"name": "go"})).json() == {"data": "ok"}


@pytest.mark.parametrize(
    ("error", "message"),
    [(ValueError("no such day"), "no such day"), (ValueError(), "Unknown error")],
)
async def test_a_raising_handler_is_a_handler_error(error, message):
    def handler(args, context):
        raise error

    answer = await post(app_with(handler), {"name": "go"})
    assert answer.status_code == 200
    assert answer.json() == {
        "success": False,
        "error": {"code": "HANDLER_ERROR", "message": message, "retryable": False},
    }


@pytest.mark.requirement("S0-63")
async def test_a_result_that_cannot_be_written_is_500_execution_error():
    answer = await post(app_with(lambda a, c: {"data": object()}), {"name": "go"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "EXECUTION_ERROR")
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"{", "body"),
        ([], "name"),
        ({"name": 5}, "name"),
        ({"name": "go", "arguments": []}, "arguments"),
    ],
)
async def test_a_bad_request_is_400_and_names_the_field(body, named):
    answer = await post(app_with(lambda a, c: 1), body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(named)


async def test_a_body_over_the_bound_is_refused(monkeypatch):
    monkeypatch.setattr(appserver, "MAX_BODY", 100)
    answer = await post(app_with(lambda a, c: 1), {"name": "go", "arguments": {"x": "y" * 100}})
    assert "larger than 100" in answer.json()["error"]["message"]


async def test_only_the_holder_of_the_key_is_served():
    app = app_with(lambda a, c: {"data": 1}, api_key_hash="secret")
    assert (await post(app, {"name": "go"})).status_code == 401
    assert (await post(app, {"name": "go"}, headers={"X-App-API-Key": "secrex"})).status_code == 401
    assert (await post(app, {"name": "go"}, headers={"X-App-API-Key": "secret"})).json() == {
        "data": 1
    }


async def test_health_names_the_app():
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app_with(lambda a, c: 1).asgi()), base_url="http://app"
    ) as client:
        assert (await client.get("/health")).json() == {
            "status": "ok",
            "packageName": "com.x.y",
            "tools": 1,
        }


def lines(answer):
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_three_yields_are_two_words_of_progress_and_the_result():
    async def handler(args, context):
        yield "one"
        yield "two"
        yield {"data": 3}

    assert lines(await post(app_with(handler), {"name": "go"})) == [
        {"progress": "one"},
        {"progress": "two"},
        {"result": {"data": 3}},
    ]


async def test_marked_progress_leaves_before_the_next_value_exists():
    more = asyncio.Event()

    async def handler(args, context):
        yield Progress("now")
        await more.wait()
        yield {"data": 1}

    stream = appserver._stream(
        create_tool("go", "d", {"type": "object"}, handler), {"arguments": {}}
    )
    async with asyncio.timeout(40):
        assert json.loads(await anext(stream)) == {"progress": "now"}
    more.set()
    assert [json.loads(line) async for line in stream] == [{"result": {"data": 1}}]


async def test_a_stream_that_fails_ends_with_the_failure():
    async def handler(args, context):
        yield Progress("begun")
        raise RuntimeError("lost")

    found = lines(await post(app_with(handler), {"name": "go"}))
    assert found[0] == {"progress": "begun"}
    assert found[-1]["result"]["error"] == {
        "code": "HANDLER_ERROR",
        "message": "lost",
        "retryable": False,
    }


async def test_a_stream_without_a_result_says_so():
    async def handler(args, context):
        yield Progress("only this")

    assert (
        lines(await post(app_with(handler), {"name": "go"}))[-1]["result"]["error"]["code"]
        == "HANDLER_ERROR"
    )


async def test_a_stream_whose_result_cannot_be_written_is_an_execution_error():
    async def handler(args, context):
        yield {"data": float("nan")}

    assert (
        lines(await post(app_with(handler), {"name": "go"}))[-1]["result"]["error"]["code"]
        == "EXECUTION_ERROR"
    )


async def test_a_caller_who_hangs_up_cancels_the_handler():
    cancelled, running = asyncio.Event(), asyncio.Event()

    async def handler(args, context):
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    messages = iter([{"type": "http.request", "body": b'{"name":"go"}', "more_body": False}])

    async def receive():
        try:
            return next(messages)
        except StopIteration:
            await running.wait()
            return {"type": "http.disconnect"}

    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/tool",
        "headers": [],
        "query_string": b"",
        "root_path": "",
    }
    async with asyncio.timeout(40):
        await app_with(handler).asgi()(scope, receive, send)
    assert cancelled.is_set()
    assert sent[0]["status"] == 499


@pytest.mark.requirement("S0-64")
async def test_the_console_accepts_the_manifest_with_the_apps_address():
    app = app_with(
        lambda a, c: 1, name="Y", hardware_requirements=[{"type": "CAMERA", "level": "REQUIRED"}]
    )
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app.asgi()), base_url="http://app:8001"
    ) as client:
        said = (await client.get("/manifest")).json()
    assert said == {**app.manifest(), "publicUrl": "http://app:8001"}
    submission = check_submission("com.x.y", said)
    assert (submission.name, submission.public_url, list(submission.tools)) == (
        "Y",
        "http://app:8001",
        app.get_tool_definitions(),
    )
    with pytest.raises(BadSubmission, match="packageName"):
        check_submission("com.x.z", said)


@pytest.mark.requirement("I5-cloud-keys")
async def test_an_app_with_the_consoles_key_serves_callers_with_its_hash(monkeypatch):
    monkeypatch.setenv("GLASSD_APP_API_KEY", "gak_x")
    app = app_with(lambda a, c: {"data": 1})
    for sent, status in (("gak_x", 401), ("", 401), (hashed("gak_x"), 200)):
        assert (
            await post(app, {"name": "go"}, headers={"X-App-API-Key": sent})
        ).status_code == status
