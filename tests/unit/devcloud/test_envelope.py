"""Every foreign shape becomes one envelope; nothing broken passes."""

import pytest

from edge.devcloud.http.api import to_seed
from edge.devcloud.sdk import failure
from edge.devcloud.worker.runner import TOOL_TIMEOUT_S
from tools_cache.api.tool import ErrorCode, ErrorType, ToolResponse
from tools_cache.app_results import classify, clean, of_app, of_status, timed_out


@pytest.mark.requirement("S0-40")
def test_a_successful_mcp_tool_result_gives_its_content():
    made = of_app({"success": True, "content": "hello"}, "p:t")
    assert (made.ok, made.data, made.render) == (True, "hello", None)


def test_its_extensions_become_render():
    made = of_app(
        {
            "success": True,
            "content": {"text": "x"},
            "mentraExtensions": {
                "suppressVoiceResponse": True,
                "suggestedFollowUps": ["a", 5, "b"],
            },
        },
        "p:t",
    )
    assert made.data == {"text": "x"}
    assert made.render == {
        "audio": {"suppressVoiceResponse": True},
        "suggestedFollowUps": ["a", "b"],
    }


def test_a_render_beside_the_extensions_comes_first():
    made = of_app(
        {
            "success": True,
            "content": 1,
            "render": {"audio": {"text": "hi"}, "suggestedFollowUps": ["mine"]},
            "mentraExtensions": {"suppressVoiceResponse": True, "suggestedFollowUps": ["theirs"]},
        },
        "p:t",
    )
    assert made.render == {
        "audio": {"text": "hi", "suppressVoiceResponse": True},
        "suggestedFollowUps": ["mine"],
    }


def test_suppress_is_taken_only_from_a_real_true():
    assert (
        of_app(
            {"success": True, "content": 1, "mentraExtensions": {"suppressVoiceResponse": "yes"}},
            "p:t",
        ).render
        is None
    )


@pytest.mark.parametrize(
    ("value", "data", "render"),
    [
        ({"data": 5}, 5, None),
        ({"data": 5, "render": {"display": {}}}, 5, {"display": {}}),
        ({"render": {"audio": {}}}, None, {"audio": {}}),
        ({"answer": 42}, {"answer": 42}, None),
        ({"ok": True, "data": 7, "render": {"audio": {}}}, 7, {"audio": {}}),
        ({"data": 5, "render": "loud"}, 5, None),
    ],
)
def test_our_own_shapes_pass(value, data, render):
    made = of_app(value, "p:t")
    assert (made.ok, made.data, made.render) == (True, data, render)


def test_an_apps_own_meta_is_not_believed():
    assert of_app({"ok": True, "data": 1, "meta": {"route": "local"}}, "p:t").meta == {}


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        5,
        [],
        {"success": "yes"},
        {"success": False},
        {"success": False, "error": "no"},
        {"success": False, "error": {"code": "X"}},
        {"ok": "yes"},
        {"ok": True, "error": {}},
        {"ok": False},
    ],
)
def test_a_broken_result_is_an_execution_error_that_names_the_tool(value):
    error = of_app(value, "p:t").error
    assert error.code is ErrorCode.EXECUTION_ERROR
    assert error.type is ErrorType.INTERNAL
    assert error.message.startswith("Invalid result structure for tool p:t: ")


@pytest.mark.parametrize(
    ("code", "ours", "kind"),
    [
        ("HANDLER_ERROR", ErrorCode.HANDLER_ERROR, ErrorType.INTERNAL),
        ("TIMEOUT", ErrorCode.TIMEOUT, ErrorType.TRANSIENT),
        ("CONFLICT", ErrorCode.CONFLICT, ErrorType.CONFLICT),
        ("SESSION_INACTIVE", ErrorCode.SESSION_INACTIVE, ErrorType.SESSION_INACTIVE),
    ],
)
def test_a_known_error_code_keeps_its_name(code, ours, kind):
    error = of_app({"success": False, "error": {"code": code, "message": "m"}}, "p:t").error
    assert (error.code, error.type, error.retryable, error.details) == (ours, kind, False, None)


@pytest.mark.requirement("S2-82")
@pytest.mark.requirement("S2-77")
def test_further_fields_of_an_apps_failure_are_kept():
    said = failure("RATE_LIMIT", "m", retryable=True, partial=True, retry_after_ms=500)
    error = of_app(said, "p:t").error
    assert (error.retryable, error.partial_side_effects, error.retry_after_ms) == (True, True, 500)
    for after in (0, -1, True, "5", 10**9):
        assert (
            of_app(failure("RATE_LIMIT", "m", retry_after_ms=after), "p:t").error.retry_after_ms
            is None
        )
    assert of_app(failure("CONFLICT", "m"), "p:t").error.partial_side_effects is False


@pytest.mark.requirement("S2-67")
@pytest.mark.requirement("S2-68")
@pytest.mark.requirement("S2-81")
@pytest.mark.parametrize("shape", ["seed", "ours"])
@pytest.mark.parametrize(
    ("code", "kind"), [("INVALID_ARGUMENTS", "VALIDATION"), ("TOOL_NOT_FOUND", "NOT_FOUND")]
)
def test_an_early_error_is_final_and_without_effect_whatever_the_app_says(shape, code, kind):
    said = failure(code, "m", retryable=True, partial=True)
    error = of_app(
        said if shape == "seed" else {"ok": False, "error": {**said["error"], "type": kind}}, "p:t"
    ).error
    assert (error.type, error.retryable, error.partial_side_effects) == (kind, False, False)


