"""The address of a Wyoming server; the protocol itself is tested with those who speak it."""

import contextlib
import socket
import threading

import pytest

from edge.runtime.wyoming import Address, Conversation, ServerAway


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tcp://box:10300", Address("box", 10300)),
        ("tcp://box", Address("box", 10200)),
        ("unix:///run/piper.sock", Address(path="/run/piper.sock")),
    ],
)
def test_an_address_is_read(text, address) -> None:
    assert Address.parse(text, 10200) == address


@pytest.mark.parametrize(
    "text", ["", "box:10200", "http://box", "tcp://", "tcp://box/x", "tcp://box:99999", "unix://"]
)
def test_anything_else_is_no_address(text) -> None:
    with pytest.raises(ValueError, match=r"must be|Port"):
        Address.parse(text, 10200)


@pytest.mark.enable_socket
def test_a_name_that_no_host_can_have_is_away() -> None:
    with pytest.raises(ServerAway, match="cannot connect"):
        Conversation(Address("a..b", 1), 1.0)


@pytest.mark.enable_socket
def test_a_server_that_sends_byte_by_byte_gets_no_more_time() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def drip() -> None:
        peer, _ = listener.accept()
        with peer, contextlib.suppress(OSError):
            while not is_over.wait(0.02):
                peer.sendall(b"x")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        with (
            Conversation(Address(*listener.getsockname()), 0.5) as server,
            pytest.raises(ServerAway, match="too long"),
        ):
            server.next()
    finally:
        is_over.set()
        listener.close()
        thread.join(40)
