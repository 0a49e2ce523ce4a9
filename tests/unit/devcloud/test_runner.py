"""One call through the cloud, the app's network faked: what is sent, and what each way of
failing becomes.
"""

import asyncio
import json
from datetime import datetime

import httpx
import pytest

from edge.devcloud.registry import InstalledApp
from edge.devcloud.worker import runner as runner_module
from tests.unit.devcloud.parts import APP, READ, FakeApp, a_call, a_runner
from tools_cache.api.tool import ErrorCode, ErrorType


async def answer_of(tmp_path, call, reply=None, **limits):
    async with a_runner(tmp_path, FakeApp(reply), **limits) as (runner, app):
        return await runner.run(call), app


@pytest.mark.requirement("S0-39")
async def test_the_app_gets_local_name_arguments_context_and_its_key(tmp_path):
    response, app = await answer_of(tmp_path, a_call(n=3))
    (request,), (body,) = app.requests, app.bodies
    assert (request.method, str(request.url)) == ("POST", "http://app/tool")
    assert request.headers["X-App-API-Key"] == "hashed-key"
    assert (body["name"], body["arguments"]) == ("read", {"n": 3})
    assert (body["context"]["userId"], body["context"]["activatedForTool"]) == ("u", False)
    assert datetime.fromisoformat(body["context"]["timestamp"]).tzinfo is not None
    assert (response.ok, response.data) == (True, "done")


@pytest.mark.requirement("S0-56")
async def test_the_key_is_never_logged(tmp_path, caplog):
    caplog.set_level("DEBUG")
    await answer_of(tmp_path, a_call(n=3))
    assert "hashed-key" not in caplog.text


async def test_the_envelope_carries_its_meta(tmp_path):
    response, _ = await answer_of(tmp_path, a_call(n=3))
    meta = response.meta
    assert (meta["tool"], meta["toolVersion"], meta["route"], meta["activatedForTool"]) == (
        "com.x.app:read",
        "2.1.0",
        "cloud",
        False,
    )
    assert meta["callId"] == a_call().call_id
    assert meta["registryVersion"].startswith("1.0.")
    assert isinstance(meta["duration"], int)
    assert datetime.fromisoformat(meta["timestamp"])


@pytest.mark.requirement("S0-60")
async def test_each_call_leaves_one_line(tmp_path, caplog):
    caplog.set_level("INFO")
    await answer_of(tmp_path, a_call(n=3))
    (line,) = [r for r in caplog.records if r.getMessage() == "Tool executed"]
    assert (line.tool, line.userId, line.success, type(line.duration)) == (
        "com.x.app:read",
        "u",
        True,
        int,
    )


async def test_defaults_are_filled_before_the_check(tmp_path):
    _, app = await answer_of(tmp_path, a_call())
    assert app.bodies[0]["arguments"] == {"n": 7}


@pytest.mark.requirement("S0-49")
@pytest.mark.parametrize(
    ("tool", "code", "message"),
    [
        (
            "nocolon",
            "INVALID_TOOL_NAME",
            "Invalid tool name format: nocolon. Expected format: packageName:toolName",
        ),
        (
            ":x",
            "INVALID_TOOL_NAME",
            "Invalid tool name format: :x. Expected format: packageName:toolName",
        ),
        ("com.x.app:gone", "TOOL_NOT_FOUND", "Tool com.x.app:gone not found"),
        ("com.x.gone:read", "TOOL_NOT_FOUND", "Tool com.x.gone:read not found"),
        ("com.x.nowhere:read", "APP_NOT_AVAILABLE", "App com.x.nowhere has no public URL"),
    ],
)
async def test_a_call_without_a_route_says_so_and_calls_no_app(tmp_path, tool, code, message):
    response, app = await answer_of(tmp_path, a_call(tool, n=1))
    assert (response.error.code, response.error.message, response.error.retryable) == (
        code,
        message,
        False,
    )
    assert app.requests == []


@pytest.mark.requirement("S0-48")
async def test_bad_arguments_are_all_reported_and_neither_start_nor_ask_the_app(tmp_path):
    async with a_runner(tmp_path) as (runner, app):
        response = await runner.run(a_call(n="three", m=1), sending=pytest.fail)
    assert response.error.code is ErrorCode.INVALID_ARGUMENTS
    assert {e["path"] for e in response.error.details} == {"/n", "root"}
    assert app.requests == []
    assert runner.asked == {}


