"""Pictures on the lens at a terminal: in sixels where it announces them, else in braille."""

import base64
import os

import pytest

from tests.unit.commands.test_cli import glassd
from tests.unit.commands.test_confirm import at_terminal
from tests.unit.control.house import open_house

pytestmark = pytest.mark.enable_socket
QUESTION = "\x1b[c"
TILE = {"x": 4, "y": 8, "width": 8, "height": 8, "bpp": 1}
FULL = {**TILE, "pixels": base64.b64encode(b"\xff" * 8).decode()}


async def look(tmp_path, announced, *tiles, lines=(), more=()):
    async with open_house(tmp_path) as house:
        house.lens.update(lines=list(lines))
        house.drawn.update(lines=[], tiles=list(tiles))

        def work(person):
            if announced is not None:
                person.reads(QUESTION)
                os.write(person.fd, announced)
            person.reads("scene s")

        return await at_terminal(work, "lens", "--socket", str(house.path), *more)


@pytest.mark.requirement("I13-lens-pictures")
async def test_a_terminal_that_announces_sixels_gets_them_below_the_text(tmp_path):
    code, seen = await look(tmp_path, b"\x1b[?62;4;22c", FULL, lines=["Milk"])
    assert code == 0
    assert "│ Milk" in seen
    assert '\x1bP0;1;0q"1;1;8;8#1;2;100;100;100#1!8~-#1!8B\x1b\\' in seen
    assert "\u28ff" not in seen


@pytest.mark.requirement("I13-lens-pictures")
@pytest.mark.parametrize("announced", [b"\x1b[?62;22c", b"\x1b[?1;24c", b"what?c"])
async def test_another_terminal_gets_braille_in_the_frame(tmp_path, announced):
    code, seen = await look(tmp_path, announced, FULL)
    assert (code, "\x1bP" in seen) == (0, False)
    assert seen.count("\u28ff" * 4) == 2


async def test_a_terminal_that_says_nothing_gets_braille_soon(tmp_path):
    code, seen = await look(tmp_path, b"", FULL)
    assert (code, "\u28ff" * 4 in seen) == (0, True)


async def test_without_a_picture_the_terminal_is_asked_nothing(tmp_path):
    code, seen = await look(tmp_path, None, lines=["Milk"])
    assert (code, QUESTION in seen) == (0, False)


async def test_a_pipe_gets_braille_and_a_damaged_picture_is_left_out(tmp_path):
    async with open_house(tmp_path) as house:
        house.lens.update(lines=[])
        house.drawn.update(
            tiles=[
                FULL,
                {**TILE, "width": 0},
                {**FULL, "width": 10**9},
                {**FULL, "x": -1},
                {**FULL, "bpp": 3},
                {**FULL, "pixels": "!"},
                7,
            ]
        )
        ran = await glassd("lens", "--socket", str(house.path))
    assert (ran.code, ran.out.count("\u28ff" * 4), "\x1b" in ran.out) == (0, 2, False)


async def test_two_pictures_keep_their_distance(tmp_path):
    async with open_house(tmp_path) as house:
        house.drawn.update(tiles=[FULL, {**FULL, "x": 20}])
        ran = await glassd("lens", "--socket", str(house.path))
    assert "\u28ff" * 4 + "\u2800" * 4 + "\u28ff" * 4 in ran.out
