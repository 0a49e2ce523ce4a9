"""Pictures made ready for a lens, by a child process that may be killed by what it reads."""

import asyncio
import base64
import io
import os
import signal
import sys
from pathlib import Path

import pytest
from PIL import Image, features

from edge.display import image_worker
from edge.display.bitmap import read_packed
from edge.display.images import CODE, LensImages
from edge.ports import GlassesStatus
from tests.unit.display.test_bitmap import png
from tests.unit.display.test_sign_in import glasses
from tools_cache.api.tool import ErrorCode, ToolFailure


@pytest.fixture
async def open_images():
    """Make `LensImages` for glasses with these differences; closes them at the end."""
    made = []

    def opened(changes=None, **options):
        known = glasses("mock:display", **(changes or {}))
        status = GlassesStatus(ready=True, capabilities=known)
        made.append(LensImages(lambda: status, **{"deadline_s": 40.0, **options}))
        return made[-1]

    yield opened
    for images in made:
        await images.close()


def encoded(picture, form="PNG", **how):
    out = io.BytesIO()
    picture.save(out, form, **how)
    return base64.b64encode(out.getvalue()).decode()


def opened(text):
    return Image.open(io.BytesIO(base64.b64decode(text)))


async def test_for_glasses_that_draw_no_pixels_no_picture_is_made(open_images):
    assert await open_images({"display.bitmap": False}).fitted("not even a picture") == ""


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
async def test_a_picture_may_be_base64_or_a_data_url(open_images, form):
    text = encoded(Image.new("L", (9, 7), 255))
    forms = text, text.replace("=", "%3D").replace("/", "%2F"), "\r\n".join([text[:40], text[40:]])
    assert opened(await open_images().fitted(form.format(*forms))).size == (9, 7)


@pytest.mark.requirement("I13-picture-forms")
@pytest.mark.parametrize("url", ["data:image/png,abc", "data:image/png;base64", "data:,"])
async def test_a_data_url_without_base64_is_refused_with_an_example(open_images, url):
    with pytest.raises(ToolFailure) as caught:
        await open_images().fitted(url)
    assert caught.value.error.code is ErrorCode.INVALID_ARGUMENTS
    assert "image: this data URL holds no base64" in caught.value.error.message
    assert "base64," in caught.value.error.suggestion


@pytest.mark.requirement("I6-show-image")
@pytest.mark.parametrize("bpp", [1, 2, 4])
async def test_a_photograph_keeps_its_brightness_in_the_shades_of_the_lens(open_images, bpp):
    grey = Image.linear_gradient("L").resize((1200, 400)).convert("RGB")
    made = opened(await open_images({"display.bpp": bpp}).fitted(encoded(grey, "JPEG"))).convert(
        "L"
    )
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


async def test_what_is_clear_stays_dark_and_small_pictures_are_not_blown_up(open_images):
    clear = Image.new("RGBA", (40, 20), (255, 255, 255, 0))
    clear.paste((255, 255, 255, 255), (0, 0, 10, 20))
    made = opened(await open_images().fitted(encoded(clear))).convert("L")
    assert (made.size, made.getpixel((5, 5)), made.getpixel((30, 5))) == ((40, 20), 255, 0)


