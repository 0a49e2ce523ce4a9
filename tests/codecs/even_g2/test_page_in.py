"""What the simulated glasses' page takes and refuses."""

import pytest

from firmware_bridge.codecs.even_g2 import hub
from firmware_bridge.codecs.even_g2.hub import Cmd, Code, Rect
from firmware_bridge.codecs.even_g2.page_in import HubPageIn, Refused
from firmware_bridge.codecs.even_g2.picture import bmp
from firmware_bridge.codecs.even_g2.wire import STOCK
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.protobuf import Message, encode

TEXT = {1: 0, 2: 0, 3: 576, 4: 288, 9: 1, 10: "t1", 11: 1, 12: "Hi"}
LIST = {1: 0, 2: 0, 3: 200, 4: 144, 9: 2, 10: "l1", 11: {1: 2, 4: ["Yes", "No"]}, 12: 1}
IMAGE = {1: 0, 2: 0, 3: 100, 4: 100, 5: 10, 6: "p1"}


def parse(*texts, images=(), lists=(), count=None, max_name=16) -> HubPageIn:
    number = len(texts) + len(images) + len(lists) if count is None else count
    body = {1: number, 2: list(lists), 3: list(texts), 4: list(images)}
    return HubPageIn.parse(Message(encode(body)), max_name=max_name)


def quiet(number: int) -> dict:
    return {**TEXT, 9: number, 10: f"t{number}", 11: 0}


def refusal(*args, **options) -> Code | None:
    with pytest.raises(Refused) as refused:
        parse(*args, **options)
    return refused.value.code


def test_eight_texts_and_four_pictures_fit():
    images = [{**IMAGE, 5: 10 + at, 6: f"p{at}"} for at in range(4)]
    page = parse(TEXT, *(quiet(at) for at in range(2, 9)), images=images)
    assert (len(page.texts), len(page.images)) == (8, 4)


def test_a_page_with_wrong_containers_gets_no_answer():
    assert refusal() is None
    assert refusal(TEXT, *(quiet(at) for at in range(2, 10))) is None
    assert refusal(TEXT, images=[{**IMAGE, 5: at} for at in range(5)]) is None
    assert refusal(TEXT, count=2) is None


def test_exactly_one_container_takes_events():
    assert refusal({**TEXT, 11: 0}) is None
    assert refusal(TEXT, {**TEXT, 9: 2}) is None
    assert refusal(TEXT, lists=[{9: 2, 12: 1}]) is None
    assert parse({**TEXT, 11: 0}, lists=[LIST]).texts[1].text == "Hi"


@pytest.mark.parametrize("other", [{9: 1}, {10: "t1"}])
def test_two_containers_of_one_name_or_number_are_refused(other):
    assert refusal(TEXT, {**quiet(2), **other}) is Code.BAD_CONTAINER


def test_containers_may_have_no_names():
    page = parse({**TEXT, 10: ""}, {**quiet(2), 10: ""})
    assert (len(page.texts), page.names()) == (2, set())


def test_a_list_is_shown_and_its_first_entry_chosen():
    page = parse({**TEXT, 11: 0, 12: " "}, lists=[LIST])
    assert [(line.row, line.text) for line in page.shown().lines] == [(0, "Yes"), (1, "No")]
    assert page.chosen() == {1: 2, 2: "l1", 3: "Yes", 4: 0, 5: 0}
    assert parse(TEXT, lists=[{**LIST, 12: 0}]).chosen() is None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({11: {4: ["x"] * 21}}, None),
        ({11: {4: ["x" * 65]}}, Code.TOO_LARGE),
        ({7: 11}, Code.BAD_CONTAINER),
        ({3: 577}, Code.BAD_CONTAINER),
    ],
)
def test_a_list_outside_the_limits_is_refused(change, code):
    if code is None:
        with pytest.raises(RemoteViolation):
            parse({**TEXT, 11: 0}, lists=[{**LIST, **change}])
    else:
        assert refusal({**TEXT, 11: 0}, lists=[{**LIST, **change}]) is code


@pytest.mark.parametrize(
    "change",
    [{3: 577}, {1: 1}, {4: 289}, {4: 39}, {5: 6}, {6: 16}, {7: 11}, {8: 33}, {10: "n" * 17}],
)
def test_a_text_outside_the_limits_is_a_bad_container(change):
    assert refusal({**TEXT, **change}) is Code.BAD_CONTAINER


def test_long_names_are_refused_where_a_firmware_does():
    parse({**TEXT, 10: "n" * 16})
    assert refusal({**TEXT, 10: "n" * 15}, max_name=14) is Code.BAD_CONTAINER


def test_a_text_too_long_is_too_large():
    parse({**TEXT, 12: "x" * 1000})
    assert refusal({**TEXT, 12: "x" * 1001}) is Code.TOO_LARGE


@pytest.mark.parametrize("change", [{3: 19}, {3: 289}, {4: 19}, {4: 145}, {1: 500}])
def test_a_picture_outside_the_limits_is_a_bad_container(change):
    assert refusal(TEXT, images=[{**IMAGE, **change}]) is Code.BAD_CONTAINER


def write(page: HubPageIn, text: str, **more) -> bool:
    fields = {1: 1, 3: 0, 4: len(text.encode()), 5: text} | {int(k[1:]): v for k, v in more.items()}
    return page.write(Message(encode(fields)))


def test_a_text_is_replaced_from_an_offset_on():
    page = parse(TEXT)
    assert write(page, "Hällo")
    assert write(page, "p!", f3=3)
    assert page.texts[1].text == "Häp!"


def test_an_empty_text_changes_nothing():
    page = parse(TEXT)
    assert write(page, "")
    assert page.texts[1].text == "Hi"


def test_bad_texts_are_refused():
    page = parse(TEXT)
    assert not write(page, "x", f1=2)
    assert not write(page, "x", f4=2)
    assert write(page, "x" * 2000)
    assert not write(page, "x" * 2001)
    assert len(page.texts[1].text) == 2000


def pieces() -> list[Message]:
    file = bmp(bytes(range(16)) * (576 * 288 // 16), Rect(0, 0, 100, 100))
    return updates(file, 5)


def updates(file: bytes, session: int) -> list[Message]:
    made = [make(STOCK) for make in hub.image_updates(0, file, session)]
    return [Message(encode(each)).message(hub.BODY[Cmd.IMAGE]) for each in made]


def test_a_picture_is_shown_when_it_is_whole():
    page = parse(TEXT, images=[IMAGE])
    first, last = pieces()
    assert page.add(first) == (True, False)
    assert page.images[10].tile is None
    assert page.add(last) == (True, True)
    assert page.images[10].tile.width == 100


def test_a_repeated_piece_is_taken_once():
    page = parse(TEXT, images=[{**IMAGE, 3: 200, 4: 140}])
    file = bmp(bytes(576 * 288), Rect(0, 0, 200, 140))
    sent = updates(file, 5)
    taken = [page.add(sent[at]) for at in (0, 1, 1, 2, 3)]
    assert taken == [(True, False), (True, False), (True, False), (True, False), (True, True)]


def test_pieces_out_of_order_are_refused():
    page = parse(TEXT, images=[IMAGE])
    first, last = pieces()
    assert page.add(last) == (False, False)
    page.add(first)
    other = updates(bytes(5000), 6)[1]
    assert page.add(other) == (False, False)


def test_a_picture_of_another_size_is_refused():
    page = parse(TEXT, images=[{**IMAGE, 3: 101}])
    first, last = pieces()
    page.add(first)
    with pytest.raises(RemoteViolation, match="not a picture for its container"):
        page.add(last)
