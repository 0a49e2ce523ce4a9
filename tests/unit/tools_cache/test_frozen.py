"""JSON objects kept as text: the same to whoever reads them, a tenth of the memory."""

import copy
import json
import pickle

import pytest
from hypothesis import given, settings, strategies as st

from tools_cache import frozen
from tools_cache.frozen import FrozenDict, FrozenList, Packed
from tools_cache.registry import manifest, registry_store
from tools_cache.registry.manifest import digest
from tools_cache.registry.models import MAX_BYTES
from tools_cache.schema import compile_schema

TOOL = {
    "name": "x",
    "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "x-mine": [1, {"b": None}],
}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_whatever_is_packed_comes_out_as_it_was(value):
    made = Packed.of(value)
    assert made == value
    assert (dict(made), len(made), list(made)) == (value, len(value), list(value))
    assert pickle.loads(pickle.dumps(made)) == made
    assert made == Packed.of(dict(value))


@settings(max_examples=60, deadline=None)
@given(st.lists(JSON, max_size=4))
def test_a_document_is_hashed_app_by_app_as_it_would_be_in_one_piece(apps):
    try:
        whole = manifest.canonical(apps)
    except ValueError:
        with pytest.raises(ValueError):
            digest(apps)
        return
    assert digest(apps) == manifest.hashlib.sha256(whole).hexdigest()


def test_a_part_shares_the_text_of_its_whole_and_compiles():
    whole = Packed.of(TOOL)
    schema = whole.part("inputSchema")
    assert schema == TOOL["inputSchema"]
    assert schema._text is whole._text
    assert schema != whole
    assert [e["path"] for e in compile_schema(schema).errors({"a": "x"})] == ["/a"]


@pytest.mark.requirement("S0-33")
def test_what_is_given_out_cannot_be_changed_and_the_next_reader_sees_it_as_it_was():
    made = Packed.of(TOOL)
    for change in (
        lambda: made.update(a=1),
        lambda: made.__setitem__("a", 1),
        lambda: made["x-mine"].append(2),
        made["x-mine"][1].clear,
        lambda: made.pop("name"),
        lambda: made.opened().update(a=1),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change()
    assert made == TOOL
    assert isinstance(made["x-mine"], FrozenList)
    assert isinstance(made.opened(), FrozenDict)
    plain = copy.deepcopy(made)
    plain["x-mine"].append(2)
    assert (type(plain), made == TOOL) == (dict, True)


def test_only_the_last_ones_looked_at_stay_open():
    frozen._opened.cache_clear()
    many = [Packed.of({"n": n}) for n in range(frozen.OPEN + 50)]
    assert [each["n"] for each in many] == list(range(frozen.OPEN + 50))
    assert frozen._opened.cache_info().currsize == frozen.OPEN


@pytest.mark.requirement("I5-10000")
def test_ten_thousand_tools_are_within_the_limits_of_document_and_file():
    assert manifest.MAX_TOOLS >= 10_000
    assert MAX_BYTES // 10_000 >= 800
    assert registry_store.MAX_FILE >= MAX_BYTES + 2 * 1024 * 1024
    tool = {
        "name": "t",
        "description": "d" * 200,
        "inputSchema": {
            "type": "object",
            "properties": {f"p{n}": {"type": "string"} for n in range(5)},
        },
    }
    assert len(json.dumps(tool)) < MAX_BYTES // 10_000
