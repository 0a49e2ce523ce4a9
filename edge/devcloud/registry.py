"""The registry of the small cloud: installed apps, their tools, one version and hash over all of them.

Refuses to know HTTP and MQTT, and who may see a tool: it filters by hardware only when asked to.
"""

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from edge.devcloud.definitions import Submission, check_submission
from tools_cache import manifest
from tools_cache.errors import BadDefinition
from tools_cache.names import parse
from tools_cache.tool import Json

log = logging.getLogger(__name__)

MAX_APPS: Final = 1000
MAX_STORED: Final = 32 << 20
"""Bytes of the file of what developers handed in."""


@dataclass(frozen=True, slots=True)
class App:
    """One installed app. `command` starts it (its `$PORT` is ours to choose), else it lives at `public_url`."""

    package: str
    name: str
    tools: tuple[Mapping[str, Json], ...]
    hardware: tuple[Mapping[str, Json], ...] = ()
    public_url: str = ""
    api_key_hash: str = ""
    command: tuple[str, ...] = ()

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Json], command: tuple[str, ...] = (), public_url: str = "") -> "App":
        """Make one from what `AppServer.manifest()` says."""
        return cls(
            manifest["packageName"], manifest["name"], tuple(manifest["tools"]),
            tuple(manifest["hardwareRequirements"]), public_url, "", command,
        )  # fmt: skip

    def document(self) -> dict[str, Json]:
        """As the edge sees it: no address, no key."""
        return {
            "packageName": self.package, "name": self.name, "tools": [dict(t) for t in self.tools],
            "hardwareRequirements": [dict(h) for h in self.hardware],
        }  # fmt: skip

    def lacks(self, has: Mapping[str, bool] | None) -> tuple[str, ...]:
        """Hardware it REQUIRES and these glasses have not; nothing is missing while they are unknown (S0-12)."""
        if has is None:
            return ()
        required = (str(h["type"]) for h in self.hardware if h.get("level") == "REQUIRED")
        return tuple(t for t in required if t != "EXIST" and not has.get(t.lower(), False))


class Found(NamedTuple):
    """One tool and the app it belongs to."""

    app: App
    tool: Mapping[str, Json]


class Registry:
    """All apps; `version`, `sha256` and `body` always belong together and change only by `submit`."""

    def __init__(self, apps: Iterable[App], *, file: Path | None = None) -> None:
        self._apps = {app.package: app for app in apps}
        self._file = file
        self._submitted: dict[str, Json] = self._load()
        self._stamp()

    @property
    def etag(self) -> str:
        return f'"{self.sha256}"'

    def find(self, name: str) -> Found | None:
        """Look a canonical name up. Raises BadToolName when it is none."""
        package, local = parse(name)
        app = self._apps.get(package)
        tool = None if app is None else next((t for t in app.tools if t.get("name") == local), None)
        return None if app is None or tool is None else Found(app, tool)

    def app(self, package: str) -> App | None:
        return self._apps.get(package)

    def listing(self, has: Mapping[str, bool] | None) -> list[dict[str, Json]]:
        """Every tool under its full name, the rest of its definition untouched; apps that cannot run are left out."""
        tools: list[dict[str, Json]] = []
        for app in self._sorted():
            if missing := app.lacks(has):
                log.debug("Skipping tools from incompatible app %s: missing %s", app.package, ", ".join(missing))
                continue
            tools += ({**tool, "name": f"{app.package}:{tool['name']}"} for tool in app.tools)
        return tools

    def submit(self, submission: Submission) -> bool:
        """Install or update an app; returns when it is on disk. True when the package is new. Raises BadDefinition."""
        old = self._apps.get(submission.package)
        if old is None and len(self._apps) >= MAX_APPS:
            raise BadDefinition(f"apps: there are {MAX_APPS} already, which is the most this cloud holds")
        app = _merged(old, submission)
        self._save({**self._submitted, app.package: _body(app)})
        self._apps[app.package] = app
        self._stamp()
        return old is None

    # -------------------------------------------------------------- inside

    def _sorted(self) -> list[App]:
        return [self._apps[package] for package in sorted(self._apps)]

    def _stamp(self) -> None:
        apps = [app.document() for app in self._sorted()]
        self.sha256 = manifest.digest(apps)
        self.version = f"1.0.{self.sha256[:8]}"
        document = {"version": self.version, "sha256": self.sha256, "apps": apps}
        self.body = json.dumps(document, ensure_ascii=False).encode()

    def _load(self) -> dict[str, Json]:
        """Take in again what developers handed in before; a damaged file is set aside, never fatal."""
        if self._file is None or not self._file.exists():
            return {}
        try:
            stored = _read(self._file)
            again = [check_submission(package, body) for package, body in stored.items()]
        except (OSError, ValueError) as e:
            aside = self._file.with_suffix(".damaged")
            log.warning("the stored submissions cannot be read (%s); set aside as %s", e, aside.name)
            self._file.replace(aside)
            return {}
        self._apps |= {s.package: _merged(self._apps.get(s.package), s) for s in again}
        return stored

    def _save(self, submitted: dict[str, Json]) -> None:
        if self._file is not None:
            fresh = self._file.with_suffix(".new")
            with fresh.open("w", encoding="utf-8") as file:
                json.dump(submitted, file, ensure_ascii=False)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._file)
        self._submitted = submitted


def _read(file: Path) -> dict[str, Json]:
    if file.stat().st_size > MAX_STORED:
        raise ValueError(f"larger than {MAX_STORED} bytes")
    stored = json.loads(file.read_bytes())
    if not isinstance(stored, dict):
        raise ValueError("not an object")
    return stored


def _merged(old: App | None, new: Submission) -> App:
    """What is not said stays as it was."""
    base = old or App(new.package, new.package, ())
    return replace(
        base, tools=new.tools, name=base.name if new.name is None else new.name,
        hardware=base.hardware if new.hardware is None else new.hardware,
        public_url=base.public_url if new.public_url is None else new.public_url.rstrip("/"),
        command=base.command if new.public_url is None else (),  # whoever says where it lives runs it, too
        api_key_hash=base.api_key_hash if new.api_key_hash is None else new.api_key_hash,
    )  # fmt: skip


def _body(app: App) -> dict[str, Json]:
    """An app as a submission that would make it again."""
    said = {"publicUrl": app.public_url, "apiKeyHash": app.api_key_hash}
    body = {"name": app.name, "hardwareRequirements": list(app.hardware), "tools": list(app.tools)}
    return body | {k: v for k, v in said.items() if v}
