"""What a text would look like on a model of glasses, without the glasses: the same layout, drawing
and choices as in the daemon, and nothing sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from edge.core.readability import TextRoute
from edge.core.results import LayoutKind, Rendering
from edge.display.drawn_text import DrawnText
from edge.display.fallback import make_readable
from edge.display.lens import (
    CannotShow,
    Sheet,
    canvas_of,
    describe_sheet,
    margin_of,
    pixels_of,
    rows_of,
    typeface_of,
)
from edge.display.lens_plan import LensPlan, plan
from edge.display.wording import Wording
from firmware_bridge.capabilities import Capabilities, Hardware, Origin
from firmware_bridge.catalog import find

LATIN: Final = "the lens shows it in Latin letters"
SPOKEN: Final = "most of it is lost on the lens: it is spoken, if a voice reads this language"


class CannotPreview(Exception):
    """These glasses cannot show this, and why."""


@dataclass(frozen=True, slots=True)
class Preview:
    """`document`: all of it as JSON; `pages`: each as `GET /v1/lens?exact=true` describes it, for a
    picture on a lens of these `capabilities`.
    """

    document: Mapping[str, Any]
    pages: tuple[Mapping[str, Any], ...]
    capabilities: Mapping[str, Any]


async def preview(text: str, model: str) -> Preview:
    """Lay a text out for a model of the catalogue. Raises `UnknownModel` and
    `CannotPreview`.
    """
    known = find(model).capabilities
    capabilities = Capabilities.of(model, known, origin=Origin.CATALOGUE, now=0.0)
    rendering = await Wording().apply(Rendering(LayoutKind.TEXT_WALL, text))
    drawn = DrawnText()
    try:
        planned = await plan(rendering, capabilities, drawn)
        remark = ""
        if planned.lost:
            planned, remark = await _chosen(rendering, planned, capabilities, drawn)
    except CannotShow as e:
        raise CannotPreview(str(e)) from None
    finally:
        await drawn.close()
    pages = [_page(sheet, capabilities) for sheet in planned.sheets]
    document = {
        "glasses": model,
        "width": pixels_of(capabilities)[0],
        "text_width": int(canvas_of(capabilities).width),
        "pages": pages,
        "seconds": round(sum(page["seconds"] for page in pages), 1),
        "missing": list(planned.lost),
        "remark": "; ".join(filter(None, (remark, planned.remark))),
    }
    shown = tuple(
        {"page": number, "pages": len(planned.sheets), "drawn": describe_sheet(sheet)}
        for number, sheet in enumerate(planned.sheets, 1)
    )
    return Preview(document, shown, known)


async def _chosen(
    rendering: Rendering, planned: LensPlan, capabilities: Capabilities, drawn: DrawnText
) -> tuple[LensPlan, str]:
    """Return what the daemon would show of a text with lost characters, and how it would do it."""
    voice = capabilities.has(Hardware.SPEAKER)
    route, readable = await make_readable(rendering, planned, capabilities, drawn, has_voice=voice)
    if route is TextRoute.SPEECH:
        return planned, SPOKEN
    if readable is None:
        raise CannotShow(planned.remark)
    return readable, LATIN if route is TextRoute.LATIN else ""


def _page(sheet: Sheet, capabilities: Capabilities) -> dict[str, Any]:
    """Return the facts of one page."""
    face = typeface_of(capabilities)
    ends = [line.x + face.width(line.text) for line in sheet.lines]
    ends += [tile.x + tile.width - margin_of(capabilities) for tile in sheet.tiles]
    words = "\n".join(line.text for line in sheet.lines)
    return {
        "lines": list(rows_of(sheet.lines + sheet.said)),
        "pixels": round(max(ends, default=0)),
        "bytes": len(words.encode()) + sum(len(tile.pixels) for tile in sheet.tiles),
        "drawn": len(sheet.tiles),
        "seconds": round(sheet.dwell_s, 1),
    }
