"""docs/mqtt.md against the code: topics, kinds, fields, codes and numbers, each in both directions.

And the examples themselves: one that is changed in any place is no longer what the code says or
takes.
"""

import ast
import copy
import inspect
import re
import textwrap
from pathlib import Path

import pytest

import edge
import tools_cache
from edge import devcloud
from edge.calls.dependencies import CallLimits
from edge.cloud import reporter
from edge.cloud.mqtt import client, connection_types, inflight, receiver, retained, sender, wire
from edge.cloud.mqtt.topics import Topics
from edge.cloud.mqtt.wire import MessageKind, WireCode, WireError
from edge.core import backoff, idempotency, results
from edge.core.results import LayoutKind
from edge.core.routing import RouteKind
from edge.core.session import FAREWELL, NoEffect, SessionController
from edge.core.words import failure_sentences
from edge.storage import inbox, outbox
from edge.storage.outbox import OutboxLane
from firmware_bridge.capabilities import Origin
from firmware_bridge.messages import (
    BatteryChanged,
    Gesture,
    Gestured,
    Reading,
    Transcript,
    WornChanged,
)
from tests.documents.blocks import block, shows
from tests.documents.mqtt_examples import (
    DOCUMENT,
    FORMS,
    MORE,
    TEXT,
    Conversation,
    examples,
    fields,
    payload,
    properties_of,
    table,
    words,
)
from tools_cache import app_results, errors
from tools_cache.api import tool
from tools_cache.api.tool import (
    RETRYABLE,
    CallOrigin,
    Delivery,
    DeliveryReport,
    ErrorCode,
    ErrorType,
    Mode,
    SideEffects,
    Source,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
    type_of,
)

EXAMPLES = examples()
ID = "01a2054e-ed38-7331-82ee-104458980def"
KNOWN = {
    "call": ID,
    "boot": ID,
    "instance": "0" * 16,
    "sha256": "0" * 64,
    "time": "2026-11-22T22:00:00.000Z",
    "version": "1.0.aa",
    "glassd": "0.1.0",
    "url": "https://cloud.example.org/api/registry",
    "seconds": 5,
    "ms": 7,
    "n": 1,
}
ENVELOPE = {"v", "k"}


# ------------------------------------------------------------------ topics and kinds


def names_of_topics():
    """Every topic of the code, with braces for what differs, without the edge's prefix."""
    topics, found = Topics("{tenant}", "edge-1"), set()
    no_topics = (Topics.prefix, Topics.own, Topics.may_answer_to, Topics.shared_call)
    for name, part in vars(Topics).items():
        if part in no_topics or name.startswith("_"):
            continue
        if isinstance(part, property):
            found.add(getattr(topics, name))
        elif inspect.isfunction(part):
            parameters = list(inspect.signature(part).parameters)[1:]
            found.add(part(topics, *(f"{{{parameter}}}" for parameter in parameters)))
    return {name.removeprefix(f"{topics.prefix}/") for name in found}


@pytest.mark.requirement("I12-mqtt")
def test_the_topics_are_those_of_the_code():
    assert {words(row[0])[0] for row in table("Topics", "topic")} == names_of_topics()


@pytest.mark.requirement("I12-mqtt")
def test_every_kind_has_a_topic_a_chapter_and_an_example():
    listed = {kind for row in table("Topics", "topic") for kind in words(row[5])}
    assert listed == set(MessageKind)
    assert {each.kind for each in EXAMPLES.values()} == set(MessageKind)
    assert set(MessageKind) <= set(re.findall(r"(?m)^### `(\w+)`$", TEXT))


@pytest.mark.requirement("I12-mqtt")
def test_the_examples_are_on_the_topics_of_their_kinds():
    """Direction, QoS and retained flag of each example are those of the table."""
    rows = {words(row[0])[0]: row for row in table("Topics", "topic")}
    for title, example in EXAMPLES.items():
        topic = example.headers["topic"].removeprefix("glassd/v1/default/e/edge-1/")
        [row] = [
            row
            for name, row in rows.items()
            if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(name)), topic)
        ]
        assert example.headers["from"] == row[1], title
        assert example.headers["retain"] == row[3], title
        assert example.kind in words(row[5]), title
        assert example.headers["qos"] == ("0" if topic == "event/head" else "1"), title


