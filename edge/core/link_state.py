"""The states of the link to the glasses, as a table; `python -m edge.core.link_state` prints it."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class LinkState(StrEnum):
    """The state of the link."""

    OFF = "OFF"
    """the link is not started"""
    SEEKING = "SEEKING"
    """opening the radio and scanning for our glasses"""
    CONNECTING = "CONNECTING"
    """glasses found; connecting"""
    PREPARING = "PREPARING"
    """connected; reading what they can do"""
    READY = "READY"
    """capabilities known; commands are accepted"""
    RESTING = "RESTING"
    """the last attempt or connection ended; waiting before the next"""
    CLOSING = "CLOSING"
    """the daemon is stopping; closing the connection"""


_S = LinkState
STEPS: Final = MappingProxyType(
    {
        _S.OFF: frozenset({_S.SEEKING}),
        _S.SEEKING: frozenset({_S.CONNECTING, _S.RESTING, _S.CLOSING}),
        _S.CONNECTING: frozenset({_S.PREPARING, _S.RESTING, _S.CLOSING}),
        _S.PREPARING: frozenset({_S.READY, _S.RESTING, _S.CLOSING}),
        _S.READY: frozenset({_S.RESTING, _S.CLOSING}),
        _S.RESTING: frozenset({_S.SEEKING, _S.CLOSING}),
        _S.CLOSING: frozenset({_S.OFF}),
    }
)
"""State → allowed next states."""


class IllegalLinkStep(Exception):
    """A bug in glassd: the table does not list this step."""


def check(old: LinkState, new: LinkState) -> LinkState:
    """Return `new` if the table allows it. Raises `IllegalLinkStep`."""
    if new not in STEPS[old]:
        raise IllegalLinkStep(f"the link cannot go from {old} to {new}")
    return new


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {LinkState.OFF}"]
    lines += [f"    {old} --> {new}" for old in LinkState for new in sorted(STEPS[old])]
    return "\n".join(lines)


if __name__ == "__main__":
    print(diagram())  # noqa: T201 - this is the printer