async def test_the_lens_draws_the_shades_that_were_chosen(open_images):
    made = await open_images({"display.bpp": 2}).fitted(encoded(Image.linear_gradient("L")))
    tile = read_packed(made, 576, 136, 2)
    assert (tile.x, tile.y, tile.width, tile.height) == (220, 0, 136, 136)
    shades = [value // 85 for value in opened(made).convert("L").tobytes()]
    drawn = [
        tile.pixels[y * 34 + x // 4] >> (6 - 2 * (x % 4)) & 3
        for y in range(136)
        for x in range(136)
    ]
    assert drawn == shades


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
async def test_what_is_no_picture_is_refused_with_what_is_wrong(open_images, image, said):
    with pytest.raises(ToolFailure) as refused:
        await open_images().fitted(image)
    assert refused.value.error.code is ErrorCode.INVALID_ARGUMENTS
    assert said in refused.value.error.message


async def test_a_photograph_taken_sideways_stands_upright(open_images):
    photograph = Image.new("RGB", (80, 40))
    photograph.paste((255, 255, 255), (0, 0, 40, 40))
    exif = Image.Exif()
    exif[0x0112] = 6  # its left side is the top
    made = opened(await open_images().fitted(encoded(photograph, "JPEG", exif=exif))).convert("L")
    assert (made.size, made.getpixel((20, 9)), made.getpixel((20, 70))) == ((40, 80), 255, 0)


async def test_a_picture_of_16_bits_keeps_its_brightness(open_images):
    deep = Image.new("I;16", (64, 64), 0x8000)
    made = opened(await open_images().fitted(encoded(deep))).convert("L")
    assert abs(mean(made) - 128) < 3


def children():
    """Return the ids of the children of this process; other tests may have left some."""
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


async def test_one_child_reads_all_pictures_and_ends_when_there_are_none(open_images):
    images, picture = open_images(idle_s=1.0), encoded(Image.new("L", (9, 7), 255))
    before = children()
    await asyncio.gather(images.fitted(picture), images.fitted(picture))
    (pid,) = children() - before
    watch = os.pidfd_open(pid)
    await images.fitted(picture)
    assert children() - before == {pid}
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(watch, ended.set)
    try:
        async with asyncio.timeout(20):
            await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(watch)
        os.close(watch)
    assert opened(await images.fitted(picture)).size == (9, 7)


async def test_a_qr_code_is_drawn_by_no_child_that_reads_pictures(open_images):
    images = open_images(command=(sys.executable, "-c", "import os; os.abort()"))
    before = children()
    assert opened(await images.code("https://a.example")).width > 40
    assert children() <= before


@pytest.mark.parametrize(
    "program",
    [
        "import os; os.abort()",
        "import os; os.write(1, b'\\0\\0\\0\\1['); input()",
        "import os; os.write(1, b'\\0\\0\\0\\2[]'); input()",
        "import os; os.write(1, b'\\xff' * 9); input()",
        "import time; time.sleep(600)",
    ],
    ids=["dies", "babbles", "answers a list", "answers endlessly", "hangs"],
)
async def test_a_child_that_dies_babbles_or_hangs_costs_one_answer(open_images, program):
    bad = open_images(command=(sys.executable, "-c", program), code=program, deadline_s=1.0)
    with pytest.raises(ToolFailure) as refused:
        await bad.fitted(png(8, 8, bytes(64)))
    assert refused.value.error.code is ErrorCode.INVALID_ARGUMENTS
    assert await bad.code("x") == ""


async def test_after_a_picture_that_hangs_its_child_another_child_reads_the_next(
    open_images, tmp_path
):
    hangs_once = f"""if True:
        import os, sys, time
        from edge.display.image_worker import serve
        try:
            os.mkdir({str(tmp_path / "hung")!r})
        except FileExistsError:
            sys.argv[1:] = ["60"]
            serve()
        time.sleep(600)
    """
    images = open_images(command=(sys.executable, "-c", hangs_once), deadline_s=4.0)
    picture = encoded(Image.new("L", (9, 7), 255))
    with pytest.raises(ToolFailure, match="longer than 4 s"):
        await images.fitted(picture)
    assert opened(await images.fitted(picture)).size == (9, 7)


async def test_a_child_that_computes_for_too_long_ends_itself_though_it_served_before():
    """A daemon that was killed ends nobody."""
    program = """if True:
        import sys
        from edge.display import image_worker
        def endless(image, *_):
            while image:
                pass
            return b""
        image_worker._CPU_S, image_worker._picture = 1, endless
        sys.argv[1:] = ["60"]
        image_worker.serve()
    """
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    for image in (b"", b"hostile"):
        question = b'{"do": "fit", "width": 1, "height": 1, "bpp": 1}\n' + image
        child.stdin.write(len(question).to_bytes(4, "big") + question)
    said, _ = await asyncio.wait_for(child.communicate(), 60)
    assert said[4:] == b'{"png": ""}'
    assert child.returncode == -signal.SIGXCPU


async def test_where_no_child_can_be_started_pictures_are_unavailable(open_images, tmp_path):
    none = open_images(command=(str(tmp_path / "no such program"),))
    with pytest.raises(ToolFailure) as refused:
        await none.fitted(png(8, 8, bytes(64)))
    assert refused.value.error.code is ErrorCode.TOOL_UNAVAILABLE


async def test_an_endless_picture_is_not_sent_to_the_child(open_images, tmp_path):
    with pytest.raises(ToolFailure, match="at most 1000000"):
        await open_images(command=(str(tmp_path / "none"),)).fitted("A" * 1_000_001)


async def test_without_the_library_a_png_is_fitted_and_a_jpeg_names_the_package(open_images):
    without = """if True:
        import sys
        sys.modules["PIL"] = None
        from edge.display.image_worker import serve
        sys.argv[1:] = ["60"]
        serve()
    """
    none = open_images({"display.bpp": 2}, command=(sys.executable, "-c", without))
    made = read_packed(await none.fitted(png(4, 1, bytes([0, 85, 170, 255]))), 576, 136, 2)
    assert (made.width, made.height, made.pixels) == (4, 1, bytes([0b00011011]))
    with pytest.raises(ToolFailure) as refused:
        await none.fitted(encoded(Image.new("L", (8, 8)), "JPEG"))
    assert "glassd[images]" in refused.value.error.suggestion


async def test_noise_is_made_to_fit_one_result(open_images):
    noise = Image.effect_noise((640, 480), 120)
    made = await open_images(
        {"display.bpp": 4, "display.width": 640, "display.height": 480}
    ).fitted(encoded(noise, "JPEG", quality=30))
    assert len(made) < 180_000


# ------------------------------------------------------------------ photos as AVIF


def avif(picture, **how):
    out = io.BytesIO()
    picture.save(out, "AVIF", **how)
    return out.getvalue()


async def test_a_photo_as_avif_becomes_a_jpeg_of_the_same_size(open_images):
    bars = Image.new("RGB", (320, 240), "red")
    bars.paste("blue", (160, 0, 320, 240))
    made = Image.open(io.BytesIO(await open_images().jpeg(avif(bars))))
    assert (made.format, made.size, made.mode) == ("JPEG", (320, 240), "RGB")
    assert made.getpixel((40, 120))[0] > 200
    assert made.getpixel((280, 120))[2] > 200


async def test_a_photo_as_avif_is_upright_and_has_no_more_than_its_picture(open_images):
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "a maker"
    made = await open_images().jpeg(avif(Image.new("RGB", (60, 40)), exif=exif))
    assert Image.open(io.BytesIO(made)).size == (40, 60)
    assert b"a maker" not in made


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda photo: photo[: len(photo) // 2], "damaged|no AVIF"),
        (lambda photo: photo[:40], "damaged|no AVIF"),
        (lambda photo: photo[:4] + b"ftypavif" + bytes(200), "damaged|no AVIF"),
        (lambda _photo: b"", "no AVIF"),
        (lambda _photo: base64.b64decode(encoded(Image.new("L", (9, 7)), "JPEG")), "no AVIF"),
    ],
    ids=["half", "its beginning", "zeros", "nothing", "a JPEG"],
)
async def test_a_damaged_avif_is_an_error_that_says_so(open_images, damage, words):
    photo = avif(Image.effect_noise((64, 64), 90).convert("RGB"))
    with pytest.raises(ToolFailure, match=words) as refused:
        await open_images().jpeg(damage(photo))
    assert refused.value.error.code is ErrorCode.NOT_ACCEPTED
    assert "as AVIF, which agents cannot see" in refused.value.error.message


async def test_an_avif_of_too_many_pixels_is_refused_before_it_is_decoded(open_images):
    with pytest.raises(ToolFailure, match=r"has 6000 × 4100 pixels; at most 24000000"):
        await open_images().jpeg(avif(Image.new("RGB", (6000, 4100)), speed=10))


async def test_a_jpeg_of_too_many_bytes_is_made_smaller(monkeypatch):
    monkeypatch.setattr(image_worker, "MAX_JPEG", 20_000)
    made = image_worker.jpeg(avif(Image.effect_noise((640, 480), 120).convert("RGB")))
    assert len(made) <= 20_000
    assert Image.open(io.BytesIO(made)).width < 640


async def test_without_the_library_an_avif_is_refused_with_what_to_install(open_images):
    without = "import sys; sys.modules['PIL'] = None; " + CODE
    with pytest.raises(ToolFailure, match="PIL is not installed") as refused:
        await open_images(code=without).jpeg(b"\0\0\0\x1cftypavif")
    assert "glassd[images]" in refused.value.error.suggestion


async def test_an_old_library_that_reads_no_avif_says_so(monkeypatch):
    monkeypatch.setattr(features, "check", lambda _feature: False)
    with pytest.raises(image_worker.Unfit, match=r"that of 11\.3"):
        image_worker.jpeg(b"")


@pytest.mark.parametrize(
    "program",
    ["import os; os._exit(3)", "print('babble')", "import time; time.sleep(600)"],
    ids=["dies", "babbles", "hangs"],
)
async def test_a_child_that_fails_over_an_avif_costs_one_photo(open_images, program):
    with pytest.raises(ToolFailure, match=r"it cannot be read|longer than 1 s"):
        await open_images(code=program, deadline_s=1.0).jpeg(b"x")
