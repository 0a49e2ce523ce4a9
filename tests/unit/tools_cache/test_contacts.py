"""Contacts in a text: found, joined, named; and nothing made up."""

import time

import pytest
from hypothesis import given, strategies as st

from tools_cache.api.contacts import MAX_CONTACTS, extract


def test_a_number_is_also_known_as_it_stands_in_the_text():
    text = "Eva Lund: +49 (30) 901820, eva@example.com, 040-551234"
    (found,) = extract(text)
    assert found.phones == ("+4930901820", "040551234")
    assert found.written == ("+49 (30) 901820", "040-551234")
    assert "written" not in found.to_json()


def told(text):
    return [(c.name, list(c.emails), list(c.phones)) for c in extract(text)]


@pytest.mark.parametrize(
    ("text", "contacts"),
    [
        (
            "Call Eva Braun-Meier at +49 (30) 901820 or write to eva@example.com.",
            [("Eva Braun-Meier", ["eva@example.com"], ["+4930901820"])],
        ),
        (
            "Ludwig van Beethoven <ludwig@example.org>, Clara Schumann <clara@Example.ORG>",
            [
                ("Ludwig van Beethoven", ["ludwig@example.org"], []),
                ("Clara Schumann", ["clara@example.org"], []),
            ],
        ),
        (
            "a@example.com b@example.com a@example.com",
            [("", ["a@example.com", "b@example.com"], [])],
        ),
        (
            "a@example.com\nb@example.com",
            [("", ["a@example.com"], []), ("", ["b@example.com"], [])],
        ),
        (
            "Max Mustermann\nmax@example.de\n+1-202-555-0143\n\ninfo@example.de",
            [
                ("Max Mustermann", ["max@example.de"], ["+12025550143"]),
                ("", ["info@example.de"], []),
            ],
        ),
        ("foo@example.com (Foo Bar)", [("Foo Bar", ["foo@example.com"], [])]),
        (
            "Ask Ann (555-0100) or Bob, 555 0101 22",
            [("Ann", [], ["5550100"]), ("Bob", [], ["555010122"])],
        ),
        ("José O'Neill: jose@example.com", [("José O'Neill", ["jose@example.com"], [])]),
        (
            "Ann ann@example.com. Later Bob wrote. Ann: 030 1234567",
            [("Ann", ["ann@example.com"], ["0301234567"])],
        ),
        ("name.with+tag@sub.example.co.uk", [("", ["name.with+tag@sub.example.co.uk"], [])]),
    ],
)
def test_contacts_are_found_with_the_names_beside_them(text, contacts):
    assert told(text) == contacts


@pytest.mark.parametrize(
    "text",
    [
        "Meet at 10:30 in room 204 on 2026-11-23",
        "order 12345678901234567890",
        "v1.2.3.4 and 192.168.1.1:8080",
        "23.11.2026",
        "23/11/2026",
        "a@b",
        "@example.com",
        "eva@",
        "user@@example.com",
        "1234",
        "id 01a20284-e862-705d-867c-466dad169b2a",
        "",
        "   ",
        "3.14159265358979",
        "https://example.com/12345678",
        "10.30 - 11.45",
    ],
)
def test_what_only_looks_like_a_contact_is_none(text):
    assert told(text) == []


@given(st.text(max_size=400))
def test_any_text_is_read_and_gives_the_same_each_time(text):
    assert extract(text) == extract(text)
    assert all(any((c.emails, c.phones)) for c in extract(text))


@pytest.mark.parametrize(
    "text",
    [
        "a." * 5000,
        "a@" * 5000,
        "+1 " * 3333,
        "(1)" * 3333,
        "A" * 10_000,
        "A B " * 2500,
        "1-" * 5000,
        "a@a." * 2500,
        "(" * 10_000,
    ],
)
def test_no_text_keeps_it_busy(text):
    began = time.process_time()
    extract(text)
    assert time.process_time() - began < 5.0, "of this process's own time; measured: under 0.1 s"


def test_a_list_of_people_has_an_end():
    assert len(extract("\n\n".join(f"p{n}@example.com" for n in range(300)))) == MAX_CONTACTS
