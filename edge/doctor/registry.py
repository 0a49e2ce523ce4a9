"""Checks of the tools: those of this installation, the cloud's, and the stored copy of them."""

import http.client
import os
import ssl
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from edge.cloud.mqtt.tls import MakeContext
from edge.config.model import read_secret
from edge.config.validators import BadSettings
from edge.doctor.machine import ExaminedMachine
from edge.doctor.models import Check, Finding, Fix, do, edit, fail, ok, quoted, run, skip, warn
from edge.doctor.subprocesses import in_thread
from tools_cache.api.tool import Source
from tools_cache.errors import BadManifest
from tools_cache.registry import manifest
from tools_cache.registry.registry_store import RegistryStore

ASK_S: Final = 3.0
OLD_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class RegistryAnswer:
    """What the cloud's HTTP server said at once; its body is not read."""

    status: int
    date: str
    location: str


class RegistryChecks:
    """The checks of this layer."""

    def __init__(self, patient: ExaminedMachine) -> None:
        self._patient = patient
        self._machine = patient.machine

    def checks(self) -> tuple[Check, ...]:
        return (
            Check(id="builtin", layer="tools", title="built-in tools", examine=self._builtin),
            Check(
                id="cloud",
                layer="tools",
                title="cloud",
                examine=self._cloud,
                needs=("config",),
                after=("enrolment",),
                deadline_s=2 * ASK_S,
            ),
            Check(
                id="registry",
                layer="tools",
                title="cloud's tools",
                examine=self._kept,
                needs=("config",),
                after=("cloud", "daemon"),
            ),
        )

    async def _builtin(self) -> Finding:
        path = self._machine.registry
        build = f"{quoted(self._machine.glassd)} registry build --file {quoted(path)}"
        rebuild = run(build) if os.access(path.parent, os.W_OK) else self._machine.as_root(build)
        try:
            found = await in_thread(
                lambda: manifest.load(
                    path.read_bytes(), source=Source.LOCAL, per_tool_hardware=True
                )
            )
        except OSError as e:
            return fail(f"{path}: {e.strerror}", rebuild)
        except BadManifest as e:
            return fail(f"{path}: {e}", rebuild)
        tools = sum(len(app.tools) for app in found.apps)
        return (
            ok(f"{tools} tools, version {found.version}")
            if not found.dropped
            else warn(
                f"{len(found.dropped)} tools cannot be used: {found.dropped[0].reason}", rebuild
            )
        )

    # -------------------------------------------------------------- the cloud over HTTP

    async def _cloud(self) -> Finding:
        settings, enrolled = self._patient.settings, self._patient.enrolled
        assert settings is not None
        url = self._url
        if not url:
            return skip("no cloud is configured ([cloud] url) or enrolled with")
        try:
            configured = settings.cloud.url and read_secret(
                settings.cloud.token_file, "glassd-cloud-token", self._patient.env
            )
        except (BadSettings, PermissionError):
            return skip(
                "you may not read the cloud's token", self._machine.as_root("glassd doctor")
            )
        token = configured or (enrolled.cloud_token if enrolled and not settings.cloud.url else "")
        trust = None if settings.cloud.url else self._patient.cloud_context
        headers = {"Accept": "application/json", "X-User-Id": settings.edge.user_id}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        try:
            asked = await in_thread(lambda: _ask(url, headers, trust))
        except ssl.SSLCertVerificationError as e:
            return fail(
                f"{url}: its certificate is not accepted: {e.verify_message}",
                do(
                    "check the clock first; else the cloud's operator must "
                    "renew or correct its certificate"
                ),
            )
        except (OSError, http.client.HTTPException, ValueError) as e:
            said = getattr(e, "strerror", None) or str(e) or type(e).__name__
            return fail(
                f"{url} cannot be reached: {said}",
                edit(
                    self._file,
                    '[cloud] url = "<the address at which the cloud answers>" (or start it there)',
                ),
            )
        self._remember(asked)
        return self._answered(url, asked)

    @property
    def _url(self) -> str:
        """The active cloud: the configured one, else the enrolled one, which a configured
        broker overrules.
        """
        settings, enrolled = self._patient.settings, self._patient.enrolled
        assert settings is not None
        return settings.cloud.url or (
            enrolled.cloud_url if enrolled and not settings.uplink.host else ""
        )

    @property
    def _file(self) -> str:
        settings = self._patient.settings
        return str((settings.source if settings else None) or "/etc/glassd/glassd.toml")

    def _remember(self, asked: RegistryAnswer) -> None:
        """Keep what the cloud's clock says, for the check of our clock."""
        try:
            told = parsedate_to_datetime(asked.date)
        except (TypeError, ValueError):
            return
        self._patient.cloud_time = told.timestamp()
        self._patient.asked_cloud_at = self._machine.clock.wall()

    def _answered(self, url: str, asked: RegistryAnswer) -> Finding:
        if asked.status in {401, 403}:
            return fail(
                f"{url} refuses us ({asked.status})",
                edit(
                    self._file, '[cloud] token_file = "<a file with the token this cloud gave you>"'
                ),
            )
        if asked.location:
            moved = (
                urlsplit(asked.location)
                ._replace(query="", fragment="")
                .geturl()
                .removesuffix("/api/registry")
            )
            return fail(
                f"{url} redirects ({asked.status}), which is not followed",
                edit(self._file, f'[cloud] url = "{moved}"'),
            )
        if asked.status in {404, 405, 410, 501}:
            return ok(f"{url} answers; it has no /api/registry, its tool list is used")
        if asked.status not in {200, 304}:
            return fail(
                f"{url} answers {asked.status}",
                do("the cloud has a problem of its own; glassd keeps trying by itself"),
            )
        return ok(f"{url} answers")

    # -------------------------------------------------------------- what is kept of it

    async def _kept(self) -> Finding:
        if not self._url:
            return skip("no cloud is configured ([cloud] url) or enrolled with")
        folder = self._patient.state_dir / "registry"
        try:
            newest, damaged = await in_thread(lambda: RegistryStore(folder).peek())
        except PermissionError:
            return skip(f"you may not read {folder}", self._machine.as_root("glassd doctor"))
        for path, why in damaged.items():
            return fail(f"{path}: {why}", self._remove(path))
        layer = self._patient.layer("registry")
        cloud = layer.get("cloud") or {}
        trouble, hint = str(cloud.get("error", "")), str(cloud.get("hint", ""))
        if newest is None:
            return warn(
                f"nothing of the cloud's is kept yet{': ' if trouble else ''}{trouble}",
                do(
                    hint
                    or (
                        "it comes by itself when the cloud is reached: "
                        "glassd run, or systemctl start glassd"
                    )
                ),
            )
        age = layer.get("age_s")
        old = (
            float(age)
            if isinstance(age, int | float)
            else max(0.0, self._machine.clock.wall() - newest.fetched_wall)
        )
        said = f"{len(newest.body) / 1024:.0f} KiB, confirmed {_age(old)} ago"
        if old > OLD_S or trouble:
            return warn(
                f"{said}{': ' if trouble else ''}{trouble}",
                do(hint or "it is fetched again by itself when the cloud is reached"),
            )
        return ok(said)

    def _remove(self, path: Path) -> Fix:
        command = f"rm {quoted(path)}"
        return run(command) if os.access(path.parent, os.W_OK) else self._machine.as_root(command)


def _ask(url: str, headers: dict[str, str], trust: MakeContext | None) -> RegistryAnswer:
    """GET the registry's head. Raises OSError, HTTPException."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.hostname,
            parts.port,
            timeout=ASK_S,
            context=trust() if trust else ssl.create_default_context(),
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=ASK_S)
    try:
        connection.request("GET", f"{parts.path}/api/registry", headers=headers)
        answer = connection.getresponse()
        moved = (
            answer.headers.get("location", "") if answer.status in {301, 302, 303, 307, 308} else ""
        )
        return RegistryAnswer(answer.status, answer.headers.get("date", ""), moved)
    finally:
        connection.close()


def _age(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
