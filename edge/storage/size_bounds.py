"""How a table of finished rows stays small: the newest stay, up to a number and a size."""

from msgspec import Struct

from edge.storage.sqlite.database import Connection


class Bounds(Struct, frozen=True):
    """How many `rows` of how many `bytes` a table may hold, and how many more that are `open`."""

    rows: int
    bytes: int | None = None
    open: int = 0

    def full(self, rows: float, used: float) -> bool:
        """Whether no more rows fit, when `rows` of `used` bytes are there."""
        return rows >= self.rows or (self.bytes is not None and used >= self.bytes)


def keep_newest(
    connection: Connection, table: str, order: str, bounds: Bounds, *, among: str = "1"
) -> None:
    """Delete what exceeds `bounds`, with bytes by column `size`, from the highest `order`."""
    heavy = "0" if bounds.bytes is None else "sum(size) OVER w"
    connection.execute(
        f"DELETE FROM {table} WHERE {order} IN (SELECT {order} FROM (SELECT {order},"  # noqa: S608 - constants
        f" row_number() OVER w AS place, {heavy} AS bytes FROM {table} WHERE {among}"
        f" WINDOW w AS (ORDER BY {order} DESC)) WHERE place > ? OR bytes > ?)",
        (bounds.rows, bounds.bytes or 0),
    )
