"""Which cloud this edge uses: the configured one, else the one it enrolled with.

The two are not mixed: a configuration that names a broker decides everything about it.
"""

import dataclasses
import ssl
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from edge import __version__
from edge.cloud.enrolment.client import Enrolment
from edge.cloud.mqtt.client import UplinkOptions
from edge.config import model as configuration
from edge.config.model import Settings
from edge.core.words.secret_fields import repr_without
from edge.ports import EnrolRefused
from edge.tools.registry_http import CloudRegistry

Secret = Callable[[str, str], str | None]
"""Returns a secret: (configured file, name of the credential)."""


class Certificates(Struct, frozen=True):
    """Creates the configured TLS context for each connection, so that renewed files are used. Two
    of the same files are equal, so that a reload without changes keeps the connection.
    """

    ca: str
    cert: str
    key: str
    env: Mapping[str, str]

    def __repr__(self) -> str:
        return repr_without(self, "env")

    def __call__(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca or None)
        certificate = configuration.credential(self.cert, "glassd-mqtt-cert.pem", self.env)
        if certificate is not None:
            context.load_cert_chain(
                certificate, configuration.credential(self.key, "glassd-mqtt-key.pem", self.env)
            )
        return context


@dataclass(eq=False, repr=False)
class CloudSource:
    """Answers from the current state: an enrolment may come or change while the daemon runs."""

    settings: Settings
    env: Mapping[str, str]
    enrolment: Enrolment
    _: KW_ONLY
    edge_id: str
    secret: Secret
    given: UplinkOptions | None = field(default=None, init=False)
    """The options of the uplink returned last."""

    def under(self, settings: Settings) -> "CloudSource":
        """Return the same with other settings."""
        return dataclasses.replace(self, settings=settings)

    def take(self, settings: Settings) -> None:
        """Use these settings from now on."""
        self.settings = settings

    @property
    def source(self) -> str:
        """Where the broker's address comes from: "config", "enrolled", or "" without one."""
        if self.settings.uplink.host:
            return "config"
        return "enrolled" if self.enrolment.current else ""

    @property
    def why_not_enrol(self) -> str:
        """What in the configuration would override an enrolment; "" if nothing does."""
        if not self.settings.uplink.host:
            return ""
        where = self.settings.source or "the environment"
        return f"uplink.host is set in {where}, and wins over an enrolment"

    async def enrol(self, code: str) -> Mapping[str, Any]:
        """Redeem a code. Raises `EnrolRefused`."""
        if self.why_not_enrol:
            fix = "take [uplink] host out of it and restart glassd; the code is not spent"
            raise EnrolRefused("CONFIGURED", self.why_not_enrol, fix)
        return (await self.enrolment.enrol(code)).to_json()

    def certificate_left_s(self) -> float | None:
        """Return how long the certificate of the enrolment is valid; None without one."""
        return self.enrolment.left_s() if self.source == "enrolled" else None

    def uplink(self) -> UplinkOptions:
        """Return the current options of the uplink."""
        self.given = self._uplink()
        return self.given

    def _uplink(self) -> UplinkOptions:
        u, kept = self.settings.uplink, self.enrolment.current
        common = UplinkOptions(
            edge_id=self.edge_id,
            tenant=self.settings.edge.tenant,
            pool=u.pool,
            version=__version__,
            keepalive_s=u.keepalive_s,
            user_timeout_s=u.tcp_user_timeout_s,
            session_expiry_s=u.session_expiry_s,
            will_delay_s=u.will_delay_s,
            reconnect_min_s=u.reconnect_min_s,
            reconnect_max_s=u.reconnect_max_s,
            stable_s=u.stable_s,
        )
        if u.host or kept is None:
            return replace(
                common,
                host=u.host or None,
                port=u.port_in_use,
                username=u.username or None,
                password=self.secret(u.password_file, "glassd-mqtt-password"),
                tls=Certificates(u.ca_file, u.cert_file, u.key_file, self.env)
                if u.host and u.tls
                else None,
            )
        return replace(
            common,
            host=kept.host,
            port=kept.port,
            tenant=kept.tenant,
            pool=kept.pool or u.pool,
            username=kept.username or None,
            password=kept.password or None,
            tls=self.enrolment.broker_context,
        )

    def registry(self) -> CloudRegistry | None:
        """Return access to the cloud's registry; None without a cloud."""
        c, kept, user = self.settings.cloud, self.enrolment.current, self.settings.edge.user_id
        if c.url:
            return CloudRegistry(
                c.url, token=self.secret(c.token_file, "glassd-cloud-token") or "", user_id=user
            )
        if kept is None or not kept.cloud_url or self.settings.uplink.host:
            return None
        return CloudRegistry(
            kept.cloud_url, token=kept.cloud_token, user_id=user, tls=self.enrolment.cloud_context
        )
