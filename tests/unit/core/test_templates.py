"""Templates of user-made tools: what a caller sends stays a value, wherever it is put."""

import json
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given, strategies as st

from edge.core.tools import templates
from edge.core.tools.user_tools import Own, RequestPlan, address_problem, ready

ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)

WORDS = st.text(st.characters(exclude_categories=("Cs",)))


def scope(**args):
    return {"input": args, "call": {"id": "c-1", "tool": "my:tool"}}


@pytest.mark.requirement("S3-13")
@given(ANY)
def test_a_template_that_is_one_placeholder_becomes_the_value_itself(value):
    assert templates.filled({"a": "{{input.x}}", "b": [1, "{{ input.x }}"]}, scope(x=value)) == {
        "a": value,
        "b": [1, value],
    }


@pytest.mark.requirement("S3-13")
@pytest.mark.parametrize(
    "evil",
    [
        '"}',
        '", "admin": true, "x": "',
        "{{input.y}}",
        "${env.TOKEN}",
        "\\",
        "\n",
        "\x00",
        "{{call.id}}",
    ],
)
def test_no_input_can_break_a_body_or_become_a_template(evil):
    body = templates.filled(
        {"q": "say {{input.x}}!", "k": "{{input.x}}"}, scope(x=evil, y="secret")
    )
    assert json.loads(json.dumps(body)) == {"q": f"say {evil}!", "k": evil}


@pytest.mark.requirement("S3-13")
def test_what_a_call_has_nothing_for_is_left_out_or_null_or_empty_as_its_place_has_it():
    template = {
        "key": "{{input.x}}",
        "list": ["{{input.x}}", 1],
        "text": "a{{input.x}}b",
        "in": {"deep": "{{input.x.y.0}}"},
    }
    assert templates.filled(template, scope()) == {"list": [None, 1], "text": "ab", "in": {}}
    assert templates.filled("{{input.x}}", scope()) is None
    assert templates.filled({"key": "{{input.x}}"}, scope(x=None)) == {
        "key": None
    }  # said to be nothing is not the same as unsaid


def test_a_placeholder_reaches_into_objects_and_lists_and_the_call():
    args = {"to": [{"name": "Ann"}], "n": 3, "yes": True, "o": {"a": [1]}}
    assert templates.filled("{{input.to.0.name}}", scope(**args)) == "Ann"
    assert templates.filled("{{input}}", scope(**args)) == args
    assert (
        templates.filled(
            "{{call.id}} {{input.n}} {{input.yes}} {{input.o}} {{input.to.9}}", scope(**args)
        )
        == 'c-1 3 true {"a":[1]} '
    )


@pytest.mark.requirement("S3-13")
@given(WORDS.filter(lambda t: t not in {"", ".", ".."}), WORDS)
def test_a_value_is_one_part_of_a_path_and_one_of_a_query(part, word):
    made = templates.address(
        "https://h.example:8/a/{{input.p}}/z?q={{input.w}}&k=1",
        {"r": "{{input.w}}"},
        scope(p=part, w=word),
    )
    assert templates.origin(made) == "https://h.example:8"
    split = urlsplit(made)
    assert (split.hostname, split.port) == ("h.example", 8)
    assert [unquote(p) for p in split.path.split("/")] == ["", "a", part, "z"]
    assert parse_qs(split.query, keep_blank_values=True) == {"q": [word], "k": ["1"], "r": [word]}
    assert not split.fragment


@pytest.mark.requirement("S3-13")
@pytest.mark.parametrize(
    "rest", ["/{{input.v}}", "?{{input.v}}", "?q={{input.v}}", "/a/{{input.v}}?b"]
)
@pytest.mark.parametrize(
    "value", ["@evil.org", ":1@evil.org", "//evil.org", "\\evil.org", "#@evil.org/"]
)
def test_no_value_leads_to_another_host(rest, value):
    made = templates.address("https://h.example:8" + rest, {"w": "{{input.v}}"}, scope(v=value))
    assert templates.origin(made) == "https://h.example:8"
    assert (urlsplit(made).netloc, urlsplit(made).fragment) == ("h.example:8", "")


@pytest.mark.parametrize("value", ["", None, ".", ".."])
def test_a_value_that_would_leave_its_place_in_a_path_is_refused(value):
    with pytest.raises(templates.Unfilled, match=r"input\.p"):
        templates.address("https://h/a/{{input.p}}/z", {}, scope(p=value))


def test_two_values_do_not_make_a_way_up_together():
    with pytest.raises(templates.Unfilled, match=r"input\.p and input\.q: \. and"):
        templates.address("https://h/a/{{input.p}}{{input.q}}", {}, scope(p=".", q="."))


