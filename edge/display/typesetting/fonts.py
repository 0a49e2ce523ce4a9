"""Which Noto fonts a machine has, by their file names: no font is opened."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

WHEELS: Final = ("manimgx_fonts", "manimgx_fonts_cjk")
SYSTEM: Final = "/usr/share/fonts"
_PLACES: Final = ("", *WHEELS, "truetype/noto", "opentype/noto")
"""Where fonts are below a folder: in it, in the wheels, in Debian's fonts-noto-core and -cjk."""
_FONT: Final = re.compile(
    r"Noto(Sans(?!.*(Italic|Mono|Display|UI))|Emoji).*(\[wght\]|-VF|-Regular)"
)
LATIN: Final = "NotoSans"
CJK: Final = "NotoSansCJK"
EMOJI: Final = "NotoEmoji"
_SYMBOLS: Final = ("NotoSansSymbols", "NotoSansSymbols2", "NotoSansMath")
_ORDER: Final = (LATIN, "", *_SYMBOLS, CJK, EMOJI)
_SCRIPTS: Final = 1


def font_folders(configured: Sequence[str] = ()) -> list[str]:
    """Return where to look for fonts: the configured folders, the wheels, the system's fonts."""
    return [*configured, *wheel_folders(), SYSTEM]


def wheel_folders() -> list[str]:
    """Return the folders in which wheels of fonts are installed."""
    wheels = (spec.origin for spec in map(find_spec, WHEELS) if spec and spec.origin)
    return list(dict.fromkeys(str(Path(origin).parents[1]) for origin in wheels))


def find_fonts(folders: Sequence[str]) -> list[str]:
    """Return the Noto fonts below some folders, in the order in which they are asked for a
    character: Latin, other scripts, symbols, Han and Hangul, emoji.
    """
    found = (
        path
        for folder in folders
        for place in _PLACES
        for path in sorted(Path(folder, place).glob("Noto*.[to]t[fc]"))
        if _FONT.search(path.name)
    )
    fonts = {family(path): path for path in reversed(list(found))}
    return [str(path) for path in sorted(fonts.values(), key=_order)]


def family(path: Path | str) -> str:
    """Return the name that wheel and distribution give the same font, `NotoSansHebrew`."""
    return re.split(r"[-.[]", Path(path).name)[0]


def scripts(fonts: Sequence[str]) -> list[str]:
    """Return the scripts that fonts are for, beside Latin, Han, Hangul and symbols: `Hebrew`."""
    others = {*_ORDER} - {""}
    return sorted(family(path).removeprefix(LATIN) for path in fonts if family(path) not in others)


def _order(path: Path) -> tuple[int, str]:
    name = family(path)
    return next((at for at, known in enumerate(_ORDER) if name == known), _SCRIPTS), path.name
