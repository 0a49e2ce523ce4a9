"""Why a broker does not let us in, or ends a link: from an error to a reason and what to do."""

import re
import socket
import ssl
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Fault(StrEnum):
    """What is wrong with a link to a broker."""

    UNKNOWN_HOST = "unknown_host"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    TLS_UNTRUSTED = "tls_untrusted"
    TLS_NAME = "tls_name"
    TLS_EXPIRED = "tls_expired"
    TLS_EARLY = "tls_early"
    TLS_CLIENT = "tls_client"
    TLS_CLIENT_MISSING = "tls_client_missing"
    TLS_CLIENT_EXPIRED = "tls_client_expired"
    TLS_CLIENT_REVOKED = "tls_client_revoked"
    TLS_FILES = "tls_files"
    CLOCK = "clock"
    TLS = "tls"
    NOT_MQTT5 = "not_mqtt5"
    CREDENTIALS = "credentials"
    NOT_AUTHORIZED = "not_authorized"
    CLIENT_ID = "client_id"
    BUSY = "busy"
    BANNED = "banned"
    REJECTED = "rejected"
    TAKEN_OVER = "taken_over"
    SUBSCRIBE_REFUSED = "subscribe_refused"
    SILENT = "silent"
    LOST = "lost"
    CLOSED = "closed"
    PROTOCOL = "protocol"


HINTS: Final[dict[Fault, str]] = {
    Fault.UNKNOWN_HOST: "check uplink.host and this machine's DNS",
    Fault.REFUSED: (
        "nothing listens there: check uplink.host and uplink.port, and that the broker runs"
    ),
    Fault.UNREACHABLE: "check this machine's network",
    Fault.TIMEOUT: (
        "the broker does not answer: check the network, a firewall, and uplink.port (TLS or plain)"
    ),
    Fault.TLS_UNTRUSTED: (
        "the broker's certificate is not signed by a trusted "
        "authority: set uplink.ca_file to its CA file"
    ),
    Fault.TLS_NAME: (
        "the broker's certificate is for another name: set uplink.host to the name in it"
    ),
    Fault.TLS_EXPIRED: (
        "the broker's certificate is past its end: "
        "its operator must renew it; or this machine's clock is ahead (date)"
    ),
    Fault.TLS_EARLY: (
        "the broker's certificate is not valid yet: "
        "this machine's clock is behind (date; timedatectl set-ntp true)"
    ),
    Fault.TLS_CLIENT: (
        "the broker does not accept our client certificate: "
        "check uplink.cert_file, or enrol again: glassd up CODE"
    ),
    Fault.TLS_CLIENT_MISSING: (
        "the broker wants a client certificate: enrol (glassd up CODE), "
        "or set uplink.cert_file and uplink.key_file"
    ),
    Fault.TLS_CLIENT_EXPIRED: (
        "our client certificate is past its end: "
        "enrol again (glassd up CODE), or renew uplink.cert_file"
    ),
    Fault.TLS_CLIENT_REVOKED: (
        "the broker's operator has revoked our client certificate: "
        "ask for a new code, then: glassd up CODE"
    ),
    Fault.TLS_FILES: (
        "check the files named by uplink.ca_file, cert_file and key_file, "
        "and who may read them; or enrol again: glassd up CODE"
    ),
    Fault.CLOCK: (
        "certificates cannot be checked before the clock is right; "
        "it is waited for: timedatectl set-ntp true, or date -s"
    ),
    Fault.TLS: (
        "check that uplink.port is the broker's TLS port, and whether it wants a client certificate"
    ),
    Fault.NOT_MQTT5: (
        "the broker has no MQTT 5: use Mosquitto 2, EMQX 5, HiveMQ or rumqttd's v5 listener"
    ),
    Fault.CREDENTIALS: "check uplink.username and uplink.password_file",
    Fault.NOT_AUTHORIZED: (
        "the broker does not let this client in: allow it glassd/v1/TENANT/e/EDGE_ID/#"
    ),
    Fault.CLIENT_ID: "the broker does not take this client id: change edge_id",
    Fault.BUSY: "the broker is busy; nothing to do here",
    Fault.BANNED: "the broker's operator has banned this client",
    Fault.REJECTED: "see the broker's log",
    Fault.TAKEN_OVER: (
        "stop it, or give one of the two devices its own [edge] id (a "
        "copied state directory has the same)"
    ),
    Fault.SUBSCRIBE_REFUSED: (
        "let this edge read glassd/v1/TENANT/e/EDGE_ID/# and glassd/v1/TENANT/registry/#"
    ),
    Fault.SILENT: "the network swallows packets; the link is replaced by itself",
    Fault.LOST: (
        "the link is replaced by itself; when it never lasts, "
        "look for another device with the same edge_id"
    ),
    Fault.CLOSED: "",
    Fault.PROTOCOL: "see the broker's log",
}

