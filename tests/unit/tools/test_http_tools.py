"""The gateway against a real HTTP server: what leaves, what comes back, and how it fails, each
with its code.
"""

import asyncio
import dataclasses
import json
import socket
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from edge.core.tools.user_tools import RequestPlan
from edge.tools import http_request, http_tools as gateway_module
from edge.tools.http_request import HttpToolAnswer
from edge.tools.http_tools import HttpTools, response_of
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    ErrorType,
    ExecutionType,
    SideEffects,
    Source,
    ToolCall,
    ToolDefinition,
)

pytestmark = pytest.mark.enable_socket
HOSTILE = '"}\r\nX-Evil: 1 /../?a=b&c#d'


@dataclass
class Server:
    """What was heard, and what is said to it: raw bytes, so that nothing is tidied on the way."""

    port: int = 0
    heard: list = field(default_factory=list)
    status: str = "200 OK"
    headers: str = "Content-Type: application/json\r\n"
    body: bytes = b'{"text": "sunny"}'
    silent: bool = False
    hang_up: bool = False
    endless: bool = False
    started: bool = False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = head.split("\r\n")
            headers = {
                k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, target, _ = lines[0].split(" ")
            self.heard.append((method, target, headers, body))
            if self.silent:
                await reader.read()
            while self.endless:
                writer.write(
                    b"" if self.started else b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
                )
                self.started = True
                writer.write(b"x" * 65536)
                await writer.drain()
            if not (self.silent or self.hang_up):
                length = f"Content-Length: {len(self.body)}\r\n"
                writer.write(
                    f"HTTP/1.1 {self.status}\r\n{length}{self.headers}\r\n".encode() + self.body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @property
    def json(self):
        return json.loads(self.heard[-1][3])


@pytest.fixture
async def server():
    made = Server()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    listening.close()


TOOL = ToolDefinition(
    name="my:tool",
    description="d",
    input_schema={"type": "object"},
    source=Source.LOCAL,
    endpoint="http",
    timeout_s=10.0,
)
LATER = replace(TOOL, execution_type=ExecutionType.EXTERNAL, endpoint="")


def call(**args):
    return ToolCall(call_id="call-1", tool="my:tool", args=args, origin=CallOrigin.CLI)


async def nowhere(_):
    """Nobody listens to progress."""


@asynccontextmanager
async def gateway(plan=None):
    made = HttpTools()
    made.use(MappingProxyType({"my:tool": plan} if plan else {}))
    try:
        yield made
    finally:
        await made.close()


async def asked(plan, *, tool=TOOL, **args):
    async with gateway(plan) as made:
        return await made.run(call(**args), tool, nowhere)


# ------------------------------------------------------------------ what leaves


async def test_a_proxy_of_the_environment_gets_no_call(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert (await asked(RequestPlan(url=server.url))).data == {"text": "sunny"}


@pytest.mark.requirement("S3-14", "S3-17")
async def test_what_leaves_is_what_the_plan_says_with_the_calls_values_in(server):
    plan = RequestPlan(
        url=f"{server.url}/a/{{{{input.p}}}}?k={{{{input.w}}}}",
        method="PUT",
        headers={"X-Key": "hush", "Accept": "text/plain"},
        query={"n": "{{input.n}}"},
        body={"t": "{{input.w}}", "n": "{{input.n}}", "gone": "{{input.gone}}"},
    )
    answer = await asked(plan, p="x y", w=HOSTILE, n=7)
    assert answer.data == {"text": "sunny"}
    ((method, target, headers, _),) = server.heard
    assert method == "PUT"
    assert target.startswith("/a/x%20y?k=%22%7D%0D%0AX-Evil%3A%201%20%2F..%2F%3Fa%3Db%26c%23d&n=7")
    assert (headers["x-key"], headers["accept"], headers["content-type"]) == (
        "hush",
        "text/plain",
        "application/json",
    )
    assert (headers["idempotency-key"], headers["accept-encoding"]) == ("call-1", "identity")
    assert "x-evil" not in headers
    assert server.json == {"t": HOSTILE, "n": 7}


async def test_what_a_server_would_have_remembered_is_not_sent_with_the_next_call(server):
    server.headers += "Set-Cookie: session=of-the-first-caller; Path=/\r\n"
    async with gateway(RequestPlan(url=server.url)) as made:
        for _ in range(2):
            assert (await made.run(call(), TOOL, nowhere)).ok
    assert ["cookie" in headers for _, _, headers, _ in server.heard] == [False, False]


async def test_without_a_body_a_post_sends_the_arguments_and_a_get_nothing(server):
    await asked(RequestPlan(url=server.url), a=[1, {"b": None}])
    assert server.json == {"a": [1, {"b": None}]}
    await asked(RequestPlan(url=server.url, method="GET"), a=1)
    assert server.heard[-1][0::3] == ("GET", b"")


async def test_a_value_that_is_no_text_any_more_still_is_one_value(server):
    await asked(
        RequestPlan(url=f"{server.url}/{{{{input.x}}}}", body={"x": "{{input.x}}"}), x="a\ud800b"
    )
    assert server.heard[-1][1] == "/a%3Fb"
    assert server.json == {"x": "a?b"}


@pytest.mark.requirement("S3-13")
@pytest.mark.parametrize("value", [None, "", "..", "x" * 9000])
async def test_a_call_that_cannot_fill_its_address_is_not_sent(server, value):
    answer = await asked(RequestPlan(url=f"{server.url}/{{{{input.x}}}}/y"), x=value)
    assert (answer.error.code, answer.error.retryable) == (ErrorCode.INVALID_ARGUMENTS, False)
    assert server.heard == []


async def test_a_tool_without_an_address_is_not_asked():
    async with gateway() as made:
        assert (await made.run(call(), TOOL, nowhere)).error.code is ErrorCode.TOOL_NOT_FOUND
        assert (await made.run(call(), LATER, nowhere)).error is None
        assert made._asking is None


# ------------------------------------------------------------------ what comes back


@pytest.mark.requirement("S0-40")
@pytest.mark.parametrize(
    ("said", "data"),
    [
        ({"success": True, "content": "hi"}, "hi"),
        ({"success": True, "content": {"a": 1}}, {"a": 1}),
        ({"ok": True, "data": [1]}, [1]),
        # Half the world's services say ok or success in a way of their own; none of it is lost.
        ({"ok": True, "result": {"id": 5}}, {"ok": True, "result": {"id": 5}}),
        ({"success": True, "items": [1]}, {"success": True, "items": [1]}),
        ({"success": "yes", "content": 1}, {"success": "yes", "content": 1}),
        ({"ok": True}, {"ok": True}),
        ({"success": True, "content": 1, "page": 2}, {"success": True, "content": 1, "page": 2}),
        ({"ok": True, "data": 1, "next": 2}, {"ok": True, "data": 1, "next": 2}),
        ({"data": 1}, {"data": 1}),
        ([1], [1]),
        (5, 5),
    ],
)
async def test_a_tools_result_is_read_as_one_and_any_other_json_is_the_data(server, said, data):
    server.body = json.dumps(said).encode()
    answer = await asked(RequestPlan(url=server.url))
    assert answer.ok
    assert answer.data == data


@pytest.mark.requirement("S0-40", "S0-41", "S0-42")
async def test_what_a_result_says_about_its_showing_is_kept(server):
    extensions = {"suppressVoiceResponse": True, "suggestedFollowUps": ["more", "less"]}
    server.body = json.dumps(
        {"success": True, "content": "x", "mentraExtensions": extensions}
    ).encode()
    answer = await asked(RequestPlan(url=server.url))
    assert answer.render == {
        "audio": {"suppressVoiceResponse": True},
        "suggestedFollowUps": ["more", "less"],
    }


@pytest.mark.requirement("S0-40")
async def test_a_failed_result_is_an_error_with_its_words(server):
    server.body = json.dumps(
        {"success": False, "error": {"code": "TOO_COLD", "message": "brr", "retryable": False}}
    ).encode()
    error = (await asked(RequestPlan(url=server.url))).error
    assert (error.code, error.message, error.details) == (
        ErrorCode.EXECUTION_ERROR,
        "brr",
        {"appCode": "TOO_COLD"},
    )


@pytest.mark.parametrize(
    ("headers", "body", "data"),
    [
        ("Content-Type: text/plain; charset=latin-1\r\n", b"gr\xfc\xdfe", {"text": "grüße"}),
        ("", b"plain", {"text": "plain"}),
        ("", b"", None),
        ("Content-Type: text/plain; charset=nonsense\r\n", b"x", {"text": "x"}),
        ("Content-Type: text/plain\r\n", b"NaN", {"text": "NaN"}),
    ],
)
async def test_text_is_data_too_and_nothing_is_none(server, headers, body, data):
    server.headers, server.body = headers, body
    assert (await asked(RequestPlan(url=server.url))).data == data


@pytest.mark.parametrize(
    ("headers", "body", "told"),
    [
        ("Content-Type: image/png\r\n", b"\x89PNG", "image/png"),
        ("Content-Type: application/json\r\n", b"{", "application/json"),
        ("Content-Encoding: gzip\r\n", b"x", "compressed"),
        ("", b"x" * (http_request.MAX_ANSWER + 1), "larger than 128 KiB"),
        ("Content-Type: application/json\r\n", b"[" * 100_000, "application/json"),
    ],
)
async def test_what_is_neither_json_nor_text_or_too_large_is_an_error(server, headers, body, told):
    server.headers, server.body = headers, body
    error = (await asked(RequestPlan(url=server.url))).error
    assert (error.code, error.type) == (ErrorCode.EXECUTION_ERROR, ErrorType.INTERNAL)
    assert told in error.message


async def test_an_answer_without_end_is_left_at_the_limit(server):
    server.endless = True
    error = (await asked(RequestPlan(url=server.url), tool=replace(TOOL, timeout_s=60.0))).error
    assert (error.code, error.message) == (
        ErrorCode.EXECUTION_ERROR,
        "The answer is larger than 128 KiB",
    )


# ------------------------------------------------------------------ how it fails


@pytest.mark.requirement("S0-58")
@pytest.mark.parametrize(
    ("status", "body", "message", "retryable"),
    [
        ("404 Not Found", b"", "HTTP 404: Not Found", False),
        ("404 X", b"no such town", "HTTP 404: no such town", False),
        ("503 Busy", b"", "HTTP 503: Service Unavailable", True),
        ("500 X", b"<b>\x00oops\n</b>", "HTTP 500: <b> oops </b>", True),
        ("401 X", b"", "HTTP 401: Unauthorized", False),
        ("400 X", b"z" * 10_000, "HTTP 400: " + "z" * 500, False),
    ],
)
async def test_of_error_statuses_only_those_from_500_on_are_retryable(
    server, status, body, message, retryable
):
    server.status, server.body = status, body
    error = (await asked(RequestPlan(url=server.url))).error
    assert (error.code, error.message, error.retryable) == (
        ErrorCode.HTTP_ERROR,
        message,
        retryable,
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [
        ("500 X", b"no: Bearer s3cr3t/abc, s3cr3t%2Fabc"),
        ("200 OK", b'{"s3cr3t/abc": ["Bearer s3cr3t\\/abc", 1]}'),
        ("200 OK", b'{"success": false, "error": {"code": "X", "message": "s3cr3t/abc?"}}'),
        ("200 OK", b'{"success": true, "content": "s3cr3t/abc"}'),
        ("200 OK", b"it is s3cr3t/abc {"),
        ("200 OK", b'{"a": ' * 600 + b'"s3cr3t/abc"' + b"}" * 600),
    ],
)
async def test_a_server_that_says_a_secret_back_is_not_quoted(server, status, body):
    server.status, server.body = status, body
    server.headers = "" if body.endswith(b"{") else server.headers
    async with gateway() as made:
        plan = RequestPlan(url=server.url, headers={"Authorization": "Bearer s3cr3t/abc"})
        made.use(MappingProxyType({"my:tool": plan}), {"s3cr3t/abc ", "1", "    "})
        said = str(await made.run(call(), TOOL, nowhere))
    assert server.heard[-1][2]["authorization"] == "Bearer s3cr3t/abc"
    assert "s3cr3t" not in said
    assert "***" in said or "neither JSON" in said


async def test_a_host_that_was_set_as_a_secret_is_an_ordinary_word_in_answers(server):
    server.body = b'{"at": "127.0.0.1"}'
    async with gateway() as made:
        made.use(MappingProxyType({"my:tool": RequestPlan(url=server.url)}), {"127.0.0.1"})
        assert (await made.run(call(), TOOL, nowhere)).data == {"at": "127.0.0.1"}


async def test_a_redirect_is_not_followed(server):
    server.status, server.headers, server.body = (
        "302 Found",
        f"Location: {server.url}/elsewhere\r\n",
        b"",
    )
    error = (await asked(RequestPlan(url=server.url, headers={"A": "hush"}))).error
    assert (error.code, error.retryable) == (ErrorCode.HTTP_ERROR, False)
    assert "redirects are not followed" in error.message
    assert len(server.heard) == 1


@pytest.mark.requirement("S0-57", "S3-14")
@pytest.mark.parametrize(
    ("effects", "maybe_done"), [(SideEffects.WRITES, True), (SideEffects.READ_ONLY, False)]
)
async def test_a_timeout_says_whether_effects_are_possible(server, effects, maybe_done):
    server.silent = True
    error = (
        await asked(
            RequestPlan(url=server.url), tool=replace(TOOL, timeout_s=1.0, side_effects=effects)
        )
    ).error
    assert (error.code, error.message, error.retryable) == (
        ErrorCode.TIMEOUT,
        "Tool execution timeout after 1000ms",
        True,
    )
    assert error.partial_side_effects is maybe_done


async def test_a_call_whose_life_is_over_is_not_sent(server):
    async with gateway(RequestPlan(url=server.url)) as made:
        answer = await made.run(replace(call(), ttl_s=0.0), TOOL, nowhere)
    assert answer.error.code is ErrorCode.DEADLINE_EXPIRED
    assert server.heard == []


@pytest.mark.requirement("S0-59")
async def test_nobody_there_is_a_fault_of_the_network_and_nothing_was_done():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening: refused
        port = taken.getsockname()[1]
        error = (await asked(RequestPlan(url=f"http://127.0.0.1:{port}/hush"))).error
    assert (error.code, error.type, error.retryable) == (
        ErrorCode.NETWORK_ERROR,
        ErrorType.TRANSIENT,
        True,
    )
    assert not error.partial_side_effects
    assert "hush" not in error.message


@pytest.mark.requirement("S0-59")
async def test_a_server_that_hangs_up_may_have_done_it(server):
    server.hang_up = True
    error = (await asked(RequestPlan(url=server.url))).error
    assert (error.code, error.retryable, error.partial_side_effects) == (
        ErrorCode.NETWORK_ERROR,
        True,
        True,
    )


@pytest.mark.requirement("S0-59")
async def test_a_certificate_nobody_vouches_for_is_refused(tmp_path):
    from tests.e2e.certificates import Authority

    pair = Authority(tmp_path).sign("127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    listening = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    error = (await asked(RequestPlan(url=f"https://127.0.0.1:{port}"))).error
    listening.close()
    assert error.code is ErrorCode.NETWORK_ERROR
    assert "certificate" in error.message.lower()


@pytest.mark.requirement("S0-61")
async def test_an_internal_fault_is_answered_without_a_secret(server, monkeypatch, caplog):
    def broken(_call, _plan):
        raise RuntimeError("bug")

    monkeypatch.setattr(gateway_module, "request_of", broken)
    error = (await asked(RequestPlan(url=server.url, headers={"A": "hush"}))).error
    assert (error.code, error.message) == (ErrorCode.INTERNAL, "Internal error executing my:tool")
    assert "hush" not in caplog.text


async def test_a_header_that_cannot_be_sent_is_not_quoted(server):
    error = (
        await asked(RequestPlan(url=server.url, headers={"Authorization": "Bearer hushhush "}))
    ).error
    assert (error.code, error.partial_side_effects, server.heard) == (
        ErrorCode.EXECUTION_ERROR,
        False,
        [],
    )
    assert "hush" not in error.message


async def test_what_another_side_that_speaks_no_http_says_back_is_not_quoted(server):
    server.status = "hushhush"
    async with gateway(RequestPlan(url=server.url, headers={"Authorization": "hushhush"})) as made:
        made.use(made._plans, ["hushhush"])
        error = (await made.run(call(), TOOL, nowhere)).error
    assert error.code is ErrorCode.NETWORK_ERROR
    assert "hush" not in error.message


async def test_a_caller_that_goes_away_takes_its_request_along(server):
    server.silent = True
    async with gateway(RequestPlan(url=server.url)) as made:
        asking = asyncio.create_task(made.run(call(), TOOL, nowhere))
        while not server.heard:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        server.silent = False
        assert (
            await made.run(call(), TOOL, nowhere)
        ).ok  # and nothing is left that would be in its way


# ------------------------------------------------------------------ later


@pytest.mark.requirement("S3-17")
async def test_an_asynchronous_address_gets_the_call_and_its_arguments(server):
    server.status, server.body = "202 Accepted", b"ignored"
    async with gateway(RequestPlan(url=server.url, later=True)) as made:
        assert (await made.run(call(a=1), LATER, nowhere)).error is None
    assert server.json == {"callId": "call-1", "tool": "my:tool", "arguments": {"a": 1}}


@pytest.mark.requirement("S3-17")
async def test_a_webhook_gets_its_own_body_and_its_failure_is_reported(server):
    plan = RequestPlan(
        url=server.url, later=True, body={"id": "{{call.id}}", "what": "{{input.a}}"}
    )
    server.status = "500 X"
    async with gateway(plan) as made:
        error = (await made.run(call(a=[1]), LATER, nowhere)).error
    assert server.json == {"id": "call-1", "what": [1]}
    assert error.code is ErrorCode.HTTP_ERROR


def test_an_answer_that_failed_before_anything_was_sent_did_nothing():
    failed = HttpToolAnswer(failed="no", code=ErrorCode.NETWORK_ERROR)
    assert not response_of(failed, TOOL).error.partial_side_effects
    assert response_of(dataclasses.replace(failed, sent=True), TOOL).error.partial_side_effects
