"""What a client of the control API may do, decided by which of the two sockets it could open."""

from enum import Enum

from edge.control.http import Refused


class Role(Enum):
    """The file system decides who has which: a socket's group is who may open it."""

    CALLER = "control"
    """`control.sock`: calls tools, calls off what came this way, and reads."""
    OWNER = "owner"
    """`owner.sock`: all of that, and decides for the wearer: confirms, grants, pairs, enrols, configures."""

    def may(self, needed: "Role") -> bool:
        return self is Role.OWNER or needed is Role.CALLER


def for_the_owner(what: str, group: str) -> Refused:
    """The refusal of what a caller may not do. It names the group, when there is one, and how to join it."""
    who = f"for the group {group}" if group else "for the daemon's own user alone"
    join = f"join the group: sudo usermod -aG {group} $USER, then log in again; then " if group else ""
    fix = f"{join}ask on the owner's socket (owner.sock, beside this one)"
    return Refused(403, "PERMISSION", f"{what} is {who}: this socket calls tools and reads", fix)
