"""The enrolment code: what is written is read, and what was mistyped is named by its group."""

import re
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from edge.core import enrolment_code
from edge.core.enrolment_code import BadCode, Offer, decode, encode

OFFER = Offer(
    broker_host="mqtt.example.org",
    broker_port=8883,
    enrol_host="enrol.example.org",
    enrol_port=443,
    tenant="acme",
    ca_sha256=bytes(range(32)),
    secret=b"0123456789abcdef",
)
CODE = encode(OFFER)
GROUPS = CODE.removeprefix("GLASSD1-").split("-")

labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
hosts = st.lists(labels, min_size=1, max_size=4).map(".".join) | st.ip_addresses().map(str)
offers = st.builds(
    Offer,
    broker_host=hosts,
    broker_port=st.integers(1, 65535),
    enrol_host=hosts,
    enrol_port=st.integers(1, 65535),
    tenant=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True),
    ca_sha256=st.binary(min_size=32, max_size=32),
    secret=st.binary(min_size=16, max_size=32),
)


@given(offers)
def test_what_is_written_is_read(offer):
    code = encode(offer)
    assert decode(code) == offer
    assert len(code) <= enrolment_code.MAX_TEXT
    assert re.fullmatch(r"GLASSD1(-[0-9A-HJKMNP-TV-Z]{1,8})+", code)


def test_the_longest_names_still_fit():
    longest = ".".join(["a" * 63] * 4)[:253]
    offer = Offer(
        broker_host=longest,
        broker_port=1,
        enrol_host=longest[:-1],
        enrol_port=1,
        tenant="t" * 63,
        ca_sha256=bytes(32),
        secret=bytes(32),
    )
    assert decode(encode(offer)) == offer
    assert len(encode(offer)) < enrolment_code.MAX_TEXT - 100


def test_the_code_of_this_version_never_changes():
    """Golden: codes are printed and mailed; a new form needs a new version."""
    assert CODE == (
        "GLASSD1-4ASG3ERP-GDNRQ8X1-1ECNW629-VBGDHJJH-WVVJCW8N-PAVKJDXZ-P2WSBRCD-5PQ0V350-5SQQ4SRD-"
        "4C5HPTSD-8G60RK4Y-CSM6MV39-EE1SC5HE-66S35CR8-0020G30K-G2GC1R8E-1450P306-D1R7H04X-8J2CA1AK"
        "-5GQ30CH6-M6RW3MFE-1Z4VQM9G-TGB"
    )


@pytest.mark.parametrize(
    "say",
    [
        str.lower,
        lambda c: c.replace("-", ""),
        lambda c: f"  {c}\r\n",
        lambda c: c.replace("-", "-\n"),
        lambda c: c.replace("0", "o").replace("1", "l"),
    ],
)
def test_case_spaces_hyphens_and_lookalikes_do_not_matter(say):
    assert decode(say(CODE).replace("GLASSDl", "GLASSD1")) == OFFER


def test_every_single_wrong_character_is_found_and_its_group_named():
    for number, group in enumerate(GROUPS, 1):
        for at, was in enumerate(group):
            now = "Z" if was != "Z" else "Y"
            wrong = [*GROUPS]
            wrong[number - 1] = group[:at] + now + group[at + 1 :]
            with pytest.raises(BadCode, match=rf"group {number}\b"):
                decode("GLASSD1-" + "-".join(wrong))


def test_two_swapped_neighbours_are_found_and_their_group_named():
    for number, group in enumerate(GROUPS, 1):
        for at in range(len(group) - 1):
            if group[at] == group[at + 1]:
                continue
            wrong = [*GROUPS]
            wrong[number - 1] = group[:at] + group[at + 1] + group[at] + group[at + 2 :]
            with pytest.raises(BadCode, match=rf"group {number}\b"):
                decode("GLASSD1-" + "-".join(wrong))


def test_two_swapped_groups_are_found():
    wrong = [*GROUPS]
    wrong[3], wrong[4] = wrong[4], wrong[3]
    with pytest.raises(BadCode, match="group 4 is mistyped"):
        decode("GLASSD1-" + "-".join(wrong))


@pytest.mark.parametrize("left", range(len(GROUPS)))
def test_a_code_cut_off_after_any_group_is_not_complete(left):
    with pytest.raises(BadCode, match="not complete"):
        decode("GLASSD1-" + "-".join(GROUPS[:left]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not an enrolment code"),
        ("hello", "not an enrolment code"),
        ("GLASSD2-ABCDEFGH", "version 2"),
        ("GLASSD1-", "not complete"),
        ("GLASSD1-" + "0" * 2000, "more than"),
        ("GLASSD1-UUUUUUUU", "group 1"),
        ("GLASSD1-ÄÖÜ", "group 1"),
    ],
)
def test_other_texts_are_refused_with_the_reason(text, says):
    with pytest.raises(BadCode, match=says):
        decode(text)


@given(st.text(max_size=200))
def test_no_text_ends_in_another_error(text):
    for tried in (text, "GLASSD1-" + text):
        with suppress(BadCode):
            decode(tried)


@given(st.binary(min_size=1, max_size=120))
def test_a_message_that_says_what_cannot_be_is_refused(body):
    symbols = enrolment_code._to_symbols(body + enrolment_code._sum(body))
    groups = [symbols[i : i + 7] for i in range(0, len(symbols), 7)]
    code = "GLASSD1" + "".join(
        enrolment_code._ALPHABET[s]
        for n, g in enumerate(groups, 1)
        for s in (*g, enrolment_code._check(g, n))
    )
    with pytest.raises(BadCode, match="has an invalid field"):
        decode(code)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("broker_host", ""),
        ("broker_host", "a/b"),
        ("enrol_host", "a b"),
        ("broker_host", "x" * 254),
        ("broker_port", 0),
        ("enrol_port", 65536),
        ("tenant", "a/b"),
        ("tenant", ""),
        ("ca_sha256", b"short"),
        ("secret", b"short"),
        ("secret", bytes(33)),
    ],
)
def test_an_offer_that_cannot_be_is_refused(field, value):
    values = {name: getattr(OFFER, name) for name in Offer.__struct_fields__}
    with pytest.raises(ValueError, match=field):
        Offer(**values | {field: value})


@pytest.mark.requirement("I4-enrol-secret")
def test_the_secret_is_in_no_repr_and_no_refusal():
    assert "0123456789abcdef" not in repr(OFFER)
    with pytest.raises(BadCode) as caught:
        decode(CODE[:-3] + "ZZZ")
    assert all(group not in str(caught.value) for group in GROUPS)
