"""Lines of a server: each within the limit as it is, a longer one only by its two ends."""

import asyncio

import pytest

from edge.mcp.client.line_reader import CHUNK, EXCERPT, Endless, Overlong, lines

LIMIT = CHUNK + 1000


async def read(*pieces, limit=LIMIT, patience=10 * LIMIT):
    stream = asyncio.StreamReader(limit=CHUNK)
    reading = asyncio.ensure_future(_all(lines(stream, limit=limit, patience=patience)))
    for piece in pieces:
        stream.feed_data(piece)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    stream.feed_eof()
    return await reading


async def _all(found):
    return [line async for line in found]


@pytest.mark.parametrize("pieces", [1, 2, 3])
@pytest.mark.parametrize("limit", [10, 1000, LIMIT])
async def test_a_line_of_the_limit_is_whole_and_one_byte_more_is_not(limit, pieces):
    size = -(-(limit + 2) // pieces)

    def cut(text):
        return [text[at : at + size] for at in range(0, len(text), size)]

    assert await read(*cut(b"a" * limit + b"\n"), b"next\n", limit=limit) == [
        b"a" * limit,
        b"next",
    ]
    long = b"<" + b"a" * (limit - 1) + b">"
    first, second = await read(*cut(long + b"\n"), b"next\n", limit=limit)
    assert isinstance(first, Overlong)
    assert (first.head[:1], first.tail[-1:], second) == (b"<", b">", b"next")
    assert max(len(first.head), len(first.tail)) <= EXCERPT


async def test_what_a_long_line_left_behind_is_no_part_of_the_next():
    found = await read(b"a" * 500, b"b" * 500, b"c\nnext\n", b"last", limit=100)
    assert found == [Overlong(b"a" * EXCERPT, b"b" * (EXCERPT - 1) + b"c"), b"next", b"last"]


async def test_of_a_line_that_is_skipped_only_its_ends_are_held():
    pieces = [b"a" * 10_000] * 20
    found = await read(*pieces, b"\nnext\n", limit=100, patience=220_000)
    assert found == [Overlong(b"a" * EXCERPT, b"a" * EXCERPT), b"next"]


async def test_a_line_that_does_not_end_is_given_up():
    with pytest.raises(Endless, match="more than 300 bytes"):
        await read(b"a" * 100, b"a" * 100, b"a" * 101, limit=100, patience=200)
    assert await read(b"a" * 100, b"a" * 200, limit=100, patience=200) == []
