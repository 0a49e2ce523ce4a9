"""Telling systemd: the words of sd_notify(3) on a real datagram socket, and never a failure of
ours.
"""

import logging
import os
import socket
from contextlib import contextmanager

import pytest

from edge.runtime.sd_notify import Notifier

pytestmark = pytest.mark.enable_socket


@contextmanager
def systemd(address):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        listening.settimeout(5)
        yield lambda: listening.recv(4096).decode().split("\n")


@pytest.fixture(params=["path", "abstract"])
def heard(request, tmp_path):
    """(NOTIFY_SOCKET, receive) for both kinds of address."""
    if request.param == "path":
        name = bound = str(tmp_path / "notify")
    else:
        name, bound = f"@glassd-test-{os.getpid()}", f"\0glassd-test-{os.getpid()}"
    with systemd(bound) as receive:
        yield name, receive


def test_every_message_is_spelled_as_systemd_reads_it(heard):
    name, receive = heard
    notifier = Notifier({"NOTIFY_SOCKET": name}, monotonic_ns=lambda: 5_000_999)
    said = []
    for say in (
        lambda: notifier.ready("serving"),
        lambda: notifier.status("glasses away"),
        notifier.watchdog,
        lambda: notifier.reloading("again"),
        lambda: notifier.stopping("bye"),
        notifier.ready,
    ):
        say()
        said.append(receive())
    assert said == [
        ["READY=1", "STATUS=serving"],
        ["STATUS=glasses away"],
        ["WATCHDOG=1"],
        ["RELOADING=1", "MONOTONIC_USEC=5000", "STATUS=again"],
        ["STOPPING=1", "STATUS=bye"],
        ["READY=1"],
    ]


def test_a_status_cannot_inject_another_message(heard):
    name, receive = heard
    Notifier({"NOTIFY_SOCKET": name}).status("a\nSTOPPING=1\r\n" + "x" * 500)
    (line,) = receive()
    assert line.startswith("STATUS=a STOPPING=1 x")
    assert len(line) == len("STATUS=") + 200


@pytest.mark.parametrize("value", ["", "@", "/", "relative", "vsock:1"])
def test_without_a_socket_it_is_silent(value, caplog):
    notifier = Notifier({"NOTIFY_SOCKET": value} if value else {})
    notifier.ready("x")
    notifier.watchdog()
    assert not notifier.enabled
    assert not caplog.records


@pytest.mark.parametrize("address", ["/nonexistent/notify", "/" + "x" * 300, "/tmp/\0x"])
def test_a_broken_socket_is_one_warning_and_never_an_error(address, caplog):
    caplog.set_level(logging.DEBUG)
    notifier = Notifier({"NOTIFY_SOCKET": address})
    notifier.ready()
    notifier.watchdog()
    assert [r.levelname for r in caplog.records] == ["WARNING", "DEBUG"]


def test_a_full_socket_does_not_block(tmp_path):
    with systemd(str(tmp_path / "notify")):
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")})
        for _ in range(2000):  # far more than its queue holds, and nobody reads
            notifier.watchdog()


@pytest.mark.parametrize(
    ("env", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "42"}, 0.5),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "43"}, None),
        ({}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "-1"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
    ],
)
def test_the_watchdogs_interval_is_read_when_it_is_ours(env, seconds):
    assert Notifier(env, pid=42).watchdog_s == seconds
