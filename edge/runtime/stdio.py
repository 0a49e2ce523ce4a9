"""Standard input and output of a process that speaks a protocol over them."""

import os
import sys


def claim_stdio() -> tuple[int, int]:
    """Return new file descriptors of stdin and stdout, for the protocol alone.

    From then on all other code reads an empty stdin and prints to stderr: a stray print of a
    library, or of a program it starts, cannot break the protocol.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    return incoming, outgoing
