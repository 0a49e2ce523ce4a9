"""Tiles: run-length coding, and the table that both sides keep."""

import tracemalloc

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codec import Role
from firmware_bridge.codecs.reference.tiles import MAX_TABLE_BYTES, TileTable, packbits, unpackbits
from firmware_bridge.errors import LocalMisuse
from firmware_bridge.messages import Failed, ShowPage, Tile, UpdatePage
from tests.codecs import strategies
from tests.codecs.pair import CodecPair

runs = st.lists(
    st.tuples(st.integers(0, 255), st.integers(1, 400)).map(lambda run: bytes([run[0]]) * run[1])
    | st.binary(max_size=300)
).map(b"".join)


def tile(fill, *, width=64, height=8, x=0):
    size = width // 8 * height
    return Tile(x, 0, width, height, 1, bytes((fill + i * 37 + i // 7) & 0xFF for i in range(size)))


def data_bytes(pair, role):
    return sum(len(packet) - 6 for packet in pair.sent[role] if packet[0] == 1)


@given(runs)
@settings(deadline=None)
def test_packbits_comes_back_and_never_grows_by_more_than_one_in_128(data):
    packed = packbits(data)
    assert unpackbits(packed, len(data)) == data
    assert len(packed) <= len(data) + len(data) // 128 + 1


@pytest.mark.parametrize(
    ("packed", "data"),
    [
        (
            b"\xfe\xaa\x02\x80\x00\x2a\xfd\xaa\x03\x80\x00\x2a\x22\xf7\xaa",
            b"\xaa\xaa\xaa\x80\x00\x2a\xaa\xaa\xaa\xaa\x80\x00\x2a\x22" + b"\xaa" * 10,
        ),
        (b"\x80\x00\x07\x80", b"\x07"),
        (b"", b""),
        (b"\x81\x01", b"\x01" * 128),
    ],
)
def test_packbits_is_the_one_everybody_knows(packed, data):
    """The first is the example of Apple's Technical Note TN1023; 0x80 does nothing."""
    assert unpackbits(packed, len(data)) == data


def test_a_flat_lens_packs_to_almost_nothing():
    assert len(packbits(bytes(576 * 136 // 8))) == 2 * -(-576 * 136 // 8 // 128)


@pytest.mark.parametrize(
    ("packed", "size"),
    [
        (b"\x00", 1),
        (b"\x05abc", 6),
        (b"\xff", 2),
        (b"\x00a", 2),
        (b"\x01ab", 1),
        (b"\x81\x00" * 1000, 128),
        (b"", 1),
    ],
)
def test_run_length_data_of_another_size_is_refused(packed, size):
    with pytest.raises(ValueError, match="run-length"):
        unpackbits(packed, size)


def test_run_length_data_is_not_unpacked_further_than_its_size():
    bomb = b"\x81\x00" * 30000
    tracemalloc.start()
    with pytest.raises(ValueError, match="run-length"):
        unpackbits(bomb, 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 1024


@given(st.binary(max_size=300), st.integers(0, 600))
def test_any_run_length_data_gives_the_size_or_is_refused(packed, size):
    try:
        assert len(unpackbits(packed, size)) == size
    except ValueError:
        return


def test_an_unchanged_tile_is_named_and_not_sent_again():
    pair = CodecPair(max_packet=244)
    pair.greet(tiles=4096)
    first, moved = tile(1), tile(1, x=64)
    pair.central.send(ShowPage("s", tiles=(first,)), 0.0)
    pair.settle()
    before = data_bytes(pair, Role.CENTRAL)
    pair.central.send(UpdatePage("s", tiles=(moved,)), 0.0)
    pair.settle()
    assert data_bytes(pair, Role.CENTRAL) - before < 64
    assert [m.tiles for m in pair.messages(Role.PERIPHERAL)[1:]] == [(first,), (moved,)]


def test_without_a_table_every_tile_carries_its_pixels():
    pair = CodecPair(max_packet=244)
    pair.greet()
    sizes = []
    for _ in range(2):
        before = data_bytes(pair, Role.CENTRAL)
        pair.central.send(ShowPage("s", tiles=(tile(1),)), 0.0)
        pair.settle()
        sizes.append(data_bytes(pair, Role.CENTRAL) - before)
    assert sizes[0] == sizes[1] > 64
    assert pair.messages(Role.PERIPHERAL)[1:] == [ShowPage("s", tiles=(tile(1),))] * 2


@given(
    st.integers(0, 200),
    st.lists(
        st.lists(st.integers(0, 5), max_size=4).map(
            lambda fills: tuple(
                Tile(f, 0, 8 * (1 + f), 4, 1, bytes([f]) * (4 * (1 + f))) for f in fills
            )
        ),
        max_size=20,
    ),
)
def test_both_tables_agree_whatever_was_sent_and_put_out(capacity, pages):
    """Tiles of 4 to 24 bytes through tables of 0 to 200 bytes: everything arrives as it was
    sent.
    """
    pair = CodecPair(max_packet=244)
    pair.greet(tiles=capacity)
    shown = [ShowPage("s", tiles=tiles) for tiles in pages]
    for page in shown:
        pair.central.send(page, 0.0)
        pair.settle()
    assert pair.messages(Role.PERIPHERAL)[1:] == shown
    assert pair.refused == {role: [] for role in Role}


@given(st.lists(strategies.tiles, max_size=6), st.integers(0, 400), st.sets(st.integers(0, 6)))
def test_a_sender_who_forgets_at_any_moment_is_still_understood(pages, capacity, forgets):
    sender, receiver = TileTable(), TileTable()
    sender.resize(capacity)
    receiver.resize(capacity)
    for at, tiles in enumerate(pages):
        if at in forgets:
            sender.clear()
        assert receiver.take(sender.put(tiles)) == tiles


def test_after_a_refusal_tiles_are_sent_whole_again():
    pair = CodecPair(max_packet=244)
    pair.greet(tiles=4096)
    page = ShowPage("s", tiles=(tile(1),))
    number = pair.central.send(page, 0.0)
    pair.settle()
    pair.glasses._tiles.clear()  # glasses that lost their memory
    pair.central.send(page, 0.0)
    pair.settle()
    assert pair.refused[Role.PERIPHERAL][0].detail.endswith("is not held")
    assert isinstance(pair.messages(Role.CENTRAL)[-1], Failed)

    pair.central.send(page, 0.0)
    pair.settle()

    assert pair.messages(Role.PERIPHERAL)[1:] == [page, page]
    assert number == 2


@pytest.mark.parametrize(
    ("unsayable", "complaint"),
    [
        (UpdatePage("s", tiles=(tile(1), tile(2, x=5000))), "outside the canvas"),
        (
            UpdatePage(
                "s", tiles=(Tile(0, 0, 4000, 140, 1, (bytes(range(256)) * 280)[:70000]), tile(1))
            ),
            "split its tiles",
        ),
    ],
)
def test_after_a_page_that_failed_its_tiles_are_sent_whole(unsayable, complaint):
    pair = CodecPair(max_packet=244)
    pair.greet(tiles=4096)
    with pytest.raises(LocalMisuse, match=complaint):
        pair.central.send(unsayable, 0.0)
    page = ShowPage("s", tiles=(tile(1),))
    pair.central.send(page, 0.0)
    pair.settle()
    assert pair.messages(Role.PERIPHERAL)[1:] == [page]


def test_a_tile_sent_again_is_counted_once_and_newest():
    (a, b, c, d) = ([0, 0, 8, 100, 1, key, 0, bytes([key]) * 100] for key in (1, 2, 3, 4))
    table = TileTable()
    table.resize(350)
    for wire in (a, b, a, c):
        table.take([wire])
    assert len(table.take([a[:6], b[:6], c[:6]])) == 3
    table.take([d])
    assert len(table.take([a[:6], c[:6], d[:6]])) == 3
    with pytest.raises(ValueError, match="tile 2 is not held"):
        table.take([b[:6]])


def test_one_key_for_two_contents_still_shows_the_right_one(monkeypatch):
    monkeypatch.setattr("zlib.crc32", lambda *_: 5)
    pair = CodecPair(max_packet=244)
    pair.greet(tiles=4096)
    pages = [ShowPage("s", tiles=(tile(fill),)) for fill in (1, 2, 2, 1)]
    for page in pages:
        pair.central.send(page, 0.0)
    pair.settle()
    assert pair.messages(Role.PERIPHERAL)[1:] == pages


def test_a_tile_named_with_another_size_is_refused():
    table = TileTable()
    table.resize(1000)
    (wire,) = table.put([tile(1)])
    table.take([wire])
    with pytest.raises(ValueError, match="not held"):
        table.take([[0, 0, 32, 16, 1, wire[5]]])


def test_a_table_is_bounded_whatever_the_glasses_announce():
    table = TileTable()
    table.resize(2**32)
    for fill in range(12):
        table.put([Tile(0, 0, 640, 400, 1, bytes([fill]) * 32000)])
    assert (
        table._bytes == sum(len(pixels[3]) for pixels in table._tiles.values()) <= MAX_TABLE_BYTES
    )


def test_more_tiles_than_a_message_holds_are_refused_both_ways():
    one = Tile(0, 0, 8, 1, 1, b"\0")
    with pytest.raises(ValueError, match="257 tiles"):
        TileTable().put([one] * 257)
    with pytest.raises(ValueError, match="257 tiles"):
        TileTable().take([[0, 0, 8, 1, 1, 5, 0, b"\0"]] * 257)


def test_named_tiles_count_against_the_bound_of_pixels():
    """A message of names would otherwise let a small packet make a large page."""
    pair = CodecPair(max_packet=244)
    pair.greet(tiles=100_000)
    big = Tile(0, 0, 640, 480, 2, bytes(76800))
    table = pair.glasses._tiles
    (wire,) = TileTable().put([big])
    table.take([wire])
    named = wire[:6]
    assert len(table.take([named, named])) == 2
    with pytest.raises(ValueError, match="3 tiles of 230400"):
        table.take([named, named, named])