def test_a_query_leaves_out_what_is_not_there_and_says_a_list_several_times():
    query = {
        "a": "{{input.gone}}",
        "b": "{{input.tags}}",
        "c": "x {{input.gone}}",
        "d": 5,
        "e": "{{input.none}}",
    }
    made = templates.address("http://h/p?z", query, scope(tags=["u v", 2, None], none=None))
    assert made == "http://h/p?z&b=u%20v&b=2&c=x%20&d=5"
    assert templates.address("http://h", {"a": 1}, scope()) == "http://h?a=1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{{input}", "a {{ without"),
        ("{{inpt.x}}", "is not a placeholder"),
        ("${env.a-b}", "a ${ that is no"),
        ("${HOME}", "a ${ that"),
        ("{{}}", "is not a placeholder"),
        ("{{call.user}}", "is not a placeholder"),
        ("${env.}", "a ${"),
        ("${env.1X}", "a ${"),
    ],
)
def test_a_slip_in_a_template_is_named(text, told):
    for place in (text, {"a": [text]}, {text: 1}):
        with pytest.raises(templates.BadTemplate) as caught:
            templates.check(place)
        assert told in str(caught.value)


def test_good_templates_pass_and_say_what_they_need():
    template = {"a": ["{{input.x.0}} {{ call.tool }} ${env.A_1}", 5, None, True]}
    templates.check(template)
    assert templates.slots(template) == {"input.x.0", "call.tool"}
    assert templates.secrets(template) == {"A_1"}


# ------------------------------------------------------------------ secrets


def made_ready(plan, **secrets):
    return ready(Own(plans={"my:tool": plan}), secrets.get)


@pytest.mark.requirement("S3-12")
def test_secrets_are_put_into_address_headers_query_and_body():
    plan = RequestPlan(
        url="https://${env.HOST}/${env.K}?k=${env.K}",
        headers={"A": "Bearer ${env.K}"},
        query={"q": "${env.K}"},
        body={"k": "${env.K}"},
    )
    made = made_ready(plan, HOST="h.example:8", K="a/b c").plans["my:tool"]
    assert made.url == "https://h.example:8/a%2Fb%20c?k=a%2Fb%20c"
    assert (made.headers, made.query, made.body) == (
        {"A": "Bearer a/b c"},
        {"q": "a/b c"},
        {"k": "a/b c"},
    )
    assert (
        made_ready(RequestPlan(url="${env.BASE}/v1"), BASE="http://h:1/api").plans["my:tool"].url
        == "http://h:1/api/v1"
    )


@pytest.mark.requirement("S3-12")
@pytest.mark.parametrize(
    "plan",
    [
        RequestPlan(url="https://h/${env.K}"),
        RequestPlan(url="https://h", headers={"A": "${env.K}"}),
        RequestPlan(url="https://h", query={"a": ["${env.K}"]}),
        RequestPlan(url="https://h", body={"a": {"b": "x ${env.K}"}}),
        RequestPlan(url="${env.K}"),
    ],
)
def test_a_tool_whose_secret_is_not_there_is_withheld_with_a_reason_and_has_no_plan(plan):
    made = made_ready(plan)
    assert made.plans == {}
    assert made.withheld["my:tool"].startswith("${env.K} is not set: give systemd a credential")


@pytest.mark.parametrize("value", ["two\nlines", "tab\t", "ümlaut", "\x7f"])
def test_a_secret_with_a_line_break_is_neither_used_nor_shown(value):
    made = made_ready(RequestPlan(url="https://h", headers={"A": "${env.K}"}), K=value)
    assert made.plans == {}
    assert "${env.K} holds more than one line" in made.withheld["my:tool"]
    assert value not in repr(made)


def test_a_space_around_a_secret_never_reaches_a_header():
    made = made_ready(RequestPlan(url="https://h", headers={"A": " Bearer ${env.K} "}), K=" a b ")
    assert made.plans["my:tool"].headers == {"A": "Bearer  a b"}


def test_no_secret_is_printed():
    assert "hush" not in repr(
        made_ready(RequestPlan(url="https://h", headers={"A": "${env.K}"}), K="hush")
    )


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://h", "must begin with https"),
        ("h/x", "must begin"),
        ("https://", "must begin"),
        ("https://{{input.h}}/", "may not choose the host"),
        ("https://a.{{input.h}}", "may not choose the host"),
        ("https://u:p@h/", "must not hold a password"),
        ("https://h/#x", "a #"),
        ("https://h\\@evil/", "backslash"),
        ("https:///x", "must begin"),
        ("file:///etc/passwd", "must begin"),
        ("https://h:65536/", "its port"),
        ("https://h:a/", "its port"),
        ("https://h:0", "its port"),
        ("https://[::1/x", "the host"),
        ("https://\u2100.h/", "the host"),
    ],
)
def test_an_address_that_cannot_be_asked_is_said_why(url, told):
    assert told in address_problem(url)
    assert made_ready(RequestPlan(url="${env.U}"), U=url).plans == {}


def test_what_only_a_cloud_runs_is_withheld_as_unsupported():
    assert made_ready(RequestPlan(only_cloud="a sub-agent runs in a cloud")).withheld == {
        "my:tool": "unsupported on an edge: a sub-agent runs in a cloud"
    }


@pytest.mark.parametrize(("path", "found"), [("1", "b"), ("2", None), ("-1", None), ("²", None)])
def test_an_index_beyond_a_list_is_absent(path, found):
    scope = {"input": {"list": ["a", "b"]}}
    assert templates.filled(f"{{{{input.list.{path}}}}}", scope) == found
