"""Sample mini-apps: small, each its own HTTP process, each doing real work on whatever it is given.

Refuses to know where they run: a module is named here, imported for its manifest, started by
`activation.py`.
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
