"""Evidence (S2-119): its object, its order, the words of a question, and what fits one answer."""

import json

import pytest
from hypothesis import given, strategies as st

from tools_cache.api.knowledge import (
    FIELDS,
    MAX_TERMS,
    MAX_TEXT_BYTES,
    Evidence,
    cut,
    ranked,
    terms,
)


def piece(name, score=0.5, updated=0.0, **more):
    return Evidence(
        id=name,
        type="text",
        title=name,
        snippet="s",
        score=score,
        source_type="file",
        updated=updated,
        **more,
    )


@pytest.mark.requirement("S2-119")
def test_a_piece_of_evidence_has_these_fields_in_this_order():
    told = piece("a", 0.123456, 1_795_257_000.0, metadata={"tags": []}).to_json()
    assert tuple(told) == FIELDS
    assert told == {
        "id": "a",
        "type": "text",
        "title": "a",
        "snippet": "s",
        "score": 0.123,
        "source_type": "file",
        "last_updated": "2026-11-21T10:30:00+00:00",
        "url": None,
        "metadata": {"tags": []},
    }
    assert piece("a").to_json(["title"]) == {"id": "a", "title": "a"}


@pytest.mark.parametrize(
    ("mtime", "told"), [(1e15, "9999-12-31T23:59:59+00:00"), (-1e15, "0001-01-01T00:00:00+00:00")]
)
def test_a_file_of_an_impossible_year_does_not_affect_others(mtime, told):
    assert piece("a", updated=mtime).to_json(["last_updated"])["last_updated"] == told


@pytest.mark.requirement("S2-119")
def test_evidence_is_best_first_each_document_once_and_the_younger_of_equals_first():
    found = [
        piece("a", 0.2),
        piece("b", 0.9),
        piece("a", 0.4),
        piece("c", 0.4, updated=5.0),
        piece("d", 0.4),
    ]
    assert [(e.id, e.score) for e in ranked(found, 10)] == [
        ("b", 0.9),
        ("c", 0.4),
        ("a", 0.4),
        ("d", 0.4),
    ]
    assert [e.id for e in ranked(found, 2)] == ["b", "c"]
    assert ranked([], 5) == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Return POLICY return", ("return", "policy")),
        ("  ", ()),
        ('"', ()),
        ("a AND (b*)", ("a", "and", "b")),
        ("snake_case", ("snake", "case")),
        ("ﬁle", ("file",)),
        ("Straße", ("straße",)),
        ("don't", ("don", "t")),
        ("日本語 テスト", ("日本語", "テスト")),
        ("x\0y", ("x", "y")),
    ],
)
def test_a_query_is_only_its_words(query, words):
    assert terms(query) == words


def test_a_query_has_an_end():
    assert len(terms(" ".join(f"w{n}" for n in range(100)))) == MAX_TERMS


@given(st.text(max_size=300), st.integers(0, 400), st.integers(1, 400))
def test_a_part_of_a_text_is_what_was_asked_for(text, offset, most):
    assert cut(text, offset, most) == text[offset : offset + most]


def test_a_part_fits_an_answer_in_any_script():
    for ch in ("x", "ü", "日", "😀", "\x01"):
        part = cut(ch * 200_000, 0, 50_000)
        assert 0 < len(part) <= 50_000
        assert len(json.dumps(part)) <= MAX_TEXT_BYTES
