"""Keeps a library from loading what the daemon never uses."""

import sys


def leave_out_command_line_of_httpx() -> None:
    """Call before `import httpx`: it would load its own command line, and with that click and
    pygments, 2 MiB and 30 ms. httpx expects that these may be missing.
    """
    if "httpx._main" not in sys.modules:
        sys.modules["httpx._main"] = None  # type: ignore[assignment]  # importing it fails
