"""A Wyoming speech-to-text server as recogniser: a real one, and ones that misbehave."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from edge.hearing.engines import DecodingFailed, EngineMissing, wyoming
from edge.hearing.engines.wyoming import ServerOffer, Wyoming, examine
from edge.runtime.wyoming import Address, WyomingFault
from tests.unit.hearing.servers import server

np = pytest.importorskip("numpy")
pytest.importorskip("wyoming")
pytestmark = pytest.mark.enable_socket
LONG_S = 40.0


@pytest.fixture(autouse=True)
def patient(monkeypatch) -> None:
    """A busy machine is no fault of the server."""
    monkeypatch.setattr(wyoming, "LIMIT_S", LONG_S)
    monkeypatch.setattr(wyoming, "ASK_S", LONG_S)
    monkeypatch.setattr(wyoming, "FAST_S", LONG_S)


@pytest.fixture(scope="module")
def measuring() -> Iterator[str]:
    with server("measures") as address:
        yield address


def tone(seconds: float):
    return (0.5 * np.sin(np.arange(round(16000 * seconds)) * 0.3)).astype(np.float32)


def words(engine: Wyoming, samples, *, final: bool = True) -> str:
    return engine.decode(samples, None, final=final).text


@pytest.mark.requirement("I14-wyoming")
def test_the_whole_sound_and_the_language_reach_the_server(measuring) -> None:
    engine = Wyoming(measuring, "de-DE")
    engine.load()
    said = "1.51 s of 16000 Hz, 2 bytes, 1 channel, from -16383 to 16383, in de_DE"
    assert words(engine, tone(1.51)) == said
    assert words(engine, tone(0.25)).startswith("0.25 s"), "and again"


def test_louder_samples_than_full_scale_are_clipped(measuring) -> None:
    assert "from -32768 to 32767" in words(Wyoming(measuring, "en"), tone(1) * 3)


def test_a_socket_in_the_file_system_is_as_good(tmp_path) -> None:
    with server("measures", tmp_path / "stt") as address:
        assert address == f"unix://{tmp_path}/stt"
        assert words(Wyoming(address, "en"), tone(0.5)).startswith("0.5 s")


def test_it_names_the_installed_models_and_their_languages(measuring) -> None:
    offer = ServerOffer(("small", "other"), ("en", "de_DE", "de", "pt_BR"))
    assert examine(Address.parse(measuring, 1), LONG_S) == offer


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("en-GB", "en"),
        ("de-DE", "de_DE"),
        ("de-AT", "de"),
        ("de", "de"),
        ("pt", "pt_BR"),
        ("pt-PT", "pt_BR"),
        ("fr", None),
    ],
)
def test_a_language_is_written_as_the_server_writes_it(wanted, name) -> None:
    assert ServerOffer((), ("en", "de_DE", "de", "pt_BR")).language(wanted) == name


def test_a_server_that_names_no_language_takes_any() -> None:
    assert ServerOffer(("small",)).language("fr") == ""


def test_a_language_it_does_not_know_is_said_before_anybody_speaks(measuring) -> None:
    problem = r"does not recognise fr-FR, only en, de_DE, de, pt_BR"
    with pytest.raises(EngineMissing, match=problem):
        Wyoming(measuring, "fr-FR").load()


@pytest.mark.parametrize(
    ("how", "problem"), [("speaks", "it recognises no speech"), ("empty", "it has no model")]
)
def test_a_server_of_something_else_is_no_recogniser(how, problem) -> None:
    with server(how) as address, pytest.raises(EngineMissing, match=f"{address}.*{problem}"):
        Wyoming(address, "en").load()


@pytest.mark.requirement("I14-wyoming")
def test_a_server_that_dies_in_the_middle_fails_this_utterance() -> None:
    with server("dies") as address, pytest.raises(DecodingFailed, match=r"closed|broke"):
        words(Wyoming(address, "en"), tone(1))


def test_a_server_that_does_not_answer_costs_the_time_allowed(monkeypatch) -> None:
    monkeypatch.setattr(wyoming, "LIMIT_S", 0.5)
    with server("waits") as address, pytest.raises(DecodingFailed, match="too long"):
        words(Wyoming(address, "en"), tone(1))


def test_its_error_is_passed_on() -> None:
    with server("fails") as address, pytest.raises(DecodingFailed, match="no memory for this"):
        words(Wyoming(address, "en"), tone(1))


@pytest.mark.requirement("I14-wyoming")
def test_a_server_that_is_away_is_said_in_one_line(tmp_path) -> None:
    engine = Wyoming(f"unix://{tmp_path}/none", "en")
    with pytest.raises(EngineMissing, match=r"^the server unix://.*none .*: cannot connect: "):
        engine.load()
    with pytest.raises(DecodingFailed, match="cannot connect"):
        words(engine, tone(1))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (" Turn  on\nthe light. ", "Turn on the light."),
        ("[BLANK_AUDIO]", ""),
        ("(upbeat music)", ""),
        ("*sighs* Yes.", "Yes."),
        ("Go \x1b[2Jon.\x9b", "Go [2Jon."),
        ("क्‍ष", "क्‍ष"),
        ("", ""),
    ],
)
def test_only_words_count(written, text) -> None:
    with server(written) as address:
        assert words(Wyoming(address, "en"), tone(1)) == text


# ------------------------------------------------------------------ while somebody speaks


def test_a_fast_server_is_also_asked_while_somebody_speaks(measuring) -> None:
    engine = Wyoming(measuring, "en")
    assert words(engine, tone(0.5), final=False) == "", "it is not known yet how fast it is"
    words(engine, tone(1))
    assert words(engine, tone(0.5), final=False).startswith("0.5 s")


def test_a_slow_server_is_asked_at_the_end_only(measuring, monkeypatch) -> None:
    monkeypatch.setattr(wyoming, "FAST_S", 0.0)
    engine = Wyoming(measuring, "en")
    words(engine, tone(1))
    monkeypatch.setattr(wyoming, "FAST_S", LONG_S)
    assert words(engine, tone(0.5), final=False) == ""


def test_a_server_that_goes_away_while_somebody_speaks_is_asked_again_at_the_end(tmp_path) -> None:
    with server("measures", tmp_path / "stt") as address:
        engine = Wyoming(address, "en")
        words(engine, tone(1))
    assert words(engine, tone(0.5), final=False) == ""
    (tmp_path / "stt").unlink()
    with server("measures", tmp_path / "stt"):
        assert words(engine, tone(1)).startswith("1 s")


# ------------------------------------------------------------------ servers of another protocol


@pytest.fixture
def liar() -> Iterator[Callable[[bytes], str]]:
    """A server that sends these bytes to every client, then closes."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def start(answer: bytes) -> str:
        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                while part := peer.recv(65536):
                    if b'"audio-stop"' in part or b'"describe"' in part:
                        break
                peer.sendall(answer)

        threads.append(threading.Thread(target=serve, daemon=True))
        threads[-1].start()
        return f"tcp://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    listener.close()
    for thread in threads:
        thread.join(LONG_S)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "closed"),
        (b"HTTP/1.1 400 Bad Request\r\n", "something else"),
        (b'{"type":"transcript","data":{"text":7}}\n', "has no text"),
        (b'{"type":"transcript"}\n', "has no text"),
        (b'{"type":"transcript","data_length":99999999}\n', "announces"),
        (b'{"type":"transcript","data_length":9}\n{}', "closed"),
        (b"x" * 70_000, "without an end"),
        (b'{"type":"error","data":{"text":"no\\n\\u001b[2Jmemory"}}\n', r"words: no \[2Jmemory$"),
    ],
)
def test_an_answer_in_another_form_fails_with_a_reason(liar, answer, problem) -> None:
    with pytest.raises(DecodingFailed, match=problem):
        words(Wyoming(liar(answer), "en"), tone(0.1))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b'{"type":"info","data":{"asr":7}}\n', "recognises no speech"),
        (b'{"type":"info","data":{"asr":[{"models":["x"]}]}}\n', "has no model"),
        (b"220 mail.example ESMTP\r\n", "something else"),
    ],
)
def test_an_offer_in_another_form_is_a_fault_with_a_reason(liar, answer, problem) -> None:
    with pytest.raises(WyomingFault, match=problem):
        examine(Address.parse(liar(answer), 1), LONG_S)


def test_what_is_no_name_of_a_language_is_left_out(liar) -> None:
    models = b'[{"name":7,"languages":["en",{},"\\u001b[2J"]},{"name":"x","languages":"de"}]'
    answer = b'{"type":"info","data":{"asr":[{"models":' + models + b"}]}}\n"
    assert examine(Address.parse(liar(answer), 1), LONG_S) == ServerOffer(("x",), ("en",))


def test_a_text_without_an_end_is_cut(liar) -> None:
    answer = b'{"type":"transcript","data":{"text":"' + b"word " * 5000 + b'"}}\n'
    assert len(words(Wyoming(liar(answer), "en"), tone(0.1))) < wyoming.MAX_TEXT + 1
