"""The microphone: what recognises words, and what is missing for it."""

import pytest

from edge.doctor.models import Mark
from edge.hearing.engines import choice
from firmware_bridge import lc3
from tests.unit.doctor.test_service import answers
from tests.unit.hearing.servers import server


@pytest.fixture(autouse=True)
def installed(monkeypatch) -> set[str]:
    """What this machine has not: add the names of libraries."""
    absent: set[str] = set()
    monkeypatch.setattr(choice, "find_spec", lambda name: None if name in absent else name)
    return absent


def configure(sandbox, keys):
    head = sandbox.config.read_text().partition("[microphone]")[0]
    sandbox.config.write_text(f"{head}\n[microphone]\n{keys}\n")


async def test_the_recogniser_is_named_with_its_languages(sandbox):
    finding = await sandbox.sees("microphone")
    assert (finding.mark, finding.said) == (Mark.OK, "moonshine: en")


@pytest.mark.parametrize("model", ["even_g1", "mentra_live", "mentra_nex"])
async def test_for_glasses_that_send_lc3_the_missing_codec_is_named(sandbox, monkeypatch, model):
    monkeypatch.setattr(lc3, "_NAMES", ("liblc3-that-is-not-there.so",))
    assert (await sandbox.sees("microphone")).mark is Mark.OK, "other glasses do not need it"
    configure(sandbox, f'allow = true\n[glasses]\nmodel = "{model}"')
    finding = await sandbox.sees("microphone")
    assert (finding.mark, finding.said) == (Mark.WARN, lc3.why_not())
    assert "apt-get install liblc3-0" in finding.fix.text


@pytest.mark.parametrize("keys", ["allow = false", 'recogniser = "off"'])
async def test_a_microphone_that_is_off_is_not_examined(sandbox, keys):
    configure(sandbox, keys)
    finding = await sandbox.sees("microphone")
    assert (finding.mark, finding.fix) == (Mark.SKIP, None)


@pytest.mark.parametrize(
    ("recogniser", "library", "extra"),
    [("auto", "onnxruntime", "glassd[ears]"), ("sherpa", "sherpa_onnx", "glassd[ears-sherpa]")],
)
async def test_without_a_recogniser_the_command_that_installs_it_is_printed(
    sandbox, installed, recogniser, library, extra
):
    configure(sandbox, f'recogniser = "{recogniser}"\nmodel = "/srv/model"')
    installed.add(library)
    finding = await sandbox.sees("microphone")
    assert (finding.mark, extra in finding.fix.text) == (Mark.SKIP, True)


async def test_a_language_that_the_recogniser_does_not_know_is_named(sandbox):
    configure(sandbox, 'language = "de"')
    finding = await sandbox.sees("microphone")
    assert (finding.mark, "only English, not de" in finding.said) == (Mark.SKIP, True)


@pytest.mark.enable_socket
@pytest.mark.requirement("I4-doctor-fixes", "I14-wyoming")
async def test_a_server_of_recognition_that_is_away_is_named_and_started(sandbox):
    pytest.importorskip("wyoming")
    path = sandbox.folder / "stt"
    configure(sandbox, f'recogniser = "unix://{path}"')
    finding = await sandbox.sees("microphone")
    assert finding.mark is Mark.WARN
    assert f"the server unix://{path} does not recognise speech: cannot connect" in finding.said
    with server("measures", path):
        await sandbox.does(finding)
        after = await sandbox.sees("microphone")
    assert (after.mark, after.said) == (Mark.OK, f"unix://{path}: en, de_DE, de, pt_BR")


@pytest.mark.requirement("I4-doctor-fixes", "I14-sherpa")
async def test_a_folder_without_a_model_is_named_and_corrected(sandbox):
    folder = sandbox.folder / "model"
    folder.mkdir()
    configure(sandbox, f'recogniser = "sherpa"\nmodel = "{sandbox.folder}/none"')
    finding = await sandbox.sees("microphone")
    assert (finding.mark, "none cannot be read" in finding.said) == (Mark.WARN, True)
    for name in "tiny-encoder.onnx", "tiny-decoder.onnx", "tiny-tokens.txt":
        (folder / name).touch()
    sandbox.edits(finding, model=str(folder))
    after = await sandbox.sees("microphone")
    assert (after.mark, "sherpa-onnx: whisper" in after.said) == (Mark.OK, True)


@pytest.mark.parametrize(("codecs", "mark"), [("lc3", Mark.WARN), ("pcm16", Mark.OK)])
async def test_the_codec_is_looked_for_if_the_daemons_glasses_need_it(
    sandbox, monkeypatch, codecs, mark
):
    monkeypatch.setattr(lc3, "_NAMES", ("liblc3-that-is-not-there.so",))
    known = {"microphone.codecs": {"value": codecs, "origin": "firmware", "ageS": 1.0}}
    answers(sandbox, glasses={"capabilities": known})
    assert (await sandbox.sees("microphone")).mark is mark
