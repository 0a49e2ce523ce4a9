"""Draws words with Pango, as a second opinion: run by the system's Python, which has its bindings.

Reads `[[word, language], …]` as JSON, writes one line a word: width, height, and its pixels
(8 bits, base64), cropped to nothing.
"""

import base64
import json
import sys

import cairo
import gi

gi.require_version("Pango", "1.0")
gi.require_version("PangoCairo", "1.0")
from gi.repository import Pango, PangoCairo  # noqa: E402 - only after their versions were chosen

PIXELS, ROOM = 88, 130


def draw(word, language):
    """Return the width, the height and the coverage of each pixel."""
    wide, high = ROOM * (len(word) + 2), 3 * ROOM
    surface = cairo.ImageSurface(cairo.FORMAT_A8, wide, high)
    context = cairo.Context(surface)
    options = cairo.FontOptions()
    options.set_hint_style(cairo.HINT_STYLE_NONE)
    options.set_hint_metrics(cairo.HINT_METRICS_OFF)
    pango = PangoCairo.create_context(context)
    PangoCairo.context_set_font_options(pango, options)
    pango.set_round_glyph_positions(False)
    pango.set_language(Pango.Language.from_string(language))
    font = Pango.FontDescription("Noto Sans")
    font.set_absolute_size(PIXELS * Pango.SCALE)
    layout = Pango.Layout.new(pango)
    layout.set_font_description(font)
    layout.set_text(word, -1)
    context.translate(ROOM, ROOM)
    PangoCairo.show_layout(context, layout)
    surface.flush()
    return surface.get_stride(), high, bytes(surface.get_data())


if __name__ == "__main__":
    for word, language in json.load(sys.stdin):
        width, height, pixels = draw(word, language)
        sys.stdout.write(f"{width} {height} {base64.b64encode(pixels).decode()}\n")
