"""A Wyoming text-to-speech server: a real one, and ones that misbehave."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from edge.display.voice import sound, wyoming
from edge.display.voice.wyoming import PORT, speak, voices
from edge.runtime.wyoming import Address, ServerAway, WyomingFault
from tests.sounds import strength, wyoming_server

pytest.importorskip("wyoming")
pytestmark = pytest.mark.enable_socket
LONG_S = 40.0


@pytest.fixture(scope="module")
def server() -> Iterator[Address]:
    with wyoming_server() as address:
        yield Address.parse(address, PORT)


def test_it_names_the_languages_of_installed_voices(server: Address) -> None:
    assert voices(server, LONG_S) == {"de": "anna", "th": "somchai"}


@pytest.mark.parametrize(("voice", "hertz", "other"), [("anna", 300, 600), ("somchai", 600, 300)])
def test_the_chosen_voice_speaks_at_our_rate(server: Address, voice, hertz, other) -> None:
    samples = sound.from_bytes(speak("Hello", voice, server, LONG_S))
    assert len(samples) == pytest.approx(0.5 * sound.RATE, abs=2)
    assert sound.heard_after(samples)
    assert strength(samples, hertz) > 8000 > 500 > strength(samples, other)


def test_a_socket_in_the_file_system_is_as_good(tmp_path) -> None:
    with wyoming_server(tmp_path / "tts") as address:
        assert address == f"unix://{tmp_path}/tts"
        assert voices(Address.parse(address, PORT), LONG_S) == {"de": "anna", "th": "somchai"}


def test_a_server_that_dies_in_the_middle_is_away() -> None:
    with wyoming_server() as address, pytest.raises(ServerAway, match=r"closed|broke"):
        speak("^Hello", "anna", Address.parse(address, PORT), LONG_S)


def test_its_error_is_passed_on(server: Address) -> None:
    with pytest.raises(WyomingFault, match="no model for this"):
        speak("!", "anna", server, LONG_S)


def test_a_server_that_does_not_answer_costs_the_time_allowed(server: Address) -> None:
    with pytest.raises(WyomingFault, match="too long"):
        speak("?", "anna", server, 0.3)


def test_nobody_listening_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(WyomingFault, match="cannot connect"):
            voices(Address("127.0.0.1", taken.getsockname()[1]), LONG_S)


@pytest.fixture
def liar() -> Iterator[Callable[[bytes], Address]]:
    """A server that sends these bytes to whoever connects, then closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def start(answer: bytes) -> Address:
        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(answer)

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[-1].start()
        return Address("127.0.0.1", listener.getsockname()[1])

    yield start
    listener.close()
    for thread in threads:
        thread.join(LONG_S)


START = b'{"type":"audio-start","data":{"rate":16000,"width":2,"channels":1}}\n'


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "closed"),
        (b"HTTP/1.1 400 Bad Request\r\n", "something else"),
        (b"[1]\n", "something else"),
        (b'{"type":"x","data":[1]}\n', "something else"),
        (b'{"type":"x","payload_length":99999999}\n', "announces"),
        (b'{"type":"x","data_length":-1}\n', "announces"),
        (b"x" * 70_000, "without an end"),
        (START.replace(b"16000", b"7"), "7 Hz"),
        (START.replace(b'"width":2', b'"width":4'), "4 bytes"),
        (START, "closed"),
        (START + b'{"type":"audio-chunk","payload_length":9}\nxx', "closed"),
    ],
)
def test_a_server_that_speaks_another_protocol_is_a_fault_with_a_reason(
    liar, answer, problem
) -> None:
    with pytest.raises(WyomingFault, match=problem):
        speak("Hello", "anna", liar(answer), LONG_S)


def test_sound_without_an_end_is_cut_off(liar, monkeypatch) -> None:
    monkeypatch.setattr(wyoming, "MAX_SOUND", 5000)
    chunk = b'{"type":"audio-chunk","payload_length":1000}\n' + bytes(1000)
    with pytest.raises(WyomingFault, match="does not stop"):
        speak("Hello", "anna", liar(START + chunk * 9), LONG_S)
