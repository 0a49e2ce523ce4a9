"""Faults: every reason a broker is out of reach has a name and a next step."""

import socket
import ssl

import pytest

from edge.cloud.mqtt import faults
from edge.cloud.mqtt.connection import BrokerOptions
from edge.cloud.mqtt.faults import HINTS, Fault


def verification(code):
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    return error


def ssl_error(reason):
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (socket.gaierror(-2, "Name or service not known"), Fault.UNKNOWN_HOST),
        (ConnectionRefusedError(111, "Connection refused"), Fault.REFUSED),
        (TimeoutError("timed out"), Fault.TIMEOUT),
        (OSError(101, "Network is unreachable"), Fault.UNREACHABLE),
        (ConnectionResetError(104, "reset"), Fault.LOST),
        (verification(10), Fault.TLS_EXPIRED),
        (verification(9), Fault.TLS_EARLY),
        (verification(62), Fault.TLS_NAME),
        (verification(18), Fault.TLS_UNTRUSTED),
        (verification(20), Fault.TLS_UNTRUSTED),
        (ssl_error("WRONG_VERSION_NUMBER"), Fault.TLS),
        (ssl_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"), Fault.TLS_CLIENT_MISSING),
        (ssl_error("SSLV3_ALERT_CERTIFICATE_EXPIRED"), Fault.TLS_CLIENT_EXPIRED),
        (ssl_error("SSLV3_ALERT_CERTIFICATE_REVOKED"), Fault.TLS_CLIENT_REVOKED),
        (ssl_error("SSLV3_ALERT_BAD_CERTIFICATE"), Fault.TLS_CLIENT),
        (ssl_error("TLSV1_ALERT_UNKNOWN_CA"), Fault.TLS_CLIENT),
        (ssl_error("SSLV3_ALERT_HANDSHAKE_FAILURE"), Fault.TLS),
    ],
)
def test_what_the_system_says_is_named(error, fault):
    assert faults.of_os_error(error).fault is fault


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (0x84, Fault.NOT_MQTT5),
        (0x85, Fault.CLIENT_ID),
        (0x86, Fault.CREDENTIALS),
        (0x87, Fault.NOT_AUTHORIZED),
        (0x88, Fault.BUSY),
        (0x8A, Fault.BANNED),
        (0x80, Fault.REJECTED),
        (0xFF, Fault.REJECTED),
    ],
)
def test_what_a_connack_says_is_named(code, fault):
    verdict = faults.of_connack(code, "words")
    assert verdict.fault is fault
    assert f"0x{code:02X}" in verdict.detail


def test_a_takeover_differs_from_other_disconnects():
    assert faults.of_end(0x8E, "Session taken over", by_broker=True).fault is Fault.TAKEN_OVER
    assert faults.of_end(0x8B, "Server shutting down", by_broker=True).fault is Fault.LOST


def test_openssls_marks_are_no_part_of_what_it_says():
    said = faults.of_os_error(ssl_error("TLSV1_ALERT_UNKNOWN_CA")).detail
    error = ssl.SSLError(1, "[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca (_ssl.c:1006)")
    assert (said, faults.of_os_error(error).detail) == (
        "TLSV1_ALERT_UNKNOWN_CA",
        "tlsv1 alert unknown ca",
    )
    wrong = verification(10)
    wrong.verify_message = "certificate has expired"
    assert faults.of_os_error(wrong).detail == "certificate has expired"


def test_every_fault_has_a_hint_and_remote_text_is_printable():
    assert set(HINTS) == set(Fault)
    assert all(HINTS[f] for f in Fault if f is not Fault.CLOSED)
    assert faults.of_os_error(OSError(5, "a\x1b[31mb\n")).detail == "a[31mb"


@pytest.mark.parametrize(
    "host",
    ["ws://broker", "wss://broker/mqtt", "broker/mqtt", "mqtt://b", "user@host", "", "a b", "h?x"],
)
def test_websockets_and_urls_are_refused_with_the_reason(host):
    with pytest.raises(ValueError, match=r"uplink\.host.*WebSockets"):
        BrokerOptions(host=host, client_id="e")


@pytest.mark.parametrize(("field", "value"), [("port", 0), ("port", 70000), ("keepalive_s", 0)])
def test_numbers_that_cannot_work_are_refused(field, value):
    with pytest.raises(ValueError, match=f"uplink.{field}"):
        BrokerOptions(host="broker", client_id="e", **{field: value})


def test_the_password_is_not_in_the_repr():
    assert "hunter2" not in repr(
        BrokerOptions(host="b", client_id="e", username="u", password="hunter2")
    )