_CONNACK: Final = {
    0x84: Fault.NOT_MQTT5,
    0x85: Fault.CLIENT_ID,
    0x86: Fault.CREDENTIALS,
    0x87: Fault.NOT_AUTHORIZED,
    0x88: Fault.BUSY,
    0x89: Fault.BUSY,
    0x8A: Fault.BANNED,
    0x8C: Fault.CREDENTIALS,
    0x97: Fault.BUSY,
    0x9F: Fault.BUSY,
}
_DISCONNECT: Final = {
    0x87: Fault.NOT_AUTHORIZED,
    0x8D: Fault.SILENT,
    0x8E: Fault.TAKEN_OVER,
    0x82: Fault.PROTOCOL,
}

# X509_V_ERR_* numbers of OpenSSL: not yet valid, expired; host name, IP address mismatch.
_MARKS: Final = re.compile(r"^\[SSL: \w+\] | \(_ssl\.c:\d+\)$")
_NOT_YET: Final = 9
_EXPIRED: Final = 10
_NAME_ERRORS: Final = frozenset({62, 64})


class BrokerVerdict(Struct, frozen=True):
    """A fault, what was seen, and what a person can do."""

    fault: Fault
    detail: str
    fix: str = ""
    """More precise than the fault's own."""

    @property
    def hint(self) -> str:
        return self.fix or HINTS[self.fault]


def of_connack(code: int, name: str) -> BrokerVerdict:
    """Name a refusing CONNACK."""
    return BrokerVerdict(_CONNACK.get(code, Fault.REJECTED), f"{name} (0x{code:02X})")


def of_end(code: int, name: str, *, by_broker: bool) -> BrokerVerdict:
    """Name the end of a connection; `by_broker`: it sent a DISCONNECT."""
    if by_broker:
        return BrokerVerdict(_DISCONNECT.get(code, Fault.LOST), f"{name} (0x{code:02X})")
    if code == 0x8D:  # paho's word for "no PINGRESP"
        return BrokerVerdict(Fault.SILENT, "no sign of life for twice the keep-alive")
    return BrokerVerdict(Fault.LOST, "the connection broke")


def of_os_error(error: OSError) -> BrokerVerdict:
    """Name what the operating system or OpenSSL said while connecting."""
    fault = next((name for matches, name in _OS if matches(error)), Fault.UNREACHABLE)
    return BrokerVerdict(fault, error_text(error))


def _verify_code(error: OSError) -> int | None:
    return error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else None


def _alert(*words: str) -> Callable[[OSError], bool]:
    """Tell whether the broker complained, in these words, about our certificate."""

    def complained(error: OSError) -> bool:
        reason = str(getattr(error, "reason", "") or "")
        is_alert = isinstance(error, ssl.SSLError) and "ALERT" in reason
        return is_alert and any(word in reason for word in words)

    return complained


_OS: Final[tuple[tuple[Callable[[OSError], bool], Fault], ...]] = (
    (lambda e: isinstance(e, socket.gaierror), Fault.UNKNOWN_HOST),
    (lambda e: _verify_code(e) == _EXPIRED, Fault.TLS_EXPIRED),
    (lambda e: _verify_code(e) == _NOT_YET, Fault.TLS_EARLY),
    (lambda e: _verify_code(e) in _NAME_ERRORS, Fault.TLS_NAME),
    (lambda e: isinstance(e, ssl.SSLCertVerificationError), Fault.TLS_UNTRUSTED),
    (_alert("CERTIFICATE_REQUIRED"), Fault.TLS_CLIENT_MISSING),
    (_alert("CERTIFICATE_EXPIRED"), Fault.TLS_CLIENT_EXPIRED),
    (_alert("CERTIFICATE_REVOKED"), Fault.TLS_CLIENT_REVOKED),
    (_alert("CERTIFICATE", "UNKNOWN_CA"), Fault.TLS_CLIENT),
    (lambda e: isinstance(e, TimeoutError), Fault.TIMEOUT),
    (lambda e: isinstance(e, ssl.SSLError), Fault.TLS),
    (lambda e: isinstance(e, ConnectionRefusedError), Fault.REFUSED),
    (lambda e: isinstance(e, ConnectionError), Fault.LOST),
)


def error_text(error: OSError | ValueError) -> str:
    """Return its own words, printable and short, without OpenSSL's marks around them."""
    own = getattr(error, "verify_message", "") or getattr(error, "strerror", None) or str(error)
    text = _MARKS.sub("", own or type(error).__name__)
    return "".join(c for c in text if c.isprintable())[:200]
