"""`glassd record`, `validate` and `sim --replay`: what they refuse, before anything is recorded."""

from pathlib import Path

import pytest

from tests.unit.commands.test_cli import glassd

pytestmark = pytest.mark.enable_socket
RECORDING = Path(__file__).parents[2] / "recordings" / "even_g1.jsonl"


async def test_without_a_yes_nothing_is_recorded(tmp_path):
    ran = await glassd("record", str(tmp_path / "r.jsonl"))
    assert (ran.code, ran.out) == (2, "")
    assert "the texts of pages and notifications" in ran.err
    assert "glassd record --yes" in ran.err
    assert not list(tmp_path.iterdir())


async def test_the_help_says_what_is_in_a_recording():
    ran = await glassd("record", "--help")
    assert "notifications" in " ".join(ran.out.split())
    assert "Hardware addresses, serial numbers" in " ".join(ran.out.split())


@pytest.mark.parametrize("verb", ["record", "validate"])
async def test_a_file_is_never_overwritten(tmp_path, verb):
    path = tmp_path / "r.jsonl"
    path.write_text("mine")
    ran = await glassd(verb, "--yes", str(path))
    assert ran.code == 2
    assert "is there already" in ran.err
    assert path.read_text() == "mine"


async def test_a_folder_that_is_not_there_is_named(tmp_path):
    ran = await glassd("record", "--yes", str(tmp_path / "no" / "r.jsonl"))
    assert (ran.code, f"there is no folder {tmp_path / 'no'}" in ran.err) == (2, True)


async def test_without_the_daemon_record_is_exit_3(tmp_path):
    words = ("record", "--yes", str(tmp_path / "r.jsonl"), "--socket", str(tmp_path / "none.sock"))
    ran = await glassd(*words)
    assert ran.code == 3
    assert "glassd is not running" in ran.err


@pytest.mark.parametrize("more", [(), ("--json",)])
async def test_validate_refuses_where_nobody_can_be_asked(tmp_path, more):
    ran = await glassd("validate", "--yes", str(tmp_path / "r.jsonl"), *more)
    assert ran.code == 2
    assert "there is no terminal" in ran.out + ran.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name the model, or a recording"),
        (("mock:full", "--replay", str(RECORDING)), "is of even_g1, not of mock:full"),
        (("--replay", "/nonexistent.jsonl"), "/nonexistent.jsonl"),
        (("--replay", __file__), "is no recording of glassd"),
    ],
)
async def test_a_replay_of_what_is_no_recording_is_wrong_usage(words, says):
    ran = await glassd("sim", *words)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
