"""The reference cloud's registry: installed apps, their tools, one version and hash over all of
them.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

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
        return cls(
            manifest["packageName"],
            manifest["name"],
            tuple(manifest["tools"]),
            tuple(manifest["hardwareRequirements"]),
            public_url,
            "",
            command,
        )

    def document(self) -> dict[str, Json]:
        """Return it as edges see it: without address and key."""
        return {
            "packageName": self.package,
            "name": self.name,
            "tools": [dict(t) for t in self.tools],
            "hardwareRequirements": [dict(h) for h in self.hardware],
        }

    def lacks(self, has: Mapping[str, bool] | None) -> tuple[str, ...]:
        """Hardware it REQUIRES and these glasses have not; nothing is missing while they are
        unknown.
        """
        if has is None:
            return ()
        required = (str(h["type"]) for h in self.hardware if h.get("level") == "REQUIRED")
        return tuple(t for t in required if t != "EXIST" and not has.get(t.lower(), False))


def _every(_: str) -> bool:
    return True


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
        """Look a canonical name up. Raises BadToolName when it is none."""
        return self._tools.get(parse(name))

    def app(self, package: str) -> InstalledApp | None:
        return self._apps.get(package)

    def listing(
        self, has: Mapping[str, bool] | None, *, installed: Callable[[str], bool] = _every
    ) -> list[dict[str, Json]]:
        """Every tool under its full name, the rest of its definition untouched; apps that
        cannot run are left out.
        """
        tools: list[dict[str, Json]] = []
        for app in self._sorted():
            if not installed(app.package):
                continue
            if missing := app.lacks(has):
                log.debug(
                    "Skipping tools from incompatible app %s: missing %s",
                    app.package,
                    ", ".join(missing),
                    extra={"packageName": app.package, "missingHardware": list(missing)},
                )
                continue
            tools += (
                {**deepcopy(dict(tool)), "name": f"{app.package}:{tool['name']}"}
                for tool in app.tools
            )
        return tools

    def merged(self, new: AppSubmission) -> InstalledApp:
        """An app as a submission makes it: what is not said stays as it was. Raises
        BadDefinition when there is no room.
        """
        old = self._apps.get(new.package)
        if old is None and len(self._apps) >= MAX_APPS:
            raise BadDefinition(
                f"apps: there are {MAX_APPS} already, which is the most this cloud holds"
            )
        return _merged(old, new)

    def restore(self, submitted: Iterable[AppSubmission]) -> None:
        """Take force: the built-in apps, and over them what developers handed in."""
        self._apps = self._built_in | {
            s.package: _merged(self._built_in.get(s.package), s) for s in submitted
        }
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


def _merged(old: InstalledApp | None, new: AppSubmission) -> InstalledApp:
    """What is not said stays as it was."""
    base = old or InstalledApp(new.package, new.package, ())
    return replace(
        base,
        tools=new.tools,
        name=base.name if new.name is None else new.name,
        hardware=base.hardware if new.hardware is None else new.hardware,
        public_url=base.public_url if new.public_url is None else new.public_url.rstrip("/"),
        command=base.command
        if new.public_url is None
        else (),  # an app with an address is run by its developer
        api_key_hash=base.api_key_hash if new.api_key_hash is None else new.api_key_hash,
    )


def body_of(app: InstalledApp) -> dict[str, Json]:
    """An app as a submission that would make it again."""
    said = {"publicUrl": app.public_url, "apiKeyHash": app.api_key_hash}
    body = {"name": app.name, "hardwareRequirements": list(app.hardware), "tools": list(app.tools)}
    return body | {k: v for k, v in said.items() if v}
