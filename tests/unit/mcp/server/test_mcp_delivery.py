"""A model reads what the wearer got: hosts show it no metadata."""

import pytest

from edge.mcp.server import results
from edge.mcp.server.tools import OUTPUT

DATA = {"text": "Boarding 14:20"}


def texts(envelope):
    return [block["text"] for block in results.result(envelope)["content"]]


def of_the_glasses(**meta):
    return {"route": "glasses", **meta}


@pytest.mark.requirement("I6-delivery")
@pytest.mark.parametrize(
    ("delivery", "said"),
    [
        ("shown", "On the glasses: shown."),
        ("spoken", "On the glasses: spoken."),
        ("superseded", "On the glasses: superseded."),
        ({"state": "expired"}, "On the glasses: expired."),
        ({"state": "dropped", "reason": "glasses away"}, "On the glasses: dropped (glasses away)."),
        (
            {
                "state": "shown",
                "downgrade": "image→text",
                "reason": "the image is all dark on this lens",
            },
            "On the glasses: shown (image→text; the image is all dark on this lens).",
        ),
    ],
)
def test_what_the_wearer_got_stands_beside_the_data(delivery, said):
    envelope = {"ok": True, "data": DATA, "meta": of_the_glasses(delivery=delivery)}
    assert texts(envelope)[1:] == [said]
    found = dict(results.result(envelope)["structuredContent"])
    report = {"state": delivery} if isinstance(delivery, str) else delivery
    assert found.pop("delivery") == report
    assert found == DATA


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"delivery": "shown"},
        {"delivery": "shown", "route": "local"},
        *(of_the_glasses(delivery=d) for d in ("none", {"state": "none"}, 5, {}, "queued")),
    ],
)
def test_where_nothing_was_to_be_got_nothing_is_said(meta):
    assert len(texts({"ok": True, "data": DATA, "meta": meta})) == 1


def test_a_tools_own_blocks_and_a_failure_stay_as_they_are():
    blocks = [{"type": "text", "text": "own"}]
    assert texts(
        {"ok": True, "data": None, "meta": of_the_glasses(delivery="shown", content=blocks)}
    ) == ["own"]
    failed = {
        "ok": False,
        "error": {"code": "OFFLINE", "message": "away"},
        "meta": of_the_glasses(delivery="shown"),
    }
    assert len(texts(failed)) == 1


@pytest.mark.parametrize("route", ["local", "cloud", "glasses", "cache", None])
def test_a_client_that_reads_structured_content_alone_learns_how_far_it_got(route):
    cut = {"state": "superseded", "reason": "by something newer"}
    envelope = {"ok": True, "data": DATA, "meta": {"route": route, "delivery": cut}}
    assert results.result(envelope)["structuredContent"] == {**DATA, "delivery": cut}
    failed = {"ok": False, "error": {"code": "OFFLINE"}, "meta": {"route": route, "delivery": cut}}
    assert results.result(failed)["structuredContent"]["delivery"] == cut


def test_such_a_client_learns_how_to_get_the_answer_later():
    waiting = {"ok": True, "data": {"status": "pending", "pendingToolCallId": "c7"}, "meta": {}}
    assert "get_pending_result with id c7" in results.result(waiting)["structuredContent"]["next"]
    asked = {"ok": False, "error": {"code": "CONFIRMATION_REQUIRED"}, "meta": {"callId": "c8"}}
    assert "get_pending_result with id c8" in results.result(asked)["structuredContent"]["next"]


def test_such_a_client_learns_how_to_ask_about_a_text_that_waits_for_the_glasses():
    meta = {"route": "glasses", "callId": "c9", "delivery": {"state": "queued", "reason": "1 of 2"}}
    found = results.result({"ok": True, "data": DATA, "meta": meta})["structuredContent"]
    assert "get_pending_result with id c9" in found["next"]
    seen = {"ok": True, "data": DATA, "meta": {**meta, "delivery": "shown"}}
    assert "next" not in results.result(seen)["structuredContent"]


@pytest.mark.requirement("I13-agent-learns-superseded")
@pytest.mark.parametrize("delivery", ["shown", {"state": "superseded", "reason": "by a call"}])
def test_such_a_client_has_the_id_with_which_it_can_ask_again(delivery):
    meta = {"route": "glasses", "callId": "c9", "delivery": delivery}
    found = results.result({"ok": True, "data": DATA, "meta": meta})["structuredContent"]
    assert found["delivery"]["callId"] == "c9"
    assert set(found["delivery"]) <= OUTPUT["properties"]["delivery"]["properties"].keys()


@pytest.mark.parametrize(
    ("data", "structured"),
    [
        (None, {}),
        ("milk", {"result": "milk"}),
        ([1], {"result": [1]}),
        ({"delivery": "by post"}, {"delivery": "by post"}),
        ({}, {}),
    ],
)
def test_a_tool_of_ours_always_answers_with_an_object(data, structured):
    envelope = {"ok": True, "data": data, "meta": {"route": "local", "delivery": "none"}}
    assert results.result(envelope, ours=True)["structuredContent"] == structured


def test_a_key_of_the_tools_own_is_not_replaced():
    own = {"delivery": "by post", "next": "tomorrow"}
    meta = {"route": "local", "callId": "c9", "delivery": {"state": "queued"}}
    assert results.result({"ok": True, "data": own, "meta": meta})["structuredContent"] == own


PICTURE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


def test_nothing_is_added_to_what_another_server_said():
    meta = {"route": "upstream", "delivery": "shown"}
    own = {"ok": True, "data": {"n": 5}, "meta": meta}
    assert results.result(own)["structuredContent"] == {"n": 5}
    blocks = [{"type": "text", "text": "a tree"}, PICTURE]
    pictured = {"ok": True, "data": {"text": "a tree"}, "meta": {**meta, "content": blocks}}
    assert "structuredContent" not in results.result(pictured)
    assert results.result(pictured)["content"] == blocks
    ours = {**pictured, "meta": {**pictured["meta"], "route": "cloud"}}
    assert results.result(ours)["structuredContent"]["text"] == "a tree"
    theirs = {"ok": True, "data": {"text": "a tree", "n": 5}, "meta": {**meta, "content": blocks}}
    assert results.result(theirs)["structuredContent"] == theirs["data"]
