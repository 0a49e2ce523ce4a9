"""Data as lines for a person: little of it whole, much of it by its keys, never as braces."""

import json

import pytest
from hypothesis import example, given, strategies as st

from edge.core.words.data_text import FEW, SHORT, DataText, describe
from edge.core.words.wearer_forms import WearerForms

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=40,
)


def write(value):
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "nothing"}[value]
    return value if isinstance(value, str) else WearerForms().number(value)


def told(data):
    return describe(data, write)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, ""),
        (5, "5"),
        ("Take the second left", "Take the second left"),
        ({"text": "Noted", "id": 5}, "Noted"),
        ({"temperature_c": -3.25, "wind": None}, "temperature c: -3.25\nwind: nothing"),
        ({"open": True, "on": ["Mon", "Tue"], "tags": []}, "open: yes\non: Mon, Tue\ntags: none"),
        ({"place": {"city": "Oslo", "people": 717710}}, "place: city Oslo, people 717,710"),
        ([{"name": "Ann"}, {"name": "Bob"}], "1: Ann\n2: Bob"),
        ([{"item": "Milk", "qty": 2}, {"item": "Eggs", "qty": 12}], "item\tqty\nMilk\t2\nEggs\t12"),
        ({"rows": [{"a": "x", "b": None}] * 2}, "rows:\na\tb\nx\tnothing\nx\tnothing"),
        ([{"a": 1, "b": 2}, {"b": 3, "a": 4}], "a\tb\n1\t2\n4\t3"),
        ([{"a": 1, "b": 2}, {"a": 3}], "1: a 1, b 2\n2: a 3"),
        ([{"a": 1, "b": "x\ty"}, {"a": 3, "b": "z"}], "1: a 1, b x\ty\n2: a 3, b z"),
        ([{"a": 1, "b": 2}], "1: a 1, b 2"),
        ('{"a": 1}', "a: 1"),
        ({"content": '[{"a": 1}]'}, "1: a 1"),
        ("{not json}", "{not json}"),
        ("[1] see below", "[1] see below"),
    ],
)
def test_a_little_data_is_shown_whole(data, text):
    assert told(data) == DataText(text)


ORDERS = {
    "orders": [{"id": n, "customer": f"Customer {n}", "total": 12.5} for n in range(90)],
    "currency": "NOK",
    "total": 123456,
    "page": 1,
    "next": "x" * 100,
}


@pytest.mark.parametrize("data", [ORDERS, json.dumps(ORDERS), {"text": json.dumps(ORDERS)}])
def test_much_data_is_summed_up_by_its_keys(data):
    found = told(data)
    assert found.text == "orders: 90 items\ncurrency: NOK\ntotal: 123,456\nand 2 more"
    assert found.more.startswith("orders:\n  1: id 0, customer Customer 0, total 12.5\n")
    assert "{" not in found.more


def test_a_list_of_more_objects_than_a_lens_holds_names_the_values_of_each():
    found = told([{"a": n, "b": n} for n in range(FEW)])
    assert found.text.startswith("1: a 0, b 0\n2: a 1, b 1\n")


def test_a_long_list_says_how_long_it_is():
    found = told([{"title": f"Item {n}"} for n in range(90)])
    assert found.text == "90 items\nItem 0\nItem 1\nand 88 more"


def test_a_long_value_is_cut_in_the_summary_and_whole_below():
    found = told({"note": "word " * 100, "b": 1})
    assert found.text.split("\n")[0].endswith("…")
    assert "word " * 100 in found.more


@example([None, None, None, {"": None, "0": "\n"}, [None, [], "\n"]])
@given(JSON)
def test_any_data_has_a_short_text_and_nothing_is_left_out(data):
    found = told({"data": data})
    assert len(found.text.split("\n")) <= FEW or isinstance(data, str)
    assert not found.more or len(found.text) <= SHORT


def test_data_without_end_is_described_in_time():
    deep = {"a": 1}
    for _ in range(200):
        deep = {"a": deep, "b": [deep["a"]]}
    assert told(deep).text
    assert told({str(n): list(range(50)) for n in range(5000)}).more.endswith("…")
