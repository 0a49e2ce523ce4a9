"""Tells the story of a model: all its steps, in their order, with two processes: simulated glasses,
and a daemon.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from edge.testing import WornGlasses
from firmware_bridge.models import Model
from tests.scenarios.families.steps import CONFIG, STEPS, TOOLS, Story, left_out, word
from tests.scenarios.families.story import worn
from tests.system import needs


def models(these: Iterable[Model]) -> list[Any]:
    """Return these models for `parametrize`, with what their microphones need here."""
    return [
        pytest.param(model, id=model.key, marks=[needs("liblc3")] if _has_lc3(model) else [])
        for model in these
    ]


def _has_lc3(model: Model) -> bool:
    return "lc3" in str(model.capabilities.get("microphone.codecs", ""))


def tell(folder: Path, model: Model, recogniser: str) -> None:
    """Tell the story; what is left out must not be offered by the daemon either."""
    config = CONFIG.format(server=recogniser)
    with worn(folder, word(model), config, TOOLS) as glasses, _followed(glasses) as log:
        story, without = Story(model, glasses, log), left_out(model)
        for step in STEPS:
            if step.name not in without:
                step.tell(story)
                story.told.append(step.name)
            elif step.hidden:
                assert step.hidden in glasses.hidden_tools()
        assert sorted([*story.told, *without]) == sorted(step.name for step in STEPS)


@contextmanager
def _followed(glasses: WornGlasses) -> Iterator[Path]:
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