def test_the_topics_that_no_answer_may_go_to_are_those_with_a_meaning():
    topics = Topics("default", "edge-1")
    for row in table("Topics", "topic"):
        name = words(row[0])[0]
        if not name.startswith("glassd/"):
            concrete = topics.prefix + "/" + re.sub(r"\{\w+\}", "x", name)
            assert topics.may_answer_to(concrete) is name.startswith("reply/"), name


# ------------------------------------------------------------------ fields


class Recorder(dict):
    """A body that notes which of its keys were looked at."""

    def __init__(self, content):
        super().__init__(
            {
                key: Recorder(value) if isinstance(value, dict) else value
                for key, value in content.items()
            }
        )
        self.read = set()

    def get(self, key, default=None):
        self.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key):
        self.read.add(key)
        return super().__getitem__(key)


def reads(kind, body, take):
    """The keys that `take` looks at in a message."""
    recorder = Recorder({"v": 1, "k": kind, "id": ID, **body})
    take(wire.WireMessage(MessageKind(kind), ID, recorder))
    return recorder.read - ENVELOPE


A_CALL = ToolCall(
    call_id=ID,
    tool="a:b",
    args={},
    origin=CallOrigin.CLOUD,
    idempotency_key="k",
    session="s",
    turn_id="t",
    ttl_s=1.0,
    present=True,
)
AN_ERROR = ToolError(
    code=ErrorCode.AUTH,
    message="m",
    type=ErrorType.AUTH,
    retryable=True,
    suggestion="s",
    details={},
    confirmation_request={},
    retry_after_ms=1,
    partial_side_effects=True,
    idempotency_required=True,
)
A_TOOL = ToolDefinition(
    name="a:b", description="", input_schema={}, source=Source.CLOUD, side_effects=SideEffects.NONE
)


def whole(response):
    """A result with every part of the envelope."""
    return ToolResponse(**{**response, "intents": ({"type": "x"},), "render": {}, "meta": {}})


def written_bodies():
    """Kind → the keys of everything that the edge writes of it."""
    good, bad = whole({"data": 1}), whole({"error": AN_ERROR})
    report = DeliveryReport(Delivery.DROPPED, "reason", "downgrade")
    return {
        MessageKind.CALL: wire.call_to_body(A_CALL).keys(),
        MessageKind.RESULT: wire.result_body(ID, good).keys() | wire.result_body(ID, bad).keys(),
        MessageKind.DELIVERY: wire.delivery_body(ID, report, age_s=1).keys(),
    }


def literal_bodies():
    """Bodies that are written as a literal: the keys of every outer dict display in the
    function that writes them.
    """
    found = {}
    for function, kind in (
        (client.MqttUplink.withdraw, MessageKind.CANCEL),
        (client.MqttUplink.answer, MessageKind.PROGRESS),
        (client.MqttUplink.tell_event, MessageKind.EVENT),
        (retained.Retained.presence, MessageKind.PRESENCE),
        (reporter.CapabilityReporter.report, MessageKind.CAPABILITIES),
    ):
        dicts = [
            n
            for n in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function))))
            if isinstance(n, ast.Dict)
        ]
        nested = {id(inner) for outer in dicts for inner in ast.walk(outer) if inner is not outer}
        found[kind] = {
            key.value for n in dicts if id(n) not in nested for key in n.keys if key is not None
        }
    return found


def read_bodies():
    """Kind → the keys of everything that the edge looks at in it."""
    envelope = {"ok": True, "data": 1, "error": None, "intents": [], "render": {}, "meta": {}}
    failure = {"ok": False, "error": {"type": "AUTH", "message": "m"}}
    return {
        MessageKind.CALL: reads("call", {"tool": "a:b"}, wire.body_to_call),
        MessageKind.RESULT: reads("result", envelope, wire.response_of)
        | reads("result", failure, wire.response_of),
        MessageKind.PROGRESS: reads("progress", {}, lambda message: wire.text_of(message, "text")),
        MessageKind.CANCEL: reads("cancel", {}, lambda message: wire.text_of(message, "reason")),
        MessageKind.REGISTRY: reads(
            "registry", {"version": "1", "sha256": "2", "url": "3"}, receiver._notice
        ),
    }


