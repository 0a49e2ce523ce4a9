"""The ports that `Listening` is given, and its time limits."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.purposes import Audience
from edge.core.session import SessionController
from edge.hearing.heard import Hearers
from edge.listening_ports import RecognitionPort
from edge.ports import GlassesPort, RenderPort
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from tools_cache.api.tool import Json

LAST_WORDS_S: Final = 10.0
"""How long the last words may take after the sound has ended; a recogniser needs one second."""
START_S: Final = 15.0
"""How long the microphone may take to go on, loading the recogniser included."""
NO_SOUND_S: Final = 10.0
"""A microphone that is on and sends nothing for so long is broken; a radio has gaps of 3 s."""
LOOK_S: Final = 5.0
"""Longest sleep between two looks at the boot clock, which runs on during suspend."""


@dataclass(frozen=True, slots=True)
class ListeningPorts:
    """`recogniser` makes the recogniser at its first use; `why_no_words`: why this machine
    recognises none, "" if it does; `expected`: what may be said to an audience, the choices of a
    question among it; `audit` writes a line of the audit log; `read_names` reads the names that may
    be said, before commands are listened for.
    """

    glasses: GlassesPort
    recogniser: Callable[[], Awaitable[RecognitionPort]]
    why_no_words: Callable[[], str]
    session: SessionController
    stage: RenderPort
    hearers: Hearers
    expected: Callable[[Audience, Sequence[str]], ExpectedWords]
    bus: Bus
    clock: Clock
    audit: Callable[[Mapping[str, Json]], None]
    read_names: Callable[[], Awaitable[object]]
