"""Story: owners of real glasses answer `glassd validate`, each about what their glasses have."""

import re
from contextlib import closing

import pytest

from firmware_bridge.recording.files import read
from firmware_bridge.recording.playback import play_to_central, play_to_glasses
from tests.documents.place import Place
from tests.system import needs

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(300)]


def answer(terminal, place, name):
    """Answer the checks of `validate` until it ends: a person who sees, taps and speaks."""
    said = 0
    while terminal.process.poll() is None:
        new = terminal.read(0.2)[said:]
        said = len(terminal.said)
        if "Enter alone" in new:
            said = terminal.type("yes")
        elif (found := re.search(r"Now: ([a-z ]+),", new)) is not None:
            place.ask_mock(name, do=found[1].replace(" ", "_"))
        elif "Now speak" in new:
            place.ask_mock(name, do="say one two three four five")
    return terminal.end(0)


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("even_g1", {"text", "widths", "scripts", "picture", "taps", "battery", "sound"}),
        ("frame", {"text", "widths", "scripts", "picture", "taps", "battery", "sound", "photo"}),
        pytest.param("mentra_live", {"taps", "battery", "sound", "photo"}, marks=needs("liblc3")),
        ("omi", {"taps", "battery", "sound"}),
        ("omi_glass", {"battery", "sound", "photo"}),
    ],
)
def test_validate_asks_about_what_the_glasses_have(model, wanted, tmp_path):
    """And its answers are in a recording that both roles of the codec understand."""
    with closing(Place()) as place:
        place.env["TERM"] = "xterm"
        config = place.write(
            "glassd.toml", 'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:6402"\n'
        )
        place.env["GLASSD_CONFIG"] = str(config)
        place.start(f"glassd sim sim:{model} --radio tcp:127.0.0.1:6402 --control m.sock")
        place.start("glassd run")
        place.until(place.is_ready, "the glasses are ready")
        place.until((place.folder / "m.sock").exists, "the control channel")
        terminal = place.start("glassd validate --yes v.jsonl")
        said = answer(terminal, place, "m.sock")
        recording = read(place.folder / "v.jsonl")
    answers = [line.answer for line in recording.lines if line.answer]
    assert {each["check"] for each in answers} == wanted, said
    assert all(each["said"] != "not seen" for each in answers), said
    assert all(each["call"]["ok"] for each in answers if "call" in each), said
    for each in answers:
        delivery = str(each.get("call", {}).get("delivery", ""))
        assert not re.search("queued|dropped", delivery), said
    assert not play_to_glasses(recording).problems
    if model != "mentra_live":  # a checksum of its photos may not survive: docs/recording.md
        assert not play_to_central(recording).problems