@pytest.mark.requirement("I12-mqtt")
@pytest.mark.parametrize("kind", list(MessageKind))
def test_the_fields_of_a_message_are_those_of_the_code(kind):
    written, literal, read = (
        written_bodies().get(kind, set()),
        literal_bodies().get(kind, set()),
        read_bodies().get(kind, set()),
    )
    of_code = set(written) | literal | read
    if kind in wire.WITH_ID:
        of_code |= {"call_id"} if kind is MessageKind.CALL else {"id"}
    assert fields(kind.value) == of_code


@pytest.mark.requirement("I12-mqtt")
@pytest.mark.parametrize("kind", list(MessageKind))
def test_the_examples_have_no_field_that_is_not_in_a_table(kind):
    for each in (each for each in EXAMPLES.values() if each.kind == kind):
        assert set(each.body) - ENVELOPE <= fields(kind.value), each.title
        for part in ("error", "meta", "render"):
            assert set(each.body.get(part, {})) <= fields(part), each.title


@pytest.mark.requirement("I12-mqtt")
def test_the_fields_of_an_error_are_those_of_the_code():
    recorder = Recorder({"ok": False, "error": {"type": "AUTH", "message": "m"}})
    ToolResponse.from_json(recorder)
    written = whole({"error": AN_ERROR}).to_json()["error"]
    assert fields("error") == recorder["error"].read | written.keys()


@pytest.mark.requirement("I12-mqtt")
def test_the_fields_of_meta_are_those_of_the_code():
    kept = {"activatedForTool", "clamped", "stale", "ageS", "content", "mentraExtensions"}
    said = ToolResponse(meta=dict.fromkeys([*fields("meta"), "anything else"], 1))
    stamped = results.stamped(
        said,
        A_CALL,
        tool=A_TOOL,
        registry="1",
        duration_s=1,
        timestamp="now",
        route=RouteKind.CLOUD,
        clamped={"top_k": [9, 3]},
    ).with_meta(delivery="shown")
    whole = idempotency.as_replay(stamped, "turn").meta
    assert fields("meta") == whole.keys()
    bare = results.stamped(
        ToolResponse(),
        A_CALL,
        tool=A_TOOL,
        registry="1",
        duration_s=1,
        timestamp="now",
        route=None,
        clamped={},
    )
    assert stamped.meta.keys() - bare.meta.keys() == kept | {"route", "delivery"}
    assert set(words(TEXT.partition("Of a worker's `meta`")[2].partition(".")[0])) == kept


@pytest.mark.requirement("I12-mqtt")
def test_the_layouts_and_their_fields_are_those_of_the_code():
    rows = {words(row[0])[0]: set(words(row[1])) for row in table("render", "layout")}
    assert rows.keys() == set(LayoutKind)
    anywhere = {"layout", "durationMs", "priority", "scene", "recall"}
    for layout, listed in rows.items():
        display = Recorder(dict.fromkeys(listed | anywhere, "x") | {"layout": layout})
        rendering = results.rendering_of(ToolResponse(render={"display": display}))
        assert listed <= display.read, layout
        assert rendering.layout == layout
        for name in listed:
            other = Recorder({**display, name: "another"})
            assert results.rendering_of(ToolResponse(render={"display": other})) != rendering, (
                f"{layout}: {name}"
            )


@pytest.mark.requirement("I12-mqtt")
def test_a_call_without_its_optional_fields_has_the_defaults_of_the_table():
    said = {words(row[0])[0]: row[2].strip("`") for row in table("call", "field")}
    message = wire.WireMessage(MessageKind.CALL, ID, {"v": 1, "tool": "a:b"})
    call = wire.body_to_call(message)
    for name, default in said.items():
        if default not in ("required", "absent"):
            found = getattr(call, name)
            shown = (
                '""' if found == "" else f"{found:g}" if isinstance(found, float) else str(found)
            )
            assert default == shown, name
    absent = [name for name, default in said.items() if default == "absent"]
    assert absent == ["idempotency_key", "present"]
    assert all(getattr(call, name) is None for name in absent)
    assert [name for name, default in said.items() if default == "required"] == ["call_id", "tool"]
    with pytest.raises(WireError, match=r"^malformed: tool"):
        wire.body_to_call(wire.WireMessage(MessageKind.CALL, ID, {"v": 1}))
    rows = {words(row[0])[0]: set(words(row[3])) for row in table("call", "field")}
    assert (rows["origin"], rows["mode"]) == (set(CallOrigin), set(Mode))


