"""Checks of the tools: those of this installation, the cloud's, and the stored copy of them."""

import http.client
import ssl
from contextlib import closing, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from edge.cloud.mqtt.tls import MakeContext
from edge.config.model import read_secret
from edge.config.validators import BadSettings
from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, do, edit, fail, ok, quoted, skip, warn
from edge.doctor.subprocesses import in_thread
from edge.runtime.durations import duration
from tools_cache.api.tool import Source
from tools_cache.errors import BadManifest
from tools_cache.registry import manifest
from tools_cache.registry.registry_store import RegistryStore

ASK_S: Final = 3.0
OLD_S: Final = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class RegistryAnswer:
    """The head of the answer of the cloud's HTTP server; its body is not read."""

    status: int
    date: str
    location: str


class RegistryChecks(CheckGroup):
    """Whether there are tools."""

    async def builtin(self) -> Finding:
        path = self._machine.registry
        build = f"{quoted(self._machine.glassd)} registry build --file {quoted(path)}"
        rebuild = self._machine.by_writer(path.parent, build)
        try:
            load = partial(manifest.load, source=Source.LOCAL, per_tool_hardware=True)
            found = await in_thread(lambda: load(path.read_bytes()))
        except OSError as e:
            return fail(f"{path}: {e.strerror}", rebuild)
        except BadManifest as e:
            return fail(f"{path}: {e}", rebuild)
        if found.dropped:
            problem = f"{len(found.dropped)} tools cannot be used: {found.dropped[0].reason}"
            return warn(problem, rebuild)
        return ok(f"{sum(len(app.tools) for app in found.apps)} tools, version {found.version}")

    # -------------------------------------------------------------- the cloud over HTTP

    async def cloud(self) -> Finding:
        settings, enrolled = self._settings, self._examined.enrolled
        url = self._url
        if not url:
            return skip("no cloud is configured ([cloud] url) or enrolled with")
        try:
            configured = settings.cloud.url and read_secret(
                settings.cloud.token_file, "glassd-cloud-token", self._examined.env
            )
        except (BadSettings, PermissionError):
            return self._not_allowed("read the cloud's token")
        token = configured or (enrolled.cloud_token if enrolled and not settings.cloud.url else "")
        trust = None if settings.cloud.url else self._examined.cloud_context
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
            why = getattr(e, "strerror", None) or str(e) or type(e).__name__
            return fail(
                f"{url} cannot be reached: {why}",
                edit(
                    self._examined.source,
                    '[cloud] url = "<the address at which the cloud answers>" (or start it there)',
                ),
            )
        self._set_cloud_time(asked)
        return self._answered(url, asked)

    @property
    def _url(self) -> str:
        """Return the URL of the active cloud: the configured one, else the one of the enrolment,
        unless a broker is configured.
        """
        settings, enrolled = self._settings, self._examined.enrolled
        of_enrolment = enrolled.cloud_url if enrolled and not settings.uplink.host else ""
        return settings.cloud.url or of_enrolment

    def _set_cloud_time(self, asked: RegistryAnswer) -> None:
        """Set the time by the cloud's clock, for the check of this machine's clock."""
        with suppress(TypeError, ValueError):
            self._examined.cloud_time = parsedate_to_datetime(asked.date).timestamp()
            self._examined.asked_cloud_at = self._machine.clock.wall()

    def _answered(self, url: str, asked: RegistryAnswer) -> Finding:
        if asked.status in {401, 403}:
            return fail(
                f"{url} refuses us ({asked.status})",
                edit(
                    self._examined.source,
                    '[cloud] token_file = "<a file with the token this cloud gave you>"',
                ),
            )
        if asked.location:
            target = urlsplit(asked.location)._replace(query="", fragment="")
            moved = target.geturl().removesuffix("/api/registry")
            return fail(
                f"{url} redirects ({asked.status}), which is not followed",
                edit(self._examined.source, f'[cloud] url = "{moved}"'),
            )
        if asked.status in {404, 405, 410, 501}:
            return ok(f"{url} answers; it has no /api/registry, its tool list is used")
        if asked.status not in {200, 304}:
            return fail(
                f"{url} answers {asked.status}",
                do("the cloud has a problem of its own; glassd keeps trying by itself"),
            )
        return ok(f"{url} answers")

    # -------------------------------------------------------------- the stored copy

    async def stored(self) -> Finding:
        if not self._url:
            return skip("no cloud is configured ([cloud] url) or enrolled with")
        folder = self._examined.state_dir / "registry"
        try:
            newest, damaged = await in_thread(lambda: RegistryStore(folder).peek())
        except PermissionError:
            return self._not_allowed(f"read {folder}")
        for path, why in damaged.items():
            remove = self._machine.by_writer(path.parent, f"rm {quoted(path)}")
            return fail(f"{path}: {why}", remove)
        layer = self._examined.layer("registry")
        cloud = layer.get("cloud") or {}
        trouble, hint = str(cloud.get("error", "")), str(cloud.get("hint", ""))
        problem = f": {trouble}" if trouble else ""
        if newest is None:
            fix = do(
                hint
                or "it comes by itself when the cloud is reached: "
                "glassd run, or systemctl start glassd"
            )
            return warn(f"nothing of the cloud's is kept yet{problem}", fix)
        age = layer.get("age_s")
        if not isinstance(age, int | float):
            age = max(0.0, self._machine.clock.wall() - newest.fetched_wall)
        facts = f"{len(newest.body) / 1024:.0f} KiB, confirmed {duration(age)} ago"
        if age > OLD_S or trouble:
            fix = do(hint or "it is fetched again by itself when the cloud is reached")
            return warn(f"{facts}{problem}", fix)
        return ok(facts)


def _ask(url: str, headers: dict[str, str], trust: MakeContext | None) -> RegistryAnswer:
    """GET the registry's head. Raise OSError, HTTPException."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    place = (parts.hostname, parts.port)
    if parts.scheme == "https":
        tls = trust() if trust else ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            *place, timeout=ASK_S, context=tls
        )
    else:
        connection = http.client.HTTPConnection(*place, timeout=ASK_S)
    with closing(connection):
        connection.request("GET", f"{parts.path}/api/registry", headers=headers)
        answer = connection.getresponse()
        redirects = answer.status in {301, 302, 303, 307, 308}
        moved = answer.headers.get("location", "") if redirects else ""
        return RegistryAnswer(answer.status, answer.headers.get("date", ""), moved)
