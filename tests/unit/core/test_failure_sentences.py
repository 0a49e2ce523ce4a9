"""What the wearer reads of a failure: a sentence for people, never a program's words."""

import pytest
from hypothesis import given, strategies as st

from edge.core.words.failure_sentences import for_people, sentence
from tools_cache.api.tool import ErrorCode, ToolError, ToolResponse


def said(code, message="", name="Free", **more):
    return sentence(ToolError.of(code, message, **more), name)


REPORTS = [
    "'temperature'",
    "HTTPSConnectionPool(host='api.weather.io', port=443): Max retries exceeded with url: /v1",
    "KeyError: 'temperature'",
    "Traceback (most recent call last):",
    "list index out of range in line 17",
    "Cannot read properties of undefined (reading 'x')",
    "[Errno 2] No such file or directory: '/var/lib/x/y'",
    "com.mentra.calc:evaluate is not active",
    "Run glassd servers refresh, then try again",
    "Install it: pip install 'glassd[images]'",
    "Status code 500 from the upstream service",
    "HTTP 404 for that address was returned",
    '{"detail": "not found anywhere at all"}',
    "free() expects one argument but got two",
    "user_id is missing in this request",
    "Process finished with exit code 1",
    "spawn python3 ENOENTRY in the child",
    "SQLSTATE 42P01: relation does not exist; see logs",
    "x" * 200,
    "",
]


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize(
    "code",
    [ErrorCode.EXECUTION_ERROR, ErrorCode.HANDLER_ERROR, ErrorCode.INTERNAL, ErrorCode.HTTP_ERROR],
)
def test_no_word_of_a_programs_report_is_shown(report, code):
    shown = said(code, report, suggestion="glassd doctor, or the daemon's log")
    assert shown in {"Free had a problem.", "Free is not answering."}


@pytest.mark.parametrize(
    "message",
    [
        "HTTPSConnectionPool(host='api.weather.io', port=443): Max retries exceeded",
        "connect ECONNREFUSED 127.0.0.1:80",
        "fetch failed",
        "Name or service not known",
        "502 Bad Gateway",
        "Read timed out.",
    ],
)
def test_a_service_that_is_away_is_said_to_be_away(message):
    assert said(ErrorCode.EXECUTION_ERROR, message, "Weather") == "Weather is not answering."


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("No album has that name", "No album has that name."),
        ("The museum is closed on Mondays!", "The museum is closed on Mondays!"),
        ("tickets for 12:30 are sold out", "Tickets for 12:30 are sold out."),
        ("Это место уже занято", "Это место уже занято."),
        ("没有找到", "没有找到."),
    ],
)
def test_a_sentence_of_the_tool_is_shown_as_it_is(message, shown):
    assert said(ErrorCode.EXECUTION_ERROR, message) == shown


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ToolError.of(ErrorCode.OFFLINE, "Offline"), "No internet. Calculator needs it."),
        (
            ToolError.of(
                ErrorCode.HARDWARE_MISSING, "x needs a camera", details={"missing": ["CAMERA"]}
            ),
            "These glasses have no camera.",
        ),
        (
            ToolError.of(
                ErrorCode.HARDWARE_MISSING, "x", details={"missing": ["CAMERA", "SPEAKER"]}
            ),
            "These glasses have no camera and speaker.",
        ),
        (
            ToolError.of(
                ErrorCode.HARDWARE_MISSING, "x", details={"missing": ["DISPLAY.canDisplayBitmap"]}
            ),
            "These glasses cannot do that.",
        ),
        (ToolError.of(ErrorCode.TOOL_NOT_FOUND, "Nothing"), "Sorry, I don't know that one."),
        (ToolError.of(ErrorCode.EXPIRED, "nobody"), "No answer, so nothing was done."),
        (
            ToolError.of(ErrorCode.TIMEOUT, "Tool execution timeout", partial_side_effects=True),
            "Calculator took too long. It may have been done.",
        ),
        (
            ToolError.of(ErrorCode.INTERRUPTED, "restarted", partial_side_effects=True),
            "Interrupted. It may have been done.",
        ),
        (ToolError.of(ErrorCode.INTERRUPTED, "x"), "Interrupted. Try again in a moment."),
        (
            ToolError.of(ErrorCode.EXPIRED, "nobody", partial_side_effects=True),
            "No answer, so nothing was done.",
        ),
        (ToolError.of(ErrorCode.EXECUTION_ERROR, "bad input"), "Calculator had a problem."),
        (ToolError.of(ErrorCode.EXECUTION_ERROR, "не найдено"), "Не найдено."),
        (
            ToolError.of(ErrorCode.INVALID_ARGUMENTS, "Five is not of type number here"),
            "Calculator did not understand that.",
        ),
        (
            ToolError.of(ErrorCode.RATE_LIMIT, "x is called too often", retry_after_ms=4200),
            "Too often. Try again in 5 s.",
        ),
        (
            ToolError.of(ErrorCode.RATE_LIMIT, "x", retry_after_ms=89_000),
            "Too often. Try again in 89 s.",
        ),
        (
            ToolError.of(ErrorCode.RATE_LIMIT, "x", retry_after_ms=90_000),
            "Too often. Try again in 2 min.",
        ),
        (
            ToolError.of(
                ErrorCode.INVALID_ARGUMENTS, "Invalid parameters: /id no timer 3 is running"
            ),
            "No timer 3 is running.",
        ),
        (
            ToolError.of(
                ErrorCode.INVALID_ARGUMENTS,
                'Invalid parameters: root "text" is a required property',
            ),
            "Calculator needs to know: text.",
        ),
        (
            ToolError.of(
                ErrorCode.INVALID_ARGUMENTS,
                'Invalid parameters: /at "x" is not a "date-time", root "a_b" is a required '
                'property, root "c" is a required property',
            ),
            "Calculator needs to know: a b, c.",
        ),
        (
            ToolError.of(
                ErrorCode.INVALID_ARGUMENTS, 'Invalid parameters: /at "x" is not a "date-time"'
            ),
            "Calculator did not understand that.",
        ),
    ],
)
def test_each_kind_of_failure_has_its_sentence(error, shown):
    assert sentence(error, "Calculator") == shown


def test_the_sentence_that_a_fault_brings_is_shown_as_it_is():
    error = ToolError.of(ErrorCode.DENIED, "x", for_wearer="You said {no}.\nNothing changed.")
    assert sentence(error, "Free") == "You said {no}. Nothing changed."
    assert "for_wearer" not in str(ToolResponse(error=error).to_json())


@pytest.mark.parametrize("code", list(ErrorCode))
@pytest.mark.parametrize("name", ["Free", "", "{x}", "a" * 300])
def test_every_code_has_a_sentence_for_people(code, name):
    shown = said(code, "{message} of {name}", name, suggestion="glassd status", details=5)
    assert "glassd" not in shown
    assert "message" not in shown
    assert len(shown) <= 160
    assert shown.endswith(".")


@given(st.sampled_from(list(ErrorCode)), st.text(max_size=300), st.text(max_size=80))
def test_any_message_makes_a_sentence(code, message, name):
    assert said(code, message, name).strip()


def test_a_time_or_a_full_stop_makes_no_report_of_a_sentence():
    assert for_people("It starts at 12:30. Bring 3.5 litres of water")
    assert not for_people("see config.toml.bak for that")
