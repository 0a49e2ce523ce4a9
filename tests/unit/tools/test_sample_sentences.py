"""The sample sentences of the everyday tools: what is said becomes the call, and a question finds
the tool.
"""

import json
from collections import Counter

import pytest

from edge.core.phrases import match
from edge.core.tools.search import search
from tests.unit.tools.test_local_phrases import tools
from tools_cache.builder.guide import SAMPLES

BY_PACKAGE = json.loads(SAMPLES.read_text(encoding="utf-8"))
SENTENCES = [sample for found in BY_PACKAGE.values() for sample in found["sentences"]]
FOUND = 5
"""How many tools a search returns."""


def test_each_package_has_twenty_sentences_and_five_questions():
    for package, found in BY_PACKAGE.items():
        assert (len(found["sentences"]), len(found["questions"])) == (20, 5), package
        assert {sample["call"].partition(":")[0] for sample in found["sentences"]} == {package}
    assert max(Counter(sample["say"] for sample in SENTENCES).values()) == 1


@pytest.mark.requirement("I15-sentences")
@pytest.mark.parametrize("sample", SENTENCES, ids=lambda sample: sample["say"])
def test_a_sentence_becomes_its_call(sample):
    found = match(sample["say"], tools(), sample.get("language", "en"))
    assert found is not None
    assert (found.tool.name, found.args) == (sample["call"], sample["args"])
    schema = found.tool.input_schema["properties"]
    assert found.args.keys() <= schema.keys()


@pytest.mark.requirement("I15-found")
@pytest.mark.parametrize("package", BY_PACKAGE)
def test_a_natural_question_finds_the_tool(package):
    for question in BY_PACKAGE[package]["questions"]:
        names = [tool.name for tool in search(question, tools(), FOUND)]
        assert any(name.startswith(f"{package}:") for name in names), (question, names)
