"""The protobuf wire format, by the examples of its specification and by chance."""

from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from firmware_bridge import protobuf
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.protobuf import Message, encode, packed, unpack

SCALARS = st.integers(-(1 << 63), (1 << 64) - 1) | st.binary(max_size=20) | st.text(max_size=10)
FIELDS = st.recursive(
    st.dictionaries(st.integers(1, 2000), SCALARS, max_size=5),
    lambda inner: st.dictionaries(st.integers(1, 2000), SCALARS | inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("fields", "wire"),
    [
        ({1: 150}, "089601"),
        ({2: "testing"}, "120774657374696e67"),
        ({3: {1: 150}}, "1a03089601"),
        ({6: packed([3, 270, 86942])}, "3206038e029ea705"),
        ({1: -24}, "08e8ffffffffffffffff01"),
        ({1: 1.0}, "0d0000803f"),
        ({4: [{1: 1}, {1: 2}]}, "2202080122020802"),
        ({1: 0, 2: b"", 3: {}}, "080012001a00"),
    ],
)
def test_encodes_the_known_examples(fields, wire):
    assert encode(fields).hex() == wire


def test_zero_scalars_are_left_out_and_empty_bodies_are_not():
    assert encode({1: 0, 2: 0.0, 3: {1: 0}, 4: False, 5: ""}, zeros=False).hex() == "1a002a00"


def test_getters_return_what_was_sent():
    message = Message(encode({1: 7, 2: "é", 3: {1: -3}, 4: [{1: 1}, {1: 2}], 5: 1.5, 6: b"\xff"}))
    assert (message.integer(1), message.text(2), message.message(3).signed(1)) == (7, "é", -3)
    assert [each.integer(1) for each in message.messages(4)] == [1, 2]
    assert (message.decimal(5), message.data(6), message.text(6)) == (1.5, b"\xff", "�")
    assert message.numbers() == [1, 2, 3, 4, 5, 6]
    assert 6 in message
    assert 7 not in message


def test_missing_fields_have_defaults():
    message = Message()
    assert (message.integer(1, 5), message.signed(1, -5), message.decimal(1, 0.5)) == (5, -5, 0.5)
    assert (message.data(1, b"x"), message.text(1, "x"), message.messages(1)) == (b"x", "x", [])
    assert message.message(1).numbers() == []


def test_the_last_of_a_repeated_scalar_counts():
    assert Message(bytes.fromhex("08010802")).integer(1) == 2


def test_a_number_of_64_bits_is_read():
    assert Message(bytes.fromhex("09000000000000f83f")).decimal(1) == 1.5


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ("08", Violation.TRUNCATED),
        ("0896", Violation.TRUNCATED),
        ("08" + "ff" * 10, Violation.BAD_MESSAGE),
        ("08" + "ff" * 9 + "7f", Violation.BAD_MESSAGE),
        ("0a05aabb", Violation.TRUNCATED),
        ("0d0000", Violation.TRUNCATED),
        ("0000", Violation.BAD_MESSAGE),
        ("0b0c", Violation.BAD_MESSAGE),
        ("0a" + "ff" * 9 + "01", Violation.TRUNCATED),
    ],
)
def test_damaged_messages_are_refused(wire, reason):
    with pytest.raises(RemoteViolation) as refused:
        Message(bytes.fromhex(wire))
    assert refused.value.reason is reason


def test_too_much_is_refused():
    many = encode({1: 1}) * (protobuf.MAX_FIELDS + 1)
    for oversized in (many, bytes(protobuf.MAX_BYTES + 1)):
        with pytest.raises(RemoteViolation) as refused:
            Message(oversized)
        assert refused.value.reason is Violation.OVERSIZED
    assert Message(many[:-2]).integer(1) == 1
    with pytest.raises(RemoteViolation, match="comes 3 times"):
        Message(encode({4: [{}, {}, {}]})).messages(4, limit=2)
    with pytest.raises(RemoteViolation, match="more than 2"):
        unpack(packed([1, 2, 3]), limit=2)


@pytest.mark.parametrize(
    "get", ["integer", "signed", "decimal", "data", "text", "message", "messages"]
)
def test_another_wire_type_is_refused(get):
    wire = "1201aa" if get in {"integer", "signed", "decimal"} else "1001"
    with pytest.raises(RemoteViolation, match="field 2"):
        getattr(Message(bytes.fromhex(wire)), get)(2)


@pytest.mark.parametrize("fields", [{0: 1}, {1 << 29: 1}, {1: 1 << 64}, {1: None}])
def test_what_cannot_be_encoded_is_refused(fields):
    with pytest.raises(ValueError, match=r"field|64 bits"):
        encode(fields)


@given(FIELDS)
def test_every_message_comes_back(fields):
    def check(message, expected):
        assert set(message.numbers()) == set(expected)
        for number, value in expected.items():
            match value:
                case int():
                    assert message.integer(number) == value % (1 << 64)
                case str():
                    assert message.text(number) == value
                case bytes():
                    assert message.data(number) == value
                case _:
                    check(message.message(number), value)

    check(Message(encode(fields)), fields)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    with suppress(RemoteViolation):
        Message(data)


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=20))
def test_packed_numbers_come_back(values):
    assert unpack(packed(values)) == values
