"""Durations as people say them: `90` seconds are "1 min 30 s". Knows no clock."""


def spoken(seconds: float) -> str:
    """Say a duration in hours, minutes and seconds, without the parts that are nought."""
    whole = max(0, round(seconds))
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s"))
    return " ".join(f"{value} {unit}" for value, unit in parts if value) or "0 s"
