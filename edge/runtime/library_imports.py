"""Keeps a library from loading what the daemon never uses."""

import os
import sys


def leave_out_command_line_of_httpx() -> None:
    """Call before `import httpx`: it would load its own command line, and with that click and
    pygments, 2 MiB and 30 ms. httpx expects that these may be missing.
    """
    if "httpx._main" not in sys.modules:
        sys.modules["httpx._main"] = None  # type: ignore[assignment]  # importing it fails


def leave_out_plugins_of_pydantic() -> None:
    """Call before `import pydantic`, in a process that only reads: it would look for plugins in the
    metadata of every installed package, 20 ms.
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def leave_out_typing_extensions_of_msgspec() -> None:
    """Import msgspec without typing_extensions, which it would take in the place of what Python
    has: half a MiB, 5 ms.
    """
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # importing it fails
    try:
        import msgspec  # noqa: F401, PLC0415
    finally:
        del sys.modules["typing_extensions"]
