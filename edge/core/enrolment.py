"""The messages of the enrolment protocol (docs/enrolment.md): documents in, values out."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from edge.core.words.secret_fields import repr_without

VERSION: Final = 1
PATH: Final = "/enrol/v1"
MAX_PEM: Final = 32 * 1024
MAX_WORD: Final = 512

RENEW_AT: Final = 2 / 3
"""Part of a certificate's life after which it is renewed; a third is left for attempts."""
WORRY_AT: Final = 5 / 6
"""Part after which a person should look at a renewal that keeps failing."""


class BadAnswer(ValueError):
    """The cloud's answer cannot be used; the message names the field."""


class EnrolmentGranted(Struct, frozen=True, kw_only=True):
    """What the cloud granted: its broker's address, and a certificate or a password."""

    edge_id: str
    tenant: str
    host: str
    port: int
    pool: str = ""
    ca_pem: str = ""
    certificate_pem: str = ""
    username: str = ""
    password: str = ""
    cloud_url: str = ""
    cloud_token: str = ""

    def __repr__(self) -> str:
        return repr_without(self, "password", "cloud_token")


def granted(body: Mapping[str, object], *, edge_id: str, certificate: bool) -> EnrolmentGranted:
    """Read the answer to a redeemed code. Raises `BadAnswer`."""
    _of_version(body)
    broker, cloud = _table(body, "broker"), _table(body, "cloud")
    found = EnrolmentGranted(
        edge_id=_text(body, "edge_id"),
        tenant=_text(body, "tenant"),
        host=_text(broker, "host"),
        port=_port(broker),
        pool=_text(body, "pool", ""),
        ca_pem=_text(broker, "ca", "", most=MAX_PEM),
        certificate_pem=_text(body, "certificate", "", most=MAX_PEM),
        username=_text(body, "username", ""),
        password=_text(body, "password", ""),
        cloud_url=_text(cloud, "url", ""),
        cloud_token=_text(cloud, "token", ""),
    )
    if found.edge_id != edge_id:
        raise BadAnswer(f"edge_id: is for another edge ({found.edge_id[:64]!r})")
    if certificate and not found.certificate_pem:
        raise BadAnswer("certificate: is missing")
    if not certificate and not (found.username and found.password):
        raise BadAnswer("username, password: are missing")
    if problem := misplaced(
        tenant=found.tenant,
        host=found.host,
        port=found.port,
        pool=found.pool,
        cloud_url=found.cloud_url,
    ):
        raise BadAnswer(problem)
    return found


def misplaced(*, tenant: str, host: str, port: int, pool: str, cloud_url: str) -> str:
    """Return why this address of a cloud cannot be used; "" if it can. If it were stored, no daemon
    could start with it.
    """
    from edge.core.enrolment_code import HOST, TENANT  # noqa: PLC0415 - most daemons have no code

    for name, word in (("tenant", tenant), ("pool", pool or "tools")):
        if not TENANT.fullmatch(word):
            return f"{name}: may hold letters, digits and . _ - only, at most 63"
    if not HOST.fullmatch(host):
        return "broker.host: must be a host name or address"
    if not 0 < port < 65536:
        return "broker.port: must be 1 to 65535"
    if cloud_url and not _is_address(cloud_url):
        return "cloud.url: must begin with https:// (or http://) and a host"
    return ""


def renewed(body: Mapping[str, object]) -> str:
    """Return the certificate chain (PEM) in the answer to a renewal. Raises `BadAnswer`."""
    _of_version(body)
    return _text(body, "certificate", most=MAX_PEM)


def refusal(body: Mapping[str, object]) -> tuple[str, str]:
    """Return code and message of a refusal, "" where they are missing."""
    error = body.get("error")
    table: Mapping[str, object] = error if isinstance(error, dict) else {}
    return str(table.get("code") or "")[:64], str(table.get("message") or "")[:200]


def renew_at(begins: float, ends: float) -> float:
    """Return when to renew a certificate, in Unix seconds."""
    return begins + (ends - begins) * RENEW_AT


def worry_at(begins: float, ends: float) -> float:
    return begins + (ends - begins) * WORRY_AT


def day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _of_version(body: Mapping[str, object]) -> None:
    if body.get("v") != VERSION:
        raise BadAnswer(f"v: must be {VERSION}")


def _table(body: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = body.get(key, {})
    if not isinstance(value, dict):
        raise BadAnswer(f"{key}: must be an object")
    return value


def _text(
    body: Mapping[str, object], key: str, default: str | None = None, *, most: int = MAX_WORD
) -> str:
    value = body.get(key, default)
    if not isinstance(value, str) or len(value) > most or (default is None and not value):
        raise BadAnswer(f"{key}: must be text of at most {most} characters")
    if most == MAX_WORD and not value.isprintable():
        raise BadAnswer(f"{key}: must be printable")
    return value


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = parts.hostname and parts.port != 0 and "@" not in parts.netloc
        return bool(host) and parts.scheme in {"http", "https"}
    except ValueError:
        return False


def _port(broker: Mapping[str, object]) -> int:
    value = broker.get("port")
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 65536:
        raise BadAnswer("broker.port: must be 1 to 65535")
    return value
