"""What a server's result becomes before it leaves the child: whatever the daemon could stumble
over stays behind.
"""

import json

import pytest

from edge.mcp.client.outcomes import MAX_DEPTH, outcome


def said(text):
    return outcome({"content": [{"type": "text", "text": text}]}, None, most_bytes=10**6)


def nested(levels):
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.requirement("I6-hostile")
@pytest.mark.parametrize(
    "text",
    [
        nested(MAX_DEPTH + 1),
        nested(900),
        nested(5000),
        '{"a":' + "[" * 500 + "]" * 500 + "}",
        '{"a":"\\ud800"}',
        '{"\\udc00":1}',
        '{"a":1e999}',
        '{"a":NaN}',
    ],
)
def test_invalid_or_too_deep_json_in_a_text_stays_text(text):
    found = said(text)
    assert (found.ok, found.structured, found.content[0]["text"]) == (True, None, text)


@pytest.mark.parametrize(
    "text", [nested(MAX_DEPTH), '{"a":"\\ud83d\\ude00"}', '{"a":[1,[2]],"b":{}}']
)
def test_json_in_a_text_is_read(text):
    assert said(text).structured == json.loads(text)
