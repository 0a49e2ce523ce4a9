"""The golden frames, read out of PROFILE.md so that the document and the code cannot drift apart.

It does not know what the bytes mean: it gives names, sides and packets.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firmware_bridge.codec import Role

PROFILE: Final = Path(__file__).parents[2] / "firmware_bridge" / "PROFILE.md"
_BLOCK: Final = re.compile(
    r"^```golden (\S+) (central|glasses)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_SIDES: Final = {"central": Role.CENTRAL, "glasses": Role.PERIPHERAL}


@dataclass(frozen=True, slots=True)
class Golden:
    """One listing: packets that `side` sends at once. The last of them carry the message."""

    name: str
    side: Role
    packets: tuple[bytes, ...]

    @property
    def message_packets(self) -> tuple[bytes, ...]:
        return tuple(packet for packet in self.packets if packet[0] == 1)


def _packets(listing: str) -> tuple[bytes, ...]:
    paragraphs = (part for part in listing.split("\n\n") if part.strip())
    return tuple(
        b"".join(bytes.fromhex(line.partition("#")[0]) for line in part.splitlines())
        for part in paragraphs
    )


def load() -> dict[str, Golden]:
    found = _BLOCK.findall(PROFILE.read_text(encoding="utf-8"))
    golden = {name: Golden(name, _SIDES[side], _packets(listing)) for name, side, listing in found}
    assert len(golden) == len(found), "two listings of one name"
    return golden


GOLDEN: Final = load()
CONVERSATION: Final = tuple(GOLDEN)[
    tuple(GOLDEN).index("hello") : tuple(GOLDEN).index("failed") + 1
]
