"""What the lens must never show."""

import re

UNREADABLE = re.compile(r"[{}\[\]]|\d{4}-\d\d-\d\dT|[0-9a-f]{8}-[0-9a-f]{4}|\b\d{10,}\b")
"""What no wearer should see: JSON, a moment in ISO 8601, an identifier, seconds since 1970."""
