"""What other hosts send where they differ from us: by the names of the quirks in model.py."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from firmware_bridge.codecs.even_g2.wire import Cut, Dialect

OTHERS: Final[Mapping[str, tuple[Dialect, ...]]] = MappingProxyType(
    {
        "fragment-size": (Dialect(cut=Cut.B), Dialect(cut=Cut.SPLIT)),
        "zeros": (Dialect(zeros=True),),
        "container-name": (Dialect(named=False),),
        "widget-id": (Dialect(widget=10000),),
        "page-heartbeat": (Dialect(hub_beat_body=True),),
        "time": (Dialect(utc=True),),
        "motion-request": (Dialect(motion_field=20),),
        "image-session": (Dialect(image_session=False), Dialect(image_bytes=3800)),
        "wake-word-speed": (Dialect(wake_speed=80),),
        "auth": (Dialect(auth=False),),
    }
)
"""Contradictions about what the glasses send are not here: all their forms are accepted."""
