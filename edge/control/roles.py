"""What a client of the control API may do, decided by which of the two sockets it could open."""

from enum import Enum

from edge.control.http import RequestRefused
from edge.control.sockets import SocketFile


class ClientRole(Enum):
    """The file system decides who has which: a socket's group is who may open it."""

    CALLER = "control"
    """`control.sock`: calls tools, cancels calls from this socket, and reads."""
    OWNER = "owner"
    """`owner.sock`: all of that, and decides for the wearer: confirms, grants, pairs, enrols,
    configures.
    """

    def may(self, needed: "ClientRole") -> bool:
        return self is ClientRole.OWNER or needed is ClientRole.CALLER


def for_the_owner(what: str, owners: SocketFile) -> RequestRefused:
    """The refusal of what a caller may not do. It names the owner's socket, its group when it
    has one, and how to join that.
    """
    group = owners.open_to
    who = f"for the group {group}" if group else "for the daemon's own user alone"
    join = (
        f"join the group: sudo usermod -aG {group} $USER, then log in again; then " if group else ""
    )
    fix = f"{join}ask on the owner's socket: {owners.path}"
    return RequestRefused(
        403, "PERMISSION", f"{what} is {who}: this socket calls tools and reads", fix
    )
