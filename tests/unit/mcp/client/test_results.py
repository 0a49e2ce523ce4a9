"""What came of a call at another server, in the one envelope: results, pictures, sounds,
questions, and every way to fail.
"""

import base64
import io
import json
import wave

import pytest

from edge.core.results import LayoutKind, rendering_of
from edge.mcp.client.models import CallFault, Outcome, fault
from edge.mcp.client.results import response_of
from tools_cache.api.tool import (
    ErrorCode,
    ErrorType,
    SideEffects,
    Source,
    ToolDefinition,
    ToolResponse,
)

TOOL = ToolDefinition(name="home:light", description="", input_schema={}, source=Source.UPSTREAM)
READS = ToolDefinition(
    name="home:look",
    description="",
    input_schema={},
    source=Source.UPSTREAM,
    side_effects=SideEffects.READ_ONLY,
)
PNG = base64.b64encode(b"\x89PNG").decode()


def text(words, **more):
    return {"type": "text", "text": words, **more}


def answer(*blocks, tool=TOOL, **more):
    return response_of(Outcome(content=blocks, **more), tool, server="Home")


def wav(rate=16_000, channels=1, width=2):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(rate)
        out.writeframes(b"\1\2" * 40)
    return base64.b64encode(file.getvalue()).decode()


@pytest.mark.requirement("S1-27")
@pytest.mark.parametrize(
    ("blocks", "structured", "data"),
    [
        ([text('{"a": 1}')], {"a": 1}, {"a": 1}),
        ([text("on"), text("and on")], None, {"text": "on\nand on"}),
        ([], None, None),
        ([{"type": "resource_link", "uri": "file:///x", "name": "x"}], None, None),
        ([], [1, 2], [1, 2]),
    ],
)
def test_a_result_has_its_data_and_its_blocks_as_they_came(blocks, structured, data):
    found = answer(*blocks, structured=structured)
    assert (found.ok, found.data, found.meta.get("content", [])) == (True, data, blocks)


@pytest.mark.requirement("S1-46")
def test_a_picture_is_shown_with_its_text_as_the_alternative():
    wanted = rendering_of(
        answer(text("A cat"), {"type": "image", "data": PNG, "mimeType": "image/png"})
    )
    assert (wanted.layout, wanted.image, wanted.text) == (LayoutKind.BITMAP_VIEW, PNG, "A cat")
    wanted = rendering_of(answer({"type": "image", "data": "x", "mimeType": "image/webp"}))
    assert (wanted.layout, wanted.text) == (LayoutKind.TEXT_WALL, "A picture from Home")


@pytest.mark.requirement("S1-46")
def test_only_sounds_that_glasses_support_are_played():
    wanted = rendering_of(
        answer(text("Listen"), {"type": "audio", "data": wav(), "mimeType": "audio/wav"})
    )
    assert base64.b64decode(wanted.pcm) == b"\1\2" * 40
    assert wanted.text == "Listen"
    for odd in (
        wav(rate=44_100),
        wav(channels=2),
        wav(width=1),
        "!",
        base64.b64encode(b"RIFFxxxxWAVE").decode(),
    ):
        assert (
            rendering_of(answer({"type": "audio", "data": odd, "mimeType": "audio/wav"})).pcm == ""
        )


def test_words_alone_are_shown_as_any():
    assert answer(text("on")).render is None
    assert rendering_of(answer(text("on"))).text == "on"


@pytest.mark.requirement("S1-26", "S1-33")
@pytest.mark.parametrize(
    ("kind", "code", "type_", "maybe_done"),
    [
        (CallFault.UNSENT, ErrorCode.NETWORK_ERROR, ErrorType.TRANSIENT, False),
        (CallFault.LOST, ErrorCode.NETWORK_ERROR, ErrorType.TRANSIENT, True),
        (CallFault.TIMEOUT, ErrorCode.TIMEOUT, ErrorType.TRANSIENT, True),
        (CallFault.TOO_LARGE, ErrorCode.EXECUTION_ERROR, ErrorType.INTERNAL, True),
        (CallFault.INVALID, ErrorCode.EXECUTION_ERROR, ErrorType.INTERNAL, True),
        (CallFault.AUTH, ErrorCode.AUTH, ErrorType.AUTH, False),
        (CallFault.DENIED, ErrorCode.DENIED, ErrorType.PERMANENT, False),
        (CallFault.FAILED, ErrorCode.EXECUTION_ERROR, ErrorType.INTERNAL, True),
        (CallFault.CANCELLED, ErrorCode.CANCELLED, ErrorType.PERMANENT, True),
    ],
)
def test_each_way_to_fail_is_one_clear_envelope(kind, code, type_, maybe_done):
    found = response_of(fault(kind, "the reason"), TOOL, server="Home")
    assert (found.error.code, found.error.type, found.error.partial_side_effects) == (
        code,
        type_,
        maybe_done,
    )
    assert kind is CallFault.TIMEOUT or "the reason" in found.error.message
    assert found.error.idempotency_required is (kind is CallFault.LOST)
    assert not response_of(fault(kind, "x"), READS, server="Home").error.partial_side_effects
    assert ToolResponse.from_json(found.to_json()).to_json() == found.to_json()


def test_no_way_to_fail_is_forgotten():
    for kind in CallFault:
        assert response_of(fault(kind, "x" * 9000), TOOL, server="Home" * 900).error.message


def test_a_tools_failure_keeps_the_tools_message():
    found = answer(text("no such list"), is_error=True, structured={"why": 1})
    assert (found.error.code, found.error.message, found.error.details) == (
        ErrorCode.EXECUTION_ERROR,
        "no such list",
        {"why": 1},
    )
    assert found.meta["content"] == [text("no such list")]
    assert answer(is_error=True).error.message == "Home says that it failed"


def test_a_tool_that_its_server_has_removed_is_not_found():
    found = response_of(
        fault(CallFault.FAILED, "Unknown tool: light", code=-32602), TOOL, server="Home"
    )
    assert found.error.code is ErrorCode.TOOL_NOT_FOUND


def test_a_question_goes_back_to_the_caller_whole():
    asked = {"q": {"method": "elicitation/create", "params": {"message": "sure?"}}}
    found = response_of(Outcome(input_requests=asked, request_state="sealed"), TOOL, server="Home")
    assert found.error.details == {"inputRequests": asked, "requestState": "sealed"}
    assert (found.error.type, found.error.retryable, found.error.partial_side_effects) == (
        ErrorType.VALIDATION,
        False,
        False,
    )
    json.dumps(found.to_json())
