"""The states of the link to the glasses, as a table. An unlisted step raises; the diagram in docs
is printed from the table (`python -m edge.core.link_state`).
"""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class LinkState(StrEnum):
    """One word for where we are."""

    OFF = "OFF"
    """nobody has started the link"""
    SEEKING = "SEEKING"
    """opening the radio and scanning for our glasses"""
    CONNECTING = "CONNECTING"
    """glasses seen; the connection is being made"""
    PREPARING = "PREPARING"
    """connected; greeting and learning what they can do"""
    READY = "READY"
    """capabilities known; commands are taken"""
    RESTING = "RESTING"
    """the last attempt or connection ended; waiting before the next"""
    CLOSING = "CLOSING"
    """the daemon is stopping; the connection is being closed"""


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
"""Every step there is."""


class IllegalLinkStep(Exception):
    """A bug in glassd: the table does not list this step."""


def check(old: LinkState, new: LinkState) -> LinkState:
    """Return `new` when the table allows it. Raises `IllegalLinkStep`."""
    if new not in STEPS[old]:
        raise IllegalLinkStep(f"the link cannot go from {old} to {new}")
    return new


def diagram() -> str:
    """Draw the table as Mermaid text."""
    lines = ["stateDiagram-v2", f"    [*] --> {LinkState.OFF}"]
    lines += [f"    {old} --> {new}" for old in LinkState for new in sorted(STEPS[old])]
    return "\n".join(lines)


if __name__ == "__main__":
    print(diagram())  # noqa: T201 - this is the printer
