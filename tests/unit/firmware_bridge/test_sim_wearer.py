"""The scripted wearer: every line is checked before anything happens, and a mistake names its
line.
"""

import wave
from pathlib import Path

import pytest

from firmware_bridge.catalog import find
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.time import SimTime
from firmware_bridge.sim.wearer import (
    ScriptedWearer,
    ScriptError,
    WearerStep,
    capability_changes,
    parse,
    parse_script,
)
from tests.unit.firmware_bridge.sim_helpers import noting


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("tap", WearerStep("tap")),
        ("  double_tap ", WearerStep("double_tap")),
        ("say what's on my list?", WearerStep("say", ("what's on my list?",))),
        ("wait 1.5", WearerStep("wait", ("1.5",))),
        ("battery 40", WearerStep("battery", ("40",))),
        ("case 60", WearerStep("case", ("60",))),
        ("worn off", WearerStep("worn", ("off",))),
        ("caps camera=true x.y=3", WearerStep("caps", ("camera=true", "x.y=3"))),
        ("drop", WearerStep("drop")),
        ("quit", WearerStep("quit")),
        ("tap left", WearerStep("tap", ("left",))),
        ("hold 3", WearerStep("hold", ("3",))),
        ("noise -45", WearerStep("noise", ("-45",))),
        ("echo -20", WearerStep("echo", ("-20",))),
        ("noise off", WearerStep("noise", ("off",))),
        ("", None),
        ("# a comment", None),
    ],
)
def test_a_line_is_a_step(line: str, step: WearerStep | None) -> None:
    assert parse(line) == step


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("dance", "known: battery"),
        ("battery 101", "0 to 100"),
        ("battery", "0 to 100"),
        ("battery -1", "0 to 100"),
        ("case 101", "0 to 100"),
        ("worn maybe", "on or off"),
        ("wait soon", "seconds"),
        ("wait nan", "seconds"),
        ("wait -1", "seconds"),
        ("say", "text"),
        ("hold", "seconds"),
        ("hear", "needs one WAV file"),
        ("hear /none.wav", "/none.wav: No such file"),
        ("hear 'a' b", "needs one WAV file"),
        ("noise 3", "off, or a level from -90 to -10 dB"),
        ("noise", "off, or a level"),
        ("echo 1", "off, or a level from -90 to 0 dB"),
        ("noise on", "off, or a level"),
        ("tap twice", "no words"),
        ("caps", "KEY=VALUE"),
        ("caps camera", "KEY=VALUE"),
        ("caps a=[1]", "true, false"),
        ("caps 'x", "quotation"),
        ("x" * 3000, "2000"),
    ],
)
def test_a_wrong_line_says_what_would_be_right(line: str, told: str) -> None:
    with pytest.raises(ScriptError, match=told):
        parse(line)


def test_a_script_is_checked_as_a_whole_and_names_the_line() -> None:
    assert [s.verb for s in parse_script("tap\n\n# x\nwait 1\n")] == ["tap", "wait"]
    with pytest.raises(ScriptError, match="line 3"):
        parse_script("tap\nwait 1\nbattery 500\n")


def test_capability_values_are_json_or_plain_words() -> None:
    assert capability_changes(("camera=true", "n=3", "name=lens-22", "gone=null")) == {
        "camera": True,
        "n": 3,
        "name": "lens-22",
        "gone": None,
    }


async def test_steps_change_the_glasses_even_when_nobody_is_connected(tmp_path: Path) -> None:
    glasses = MockGlasses(
        find("mock:full"), out_dir=tmp_path, time=SimTime(1000), tell=lambda _: None
    )
    did: list[str] = []
    wearer = ScriptedWearer(glasses, inject=noting(did), leave=lambda: did.append("leave"))
    await wearer.act(
        parse_script("battery 12\nworn off\ncaps camera=false light=null\nwait 0.5\ndrop\nquit")
    )
    assert (glasses.battery, glasses.worn) == (12, False)
    assert glasses.capabilities["camera"] is False
    assert "light" not in glasses.capabilities
    assert did == ["drop", "leave"]
    assert await wearer.do(WearerStep("tap")) is False


async def test_sound_and_noise_reach_the_microphone(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "a b.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(b"\x05\x00" * 160)
    glasses = MockGlasses(find("mock:full"), out_dir=tmp_path, tell=lambda _: None)
    wearer = ScriptedWearer(glasses, inject=noting([]), leave=lambda: None)
    await wearer.act(parse_script(f"hear '{tmp_path}/a b.wav'"))
    with glasses.microphone.recording() as hear:
        assert hear(160) == b"\x05\x00" * 160
        await wearer.act(parse_script("noise -30"))
        assert any(hear(160))
        await wearer.act(parse_script("noise off"))
        assert not any(hear(160))