@pytest.mark.requirement("S2-78")
def test_a_failed_sign_in_is_final_and_asks_for_another():
    for said in (
        failure("AUTH", "m", retryable=True),
        {"ok": False, "error": {"type": "AUTH", "message": "m", "retryable": True}},
    ):
        error = of_app(said, "p:t").error
        assert (error.type, error.retryable, error.details) == (
            ErrorType.AUTH,
            False,
            {"reauthRequired": True},
        )


@pytest.mark.requirement("S2-71")
@pytest.mark.parametrize(
    "kind", ["MODE_RESTRICTED", "BUDGET_EXCEEDED", "CONFIRMATION_REQUIRED", "CONFIRMATION_EXPIRED"]
)
def test_an_app_cannot_say_what_only_the_edge_decides(kind):
    error = of_app(
        {
            "ok": False,
            "error": {"type": kind, "message": "m", "confirmation_request": {"token": "t"}},
        },
        "p:t",
    ).error
    assert (error.code, error.confirmation_request) == (ErrorCode.EXECUTION_ERROR, None)
    assert (
        error.message
        == f"Invalid result structure for tool p:t: error: an app cannot use type {kind}"
    )


def test_an_unknown_error_code_is_kept_with_a_known_one():
    error = of_app(
        {"success": False, "error": {"code": "OUT_OF_MILK", "message": "m", "retryable": True}},
        "p:t",
    ).error
    assert (error.code, error.details, error.retryable) == (
        ErrorCode.EXECUTION_ERROR,
        {"appCode": "OUT_OF_MILK"},
        True,
    )


def test_a_foreign_message_is_made_printable_and_short():
    error = of_app(
        {"success": False, "error": {"code": "X", "message": "a\n\x1b[31mb" + "c" * 5000}}, "p:t"
    ).error
    assert error.message.startswith("a [31mbc")
    assert len(error.message) == 500


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Request timeout", "TIMEOUT"),
        ("connect ETIMEDOUT 10.0.0.1:80", "TIMEOUT"),
        ("connect ECONNREFUSED 127.0.0.1:80", "NETWORK_ERROR"),
        ("getaddrinfo ENOTFOUND host", "NETWORK_ERROR"),
        ("App P did not connect within 10000ms", "EXECUTION_ERROR"),
        ("boom", "EXECUTION_ERROR"),
        ("timeout after ECONNREFUSED", "TIMEOUT"),
    ],
)
@pytest.mark.requirement("S0-59")
def test_an_errors_words_are_classified_as_the_seed_does(message, code):
    assert classify(message) == code


@pytest.mark.parametrize(
    ("status", "retryable", "kind"),
    [
        (404, False, ErrorType.PERMANENT),
        (400, False, ErrorType.PERMANENT),
        (499, False, ErrorType.PERMANENT),
        (500, True, ErrorType.TRANSIENT),
        (503, True, ErrorType.TRANSIENT),
        (302, False, ErrorType.PERMANENT),
    ],
)
def test_another_status_than_2xx_is_an_http_error_retryable_from_500_on(status, retryable, kind):
    error = of_status(status, "words").error
    assert (error.code, error.message, error.retryable, error.type) == (
        ErrorCode.HTTP_ERROR,
        f"HTTP {status}: words",
        retryable,
        kind,
    )


def test_an_empty_error_page_is_named_by_its_status():
    assert of_status(503, " \n").error.message == "HTTP 503: Service Unavailable"


@pytest.mark.requirement("S0-57")
def test_a_timeout_says_after_how_long():
    assert TOOL_TIMEOUT_S == 30.0
    error = timed_out(TOOL_TIMEOUT_S, maybe_done=True).error
    assert (error.message, error.retryable, error.partial_side_effects) == (
        "Tool execution timeout after 30000ms",
        True,
        True,
    )


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ErrorCode.TOOL_NOT_FOUND, 404),
        (ErrorCode.INVALID_ARGUMENTS, 400),
        (ErrorCode.INVALID_REQUEST, 400),
        (ErrorCode.INVALID_TOOL_NAME, 500),
        (ErrorCode.TIMEOUT, 500),
        (ErrorCode.APP_NOT_AVAILABLE, 500),
        (ErrorCode.HTTP_ERROR, 500),
        (ErrorCode.EXECUTION_ERROR, 500),
        (ErrorCode.APP_ACTIVATION_TIMEOUT, 500),
    ],
)
@pytest.mark.requirement("S0-31")
def test_the_seeds_statuses_are_literal(code, status):
    found, body = to_seed(ToolResponse.failure(code, "m"))
    assert (found, body["success"], body["error"]["code"], body["error"]["message"]) == (
        status,
        False,
        code.value,
        "m",
    )


def test_an_unknown_tool_has_no_retryable_key():
    assert to_seed(ToolResponse.failure(ErrorCode.TOOL_NOT_FOUND, "m"))[1]["error"] == {
        "code": "TOOL_NOT_FOUND",
        "message": "m",
    }
    assert to_seed(ToolResponse.failure(ErrorCode.TIMEOUT, "m"))[1]["error"]["retryable"] is True


@pytest.mark.requirement("S0-40")
def test_extensions_go_round():
    told = {
        "success": True,
        "content": "x",
        "mentraExtensions": {"suppressVoiceResponse": True, "suggestedFollowUps": ["a"]},
    }
    assert to_seed(of_app(told, "p:t")) == (200, told)
    assert to_seed(of_app({"success": True, "content": "x"}, "p:t")) == (
        200,
        {"success": True, "content": "x"},
    )


def test_clean_leaves_ordinary_words_alone():
    assert clean("grüße, 世界") == "grüße, 世界"
