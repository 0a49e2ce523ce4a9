"""Whose tools may stand side by side: the built-in ones, the owner's, the cloud's, those of other
servers, in this order.

Pure. No tool ever replaces another one, no matter which source offers it. What is
left out is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tools_cache.registry.models import App, Dropped

BUILT_IN: Final = "a tool of this device has that name; "


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """The apps of one source. `namespaced`: a package that an earlier source has is not its to
    add to.
    """

    whose: str
    apps: tuple[App, ...]
    namespaced: bool = False


def merged(offers: Sequence[ToolOffer]) -> tuple[tuple[App, ...], tuple[Dropped, ...]]:
    """Join what stands side by side; give also what may not, each with its reason. Earlier
    offers come first.
    """
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
            refused += [
                Dropped(tool.name, f"{BUILT_IN}{offer.whose} is refused")
                for tool in app.tools
                if tool.name in taken
            ]
            kept = tuple(tool for tool in app.tools if tool.name not in taken)
            apps.append(app if len(kept) == len(app.tools) else replace(app, tools=kept))
        packages.update(app.package for app in apps[begun:])  # what was refused takes nobody's name
        taken.update(tool.name for app in apps[begun:] for tool in app.tools)
    return tuple(apps), tuple(refused)
