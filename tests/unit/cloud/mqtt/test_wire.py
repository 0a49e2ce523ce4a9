"""The wire: bytes in, messages out; anything else gets a complaint that names field, problem
and fix.
"""

import json
import uuid
from contextlib import suppress

import msgpack
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from edge.cloud.mqtt import wire
from edge.cloud.mqtt.topics import BadTopicWord, Topics
from edge.cloud.mqtt.wire import JSON, MSGPACK, MessageKind, WireCode, WireError
from tools_cache.api.tool import (
    CallOrigin,
    Delivery,
    DeliveryReport,
    ErrorCode,
    Mode,
    ToolCall,
    ToolResponse,
)

CALL = ToolCall(
    call_id=str(uuid.uuid4()),
    tool="notes:list",
    args={"q": "bread", "n": 3},
    origin=CallOrigin.VOICE,
    mode=Mode.VOICE,
    turn_id="t1",
    user_id="u1",
    ttl_s=12.5,
    idempotency_key="k",
)


def sent(body, *, kind="call", content_type=MSGPACK, correlation=None, **properties):
    payload = msgpack.packb(body) if content_type == MSGPACK else json.dumps(body).encode()
    pairs = [("k", kind), *properties.items()] if kind else list(properties.items())
    return wire.decode(
        payload, content_type=content_type, user_properties=pairs, correlation=correlation
    )


def refusal(*args, **kwargs) -> WireError:
    with pytest.raises(WireError) as caught:
        sent(*args, **kwargs)
    assert caught.value.problem
    assert caught.value.fix
    return caught.value


def body(**changes):
    return {"v": 1, **wire.call_to_body(CALL), **changes}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_call_survives_the_wire_in_either_form(as_json):
    payload, content_type = wire.encode(MessageKind.CALL, wire.call_to_body(CALL), json=as_json)
    assert content_type == (JSON if as_json else MSGPACK)
    message = wire.decode(
        payload,
        content_type=content_type,
        user_properties=[("k", "call"), ("a", "3"), ("age", "250")],
        correlation=wire.correlation_of(CALL.call_id),
    )
    assert wire.body_to_call(message) == CALL
    assert (message.json, message.attempt, message.age_ms) == (as_json, 3, 250)


@pytest.mark.requirement("I13-present")
@pytest.mark.parametrize("present", [True, False, None])
def test_whether_to_show_the_answer_survives_the_wire(present):
    call = replace(CALL, present=present)
    body = wire.call_to_body(call)
    assert body.get("present") is present
    assert ("present" in body) is (present is not None)
    assert wire.body_to_call(sent({"v": 1, **body})) == replace(CALL, present=present)


@pytest.mark.requirement("I13-present")
def test_a_present_that_is_neither_true_nor_false_is_malformed():
    message = sent(body(present="yes"))
    with pytest.raises(WireError, match=r"^malformed: present: is 'yes'"):
        wire.body_to_call(message)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_result_survives_the_wire_in_either_form(as_json):
    response = ToolResponse.failure(ErrorCode.TIMEOUT, "zu spät", details={"n": 1})
    payload, content_type = wire.encode(
        MessageKind.RESULT, wire.result_body(CALL.call_id, response), json=as_json
    )
    assert wire.response_of(wire.decode(payload, content_type=content_type)) == response


def test_a_delivery_has_state_age_and_optional_reason():
    report = DeliveryReport(Delivery.DROPPED, reason="no display")
    found = wire.delivery_body("x", report, age_s=1.25)
    assert found == {"id": "x", "delivery": "dropped", "age": 1250, "reason": "no display"}
    spoken = DeliveryReport(Delivery.SPOKEN, downgrade="display→speech")
    assert wire.delivery_body("x", spoken, age_s=0) == {
        "id": "x",
        "delivery": "spoken",
        "age": 0,
        "downgrade": "display→speech",
    }


def test_unknown_keys_are_ignored_and_the_kind_may_stand_in_the_body():
    message = sent(body(k="call", novelty={"deep": [1]}), kind=None)
    assert message.kind is MessageKind.CALL
    assert wire.body_to_call(message).tool == "notes:list"


def test_the_kind_is_of_the_property_then_body_then_topic():
    assert sent(body(k="result"), kind="call").kind is MessageKind.CALL
    bare = msgpack.packb({"v": 1})
    assert (
        wire.decode(bare, content_type=MSGPACK, default_kind=MessageKind.REGISTRY).kind
        is MessageKind.REGISTRY
    )


def test_of_a_repeated_user_property_the_first_counts():
    twice = [("k", "registry"), ("k", "presence")]
    bare = msgpack.packb({"v": 1})
    found = wire.decode(bare, content_type=MSGPACK, user_properties=twice)
    assert found.kind is MessageKind.REGISTRY


@pytest.mark.parametrize("version", [0, 2, "1", True, None, 1.5])
def test_another_version_is_refused_by_its_own_code(version):
    assert refusal(body(v=version)).code is WireCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/json", "application/vnd.glassd.v2+msgpack"],
)
def test_another_content_type_is_refused_by_its_own_code(content_type):
    with pytest.raises(WireError) as caught:
        wire.decode(b"{}", content_type=content_type)
    assert (caught.value.code, caught.value.field) == (WireCode.UNSUPPORTED_CONTENT, "content-type")


