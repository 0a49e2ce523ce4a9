"""The reference cloud's registry: installed apps, their tools, one version and hash over all of
them.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from edge.devcloud.definitions import AppSubmission
from tools_cache.api.tool import Json
from tools_cache.errors import BadDefinition
from tools_cache.names import parse
from tools_cache.registry import manifest

log = logging.getLogger(__name__)

MAX_APPS: Final = 1000


@dataclass(frozen=True, slots=True)
class InstalledApp:
    """One installed app. `command` starts it (with `$PORT` set by us), otherwise it runs at
    `public_url`.
    """

    package: str
    name: str
    tools: tuple[Mapping[str, Json], ...]
    hardware: tuple[Mapping[str, Json], ...] = ()
    public_url: str = ""
    api_key_hash: str = ""
    command: tuple[str, ...] = ()

    @classmethod
    def of_manifest(
        cls, manifest: Mapping[str, Json], command: tuple[str, ...] = (), public_url: str = ""
    ) -> "InstalledApp":
        """Create one from the result of `AppServer.manifest()`."""
        hardware, tools = tuple(manifest["hardwareRequirements"]), tuple(manifest["tools"])
        package, name = manifest["packageName"], manifest["name"]
        return cls(package, name, tools, hardware, public_url, command=command)

    def document(self) -> dict[str, Json]:
        """Return it as edges see it: without address and key."""
        return {
            "packageName": self.package,
            "name": self.name,
            "tools": [dict(t) for t in self.tools],
            "hardwareRequirements": [dict(h) for h in self.hardware],
        }

    def lacks(self, has: Mapping[str, bool] | None) -> tuple[str, ...]:
        """Return the hardware that it requires and these glasses lack; () for unknown glasses."""
        if has is None:
            return ()
        required = (str(h["type"]) for h in self.hardware if h.get("level") == "REQUIRED")
        return tuple(t for t in required if t != "EXIST" and not has.get(t.lower(), False))


class FoundTool(NamedTuple):
    """One tool and the app it belongs to."""

    app: InstalledApp
    tool: Mapping[str, Json]


class AppRegistry:
    """All apps; `version`, `sha256` and `body` always belong together and change only by
    `restore`.
    """

    def __init__(self, apps: Iterable[InstalledApp]) -> None:
        self._built_in = {app.package: app for app in apps}
        self._apps = dict(self._built_in)
        self._stamp()

    @property
    def etag(self) -> str:
        return f'"{self.sha256}"'

    def find(self, name: str) -> FoundTool | None:
        """Return the tool of a canonical name. Raises BadToolName for an invalid one."""
        return self._tools.get(parse(name))

    def app(self, package: str) -> InstalledApp | None:
        return self._apps.get(package)

    def listing(
        self, has: Mapping[str, bool] | None, *, installed: Callable[[str], bool] = bool
    ) -> list[dict[str, Json]]:
        """Return every tool with its full name; apps that are not installed or lack hardware are
        left out.
        """
        tools: list[dict[str, Json]] = []
        for app in self._sorted():
            if not installed(app.package):
                continue
            if missing := app.lacks(has):
                message, what = "Skipping tools from incompatible app %s: missing %s", list(missing)
                extra = {"packageName": app.package, "missingHardware": what}
                log.debug(message, app.package, ", ".join(what), extra=extra)
                continue
            for tool in map(deepcopy, map(dict, app.tools)):
                tools.append(tool | {"name": f"{app.package}:{tool['name']}"})  # noqa: PERF401 - plainer so
        return tools

    def merged(self, new: AppSubmission) -> InstalledApp:
        """Return an app as a submission makes it. Raises BadDefinition if there is no room."""
        old = self._apps.get(new.package)
        if old is None and len(self._apps) >= MAX_APPS:
            problem = f"there are {MAX_APPS} already, which is the most this cloud holds"
            raise BadDefinition(f"apps: {problem}")
        return _merge(old, new)

    def restore(self, submitted: Iterable[AppSubmission]) -> None:
        """Use the built-in apps, changed and extended by what developers submitted."""
        changed = {s.package: _merge(self._built_in.get(s.package), s) for s in submitted}
        self._apps = self._built_in | changed
        self._stamp()

    def _sorted(self) -> list[InstalledApp]:
        return [self._apps[package] for package in sorted(self._apps)]

    def _stamp(self) -> None:
        self._tools = {
            (app.package, str(tool.get("name"))): FoundTool(app, tool)
            for app in self._apps.values()
            for tool in app.tools
        }
        apps = [app.document() for app in self._sorted()]
        self.sha256 = manifest.digest(apps)
        self.version = f"1.0.{self.sha256[:8]}"
        document = {"version": self.version, "sha256": self.sha256, "apps": apps}
        self.body = json.dumps(document, ensure_ascii=False).encode()


def _merge(old: InstalledApp | None, new: AppSubmission) -> InstalledApp:
    """Return the app with the fields of the submission; absent ones stay."""
    given: dict[str, Any] = {
        "name": new.name,
        "hardware": new.hardware,
        "api_key_hash": new.api_key_hash,
    }
    if new.public_url is not None:  # an app with an address is run by its developer
        given |= {"public_url": new.public_url.rstrip("/"), "command": ()}
    base = old or InstalledApp(new.package, new.package, ())
    changes = {key: value for key, value in given.items() if value is not None}
    return replace(base, tools=new.tools, **changes)


def body_of(app: InstalledApp) -> dict[str, Json]:
    """Return the submission that would make this app again."""
    optional = {"publicUrl": app.public_url, "apiKeyHash": app.api_key_hash}
    body = {"name": app.name, "hardwareRequirements": list(app.hardware), "tools": list(app.tools)}
    return body | {k: v for k, v in optional.items() if v}
