"""A picture's path at the terminal: what is sent for it."""

import base64
import io
import os

import pytest
from PIL import Image

from edge.commands.shared.picture_file import MAX_FILE, MAX_SENT
from tests.unit.commands.test_calls import glassd
from tests.unit.control.house import open_house

pytestmark = [pytest.mark.enable_socket, pytest.mark.requirement("I13-picture-forms")]


async def sent(tmp_path, *words, tool="glasses:show_image", **env):
    """Return the arguments that reach the daemon, or what the terminal shows instead."""
    async with open_house(tmp_path) as house:
        ran = await glassd("call", tool, *words, "--socket", str(house.path), **env)
        return house.calls.seen[0][0].args if house.calls.seen else ran


def small(path):
    Image.new("L", (8, 6), 255).save(path, "PNG")
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize("name", ["photo.png", "photo", "with space.PNG"])
async def test_a_path_is_replaced_by_what_is_in_the_file(tmp_path, name):
    path = tmp_path / name
    image = small(path)
    assert await sent(tmp_path, f"image={path}", "alt=A map") == {"image": image, "alt": "A map"}


async def test_a_path_may_begin_with_the_home_folder(tmp_path):
    image = small(tmp_path / "photo.png")
    given = await sent(tmp_path, "image=~/photo.png", "alt=x", HOME=str(tmp_path))
    assert given["image"] == image


async def test_a_large_photograph_is_made_smaller(tmp_path):
    path = tmp_path / "photo.png"
    Image.frombytes("RGB", (1600, 1200), os.urandom(1600 * 1200 * 3)).save(path)
    assert path.stat().st_size > 2_000_000
    raw = base64.b64decode((await sent(tmp_path, f"image={path}", "alt=x"))["image"])
    assert len(raw) <= MAX_SENT
    with Image.open(io.BytesIO(raw)) as made:
        assert made.width * 3 == made.height * 4
        assert made.width >= 256


async def test_a_large_file_that_is_no_picture_is_named(tmp_path):
    path = tmp_path / "photo.png"
    path.write_bytes(bytes(MAX_SENT + 1))
    ran = await sent(tmp_path, f"image={path}", "alt=x")
    assert ran.code == 2
    assert f"image: {path} cannot be made smaller: the image is neither" in ran.err
    assert "at most 150 kB" in ran.err


async def test_a_file_that_is_far_too_large_is_not_read(tmp_path):
    path = tmp_path / "photo.png"
    with path.open("wb") as file:
        file.truncate(MAX_FILE + 1)
    ran = await sent(tmp_path, f"image={path}", "alt=x")
    assert (ran.code, "is larger than 16 MiB" in ran.err) == (2, True)


async def test_a_path_without_a_file_is_named(tmp_path):
    ran = await sent(tmp_path, "image=no/such.jpg", "alt=x")
    assert ran.code == 2
    assert "image: cannot read no/such.jpg: No such file or directory" in ran.err


@pytest.mark.parametrize(
    "image", ["iVBORw0KGgoAAAAN" * 100, "data:image/png;base64,aaaa", "a\x00b"]
)
async def test_what_is_no_path_is_sent_as_it_is(tmp_path, image):
    assert (await sent(tmp_path, f'{{"image": "{image}"}}'.replace("\x00", "\\u0000")))[
        "image"
    ] == (image)


async def test_other_tools_read_no_files(tmp_path):
    path = tmp_path / "photo.png"
    small(path)
    given = await sent(tmp_path, f"image={path}", tool="notes:add")
    assert given == {"image": str(path)}
