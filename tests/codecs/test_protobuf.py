"""The little of Protocol Buffers that glasses need: numbers, texts, messages inside, any bytes."""

import pytest
from hypothesis import given, strategies as st

from firmware_bridge.errors import RemoteViolation
from firmware_bridge.protobuf import MAX_FIELDS, Message, encode, varint


@pytest.mark.parametrize(
    ("fields", "wire"),
    [
        ({15: encode({1: 20})}, "7a 02 08 14"),
        ({16: b""}, "82 01 00"),
        ({37: encode({1: 50})}, "aa 02 02 08 32"),
        ({1: "v1", 70: encode({1: "v1"})}, "0a 02 76 31 b2 04 04 0a 02 76 31"),
        ({10: encode({1: 100, 2: True})}, "52 04 08 64 10 01"),
        (
            {30: encode({1: "002A", 2: 1, 3: [3, 4, 6]})},
            "f2 01 0d 0a 04 30 30 32 41 10 01 1a 03 03 04 06",
        ),
        ({1: 0, 2: "", 3: False, 4: 0.0, 5: []}, ""),
        ({1: 1.5}, "0d 00 00 c0 3f"),
        ({1: -1}, "08 ff ff ff ff ff ff ff ff ff 01"),
    ],
)
def test_messages_are_written_as_published(fields, wire):
    assert encode(fields) == bytes.fromhex(wire)


@given(st.integers(0, 2**64 - 1))
def test_numbers_of_64_bits_survive(number):
    assert Message(b"\x08" + varint(number)).integer(1) == number


@given(
    st.dictionaries(
        st.sampled_from([1, 2, 15, 16, 70, 2047, 2048, 2**29 - 1]),
        st.integers(1, 2**63) | st.binary(max_size=20),
        max_size=5,
    )
)
def test_fields_survive(fields):
    message = Message(encode(fields))
    for number, value in fields.items():
        same = message.integer(number) if isinstance(value, int) else message.data(number)
        assert same == value


def test_what_is_missing_or_of_another_type_is_its_default():
    message = Message(encode({1: "text", 2: 7, 3: 2.5}))
    assert (message.integer(1), message.text(2), message.real(3)) == (0, "", 2.5)
    assert (message.integer(9), message.text(9), message.flag(9), message.real(9)) == (0, "", 0, 0)
    assert message.message(9).numbers == ()
    assert message.numbers == (1, 2, 3)


def test_the_last_of_a_field_counts_and_repeated_numbers_come_both_ways():
    message = Message(encode({1: 5}) + encode({1: 6}) + encode({3: [1, 300]}) + encode({3: 9}))
    assert message.integer(1) == 6
    assert message.integers(3) == [1, 300, 9]


@pytest.mark.parametrize(
    "wire",
    ["08", "08 ff", "0a 05 61", "0b", "0c", "0f", "00 01", "09 01 02", "0d 01", "08" + " ff" * 11],
)
def test_what_is_no_message_is_a_violation(wire):
    with pytest.raises(RemoteViolation):
        Message(bytes.fromhex(wire))


def test_a_message_of_too_many_fields_is_a_violation():
    assert Message(b"\x08\x01" * MAX_FIELDS).integer(1) == 1
    with pytest.raises(RemoteViolation):
        Message(b"\x08\x01" * (MAX_FIELDS + 1))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_a_violation(data):
    try:
        message = Message(data)
        for number in message.numbers:
            message.integer(number)
            message.text(number)
            message.real(number)
            message.integers(number)
            message.message(number)
    except RemoteViolation:
        return