@pytest.mark.requirement("S0-45")
async def test_invalid_arguments_are_said_before_a_missing_route(tmp_path):
    response, _ = await answer_of(tmp_path, a_call("com.x.nowhere:read", n="three"))
    assert response.error.code is ErrorCode.INVALID_ARGUMENTS


@pytest.mark.requirement("S0-58")
@pytest.mark.parametrize(("status", "retryable"), [(404, False), (503, True)])
async def test_an_http_error_keeps_status_and_text(tmp_path, status, retryable):
    response, _ = await answer_of(
        tmp_path, a_call(n=1), lambda r: httpx.Response(status, text="sorry")
    )
    assert (response.error.code, response.error.message) == ("HTTP_ERROR", f"HTTP {status}: sorry")
    assert response.error.retryable is retryable


async def forever(_):
    await asyncio.Event().wait()


@pytest.mark.requirement("S0-57")
@pytest.mark.parametrize(("tool", "maybe_done"), [("read", False), ("write", True)])
async def test_a_slow_tool_times_out_and_a_writing_one_may_have_written(tmp_path, tool, maybe_done):
    response, _ = await answer_of(
        tmp_path, a_call(f"com.x.app:{tool}", n=1), forever, tool_timeout_s=0.05
    )
    error = response.error
    assert (error.code, error.message, error.retryable) == (
        "TIMEOUT",
        "Tool execution timeout after 50ms",
        True,
    )
    assert error.partial_side_effects is maybe_done


async def test_a_tool_may_ask_for_less_time_but_never_for_more(tmp_path):
    response, _ = await answer_of(
        tmp_path, a_call("com.x.app:quick", n=1), forever, tool_timeout_s=30.0
    )
    assert response.error.message == "Tool execution timeout after 50ms"
    response, _ = await answer_of(
        tmp_path, a_call("com.x.app:quick", n=1), forever, tool_timeout_s=0.02
    )
    assert response.error.message == "Tool execution timeout after 20ms"


async def test_the_calls_own_end_comes_first(tmp_path):
    response, _ = await answer_of(tmp_path, a_call("com.x.app:write", n=1, ttl_s=0.05), forever)
    assert (response.error.code, response.error.partial_side_effects) == (
        ErrorCode.DEADLINE_EXPIRED,
        True,
    )


async def test_an_expired_call_calls_no_app(tmp_path):
    response, app = await answer_of(tmp_path, a_call(n=1, ttl_s=0.0))
    assert (response.error.code, response.error.partial_side_effects, app.requests) == (
        ErrorCode.DEADLINE_EXPIRED,
        False,
        [],
    )


def broken(error):
    def answer(request):
        raise error("ECONN", request=request)

    return answer


@pytest.mark.requirement("S0-59")
@pytest.mark.parametrize(
    ("error", "code", "retryable", "maybe_done"),
    [
        (httpx.ConnectError, "NETWORK_ERROR", True, False),
        (httpx.ConnectTimeout, "TIMEOUT", True, False),
        (httpx.ReadError, "NETWORK_ERROR", True, True),
        (httpx.RemoteProtocolError, "NETWORK_ERROR", True, True),
        (httpx.TooManyRedirects, "EXECUTION_ERROR", False, False),
    ],
)
async def test_a_broken_connection_is_classified_by_its_kind(
    tmp_path, error, code, retryable, maybe_done
):
    response, _ = await answer_of(tmp_path, a_call("com.x.app:write", n=1), broken(error))
    found = response.error
    assert (found.code, found.retryable, found.partial_side_effects) == (
        code,
        retryable,
        maybe_done,
    )


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (httpx.Response(200, content=b"{"), "not JSON"),
        (httpx.Response(200, content=b"[" * 100_000), "not JSON"),
        (httpx.Response(200, json=[1]), "Invalid result structure"),
        (httpx.Response(200, content=b"x" * (runner_module.MAX_ANSWER + 1)), "more than 240 KiB"),
    ],
)
async def test_an_unreadable_answer_is_an_execution_error(tmp_path, reply, words):
    response, _ = await answer_of(tmp_path, a_call(n=1), lambda r: reply)
    assert (response.error.code, response.error.type) == (
        ErrorCode.EXECUTION_ERROR,
        ErrorType.INTERNAL,
    )
    assert words in response.error.message


async def test_an_unexpected_error_is_internal_and_its_text_is_only_logged(tmp_path, caplog):
    def answer(request):
        raise RuntimeError("secret of ours")

    response, _ = await answer_of(tmp_path, a_call(n=1), answer)
    assert (response.error.code, response.error.message) == (
        "INTERNAL",
        "Internal error executing com.x.app:read",
    )
    assert (response.error.retryable, response.error.partial_side_effects) == (False, True)
    assert "secret" in caplog.text


