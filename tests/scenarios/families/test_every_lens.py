"""Story: glasses with a lens, each model of the catalogue, are found, paired and worn, do all they
can, are lost, and come back.
"""

import pytest

from firmware_bridge.catalog import supported
from tests.scenarios.families.telling import models, tell

WITH_A_LENS = models(model for model in supported() if model.capabilities.get("display"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("model", WITH_A_LENS)
def test_the_story_of_glasses_with_a_lens(tmp_path, model, recogniser):
    tell(tmp_path, model, recogniser)
