"""Returns the current date and time."""

from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the time in `timezone`, else in the configured zone, else in the machine's own."""
    zone = args.get("timezone") or ctx.config.get("timezone", "")
    now = datetime.fromtimestamp(ctx.now(), UTC)
    local = now.astimezone(_zone(zone)) if zone else now.astimezone()
    text = f"{local:%H:%M}, {local:%A} {local.day} {local:%B %Y}"
    return {
        "data": {
            "iso": local.isoformat(timespec="seconds"),
            "timezone": zone or local.tzname(),
            "text": text,
        }
    }


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (
        ZoneInfoNotFoundError,
        ValueError,
        OSError,
    ):  # ValueError: a path; OSError: a directory such as "Europe"
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /timezone {name!r} is not a known time zone",
            suggestion="Give an IANA name such as Europe/Berlin",
        ) from None
