"""The client: every failure has its reason, the next thing to do and the right exit code."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from edge.control import client as client_module
from edge.control.client import ControlClient
from edge.runtime import control_api
from edge.runtime.errors import UserError
from edge.runtime.events import LinkChanged
from tests.unit.control.house import open_house

pytestmark = pytest.mark.enable_socket


@contextmanager
def canned(path, answer: bytes):
    """A server that sends one answer to every client, then hangs up."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(4)

        def serve():
            try:
                while True:
                    peer, _ = listening.accept()
                    with peer:
                        peer.recv(65536)
                        peer.sendall(answer)
            except OSError:
                return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield path
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def complaint(*sockets, path="/v1/status", timeout_s=5.0):
    with pytest.raises(UserError) as caught:
        ControlClient(sockets).request("GET", path, timeout_s=timeout_s)
    return caught.value


async def test_it_sends_a_request_and_returns_json(tmp_path):
    async with open_house(tmp_path) as house:
        client = ControlClient((house.path,))
        assert await asyncio.to_thread(client.request, "GET", "/v1/lens") == (200, house.lens)
        owner = ControlClient((house.owners,))
        assert (await asyncio.to_thread(owner.request, "POST", "/v1/say", {"text": "hi"}))[1][
            "data"
        ] == "heard hi"


async def test_the_first_socket_that_answers_is_used(tmp_path):
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "stale.sock"))
    stale.close()
    async with open_house(tmp_path) as house:
        client = ControlClient((tmp_path / "none.sock", tmp_path / "stale.sock", house.path))
        assert (await asyncio.to_thread(client.request, "GET", "/v1/status"))[0] == 200


def test_without_a_daemon_the_error_tells_how_to_start_one(tmp_path):
    error = complaint(tmp_path / "a.sock", tmp_path / "b.sock")
    assert (error.exit_code, error.code) == (3, "NOT_RUNNING")
    assert "a.sock" in error.message
    assert "systemctl start glassd" in error.fix
    assert "glassd demo" in error.fix


def test_a_forbidden_socket_names_its_group(tmp_path, monkeypatch):
    path = tmp_path / "control.sock"
    path.touch()

    class Forbidden(socket.socket):
        def connect(self, address):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(client_module.socket, "socket", Forbidden)
    monkeypatch.setattr(
        control_api.grp, "getgrgid", lambda gid: type("G", (), {"gr_name": "lenses"})
    )
    error = complaint(path)
    assert (error.exit_code, error.code) == (3, "PERMISSION")
    assert "usermod -aG lenses" in error.fix


async def test_errors_of_the_api_keep_their_text_and_get_an_exit_code(tmp_path):
    async with open_house(tmp_path) as house:
        missing = await asyncio.to_thread(complaint, house.path, path="/v1/calls/nope")
        malformed = await asyncio.to_thread(complaint, house.path, path="/v1/calls?limit=x")
    assert (missing.exit_code, missing.code, missing.fix) == (
        4,
        "NOT_FOUND",
        "list recent calls: glassd calls",
    )
    assert (malformed.exit_code, malformed.code) == (2, "INVALID_REQUEST")


def test_a_daemon_that_does_not_answer_is_a_timeout(tmp_path):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s.sock"))
        silent.listen(1)
        began = time.monotonic()
        assert complaint(tmp_path / "s.sock", timeout_s=0.1).exit_code == 5
        assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{",
    ],
)
def test_a_truncated_answer_means_the_daemon_stopped(tmp_path, answer):
    with canned(tmp_path / "c.sock", answer) as path:
        assert complaint(path).exit_code == 3


@pytest.mark.parametrize("body", [b"{}", b"x", b'{"error": 5}', b""])
def test_an_error_without_a_text_is_still_an_error(tmp_path, body):
    with canned(
        tmp_path / "c.sock", b"HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    ) as path:
        error = complaint(path)
    assert (error.exit_code, error.code) == (1, "INTERNAL")
    assert "500" in error.message


async def test_it_follows_events_from_the_last_one(tmp_path):
    async with open_house(tmp_path) as house:
        client = ControlClient((house.path,))
        stream = client.events()
        first = asyncio.ensure_future(asyncio.to_thread(next, stream))
        while not house.server.streams:
            await asyncio.sleep(0)
        house.bus.publish(LinkChanged("READY", "ärger"))
        event_id, _, data = await first
        assert '"state": "READY"' in data
        assert "ärger" in data
        stream.close()
        house.bus.publish(LinkChanged("OFF"))
        again = client.events(event_id)
        assert '"OFF"' in (await asyncio.to_thread(next, again))[2]
        again.close()


def test_the_end_of_a_stream_is_an_error(tmp_path):
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    with canned(tmp_path / "c.sock", head + b": hello\n\nid: a-1\nevent: x\ndata: {}\n\n") as path:
        stream = ControlClient((path,)).events()
        assert next(stream) == ("a-1", "x", "{}")
        with pytest.raises(UserError) as caught:
            next(stream)
    assert caught.value.exit_code == 3


def test_no_file_descriptor_is_left_behind(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        complaint(tmp_path / "none.sock")
        with canned(tmp_path / "c.sock", b"HTTP/1.1 500 X\r\nContent-Length: 2\r\n\r\n{}") as path:
            complaint(path)
        path.unlink()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