# ------------------------------------------------------------------ words


@pytest.mark.requirement("I12-mqtt")
def test_the_words_of_deliveries_and_events_are_those_of_the_code():
    assert {words(row[0])[0] for row in table("delivery", "delivery")} == set(Delivery)
    rows = {words(row[0])[0]: set(words(row[1])) for row in table("event", "event")}
    said = [
        *(Gestured(gesture) for gesture in Gesture),
        WornChanged(True),
        BatteryChanged(80),
        Transcript("x"),
        Transcript("x", True, 1.0, 2.0, 0.5, (Reading("x", -1.0),)),
    ]
    events: dict[str, set[str]] = {}
    for event in said:
        kind, data = reporter.as_event(event)
        gesture = {data["gesture"]} if "gesture" in data else set()
        events.setdefault(kind, set()).update(data.keys() | gesture)
    assert rows == events
    assert {"head"} == client.FLEETING


@pytest.mark.requirement("I12-mqtt")
def test_the_intents_and_their_fields_are_those_of_the_code():
    rows = {
        words(row[0])[0]: {w for w in words(row[1]) if w != FAREWELL}
        for row in table("result", "intent")
    }
    known = re.findall(r'kind == "(\w+)"', inspect.getsource(SessionController.apply))
    assert rows.keys() == set(known)
    for kind, listed in rows.items():
        session = SessionController()
        if kind == "END_VOICE_SESSION":
            session.begin_voice()
        intent = Recorder({"type": kind})
        session.apply(intent, tool="a:b")
        assert intent.read - {"type"} == listed, kind
    with pytest.raises(NoEffect):
        SessionController().apply({"type": "ANOTHER"}, tool="a:b")


@pytest.mark.requirement("I12-mqtt")
def test_who_said_a_capability_and_how_glasses_are_present():
    [row] = [row for row in table("capabilities", "field") if words(row[0]) == ["capabilities"]]
    assert set(Origin) <= set(words(row[3]))
    [row] = [row for row in table("presence", "field") if words(row[0]) == ["glasses"]]
    source = inspect.getsource(reporter.CapabilityReporter._presence)
    assert set(words(row[3])) - {"offline"} == set(re.findall(r'"(\w+)"', source))


# ------------------------------------------------------------------ errors


def named_in(paths):
    return {
        code
        for path in paths
        for code in re.findall(r"ErrorCode\.([A-Z_]+)\b", path.read_text(encoding="utf-8"))
    } & set(ErrorCode)


def senders():
    """(codes that the edge names, codes that the reference cloud names)."""
    sources = {
        path
        for package in (edge, tools_cache)
        for path in Path(package.__file__).parent.rglob("*.py")
    }
    worker = {*Path(devcloud.__file__).parent.rglob("*.py"), Path(app_results.__file__)}
    defined = {Path(tool.__file__), Path(errors.__file__), Path(failure_sentences.__file__)}
    return named_in(sources - worker - defined), named_in(worker)


@pytest.mark.requirement("I12-mqtt")
def test_the_error_codes_are_those_of_the_code_with_their_types_and_senders():
    rows = {words(row[0])[0]: row for row in table("Errors", "code")}
    assert rows.keys() == set(ErrorCode)
    of_edge, of_worker = senders()
    for code, row in rows.items():
        kind = type_of(ErrorCode(code))
        assert words(row[1]) == [kind], code
        assert row[2] == ("yes" if kind in RETRYABLE else "no"), code
        assert ("edge" in row[3]) is (code in of_edge), f"{code}: {row[3]}"
        assert ("worker" in row[3]) is (code in of_worker), f"{code}: {row[3]}"
    listed = re.search(r"The 14 values of `error.type`: ([^.]+)\.", TEXT)
    assert set(words(listed[1])) == set(ErrorType)
    assert len(ErrorType) == 14


