"""The three lines of the README, used as a new user would: copied, and given to an agent (issue
6, Show 3).
"""

import json
import re

import pytest

from tests.conformance.inspected import Inspector
from tests.conformance.node import ROOT

pytestmark = pytest.mark.timeout(240)


def lines_of_the_readme():
    """The JSON that a user copies into the configuration of an agent."""
    section = (
        (ROOT / "README.md")
        .read_text(encoding="utf-8")
        .partition("## From an agent\n")[2]
        .partition("\n## ")[0]
    )
    (block,) = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    return block


def test_three_lines_are_all_that_a_user_copies():
    block = lines_of_the_readme()
    assert len(block.strip().splitlines()) == 3
    assert list(json.loads(block)["mcpServers"]) == ["glasses"]


def test_three_lines_give_an_agent_a_pair_of_glasses_that_shows_what_it_says(tmp_path):
    config = tmp_path / "agent.json"
    config.write_text(lines_of_the_readme())
    agent = Inspector.at(tmp_path)
    told = agent.ask(
        "--config",
        str(config),
        "--server",
        "glasses",
        "--method",
        "tools/call",
        "--tool-name",
        "glasses__show_text",
        "--tool-args-json",
        '{"text": "It is noon"}',
    )
    assert told["isError"] is False
    assert told["_meta"]["io.glassd/meta"]["delivery"] == "shown"
