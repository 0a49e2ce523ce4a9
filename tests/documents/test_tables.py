"""The tables and lists of words in the documents, held against what the program knows."""

import re
from pathlib import Path

import pytest

from edge.cloud.mqtt.faults import __file__ as faults
from edge.core.call_state import CallState
from edge.mcp.llm.providers import __file__ as transports
from firmware_bridge.capabilities import Hardware
from firmware_bridge.messages import Gesture
from firmware_bridge.sim.even_g1.quirks import QUIRKS
from firmware_bridge.sim.even_g2.quirks import QUIRKS as G2_QUIRKS
from tests.documents.blocks import ROOT

pytestmark = pytest.mark.requirement("I11-verbs")
README = (ROOT / "README.md").read_text(encoding="utf-8")
CALLS = (ROOT / "docs/calls.md").read_text(encoding="utf-8")
INSTALL = (ROOT / "docs/install.md").read_text(encoding="utf-8")
MCP = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")
CLOUD = (ROOT / "docs/cloud.md").read_text(encoding="utf-8")
SELECTION = (ROOT / "docs/tool-selection.md").read_text(encoding="utf-8")
SIMULATOR = (ROOT / "docs/simulator.md").read_text(encoding="utf-8")


def table(text, head):
    """The first cells of the rows under a table's head."""
    rows = text.partition(head)[2].partition("\n\n")[0]
    assert rows, f"there is no table {head!r}"
    return [
        row.split("|")[1].strip()
        for row in rows.splitlines()
        if row.startswith("| ") and "---" not in row
    ]


def words(cells):
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def source(folder):
    return "\n".join(
        path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob("*.py"))
    )


def test_a_call_may_be_what_is_listed():
    assert words(table(CALLS, "| a call may be |")) == {state.value for state in CallState}


def test_a_need_is_one_of_the_types_that_are_listed():
    [listed] = re.findall(r"A need is a type \(`([A-Z ]+)`\)", SELECTION)
    assert set(listed.split()) == {kind.value for kind in Hardware}


def test_the_wearers_gestures_are_those_that_are_listed():
    [listed] = re.findall(r"(?s)gestures \((.+?); with a side", SIMULATOR)
    assert words([listed]) == {gesture.value for gesture in Gesture}


def test_the_switches_of_pairs_are_named_as_they_are():
    assert re.findall(r"lists all (\d+) and their values", SIMULATOR) == [str(len(QUIRKS))]
    for name, value in re.findall(r"`--quirk ([a-z0-9-]+)=([^`]+)`", SIMULATOR):
        assert value in {**QUIRKS, **G2_QUIRKS}[name]


def test_what_status_says_of_tls_is_what_it_can_say():
    known = set(re.findall(r'= "([a-z_]+)"', Path(faults).read_text(encoding="utf-8")))
    said = {
        f"tls_client{word}" if word.startswith("_") else word
        for word in words(table(CLOUD, "| `glassd status` says |"))
    }
    assert {word for word in said if word.startswith("tls")} <= known


def test_the_forms_of_models_are_those_that_are_known():
    known = set(re.findall(r'"([a-z-]+)": ', Path(transports).read_text(encoding="utf-8")))
    [listed] = re.findall(r"(?s)speaks your provider's form \((.+?)\)", MCP)
    assert {"openai", "openai-responses", "anthropic", "gemini"} == words([listed]) - {"-strict"}
    assert {
        "openai",
        "openai-strict",
        "openai-responses",
        "openai-responses-strict",
        "anthropic",
        "gemini",
    } <= known


def test_the_codes_and_paths_of_enrolment_are_those_that_a_cloud_and_an_edge_know():
    guide = (ROOT / "docs/enrolment.md").read_text(encoding="utf-8")
    cloud, edge = (
        source("edge/devcloud"),
        (ROOT / "edge/cloud/enrolment/client.py").read_text(encoding="utf-8"),
    )
    codes = {word for word in words(table(guide, "| error code |")) if word.isupper()}
    assert len(codes) >= 7
    assert not [code for code in codes if code not in cloud and code not in edge]
    for path in ("ca", "redeem", "renew"):
        assert f"enrol/v1/{path}" in cloud or f'/{path}"' in cloud, path


def test_the_paths_and_answers_of_the_small_cloud_are_those_it_has():
    guide = (ROOT / "docs/devcloud.md").read_text(encoding="utf-8")
    cloud = source("edge/devcloud")
    for path in re.findall(r"`(?:[A-Z]+(?:, [A-Z]+)* )(/(?:api|devcloud)/[\w/:]+)", guide):
        form = re.sub(r":\w+", "", path).strip("/").split("/")
        assert all(part in cloud for part in form), path
    for said in re.findall(r'"(?:error|message)":"([^"]+)"', guide):
        assert said in cloud, said


def test_the_keys_of_a_request_over_mcp_are_those_that_are_read():
    guide = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")
    facades = source("edge/mcp") + source("edge/core")
    for key in re.findall(r"io\.glassd/(\w+)", guide):
        assert f'"{key}"' in facades or f"/{key}" in facades or f"{{{key}}}" in facades, key


def test_the_files_that_errors_send_a_person_to_are_there():
    """`every key is explained in …`: of a checkout the file in it, of an installation the copy
    that is installed.
    """
    assert "systemd/glassd.toml" in README
    assert (ROOT / "systemd/glassd.toml").is_file()
    for installed in re.findall(r"`/usr/local/share/glassd/([\w/*.]+)`", INSTALL):
        assert list((ROOT / "systemd").glob(installed)) or list(
            (ROOT / "systemd").rglob(installed)
        ), installed
