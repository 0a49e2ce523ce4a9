"""A model reads what the wearer got: hosts show it no metadata."""

import pytest

from edge.mcp.server import results

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
    assert results.result(envelope)["structuredContent"] == DATA


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