def test_content_type_parameters_and_case_do_not_matter():
    payload = json.dumps({"v": 1, "k": "event"}).encode()
    assert wire.decode(payload, content_type=JSON.upper() + "; charset=utf-8").json


def test_size_is_checked_before_decoding_and_before_sending():
    with pytest.raises(WireError) as caught:
        wire.decode(b"\xc1" * (wire.MAX_BODY + 1), content_type=MSGPACK)
    assert caught.value.code is WireCode.TOO_LARGE
    with pytest.raises(WireError) as caught:
        wire.encode(MessageKind.CALL, {"args": "x" * wire.MAX_BODY})
    assert caught.value.code is WireCode.TOO_LARGE
    wire.encode(MessageKind.CALL, {"args": "x" * (wire.MAX_BODY - 100)})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tool": "list"}, "tool"),
        ({"tool": None}, "tool"),
        ({"tool": ["a:b"]}, "tool"),
        ({"args": []}, "args"),
        ({"args": "x"}, "args"),
        ({"origin": "moon"}, "origin"),
        ({"mode": 1}, "mode"),
        ({"turn_id": 7}, "turn_id"),
        ({"user_id": "x" * 256}, "user_id"),
        ({"user_id": "a\nb"}, "user_id"),
        ({"ttl_s": -1}, "ttl_s"),
        ({"ttl_s": "5"}, "ttl_s"),
        ({"ttl_s": True}, "ttl_s"),
        ({"ttl_s": 10**9}, "ttl_s"),
        ({"idempotency_key": {}}, "idempotency_key"),
    ],
)
def test_a_bad_field_of_a_call_is_named(changes, field):
    with pytest.raises(WireError) as caught:
        wire.body_to_call(sent(body(**changes)))
    assert (caught.value.code, caught.value.field) == (WireCode.MALFORMED, field)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (b"bytes", "args"),
        (float("nan"), "args"),
        (float("inf"), "args"),
        ({"deep": b"x"}, "args.deep"),
        (msgpack.Timestamp(1), "args"),
        (msgpack.ExtType(5, b"x"), "body"),
        ({b"k": 1}, "args"),
    ],
)
def test_what_json_cannot_carry_is_refused_where_it_hides(value, field):
    assert refusal({"v": 1, "id": CALL.call_id, "args": value}).field == field


def test_half_a_surrogate_and_huge_integers_are_refused():
    for text in (
        '{"v":1,"x":"\\ud800"}',
        f'{{"v":1,"x":{2**70}}}',
        '{"v":1,"\\udfff":1}',
        '{"v":1,"x":NaN}',
    ):
        with pytest.raises(WireError):
            wire.decode(text.encode(), content_type=JSON, default_kind=MessageKind.EVENT)


@pytest.mark.parametrize("content_type", [MSGPACK, JSON])
def test_nesting_is_bounded(content_type):
    bomb = (
        b"\x91" * 100_000 + b"\xc0" if content_type == MSGPACK else b"[" * 100_000 + b"]" * 100_000
    )
    with pytest.raises(WireError) as caught:
        wire.decode(bomb, content_type=content_type)
    assert caught.value.field == "body"
    deep = {}
    for _ in range(wire.MAX_DEPTH + 1):
        deep = {"d": deep}
    assert "nested" in refusal({"v": 1, "id": CALL.call_id, "args": deep}).problem


def test_a_map_that_claims_more_than_it_has_costs_nothing():
    with pytest.raises(WireError):
        wire.decode(b"\xdf\xff\xff\xff\xff", content_type=MSGPACK)


def test_a_call_needs_its_id_and_the_two_places_must_agree():
    without = {k: v for k, v in body().items() if k != "call_id"}
    assert refusal(without).field == "id"
    assert sent(without, correlation=uuid.UUID(CALL.call_id).bytes).id == CALL.call_id
    assert refusal(body(), correlation=uuid.uuid4().bytes).field == "id"
    assert refusal(body(), correlation=b"short").field == "correlation data"
    assert refusal(body(id="{" + CALL.call_id[1:-1] + "}")).field == "id"
    assert sent(body(id=CALL.call_id.upper())).id == CALL.call_id


def test_an_unknown_kind_is_refused_and_the_known_ones_are_listed():
    error = refusal(body(), kind="dance")
    assert error.field == "k"
    assert "accepted" in error.fix
    assert refusal({"v": 1, "k": ["call"]}, kind=None).field == "k"


def test_numbers_that_only_inform_are_never_a_reason_to_lose_a_message():
    message = sent(body(), a="-3", age="²")
    assert (message.attempt, message.age_ms) == (1, 0)


@pytest.mark.parametrize(
    "response",
    [{}, {"ok": "yes"}, {"ok": False}, {"ok": False, "error": {"type": "ODD", "message": ""}}],
)
def test_a_bad_envelope_names_the_field(response):
    with pytest.raises(WireError) as caught:
        wire.response_of(sent({"v": 1, "id": CALL.call_id, **response}, kind="result"))
    assert caught.value.field in {"ok", "error", "error.type"}


