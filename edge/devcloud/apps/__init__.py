"""Sample mini-apps; each runs as its own HTTP process.

A module is listed here, imported for its manifest, and started by `devcloud/worker/activation.py`.
"""

from typing import Final

SAMPLES: Final = (
    "edge.devcloud.apps.calc",
    "edge.devcloud.apps.summarise",
    "edge.devcloud.apps.prime",
    "edge.devcloud.apps.slowpoke",
    "edge.devcloud.apps.storyteller",
    "edge.devcloud.apps.tasks",
    "edge.devcloud.apps.photo",
    "edge.devcloud.apps.weather",
    "edge.devcloud.apps.calendar",
    "edge.devcloud.apps.search",
)
"""Modules that define `app`, an `AppServer`."""
