"""The reference cloud with TLS: its authority, enrolment, and a Mosquitto with certificates and
access lists.

Requires Mosquitto: rumqttd has no access lists and checks no identity.
"""

import ssl
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

from edge.core.enrolment_code import Offer, encode
from edge.devcloud.enrolment.pki import Authority
from edge.devcloud.enrolment.service import LIFE, EnrolmentService
from edge.runtime.files import write_atomic

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
WORKER: Final = "cloud:worker"
"""The cloud's own user name at its broker; with its colon it cannot be an edge's."""

_HEAD: Final = """\
per_listener_settings true
set_tcp_nodelay true
persistence false
message_size_limit {payload}
max_inflight_messages 64
user root
"""
_LISTENER: Final = """\
listener {port} {bind}
cafile {ca}
certfile {cert}
keyfile {key}
tls_version tlsv1.2
acl_file {acl}
"""
_BY_CERTIFICATE: Final = """\
require_certificate true
use_identity_as_username true
allow_anonymous false
"""
_BY_NAME: Final = """\
allow_anonymous false
password_file {passwords}
"""


class Secured:
    """`name` is what edges call this machine: in certificates and enrolment codes."""

    def __init__(self, name: str, *, folder: Path, tenant: str, life: timedelta = LIFE) -> None:
        self.name = name
        self._folder = folder
        self._tenant = tenant
        self.authority = Authority(folder)
        self.enrolment = EnrolmentService(folder, self.authority, wall=time.time, life=life)
        self.cert, self.key = self.authority.server(tuple(dict.fromkeys((name, *LOOPBACK))))
        self._worker_cert, self._worker_key = self.authority.worker(WORKER)
        self._acl, self._passwords = folder / "acl", folder / "passwords"
        self.write_access()

    @property
    def bind(self) -> str:
        """Listening address: loopback only if the machine is called by a loopback name."""
        return "127.0.0.1" if self.name in LOOPBACK else "0.0.0.0"  # noqa: S104 - edges come from elsewhere

    def broker_config(self, port: int, password_port: int, *, payload: int) -> str:
        """Write Mosquitto's configuration: one listener for certificates, one for passwords."""
        listeners = (
            (port, _BY_CERTIFICATE),
            (password_port, _BY_NAME.format(passwords=self._passwords)),
        )
        files = {"ca": self.authority.file, "cert": self.cert, "key": self.key, "acl": self._acl}
        common = {"bind": self.bind, **files}
        return _HEAD.format(payload=payload) + "".join(
            _LISTENER.format(port=p, **common) + by for p, by in listeners
        )

    def write_access(self) -> None:
        """Write the access list; the broker reads it on SIGHUP."""
        prefix = f"glassd/v1/{self._tenant}"
        rules = [f"user {WORKER}", f"topic readwrite {prefix}/#", f"topic read $share/+/{prefix}/#"]
        for edge_id in self.enrolment.edges():
            rules += [
                f"user {edge_id}",
                f"topic readwrite {prefix}/e/{edge_id}/#",
                f"topic read {prefix}/registry/#",
            ]
        write_atomic(self._acl, ("\n".join(rules) + "\n").encode())
        write_atomic(self._passwords, self.enrolment.passwords().encode())

    def worker_context(self) -> ssl.SSLContext:
        """Return the TLS context of the cloud's own connection to its broker."""
        context = ssl.create_default_context(cafile=str(self.authority.file))
        context.load_cert_chain(self._worker_cert, self._worker_key)
        return context

    def code(self, life_s: float, edge_id: str = "", *, broker_port: int, enrol_port: int) -> str:
        """Create an enrolment code that works once within `life_s`."""
        return encode(
            Offer(
                broker_host=self.name,
                broker_port=broker_port,
                enrol_host=self.name,
                enrol_port=enrol_port,
                tenant=self._tenant,
                ca_sha256=self.authority.fingerprint,
                secret=self.enrolment.issue(life_s=life_s, edge_id=edge_id),
            )
        )
