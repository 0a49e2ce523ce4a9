"""The voice: which engines speak, and a configured server that does not."""

import pytest

from edge.doctor.models import Mark
from tests.sounds import wyoming_server

pytest.importorskip("wyoming")


def configure(sandbox, keys):
    head = sandbox.config.read_text().partition("[audio]")[0]
    sandbox.config.write_text(f"{head}\n[audio]\n{keys}\n")


async def test_the_languages_of_each_engine_are_listed(sandbox):
    finding = await sandbox.sees("voice")
    assert finding.mark is Mark.OK
    assert "built-in: de, en, es, fr, it" in finding.said


async def test_speech_that_is_off_is_not_examined(sandbox):
    configure(sandbox, 'speech = "off"')
    assert (await sandbox.sees("voice")).mark is Mark.SKIP


async def test_without_any_voice_the_command_that_installs_one_is_printed(sandbox, monkeypatch):
    monkeypatch.setenv("PATH", str(sandbox.folder))
    sandbox.changed["has"] = lambda _library: False
    finding = await sandbox.sees("voice")
    assert (finding.mark, "glassd[voice]" in finding.fix.text) == (Mark.SKIP, True)


@pytest.mark.enable_socket
@pytest.mark.requirement("I4-doctor-fixes", "I13-sound-engines")
async def test_a_voice_server_that_is_away_is_named_and_started(sandbox):
    path = sandbox.folder / "tts"
    configure(sandbox, f'server = "unix://{path}"')
    finding = await sandbox.sees("voice")
    assert finding.mark is Mark.WARN
    assert f"the server unix://{path} does not speak: cannot connect" in finding.said
    with wyoming_server(path):
        await sandbox.does(finding)
        after = await sandbox.sees("voice")
    assert (after.mark, f"unix://{path}: de, th" in after.said) == (Mark.OK, True)


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_configured_volume_of_0_is_named(sandbox):
    configure(sandbox, "volume = 0")
    finding = await sandbox.sees("voice")
    assert (finding.mark, "the volume is 0" in finding.said) == (Mark.WARN, True)
    sandbox.edits(finding)
    assert (await sandbox.sees("voice")).mark is Mark.OK