def stream(*lines, cut=7):
    """NDJSON that arrives in pieces that respect no line."""
    whole = b"".join(
        line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
    )

    class Pieces(httpx.AsyncByteStream):
        async def __aiter__(self):
            for i in range(0, len(whole), cut):
                yield whole[i : i + cut]

    return lambda r: httpx.Response(
        200, headers={"content-type": "application/x-ndjson"}, stream=Pieces()
    )


async def streamed(tmp_path, reply):
    words = []

    async def progress(text):
        words.append(text)

    async with a_runner(tmp_path, FakeApp(reply)) as (runner, _):
        return await runner.run(a_call(n=1), progress=progress), words


async def test_progress_is_passed_on_in_order_and_the_result_ends_it(tmp_path):
    reply = stream(
        {"progress": "one"},
        b"\n",
        {"progress": "zwölf\n"},
        {"result": {"data": 3}},
        {"progress": "late"},
    )
    response, words = await streamed(tmp_path, reply)
    assert (words, response.data) == (["one", "zwölf"], 3)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (({"progress": "one"},), "ended without a result"),
        ((b"nonsense\n",), "not JSON"),
        ((b"x" * (runner_module.MAX_ANSWER + 8),), "more than 240 KiB"),
    ],
)
async def test_a_stream_that_breaks_its_form_is_an_execution_error(tmp_path, lines, words):
    response, _ = await streamed(tmp_path, stream(*lines, cut=4096))
    assert response.error.code is ErrorCode.EXECUTION_ERROR
    assert words in response.error.message


async def test_sending_is_awaited_before_the_app_is_called(tmp_path):
    order = []

    async def sending():
        order.append("stored")

    def reply(request):
        order.append("asked")
        return httpx.Response(200, json={"data": 1})

    async with a_runner(tmp_path, FakeApp(reply)) as (runner, _):
        await runner.run(a_call(n=1), sending=sending)
    assert order == ["stored", "asked"]


async def test_asking_twice_is_safe_only_when_the_tool_says_so(tmp_path):
    async with a_runner(tmp_path, apps=(APP,)) as (runner, _):
        found = {name: runner.repeatable(f"com.x.app:{name}") for name in ("read", "write", "gone")}
        assert found == {"read": True, "write": False, "gone": True}
        assert runner.repeatable("nocolon") is True


AGENT = {
    **READ,
    "name": "agent",
    "execution": {"agentConfig": {"prompt": "p", "includeContext": True}, "timeout": 60_000},
}
IMAGE = {
    **READ,
    "name": "image",
    "execution": {"provider": "p", "model": "m", "size": "64x64", "quality": "low"},
}


@pytest.mark.requirement("S3-15")
@pytest.mark.parametrize(("tool", "needs"), [(AGENT, "a sub-agent"), (IMAGE, "an image model")])
async def test_a_tool_that_needs_a_model_needs_an_app_that_runs_it(tmp_path, tool, needs):
    bitmap = {"layout": "bitmap_view", "width": 8, "height": 1, "data": "/w=="}
    reply = FakeApp(
        lambda r: httpx.Response(200, json={"data": "drawn", "render": {"display": bitmap}})
    )
    apps = [
        InstalledApp("com.x.none", "N", (tool,)),
        InstalledApp("com.x.app", "X", (tool,), public_url="http://app"),
    ]
    async with a_runner(tmp_path, reply, apps=apps) as (runner, app):
        error = (await runner.run(a_call(f"com.x.none:{tool['name']}", n=1))).error
        assert (error.code, error.retryable) == ("UNSUPPORTED", False)
        assert error.message.startswith(
            f"com.x.none:{tool['name']} needs {needs}, which this cloud does not run"
        )
        assert app.requests == []
        response = await runner.run(a_call(f"com.x.app:{tool['name']}", n=1))
        assert (response.data, response.render) == ("drawn", {"display": bitmap})


async def test_a_tool_that_its_user_took_off_is_not_found(tmp_path):
    async with a_runner(
        tmp_path, installed=lambda user, package: (user, package) != ("u", "com.x.app")
    ) as (runner, app):
        response = await runner.run(a_call(n=1))
        assert (response.error.code, response.error.message) == (
            "TOOL_NOT_FOUND",
            "Tool com.x.app:read not found",
        )
        assert app.requests == []
