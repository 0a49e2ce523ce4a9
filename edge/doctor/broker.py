"""Checks of the broker, each with its latency: name, TCP, TLS, CONNACK, SUBACK, a round trip. The
first failure skips the rest.

The daemon is not disturbed: the doctor uses its own client id, a clean session and a topic of its
own below the edge's prefix.
"""

import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from edge.cloud.mqtt.client import UplinkOptions
from edge.cloud.mqtt.connection import (
    BrokerOptions,
    ConnectionFailed,
    ConnectionOver,
    MqttConnection,
    PublishRefused,
)
from edge.cloud.mqtt.connection_types import open_socket
from edge.cloud.mqtt.faults import BrokerVerdict, Fault, of_os_error
from edge.cloud.mqtt.tls import context, dated
from edge.cloud.mqtt.topics import Topics
from edge.config.validators import BadSettings
from edge.doctor.machine import CheckGroup, ExaminedMachine
from edge.doctor.models import Finding, Fix, do, edit, fail, ok, skip, warn
from edge.doctor.subprocesses import in_thread

STEP_S: Final = 2.5
SOON_S: Final = 14 * 86400.0
"""A certificate that ends earlier than this gets a warning."""
CONNECTING_S: Final = 20.0
"""A daemon that was just started, or whose broker just came back, is given this long."""
PLAIN, SECURE = 1883, 8883
_OF_CLIENT_ID: Final = frozenset(
    {
        Fault.CREDENTIALS,
        Fault.NOT_AUTHORIZED,
        Fault.SUBSCRIBE_REFUSED,
        Fault.CLIENT_ID,
        Fault.BANNED,
    }
)
"""Refusals that may apply to the doctor's client id, not to the edge."""


