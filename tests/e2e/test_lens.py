"""A person at the terminal looks at the lens of mock glasses and of a simulated Even G1."""

import json

import pytest

from firmware_bridge.sides import Side
from tests import warm
from tests.scenarios.lens.test_glasses_tools import picture
from tests.scenarios.world import until, world
from tests.unit.commands.test_cli import environment

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]

WITHIN_S = 60.0
COLUMNS = (
    "Track list\nfirst: 1 — naïve “quotes”\nlast: jgpqy 0123456789\nÆØÅ æøå ß ñ\nрусский Ελληνικά"
)


async def run(place, *words):
    """Run a verb against this world's daemon: (exit code, what it printed)."""
    words = (*words, "--socket", str(place.socket))
    code, out, err = await warm.run(words, environment(), limit_s=WITHIN_S)
    return code, out.decode() + err.decode()


@pytest.mark.requirement("I13-lens-png")
@pytest.mark.parametrize(
    ("model", "side"), [("mock:full", None), ("mock:display", None), ("sim:even_g1", Side.LEFT)]
)
async def test_the_png_equals_the_framebuffer_byte_for_byte(tmp_path, model, side):
    async with world(tmp_path, model, glasses={"model": model.removeprefix("sim:")}) as place:
        await place.switch_glasses_on(mtu=251 if side else 247)
        await place.start_daemon()
        await place.ready()
        for number, (tool, args) in enumerate(
            [
                ("glasses:show_text", {"text": COLUMNS}),
                ("glasses:show_card", {"title": "Milk", "lines": ["2 litres", "fresh"]}),
                ("glasses:show_image", {"image": picture(120, 80), "alt": "a square"}),
            ]
        ):
            answer = await place.call(tool, args)
            assert answer.ok, answer
            path = tmp_path / f"{number}.png"
            code, said = await run(place, "lens", "--png", str(path))
            assert code == 0, said
            lens = place.mock.glasses.lenses[side]
            assert lens.lit
            framebuffer = lens.png(tmp_path / "framebuffer.png").read_bytes()
            assert path.read_bytes() == framebuffer, (tool, lens.text())


@pytest.mark.requirement("I13-lens-pictures")
async def test_a_picture_on_the_lens_is_shown_in_braille_and_never_called_dark(tmp_path):
    async with world(tmp_path, "mock:full") as place:
        await place.switch_glasses_on(speed=8.0)
        await place.start_daemon()
        await place.ready()
        code, dark = await run(place, "lens")
        assert (code, "(dark)" in dark) == (0, True)
        args = {"image": picture(40, 32), "alt": "a square", "text": "Milk"}
        answer = await place.call("glasses:show_image", {k: args[k] for k in ("image", "alt")})
        assert answer.ok, answer
        code, shown = await run(place, "lens")
        assert (code, "(dark)" in shown) == (0, False)
        rows = [line.strip("│ ╭╮╰╯─") for line in shown.splitlines()]
        square = [row for row in rows if row]
        full = "\u28ff" * 10  # 20 × 16 lit pixels in the middle of 40 × 32
        assert sum(full in row for row in square) == 4, shown
        lens = place.mock.glasses.lens
        left, top, right, bottom = lens.image.getbbox()
        code, document = await run(place, "lens", "--json")
        (tile,) = json.loads(document)["tiles"]
        assert (tile["width"], tile["height"]) == (40, 32)
        assert tile["x"] <= left < right <= tile["x"] + tile["width"]
        assert tile["y"] <= top < bottom <= tile["y"] + tile["height"]
        assert "drawn" not in json.loads(document)
        await place.call("glasses:show_text", {"text": "Hello"})
        await until(lambda: place.lens() == ["Hello"], "the text")
        assert json.loads((await run(place, "lens", "--json"))[1])["tiles"] == []
