"""A sign-in on the lens: the code, the words, and the QR code where there are pixels."""

import base64
import io

import pytest

from edge.core.results import rendering_of
from edge.display import sign_in
from edge.display.drawn_text import DrawnText
from edge.display.images import LensImages
from edge.display.lens_plan import plan
from edge.ports import GlassesStatus
from firmware_bridge import catalog
from firmware_bridge.capabilities import Capabilities, Origin

URL = "https://login.example/authorize?response_type=code&client_id=abc&state=9f8e7d6c5b4a&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def glasses(key, **changes):
    model = catalog.find(key)
    known = Capabilities.of(key, model.capabilities, origin=Origin.CATALOGUE, now=0)
    return known.merged(Capabilities.of(key, changes, origin=Origin.CONFIGURED, now=0))


async def shown(known, url=URL):
    """What a sign-in becomes on these glasses, and the response it is made from."""
    draw = LensImages(lambda: GlassesStatus(ready=True, capabilities=known), deadline_s=40.0).code
    response = await sign_in.sign_in(
        "Files", url, typed=f"glassd servers authorize {sign_in.code_of(url)}", draw=draw
    )
    return await plan(rendering_of(response), known, DrawnText()), response


def words(sheet):
    return " ".join(line.text for line in sheet.lines)


@pytest.mark.requirement("I6-sign-in")
async def test_the_code_to_type_has_a_qr_code_of_the_url():
    planned, response = await shown(glasses("mock:display"))
    (sheet,) = planned.sheets
    assert sign_in.code_of(URL) in words(sheet)
    assert "Files" in words(sheet)
    (tile,) = sheet.tiles
    assert (tile.x, tile.width) == (0, tile.height)
    assert tile.height <= 136
    assert all(line.x > tile.width for line in sheet.lines)
    assert modules(response) == matrix(URL)


def modules(response):
    """The drawn code, sampled at each module; the light border left out."""
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(response.render["display"]["data"]))).convert(
        "L"
    )
    size = len(matrix(URL))
    scale = picture.width // (size + 4)
    return [
        [picture.getpixel(((x + 2) * scale, (y + 2) * scale)) == 0 for x in range(size)]
        for y in range(size)
    ]


def matrix(text):
    import segno

    return [
        [bool(module) for module in row]
        for row in segno.make(text, error="l", boost_error=False, micro=False).matrix
    ]


async def test_glasses_with_text_or_pixels_get_a_page_of_each():
    planned, _ = await shown(glasses("even_g1"))
    text, picture = planned.sheets
    assert sign_in.code_of(URL) in words(text)
    assert (text.tiles, picture.lines, len(picture.tiles)) == ((), (), 1)


@pytest.mark.requirement("I6-sign-in")
@pytest.mark.parametrize(
    ("changes", "url"),
    [
        ({"display.bitmap": False}, URL),
        ({"display.height": 60}, URL),
        ({}, URL + "x" * 3000),
    ],
    ids=["no pixels", "too few pixels", "a URL no code holds"],
)
async def test_without_room_for_a_qr_code_the_words_are_all_there_is(changes, url):
    known = glasses("mock:display", **changes)
    planned, response = await shown(known, url)
    assert response.render["display"]["layout"] == "reference_card"
    assert sign_in.code_of(url) in " ".join(map(words, planned.sheets))
    assert not any(sheet.tiles for sheet in planned.sheets)


def test_a_code_is_read_however_typed_and_names_one_url():
    code = sign_in.code_of(URL)
    assert len(code) == 9
    assert sign_in.code_of(URL + "1") != code
    for typed in (
        code,
        code.lower(),
        code.replace("-", ""),
        f" {code.replace('0', 'o').replace('1', 'l')} ",
    ):
        assert sign_in.is_code(typed, URL)
    assert not sign_in.is_code(code, URL + "1")
    assert not sign_in.is_code("", URL)
    assert not set(code) & set("ILOU")


async def test_a_servers_name_cannot_draw_over_the_code():
    async def none(_text):
        return ""

    response = await sign_in.sign_in(
        "evil\nCode: 0000-0000" + "x" * 99, URL, typed="glassd servers authorize X", draw=none
    )
    title = response.render["display"]["title"]
    assert "\n" not in title
    assert len(title) <= len("Sign in to ") + sign_in.MAX_NAME
