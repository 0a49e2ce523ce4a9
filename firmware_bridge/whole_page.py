"""Applies a change to the page on the lens, for codecs of glasses that only take whole pages."""

from msgspec.structs import replace

from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import ShowPage, Tile, UpdatePage


def whole_page(page: ShowPage | None, update: UpdatePage) -> ShowPage:
    """Return `page` with the rows and tiles of `update` in the place of its own. Raises
    `CommandRefused("no_scene")` if another page, or none, is on the lens.
    """
    if page is None or (page.scene, page.page) != (update.scene, update.page):
        detail = f"{update.scene!r} page {update.page} is not on the lens"
        raise CommandRefused("no_scene", detail)
    rows = {line.row for line in update.lines}
    lines = tuple(line for line in page.lines if line.row not in rows)
    places = {_place(tile) for tile in update.tiles}
    tiles = tuple(tile for tile in page.tiles if _place(tile) not in places)
    return replace(page, lines=lines + update.lines, tiles=tiles + update.tiles)


def _place(tile: Tile) -> tuple[int, int, int, int]:
    return tile.x, tile.y, tile.width, tile.height
