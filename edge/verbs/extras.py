"""Imports what only some verbs need, and says which extras bring what is not installed, and how
they are installed here.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from edge.verbs.screen import CliError

LIBRARIES: Final = {
    "sim": ("bumble", "PIL", "opuslib_next", "font_source_sans_pro"),
    "devcloud": ("iotcore", "starlette", "uvicorn", "segno", "cryptography"),
    "voice": ("py_nanotts",),
    "mcp": ("mcp", "mcp_types"),
}
"""What each extra of pyproject.toml brings, by the names it is imported by."""
EXTRAS_OF: Final = {"demo": ("sim", "devcloud"), "mcp --demo": ("mcp", "sim", "devcloud")}
"""The extras of verbs that need more than one."""
OPT: Final = Path("/opt/glassd")
"""Where `make install` and the Debian packages put the venv."""
SHARES: Final = (Path("/usr/share/glassd"), Path("/usr/local/share/glassd"))
DPKG: Final = Path("/var/lib/dpkg/info/glassd.list")
SAMPLE: Final = "glassd.toml"
_CHECKOUT: Final = Path(__file__).parents[2]


def load(module: str, verb: str) -> Any:
    """Import what a verb needs. Raises `CliError` that names the extras to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as e:
        raise missing(e, verb) from None


def require(verb: str) -> None:
    """Look for everything that a verb needs, before it starts anything. Raises `CliError` that
    names all that is missing.
    """
    lacking = _lacking(EXTRAS_OF[verb])
    if lacking:
        raise _not_installed(lacking, verb)


def missing(e: ModuleNotFoundError, verb: str) -> CliError:
    """Say which extras bring what is not installed: all that the verb needs, not only the first
    that was looked for.
    """
    library = (e.name or "").split(".")[0]
    extra = next((extra for extra, libraries in LIBRARIES.items() if library in libraries), "")
    if not extra:
        return CliError(
            "MISSING_EXTRA",
            f"glassd {verb} needs {library}, which is not installed",
            "install glassd again",
        )
    lacking = _lacking(EXTRAS_OF.get(verb, (extra,)))
    return _not_installed(
        {**lacking, extra: [*dict.fromkeys((*lacking.get(extra, ()), library))]}, verb
    )


def _lacking(extras: tuple[str, ...]) -> dict[str, list[str]]:
    found = {
        extra: [name for name in LIBRARIES[extra] if find_spec(name) is None] for extra in extras
    }
    return {extra: names for extra, names in found.items() if names}


def _not_installed(lacking: dict[str, list[str]], verb: str) -> CliError:
    names = [name for names in lacking.values() for name in names]
    verb_of = "is" if len(names) == 1 else "are"
    return CliError(
        "MISSING_EXTRA",
        f"glassd {verb} needs {', '.join(names)}, which {verb_of} not installed",
        _how(",".join(lacking)),
    )


def _how(extras: str) -> str:
    """Give the one command that installs them, for this kind of installation."""
    if Path(sys.prefix) == OPT and DPKG.exists():
        return (
            "the package brings them all; install it again: sudo apt-get install --reinstall glassd"
        )
    if Path(sys.prefix) == OPT:
        return "an installation brings them all; in the checkout, again: sudo make install"
    if _is_checkout():
        return (
            f"install what is missing, in {_CHECKOUT}: "
            f"{sys.executable} -m pip install -e '.[{extras}]'"
        )
    return f"install what is missing: {sys.executable} -m pip install 'glassd[{extras}]'"


def _is_checkout() -> bool:
    return (_CHECKOUT / "pyproject.toml").is_file()


def sample() -> str:
    """Give the path of the commented configuration, where this kind of installation has it."""
    installed = [share / SAMPLE for share in SHARES] if Path(sys.prefix) == OPT else []
    places = [_CHECKOUT / "systemd" / SAMPLE, *installed, Path(__file__).parents[1] / SAMPLE]
    return str(
        next((place for place in places if place.is_file()), "the sample glassd.toml of the source")
    )
