"""Fonts are found by their names, in the wheels, in Debian's folders and in configured ones."""

from pathlib import Path

from edge.display.typesetting.fonts import family, find_fonts, font_folders, scripts

DEBIAN = (
    *("NotoSans-Regular.ttf", "NotoSansHebrew-Regular.ttf", "NotoSansThai-Regular.ttf"),
    *("NotoSansSymbols-Regular.ttf", "NotoSansMath-Regular.ttf"),
)
LEFT_OUT = (
    *(
        "NotoSans-Bold.ttf",
        "NotoSans-Italic.ttf",
        "NotoSansMono-Regular.ttf",
        "NotoSerif-Regular.ttf",
    ),
    *("NotoSansArabicUI-Regular.ttf", "NotoSansDisplay-Regular.ttf", "DejaVuSans.ttf"),
)


def _put(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


def test_fonts_are_asked_in_the_order_latin_scripts_symbols_han_emoji(tmp_path):
    _put(tmp_path / "truetype/noto", *DEBIAN, *LEFT_OUT)
    _put(tmp_path / "opentype/noto", "NotoSansCJK-Regular.ttc", "NotoSansCJK-Bold.ttc")
    _put(tmp_path / "manimgx_fonts", "NotoEmoji[wght].ttf", "NotoSans-Italic[wght].ttf")
    found = find_fonts([str(tmp_path)])
    assert [family(font) for font in found] == [
        *("NotoSans", "NotoSansHebrew", "NotoSansThai", "NotoSansSymbols", "NotoSansMath"),
        *("NotoSansCJK", "NotoEmoji"),
    ]
    assert scripts(found) == ["Hebrew", "Thai"]


def test_of_the_same_font_the_first_folder_counts(tmp_path):
    """A configured folder stands before the wheels, and these before the system's fonts."""
    own = _put(tmp_path / "own", "NotoSansHebrew-Regular.ttf")
    _put(tmp_path / "manimgx_fonts", "NotoSansHebrew[wght].ttf", "NotoSansThai[wght].ttf")
    found = find_fonts([str(own), str(tmp_path)])
    assert found == [
        str(own / "NotoSansHebrew-Regular.ttf"),
        str(tmp_path / "manimgx_fonts/NotoSansThai[wght].ttf"),
    ]


def test_folders_are_the_configured_ones_then_the_wheels_then_the_system(monkeypatch):
    monkeypatch.setattr("edge.display.typesetting.fonts.wheel_folders", lambda: ["/wheels"])
    assert font_folders(["/srv/fonts"]) == ["/srv/fonts", "/wheels", "/usr/share/fonts"]


def test_a_folder_that_is_not_there_has_no_fonts(tmp_path):
    assert find_fonts([str(tmp_path / "none")]) == []
    assert scripts([]) == []