def test_a_complaint_can_be_sent_back():
    error = refusal(body(v=9))
    payload, content_type = wire.encode(MessageKind.RESULT, {"id": "", "error": error.to_json()})
    assert payload
    assert content_type == MSGPACK


# ------------------------------------------------------------------ no bytes crash it

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.binary(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
fields = st.fixed_dictionaries(
    {"v": st.just(1)},
    optional=dict.fromkeys(
        (
            "id",
            "k",
            "tool",
            "args",
            "origin",
            "mode",
            "turn_id",
            "user_id",
            "ttl_s",
            "text",
            "ok",
            "data",
            "error",
        ),
        values,
    ),
)


def swallow(payload, content_type, properties, correlation):
    """Only WireError may come out, and what was taken can be written again in both forms."""
    try:
        message = wire.decode(
            payload, content_type=content_type, user_properties=properties, correlation=correlation
        )
    except WireError:
        return
    for read in (wire.body_to_call, wire.response_of, lambda m: wire.text_of(m, "text")):
        with suppress(WireError):
            read(message)
    wire.encode(message.kind, message.body, json=True)
    wire.encode(message.kind, message.body)


@given(
    payload=st.binary(max_size=300),
    content_type=st.sampled_from([MSGPACK, JSON, None, "x"]),
    properties=st.lists(
        st.tuples(st.sampled_from(["k", "a", "age", "z"]), st.text(max_size=10)), max_size=4
    ),
    correlation=st.none() | st.binary(max_size=20),
)
@pytest.mark.requirement("K4-wire")
def test_no_bytes_crash_it(payload, content_type, properties, correlation):
    swallow(payload, content_type, properties, correlation)


@given(document=fields, kind=st.sampled_from(list(MessageKind)), good_id=st.booleans())
def test_no_document_crashes_it(document, kind, good_id):
    if good_id:
        document["id"] = CALL.call_id
    try:
        packed = msgpack.packb(document)
    except (OverflowError, ValueError):
        return
    swallow(packed, MSGPACK, [("k", kind.value)], None)


# ------------------------------------------------------------------ topics


def test_every_topic():
    t = Topics("default", "e1")
    p = "glassd/v1/default/e/e1"
    assert [t.presence, t.capabilities, t.result, t.cancel, t.invoke, t.delivery] == [
        f"{p}/{w}" for w in ("presence", "capabilities", "result", "cancel", "invoke", "delivery")
    ]
    assert t.call("tools") == f"{p}/call/tools"
    assert t.event("tap") == f"{p}/event/tap"
    assert t.registry("tools") == "glassd/v1/default/registry/tools"
    assert (
        Topics.for_cloud("default").shared_call("tools")
        == "$share/tools/glassd/v1/default/e/+/call/tools"
    )
    assert wire.edge_of(t.call("tools")) == "e1"


@pytest.mark.parametrize("word", ["", "a/b", "+", "#", "a b", "x" * 65, "$share", "a\0"])
def test_text_that_cannot_be_a_topic_level_is_refused(word):
    with pytest.raises(BadTopicWord):
        Topics(word, "e1")
    with pytest.raises(BadTopicWord):
        Topics("t", "e1").call(word)
    if word != "+":  # the cloud's own filter
        with pytest.raises(BadTopicWord):
            Topics("t", word)


@pytest.mark.parametrize(
    ("topic", "good"),
    [
        ("glassd/v1/t/e/e1/reply/x", True),
        ("glassd/v1/t/e/e1/elsewhere", True),
        ("glassd/v1/t/e/e1/", False),
        ("glassd/v1/t/e/e10/reply/x", False),
        ("glassd/v1/t/e/e2/reply/x", False),
        ("glassd/v1/t/e/e1/reply/#", False),
        ("glassd/v1/t/e/e1/result", False),
        ("glassd/v1/t/e/e1/presence", False),
        ("glassd/v1/t/e/e1/call/tools", False),
        ("glassd/v1/t/e/e1/reply/" + "x" * 600, False),
        ("", False),
        ("glassd/v1/t/e/e1/a\0b", False),
    ],
)
def test_a_response_topic_is_under_our_prefix_and_has_no_other_use(topic, good):
    assert Topics("t", "e1").may_answer_to(topic) is good


def test_a_foreign_topic_names_no_edge():
    for topic in (
        "",
        "a/b",
        "glassd/v2/t/e/x/presence",
        "glassd/v1/t/f/x/presence",
        "glassd/v1/t/e//presence",
    ):
        with pytest.raises(WireError):
            wire.edge_of(topic)


@pytest.mark.parametrize("value", [b"x", {1: 2}, {1, 2}, float("nan"), object(), 2**70])
@pytest.mark.parametrize("as_json", [False, True])
def test_what_cannot_be_read_is_not_written(value, as_json):
    with pytest.raises(WireError):
        wire.encode(MessageKind.RESULT, {"data": [value]}, json=as_json)
    wire.encode(MessageKind.RESULT, {"data": ("a", 1, None)}, json=as_json)
