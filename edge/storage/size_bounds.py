"""How a table of finished rows stays small: the newest stay, up to a number and a size."""

from edge.storage.sqlite.database import Connection


def keep_newest(
    connection: Connection,
    table: str,
    order: str,
    *,
    rows: int,
    size: int | None = None,
    among: str = "1",
) -> None:
    """Delete what exceeds `rows`, or `size` bytes by column `size`, from the highest `order`."""
    heavy = "sum(size) OVER w" if size is not None else "0"
    connection.execute(
        f"DELETE FROM {table} WHERE {order} IN (SELECT {order} FROM "  # noqa: S608 - constants
        f"(SELECT {order}, row_number() OVER w AS place,"
        f" {heavy} AS bytes FROM {table} WHERE {among} WINDOW w AS (ORDER BY "
        f"{order} DESC)) WHERE place > ? OR bytes > ?)",
        (rows, size or 0),
    )
