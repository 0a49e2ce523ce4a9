"""Story: glasses without a lens, each model of the catalogue, are found, paired and worn, do all
they can, are lost, and come back. And what the story leaves out for which model, and why.
"""

import pytest

from firmware_bridge.catalog import supported
from tests.scenarios.families.steps import LEFT_OUT, listed
from tests.scenarios.families.telling import models, tell

WITHOUT_A_LENS = models(model for model in supported() if not model.capabilities.get("display"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("model", WITHOUT_A_LENS)
def test_the_story_of_glasses_without_a_lens(tmp_path, model, recogniser):
    tell(tmp_path, model, recogniser)


def test_steps_are_left_out_only_for_the_listed_facts():
    how = f"python -m tests.scenarios.families.steps > {LEFT_OUT.name}, if that is right"
    assert listed() == LEFT_OUT.read_text(encoding="utf-8"), how