@pytest.mark.requirement("I12-mqtt")
def test_the_reasons_why_a_message_cannot_be_read_are_those_of_the_code():
    assert {words(row[0])[0] for row in table("Errors", "reason")} == set(WireCode)
    good, content = wire.encode(MessageKind.ACCEPTED, {"id": ID})
    for reason, raw, given in (
        ("unsupported_content", good, "text/plain"),
        ("unsupported_version", b'{"v":2}', wire.JSON),
        ("too_large", b" " * 262_145, content),
        ("malformed", b"{", wire.JSON),
    ):
        with pytest.raises(WireError) as caught:
            wire.decode(raw, content_type=given)
        assert caught.value.to_json().keys() == {"reason", "field", "problem", "fix"}
        assert caught.value.to_json()["reason"] == reason


# ------------------------------------------------------------------ numbers and pictures


def test_the_limits_and_times_are_those_of_the_code():
    limits, options = CallLimits(), client.UplinkOptions(edge_id="e")
    numbers = [
        wire.MAX_BODY,
        connection_types.MAX_PACKET,
        wire.MAX_DEPTH,
        wire.MAX_WORD,
        wire.MAX_TTL_S,
        wire.DEFAULT_TTL_S,
        limits.accept_s,
        limits.run_s,
        options.resend_s,
        backoff.RESEND_CAP_S,
        inflight.ASK_AGAIN_S,
        inflight.REFUSED_AGAIN_S,
        connection_types.WINDOW,
        connection_types.RECEIVE_MAXIMUM,
        outbox.CALLS.rows,
        outbox.ANSWERS.rows,
        outbox.TELLS.rows,
        sender.ASIDES,
        sender.ASIDE_TTL_S,
        sender.ANSWER_TTL_S,
        receiver.HOLD_S,
        inbox.KEEP_S,
        retained.RETAINED_S,
    ]
    assert [float(row[1]) for row in table("Limits and times", "what")] == numbers
    assert sender.ANSWER_TTL_S == client.TELL_TTL_S
    assert limits.life_s == wire.DEFAULT_TTL_S


def test_the_connection_is_made_as_the_table_says():
    said = {row[0]: row[1] for row in table("The connection", "CONNECT")}
    options = client.UplinkOptions(edge_id="edge-1")
    numbers = {
        name: int(re.search(r"\d+", value)[0])
        for name, value in said.items()
        if re.search(r"\d", value)
    }
    assert numbers == {
        "session expiry": options.session_expiry_s,
        "keep alive": options.keepalive_s,
        "Receive Maximum": connection_types.RECEIVE_MAXIMUM,
        "Maximum Packet Size": connection_types.MAX_PACKET,
        "will": 1,
    }
    assert f"delay {options.will_delay_s:g} s, expiry {retained.RETAINED_S} s" in said["will"]
    assert (
        connection_types.BrokerOptions(host="h", client_id="c").clean_start,
        said["clean start"],
    ) == (
        False,
        "no",
    )


@shows(DOCUMENT, " QUEUED ──sent──▶ OFFERED")
def test_the_picture_of_a_call_names_how_it_really_ends():
    picture = block(DOCUMENT, " QUEUED ──sent──▶ OFFERED").text
    found = {}
    for name, changes in {
        "nobody accepted": {},
        "silent": {"accepted": True},
        "progress was heard": {"accepted": True, "heard": True},
    }.items():
        flight = inflight.InflightMessage(
            1, OutboxLane.CALL, MessageKind.CALL, ID, "t", 0.0, 1.0, attempt=1, **changes
        )
        found[name] = inflight.unanswered(flight).error.code.value
    for name, code in found.items():
        assert re.search(rf"{name}[^\n]*\b{code}\b", picture), f"{name} ends with {code}"
    assert f"{backoff.RESEND_CAP_S:g} s" in picture
    assert f"every {inflight.ASK_AGAIN_S:g} s" in picture


@shows(DOCUMENT, " OFFERED ──▶ accepted ──▶ progress")
def test_the_picture_of_an_invocation_names_kinds_and_codes_that_exist():
    picture = block(DOCUMENT, " OFFERED ──▶ accepted ──▶ progress").text
    assert {"accepted", "progress", "result", "cancel", "delivery"} <= set(
        re.findall(r"[a-z]+", picture)
    )
    assert set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", picture)) - {"OFFERED"} <= set(ErrorCode)


