"""Pango, from Debian, judges the letters: each word of the sentences, drawn by both with the same
fonts, must have the same shape.
"""

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest
from PIL import Image, ImageChops

pytest.importorskip("uharfbuzz", reason="pip install 'glassd[scripts]'")

from edge.display.typesetting import typesetter
from edge.display.typesetting.fonts import find_fonts, font_folders
from edge.display.typesetting.typesetter import Typesetter

SENTENCES = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))
PYTHON = "/usr/bin/python3"
NEEDS = "needs Pango: apt-get install gir1.2-pango-1.0 python3-gi-cairo"
ROW = 216
SAME, SHARE = 0.90, 0.95
"""Lit by both of what one of them lights; and how many of the words must be so much the same."""
SHIFTS = [(x, y) for x in (4, 3, 5, 2, 6) for y in (4, 3, 5, 2, 6)]
LANGUAGES = {
    "Japanese": "ja",
    "Korean": "ko",
    "Chinese, traditional": "zh-tw",
    "Chinese, simplified": "zh-cn",
}


def pango(words: list[tuple[str, str]], folder: Path) -> list[Image.Image]:
    """The words as Pango draws them; only the fonts that we use are there."""
    folders = {Path(font).parent for font in find_fonts(font_folders())}
    config = folder / "fonts.conf"
    config.write_text(
        "<fontconfig>"
        + "".join(f"<dir>{each}</dir>" for each in sorted(folders))
        + f"<cachedir>{folder}</cachedir></fontconfig>"
    )
    ran = subprocess.run(
        [PYTHON, str(Path(__file__).with_name("pango_words.py"))],
        input=json.dumps(words),
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "FONTCONFIG_FILE": str(config)},
    )
    lines = (line.split() for line in ran.stdout.splitlines())
    return [
        lit(Image.frombytes("L", (int(width), int(height)), base64.b64decode(pixels)))
        for width, height, pixels in lines
    ]


def lit(image: Image.Image) -> Image.Image:
    one_bit = image.point(lambda v: 255 if v >= 100 else 0)
    return one_bit.crop(one_bit.getbbox())


def overlap(ours: Image.Image, theirs: Image.Image) -> float:
    """The share of the lit pixels that both light, at the best of some small shifts."""
    size = max(ours.width, theirs.width) + 8, max(ours.height, theirs.height) + 8
    mine = Image.new("L", size)
    mine.paste(ours, (4, 4))
    best = 0.0
    for shift in SHIFTS:
        other = Image.new("L", size)
        other.paste(theirs, shift)
        both = ImageChops.darker(mine, other).histogram()[255]
        best = max(best, both / ImageChops.lighter(mine, other).histogram()[255])
        if best >= SAME:
            break
    return best


def has_pango() -> bool:
    code = "import cairo, gi; gi.require_version('PangoCairo', '1.0'); gi.require_foreign('cairo')"
    try:
        ran = subprocess.run([PYTHON, "-c", code], check=False, capture_output=True, timeout=60)
    except OSError:
        return False
    return ran.returncode == 0


@pytest.mark.requirement("I13-second-renderer")
def test_words_have_the_shape_that_pango_gives_them(tmp_path, monkeypatch):
    if not has_pango():
        pytest.skip(NEEDS)
    for name, value in {
        "SIZE_SHARE": 88 / ROW,
        "BASELINE_SHARE": 0.6,
        "_STEMS": 400,
        "_DENSE_STEMS": 400,
    }.items():
        monkeypatch.setattr(typesetter, name, value)
    setter = Typesetter(find_fonts(font_folders()), ROW)
    words = {
        word: LANGUAGES.get(group, "en")
        for group, sentences in SENTENCES.items()
        for sentence in sentences
        for word in sentence.split()
    }
    different = {}
    for word, theirs in zip(words, pango(list(words.items()), tmp_path), strict=True):
        (row,) = setter.set_paragraph(word, 8 * 4090)
        ours = Image.frombytes("1", (row.width, row.height), row.pixels).convert("L")
        if (same := overlap(lit(ours), theirs)) < SAME:
            different[word] = round(same, 3)
    assert len(words) > 600
    assert len(different) <= (1 - SHARE) * len(words), different