class BrokerChecks(CheckGroup):
    """The steps to the broker; each check uses what the one before found out."""

    def __init__(self, examined: ExaminedMachine) -> None:
        super().__init__(examined)
        self._connection: MqttConnection | None = None
        self._tls: ssl.SSLContext | None = None

    @property
    def _u(self) -> UplinkOptions:
        assert self._examined.place is not None
        return self._examined.place

    @property
    def _host(self) -> str:
        return self._u.host or ""

    @property
    def _address(self) -> str:
        return f"{self._host}:{self._u.port}"

    def _edit(self, change: str) -> Fix:
        """Return a change of the configuration; values of an enrolment only another one changes."""
        settings = self._examined.settings
        if settings is not None and not settings.uplink.host:
            key = change.partition(" =")[0]
            return do(
                "ask your cloud for a new code, then: glassd up CODE (it has "
                f"to give a new value for {key})"
            )
        return edit(self._examined.source, f"[uplink] {change}")

    # -------------------------------------------------------------- name, TCP, TLS

    async def dns(self) -> Finding:
        host = self._host
        if not host:
            return skip(
                "no broker is configured ([uplink] host) or enrolled with; local tools work without"
            )
        try:
            found = await in_thread(
                lambda: socket.getaddrinfo(host, self._u.port, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError) as e:
            return fail(
                f"{host}: {getattr(e, 'strerror', None) or e}",
                self._edit(
                    'host = "<a name that this machine can look up, '
                    'or an address>" (to try one: getent hosts NAME)'
                ),
            )
        addresses = list(dict.fromkeys(str(info[4][0]) for info in found))
        known = "an address" if addresses == [host] else ", ".join(addresses[:3])
        return ok(f"{host} is {known}")

    async def tcp(self) -> Finding:
        try:
            await self._connect(self._u.port)
        except OSError as e:
            verdict = of_os_error(e)
            return fail(f"{self._address}: {verdict.detail}", await self._other_port(verdict))
        return ok(f"{self._address} accepts connections")

    async def _connect(self, port: int) -> None:
        """Connect and hang up. Raise OSError."""
        place = (self._host, port)
        (await in_thread(lambda: socket.create_connection(place, timeout=STEP_S * 0.8))).close()

    async def _other_port(self, verdict: BrokerVerdict) -> Fix:
        """Return the fix where nobody listens: the other of the two usual ports, if one listens
        there; else a broker of this machine that does not run.
        """
        for port, tls in ((SECURE, "true"), (PLAIN, "false")):
            if port != self._u.port:
                with suppress(OSError):
                    await self._connect(port)
                    return self._edit(f"port = {port}, tls = {tls} (a broker listens there)")
        if self._host in {"localhost", "::1"} or self._host.startswith("127."):
            ran = await self._machine.ask(
                "systemctl", "show", "mosquitto.service", "--property=LoadState"
            )
            if ran.code == 0 and "LoadState=loaded" in ran.out:
                return self._machine.as_root("systemctl enable --now mosquitto")
        if verdict.fault is Fault.REFUSED:
            return self._edit(
                'host = "<where the broker is>", port = <its port> (nothing '
                "listens here; or start the broker)"
            )
        return do(
            f"let TCP to {self._address} through (firewall, Wi-Fi, "
            "VPN), or correct [uplink] host and port"
        )

    async def handshake(self) -> Finding:
        if not self._u.tls:
            return ok("switched off ([uplink] tls = false)")
        try:
            self._tls = await context(self._u.tls, self._machine.clock.wall())
            place = BrokerOptions(
                host=self._host,
                port=self._u.port,
                client_id="",
                tls=self._tls,
                connect_timeout_s=STEP_S,
            )
            secure = await in_thread(lambda: open_socket(place))
        except ConnectionFailed as e:
            if "ermission denied" in e.verdict.detail and not self._machine.me.is_root:
                return self._not_allowed(f"read our certificate: {e.verdict.detail}")
            return fail(f"{self._address}: {e.verdict.detail}", await self._secure(e.verdict))
        except OSError as e:
            verdict = dated(of_os_error(e), self._machine.clock.wall())
            return fail(f"{self._address}: {verdict.detail}", await self._secure(verdict))
        with secure:
            return self._certificate(secure)

    def _certificate(self, secure: Any) -> Finding:
        ends = ssl.cert_time_to_seconds(secure.getpeercert()["notAfter"])
        day = f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%d}"
        found = f"{secure.version()}, its certificate is good until {day}"
        if ends - self._machine.clock.wall() < SOON_S:
            return warn(found, do(f"renew the broker's certificate before {day}"))
        return ok(found)

    async def _secure(self, verdict: BrokerVerdict) -> Fix:
        if verdict.fault is Fault.TLS_NAME:
            names = await in_thread(self._names)
            return self._edit(
                f'host = "{names[0]}"'
                if names
                else 'host = "<the name in the certificate of the broker>"'
            )
        if verdict.fault is Fault.TLS_UNTRUSTED:
            return self._edit(
                'ca_file = "<the file of the authority that signed the certificate of the '
                'broker>" (ask its operator; Mosquitto: its cafile)'
            )
        if verdict.fault in {Fault.TLS_EARLY, Fault.CLOCK}:
            return self._machine.as_root("timedatectl set-ntp true")
        if verdict.fault is Fault.TLS_EXPIRED:
            return do(
                "renew the broker's certificate (Mosquitto: certfile), "
                "then: systemctl reload mosquitto"
            )
        if verdict.fault in {Fault.TLS, Fault.LOST, Fault.TIMEOUT}:
            return self._edit(
                "tls = false (no TLS is spoken at this port; where the broker has another "
                "one with TLS, usually 8883, say that port instead)"
            )
        return do(verdict.hint)

    def _names(self) -> list[str]:
        """Return the names in a certificate that is trusted but has another name than the host."""
        assert self._u.tls is not None
        trusting = self._u.tls()
        trusting.check_hostname = False
        with (
            suppress(OSError),
            socket.create_connection((self._host, self._u.port), timeout=1.0) as plain,
        ):
            with trusting.wrap_socket(plain) as secure:
                certificate: dict[str, Any] = dict(secure.getpeercert() or {})
            return [
                str(name)
                for kind, name in certificate.get("subjectAltName", ())
                if kind in {"DNS", "IP Address"}
            ]
        return []

    # -------------------------------------------------------------- MQTT

    async def connack(self) -> Finding:
        try:
            options = self._options()
        except (BadSettings, PermissionError):
            return self._not_allowed("read the broker's password")
        except ValueError as e:
            return fail(
                str(e), self._edit('host = "<where the broker is>", port = <its port> (as said)')
            )
        try:
            self._connection = await self._examined.closing.enter_async_context(
                MqttConnection(options)
            )
        except ConnectionFailed as e:
            verdict = e.verdict
            if verdict.fault is Fault.NOT_AUTHORIZED:  # Mosquitto: no user name, or a wrong one
                verdict = BrokerVerdict(Fault.CREDENTIALS, verdict.detail)
            return self._refused(verdict)
        return ok(f"{self._address} lets {options.client_id} in")

    def _options(self) -> BrokerOptions:
        assert self._examined.choice is not None
        o = self._examined.choice.uplink()
        return BrokerOptions(
            host=self._host,
            port=o.port,
            client_id=f"{o.edge_id}-doctor-{self._machine.unique}",
            username=o.username,
            password=o.password,
            tls=self._tls,
            keepalive_s=30,
            clean_start=True,
            session_expiry_s=0,
            connect_timeout_s=STEP_S * 1.4,
            ack_timeout_s=STEP_S,
            user_timeout_s=STEP_S,
        )

    @property
    def _topic(self) -> str:
        return Topics(self._u.tenant, self._u.edge_id).reply(f"doctor-{self._machine.unique}")

    async def suback(self) -> Finding:
        assert self._connection is not None
        try:
            await self._connection.subscribe(self._topic)
        except (ConnectionFailed, ConnectionOver) as e:
            return self._refused(e.verdict)
        return ok(f"we may read {self._topic}")

    async def trip(self) -> Finding:
        assert self._connection is not None
        try:
            code = await self._connection.publish(
                self._topic, self._machine.unique.encode(), expiry_s=10
            )
            if code:
                return fail(
                    f"the broker accepted our message but delivered it to nobody (0x{code:02X})",
                    do("see the broker's log and its access list"),
                )
            message = await self._connection.receive()
            message.ack()
        except PublishRefused as e:
            return self._refused(BrokerVerdict(Fault.NOT_AUTHORIZED, str(e)))
        except (ConnectionOver, TimeoutError) as e:
            silent = BrokerVerdict(Fault.SILENT, "our own message did not come back")
            return self._refused(getattr(e, "verdict", silent))
        return ok("our own message came back")

    def _refused(self, verdict: BrokerVerdict) -> Finding:
        problem, fix = f"{self._address}: {verdict.detail}", self._fix_of(verdict)
        if verdict.fault in _OF_CLIENT_ID and self._examined.layer("uplink").get("state") == "up":
            return warn(f"{problem} (to the doctor; the daemon itself is connected)", fix)
        return fail(problem, fix)

    def _fix_of(self, verdict: BrokerVerdict) -> Fix:
        if verdict.fault is Fault.CREDENTIALS:
            return self._edit(
                'username = "<your name>", password_file = "<a file with the password '
                "alone>\" (as the broker's operator gave them to you)"
            )
        if verdict.fault in {Fault.NOT_AUTHORIZED, Fault.SUBSCRIBE_REFUSED}:
            who = self._u.username or "this edge"
            return do(
                f"let {who} read and write {self._topic.rpartition('/reply/')[0]}/# in the "
                "broker's access list (Mosquitto: acl_file), then: systemctl reload mosquitto",
            )
        return do(verdict.hint or "see the broker's log")

    # -------------------------------------------------------------- the daemon's own connection

    async def uplink(self) -> Finding:
        layer = self._examined.layer("uplink")
        if not self._host:
            return skip("no broker is configured")
        if not layer:
            return skip("only the running daemon knows")
        if layer.get("state") == "up":
            waiting = self._examined.layer("outbox").get("waiting", 0)
            return ok(f"connected to {layer.get('broker')}, {waiting} calls wait for the cloud")
        if layer.get("state") == "not configured":
            return warn(
                "the daemon was started before [uplink] was written",
                self._machine.as_root("systemctl restart glassd"),
            )
        since = float(layer.get("since_s") or 0.0)
        if since < CONNECTING_S:
            return warn(
                f"the daemon is connecting since {since:.0f} s",
                do("run glassd doctor again in half a minute"),
            )
        return fail(
            f"the daemon is not connected: {layer.get('reason') or layer.get('state')}",
            do("correct the rung above that failed; it connects by itself within a minute"),
        )