# ------------------------------------------------------------------ examples without a broker


def test_the_placeholders_are_those_that_are_explained():
    assert {
        words(row[0])[0].strip("<>") for row in table("How to read the examples", "placeholder")
    } == FORMS.keys()


def decoded(said):
    """What the code makes of a message, as far as it means anything. Raises WireError."""
    default = MessageKind.REGISTRY if "/registry/" in said.topic else None
    message = wire.decode(
        payload(said),
        content_type=said.content_type,
        user_properties=said.user.items(),
        correlation=said.correlation,
        default_kind=default,
    )
    meaning = {
        MessageKind.CALL: wire.body_to_call,
        MessageKind.RESULT: wire.response_of,
        MessageKind.REGISTRY: receiver._notice,
        MessageKind.PROGRESS: lambda m: wire.text_of(m, "text"),
        MessageKind.CANCEL: lambda m: wire.text_of(m, "reason"),
    }.get(message.kind, lambda m: dict(m.body))
    return message.kind, message.id, meaning(message)


@pytest.mark.requirement("I12-mqtt")
@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_is_read_by_the_code(title):
    said = Conversation(dict(KNOWN)).concrete(EXAMPLES[title])
    if title == "The cloud calls with a version that does not exist":
        with pytest.raises(WireError, match="unsupported_version"):
            decoded(said)
        return
    kind, call_id, _ = decoded(said)
    assert kind == EXAMPLES[title].kind
    assert call_id == ("" if kind not in wire.WITH_ID else ID)
    if "user a" in EXAMPLES[title].headers:
        assert said.user["a"].isdigit()


def places(value, path=()):
    """The path of every key and entry of a body."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != MORE:
                yield (*path, key)
                yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            if inner != MORE:
                yield (*path, number)
                yield from places(inner, (*path, number))


def without(body, path):
    """A body in which the last key of a path has another name, or an entry another value."""
    changed = copy.deepcopy(body)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if isinstance(inner, dict):
        inner[f"{path[-1]}_"] = inner.pop(path[-1])
    else:
        inner[path[-1]] = ["changed"]
    return changed


@pytest.mark.requirement("I12-mqtt")
@pytest.mark.parametrize("title", [each.title for each in EXAMPLES.values() if each.from_edge])
def test_an_example_of_the_edge_that_is_changed_anywhere_is_no_longer_what_the_edge_says(title):
    example = EXAMPLES[title]
    real = Conversation(dict(KNOWN)).concrete(example)
    real_body = {key: value for key, value in real.body.items() if key != MORE}
    Conversation().match(example, real)
    for path in places(example.body):
        wrong = type(example)(title, example.headers, without(example.body, path))
        with pytest.raises(AssertionError):
            Conversation().match(wrong, real)
    for name in properties_of(real):
        for headers in (
            {key: value for key, value in example.headers.items() if key != name},
            {**example.headers, name: "changed"},
        ):
            with pytest.raises(AssertionError):
                Conversation().match(type(example)(title, headers, example.body), real)
    assert real_body


IGNORED = {("k",), ("v",)}
"""Keys whose change is not one of meaning: the kind stands in a property too, and `v` is looked
at by itself.
"""


@pytest.mark.requirement("I12-mqtt")
@pytest.mark.parametrize("title", [each.title for each in EXAMPLES.values() if not each.from_edge])
def test_an_example_of_the_cloud_that_is_changed_anywhere_means_something_else(title):
    said = Conversation(dict(KNOWN)).concrete(EXAMPLES[title])
    try:
        before = decoded(said)
    except WireError:
        return  # it is the example of a message that cannot be read
    for path in places(said.body):
        if (
            path == ("v",)
            or path in IGNORED
            or (path in {("id",), ("call_id",)} and said.correlation)
        ):
            continue  # the id stands in the correlation data too
        changed = type(said)(**{**vars(said), "body": without(said.body, path)})
        try:
            after = decoded(changed)
        except WireError:
            continue
        assert after != before, f"{title}: {'.'.join(map(str, path))} could be anything"
