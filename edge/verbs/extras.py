"""Imports what only some verbs need, and says which extra brings it when it is not installed.

Refuses to know what is imported.
"""

from importlib import import_module
from typing import Any, Final

from edge.verbs.screen import CliError

_EXTRA_OF: Final = {
    "bumble": "sim", "PIL": "sim", "opuslib_next": "sim", "font_source_sans_pro": "sim",
    "iotcore": "devcloud", "starlette": "devcloud", "uvicorn": "devcloud", "segno": "devcloud",
    "cryptography": "devcloud", "py_nanotts": "voice", "mcp": "mcp", "mcp_types": "mcp",
}  # fmt: skip
"""Which extra of pyproject.toml brings which library."""


def load(module: str, verb: str) -> Any:
    """Import what a verb needs. Raises `CliError` that names the extra to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as e:
        raise missing(e, verb) from None


def missing(e: ModuleNotFoundError, verb: str) -> CliError:
    """Say which extra brings a library that is not installed."""
    library = (e.name or "").split(".")[0]
    extra = _EXTRA_OF.get(library, "")
    fix = f"install it: pip install 'glassd[{extra}]'" if extra else "install glassd again"
    return CliError("MISSING_EXTRA", f"glassd {verb} needs {library}, which is not installed", fix)
