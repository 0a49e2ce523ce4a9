"""Pictures made ready for a lens, by a child process that may be killed by what it reads."""

import base64
import io

import pytest
from PIL import Image

from edge.display.bitmap import decode, fit
from edge.display.images import LensImages
from edge.ports import GlassesStatus
from tests.unit.display.test_bitmap import png
from tests.unit.display.test_sign_in import glasses
from tools_cache.api.tool import ErrorCode, ToolFailure


def pictures(**changes):
    return LensImages(
        lambda: GlassesStatus(ready=True, capabilities=glasses("mock:display", **changes)),
        deadline_s=40.0,
    )


def encoded(picture, form="PNG", **how):
    out = io.BytesIO()
    picture.save(out, form, **how)
    return base64.b64encode(out.getvalue()).decode()


def opened(text):
    return Image.open(io.BytesIO(base64.b64decode(text)))


async def test_for_glasses_that_draw_no_pixels_no_picture_is_made():
    assert await pictures(**{"display.bitmap": False}).fitted("not even a picture") == ""


@pytest.mark.requirement("I13-picture-forms")
@pytest.mark.parametrize(
    "form",
    [
        "{0}",
        "data:image/png;base64,{0}",
        "DATA:IMAGE/PNG;BASE64,{0}",
        "data:image/png;name=a.png;base64,{1}",
        "{2}",
    ],
    ids=["base64", "data URL", "capitals", "percent", "wrapped"],
)
async def test_a_picture_may_be_base64_or_a_data_url(form):
    text = encoded(Image.new("L", (9, 7), 255))
    forms = text, text.replace("=", "%3D").replace("/", "%2F"), "\r\n".join([text[:40], text[40:]])
    assert opened(await pictures().fitted(form.format(*forms))).size == (9, 7)


@pytest.mark.requirement("I13-picture-forms")
@pytest.mark.parametrize("url", ["data:image/png,abc", "data:image/png;base64", "data:,"])
async def test_a_data_url_without_base64_is_refused_with_an_example(url):
    with pytest.raises(ToolFailure) as caught:
        await pictures().fitted(url)
    assert caught.value.error.code is ErrorCode.INVALID_ARGUMENTS
    assert "image: this data URL holds no base64" in caught.value.error.message
    assert "base64," in caught.value.error.suggestion


@pytest.mark.requirement("I6-show-image")
@pytest.mark.parametrize("bpp", [1, 2, 4])
async def test_a_photograph_keeps_its_brightness_in_the_shades_of_the_lens(bpp):
    grey = Image.linear_gradient("L").resize((1200, 400)).convert("RGB")
    made = opened(await pictures(**{"display.bpp": bpp}).fitted(encoded(grey, "JPEG"))).convert("L")
    assert made.size == (408, 136)
    shades = {round(at * 255 / ((1 << bpp) - 1)) for at in range(1 << bpp)}
    assert {value for _, value in made.getcolors()} == shades
    for top in (0, 68):  # each half as bright as it was, though no pixel has that shade
        half, was = (
            made.crop((0, top, 408, top + 68)),
            grey.convert("L").resize((408, 136)).crop((0, top, 408, top + 68)),
        )
        assert abs(mean(half) - mean(was)) < 6


def mean(picture):
    return sum(value * count for value, count in enumerate(picture.histogram())) / (
        picture.width * picture.height
    )


async def test_what_is_clear_stays_dark_and_small_pictures_are_not_blown_up():
    clear = Image.new("RGBA", (40, 20), (255, 255, 255, 0))
    clear.paste((255, 255, 255, 255), (0, 0, 10, 20))
    made = opened(await pictures().fitted(encoded(clear))).convert("L")
    assert (made.size, made.getpixel((5, 5)), made.getpixel((30, 5))) == ((40, 20), 255, 0)


async def test_the_lens_draws_the_shades_that_were_chosen():
    made = await pictures(**{"display.bpp": 2}).fitted(encoded(Image.linear_gradient("L")))
    grey = decode(made)
    tile = fit(grey, 576, 136, 2)
    drawn = [tile.pixels[i // 4] >> (6 - 2 * (i % 4)) & 3 for i in range(tile.width)]
    assert drawn == [value // 85 for value in grey.pixels[: tile.width]]


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("not base64!", "not base64"),
        (base64.b64encode(b"GIF89a" + bytes(20)).decode(), "neither a PNG nor a JPEG"),
        (base64.b64encode(base64.b64decode(png(8, 8, bytes(64)))[:45]).decode(), "damaged"),
        (png(30000, 1000, b"", extra=b""), "24000000"),
        (png(20000, 20000, b"", extra=b""), "too large; it may have 24000000 pixels"),
    ],
    ids=["text", "gif", "cut", "huge", "a bomb"],
)
async def test_what_is_no_picture_is_refused_with_what_is_wrong(image, said):
    with pytest.raises(ToolFailure) as refused:
        await pictures().fitted(image)
    assert refused.value.error.code is ErrorCode.INVALID_ARGUMENTS
    assert said in refused.value.error.message


@pytest.mark.parametrize(
    "program",
    ["import os; os.abort()", "print('[')", "import time; time.sleep(600)"],
    ids=["dies", "babbles", "hangs"],
)
async def test_a_child_that_dies_babbles_or_hangs_costs_one_answer(program):
    bad = LensImages(GlassesStatus, deadline_s=1.0, code=program)
    with pytest.raises(ToolFailure) as refused:
        await bad.fitted(png(8, 8, bytes(64)))
    assert refused.value.error.code is ErrorCode.INVALID_ARGUMENTS
    assert await bad.code("x") == ""


async def test_without_the_library_a_png_passes_and_a_jpeg_names_the_package():
    none = LensImages(
        GlassesStatus,
        code='print(\'{"problem": "PIL is not installed", "absent": "PIL"}\')',
        deadline_s=40.0,
    )
    plain = png(8, 8, bytes(64))
    assert await none.fitted(plain) == plain
    with pytest.raises(ToolFailure) as refused:
        await none.fitted(encoded(Image.new("L", (8, 8)), "JPEG"))
    assert "glassd[images]" in refused.value.error.suggestion


async def test_noise_is_made_to_fit_one_result():
    noise = Image.effect_noise((640, 480), 120)
    made = await pictures(**{"display.bpp": 4, "display.width": 640, "display.height": 480}).fitted(
        encoded(noise, "JPEG", quality=30)
    )
    assert len(made) < 180_000
