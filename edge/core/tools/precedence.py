"""Joins the tools of all sources: built-in, the owner's, the cloud's, other servers', in this
order.

No tool ever replaces one of an earlier source; what is left out is reported.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tools_cache.registry.models import App, Dropped

BUILT_IN: Final = "a tool of this device has that name; "


class ToolOffer(NamedTuple):
    """The apps of one source. `namespaced`: it must not add to packages of earlier sources."""

    whose: str
    apps: tuple[App, ...]
    namespaced: bool = False


def merged(offers: Sequence[ToolOffer]) -> tuple[tuple[App, ...], tuple[Dropped, ...]]:
    """Join all offers, earlier ones first; return also what is refused, each with its reason."""
    apps: list[App] = []
    refused: list[Dropped] = []
    taken: set[str] = set()
    packages: set[str] = set()
    for offer in offers:
        begun = len(apps)
        for app in offer.apps:
            if offer.namespaced and app.package in packages:
                why = f"the package {app.package} is taken; {offer.whose} tools need another one"
                refused += [Dropped(tool.name, why) for tool in app.tools]
                continue
            if app.package not in packages:  # no name of it can be taken
                apps.append(app)
                continue
            why, kept = f"{BUILT_IN}{offer.whose} is refused", []
            for tool in app.tools:
                if tool.name in taken:
                    refused.append(Dropped(tool.name, why))
                else:
                    kept.append(tool)
            apps.append(app if len(kept) == len(app.tools) else replace(app, tools=tuple(kept)))
        packages.update(app.package for app in apps[begun:])  # what was refused takes nobody's name
        taken.update(name for app in apps[begun:] for name in app.names)
    return tuple(apps), tuple(refused)
