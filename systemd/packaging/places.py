"""Where each file goes on a machine: one table for `make install` and the Debian packages.

It writes nothing, and does not know who asks.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from man import page

SYSTEMD: Final = Path(__file__).resolve().parents[1]
ROOT: Final = SYSTEMD.parent
OPT: Final = "/opt/glassd"
"""The venv. Nothing of the state lies in it, so an upgrade may throw it away."""
CONFIG: Final = "/etc/glassd/glassd.toml"
STATE: Final = ("/var/lib/glassd", "/etc/glassd")
"""What outlives an uninstall, and goes with a purge (and the secrets named glassd-… in the
credential store).
"""
SEARCHED: Final = ("/usr/local", "/usr")
"""Prefixes whose `bin` systemd looks through for a command without a path."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where systemd, D-Bus and the shells of one machine look: the distribution's folders for
    /usr, else the administrator's.
    """

    prefix: str

    @property
    def distribution(self) -> bool:
        return self.prefix == "/usr"

    @property
    def command(self) -> str:
        return f"{self.prefix}/bin/glassd"

    @property
    def share(self) -> str:
        return f"{self.prefix}/share"

    def config(self, name: str) -> str:
        """Give the folder `name` (systemd/system, sysusers.d …) where packages, or else
        administrators, put their files.
        """
        return f"/usr/lib/{name}" if self.distribution else f"/etc/{name}"


def files(layout: Layout) -> dict[str, bytes]:
    """Every file beside the venv: its absolute path on the machine and its bytes. All are mode
    0644.
    """
    return dict(sorted((*_for_systemd(layout), *_for_people(layout))))


def _for_systemd(to: Layout) -> Iterator[tuple[str, bytes]]:
    yield to.config("systemd/system/glassd.service"), _unit("glassd.service", to)
    for unit in ("glassd-mcp.socket", "glassd-mcp.service"):
        yield to.config(f"systemd/system/{unit}"), _unit(unit, to)
    yield to.config("systemd/user/glassd.service"), _unit("user/glassd.service", to)
    yield to.config("systemd/system/bluetooth.service.d/glassd.conf"), _ours("bluetooth.conf")
    yield to.config("sysusers.d/glassd.conf"), _ours("glassd.sysusers")
    bus = "/usr/share" if to.distribution else "/etc"
    yield f"{bus}/dbus-1/system.d/glassd.conf", _ours("glassd.dbus.conf")


def _for_people(to: Layout) -> Iterator[tuple[str, bytes]]:
    yield f"{to.share}/glassd/glassd.toml", _ours("glassd.toml")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").iterdir())):
        yield f"{to.share}/doc/glassd/{path.relative_to(ROOT)}", path.read_bytes()
    for path in sorted((SYSTEMD / "radio").iterdir()):
        yield f"{to.share}/glassd/radio/{path.name}", path.read_bytes()
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from edge.cli import build_parser  # noqa: PLC0415 - the tree of verbs needs the checkout on the path
    from edge.commands import completion  # noqa: PLC0415 - same

    parser = build_parser()
    verbs = completion.verbs_of(parser)
    zsh = "vendor-completions" if to.distribution else "site-functions"
    yield f"{to.share}/bash-completion/completions/glassd", _text(completion.bash(verbs))
    yield f"{to.share}/zsh/{zsh}/_glassd", _text(completion.zsh(verbs))
    yield f"{to.share}/fish/vendor_completions.d/glassd.fish", _text(completion.fish(verbs))
    yield f"{to.share}/man/man1/glassd.1", _text(page(parser))


def _unit(name: str, to: Layout) -> bytes:
    """A unit names the command without a path where systemd finds it, else with it."""
    unit = _ours(name)
    if to.prefix in SEARCHED:
        return unit
    return unit.replace(b"\nExecStart=glassd ", f"\nExecStart={to.command} ".encode())


def _ours(name: str) -> bytes:
    return (SYSTEMD / name).read_bytes()


def _text(text: str) -> bytes:
    return (text.rstrip("\n") + "\n").encode()
