"""Imports libraries that only some verbs need; if one is missing, the error names the extra to
install and the command for this kind of installation.
"""

import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from edge.runtime.errors import UserError

LIBRARIES: Final = {
    "sim": ("bumble", "PIL", "opuslib_next", "font_source_sans_pro"),
    "devcloud": ("iotcore", "starlette", "uvicorn", "segno", "cryptography"),
    "voice": ("py_nanotts",),
    "mcp": ("mcp", "mcp_types"),
}
"""The libraries of each extra of pyproject.toml, by their import names."""
EXTRAS_OF: Final = {"demo": ("sim", "devcloud"), "mcp --demo": ("mcp", "sim", "devcloud")}
"""The extras of verbs that need more than one."""
OPT: Final = Path("/opt/glassd")
"""Where `make install` and the Debian packages put the venv."""
SHARES: Final = (Path("/usr/share/glassd"), Path("/usr/local/share/glassd"))
DPKG: Final = Path("/var/lib/dpkg/info/glassd.list")
SAMPLE: Final = "glassd.toml"
_CHECKOUT: Final = Path(__file__).parents[3]


def load(module: str, verb: str) -> Any:
    """Import a module that a verb needs. Raise `UserError` that names the extras to install.

    Ctrl-C waits until the import has ended: inside of it pydantic would make a `SchemaError` of it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return import_module(module)
    except ModuleNotFoundError as e:
        raise missing(e, verb) from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def require(verb: str) -> None:
    """Check that every library of a verb is installed, before it starts anything. Raise
    `UserError` that names all missing ones.
    """
    lacking = _lacking(EXTRAS_OF[verb])
    if lacking:
        raise _not_installed(lacking, verb)


def missing(e: ModuleNotFoundError, verb: str) -> UserError:
    """Return the error that names the extras to install: all that the verb needs, not only the
    one whose import failed first.
    """
    library = (e.name or "").split(".")[0]
    extra = next((extra for extra, libraries in LIBRARIES.items() if library in libraries), "")
    if not extra:
        return UserError(
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


def _not_installed(lacking: dict[str, list[str]], verb: str) -> UserError:
    names = [name for names in lacking.values() for name in names]
    verb_of = "is" if len(names) == 1 else "are"
    return UserError(
        "MISSING_EXTRA",
        f"glassd {verb} needs {', '.join(names)}, which {verb_of} not installed",
        _how(",".join(lacking)),
    )


def _how(extras: str) -> str:
    """Return the command that installs them, for this kind of installation."""
    if Path(sys.prefix) == OPT and DPKG.exists():
        return (
            "the package contains them; install it again: sudo apt-get install --reinstall glassd"
        )
    if Path(sys.prefix) == OPT:
        return "an installation contains them; run it again in the checkout: sudo make install"
    if _is_checkout():
        return (
            f"install what is missing, in {_CHECKOUT}: "
            f"{sys.executable} -m pip install -e '.[{extras}]'"
        )
    return f"install what is missing: {sys.executable} -m pip install 'glassd[{extras}]'"


def _is_checkout() -> bool:
    return (_CHECKOUT / "pyproject.toml").is_file()


def sample() -> str:
    """Return the path of the commented sample configuration in this kind of installation."""
    installed = [share / SAMPLE for share in SHARES] if Path(sys.prefix) == OPT else []
    places = [_CHECKOUT / "systemd" / SAMPLE, *installed, Path(__file__).parents[2] / SAMPLE]
    return str(
        next((place for place in places if place.is_file()), "the sample glassd.toml of the source")
    )
