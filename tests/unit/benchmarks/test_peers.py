"""A peer is measured where it can be had; its device answers as ours does."""

import pytest

from benchmarks import broker, peers, process
from benchmarks.peers_gateway import Clock
from benchmarks.table import Note

PARAMS = {"timezone": "Europe/Berlin"}


class Gateway:
    """What the peer's device asks of the peer."""

    def __init__(self):
        self.sent = []

    def send_rpc_reply(self, device, number, answer, *, quality_of_service):
        self.sent.append((device, number, answer["timezone"], quality_of_service))


def test_a_peer_that_cannot_be_installed_is_not_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(broker, "why_not", lambda: "")
    monkeypatch.setattr(peers, "PEER", "./no-such-package")
    monkeypatch.setattr(peers, "VENV", tmp_path)
    (tmp_path / process.INSTALLED).write_text("./no-such-package==1")
    lines = list(peers.measure(1))
    assert len(lines) == 1
    assert isinstance(lines[0], Note)
    assert "not measured: ./no-such-package cannot be installed here" in lines[0].text
    assert (tmp_path / process.INSTALLED).read_text() == "./no-such-package==1"


def test_an_installed_peer_is_not_installed_again(tmp_path):
    (tmp_path / process.INSTALLED).write_text("./no-such-package")
    assert process.install_in_venv("./no-such-package", tmp_path) == ""
    assert [file.name for file in tmp_path.iterdir()] == [process.INSTALLED]


def test_without_a_broker_no_peer_is_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(broker, "why_not", lambda: "apt-get install mosquitto")
    monkeypatch.setattr(peers, "VENV", tmp_path / "venv")
    (line,) = peers.measure(1)
    assert "not measured: apt-get install mosquitto" in line.text
    assert not (tmp_path / "venv").exists()


def test_the_device_of_the_peer_answers_with_the_quality_of_ours():
    gateway = Gateway()
    clock = Clock(gateway, {"id": "clock"}, "bench")
    asked = {"device": "glasses", "data": {"id": 7, "method": "now", "params": PARAMS}}
    assert clock.server_side_rpc_handler(asked) is None
    assert gateway.sent == [("glasses", 7, "Europe/Berlin", 1)]
    answer = clock.server_side_rpc_handler({"method": "bench_now", "params": PARAMS, "id": "8"})
    assert answer["timezone"] == "Europe/Berlin"
    assert answer["qos"] == 1
    assert len(gateway.sent) == 1, "the gateway sends the result itself"


def test_what_a_peer_uses_while_idle_is_not_of_its_calls():
    way = peers.Way(None, pid=1, ms=[1.0] * 10, cpu_s=0.5, seconds=10.0)
    assert way.cpu_ms(idle=0.04) == pytest.approx(10.0)
    assert way.cpu_ms(idle=0.2) == 0
