"""The verdict is stricter than the suite's exit code: what exercised nothing, warned or could
not be tested has not passed.
"""

import json

import pytest

from tests.conformance.verdict import SCENARIOS, Leg, judge, required

LEG = Leg("server", "2025-11-25")


def wrote(out, name, *checks):
    folder = out / f"server-{name}-2026-11-22T12-01-47-506Z"
    folder.mkdir()
    (folder / "checks.json").write_text(
        json.dumps([{"id": check, "status": status, **more} for check, status, more in checks])
    )


def test_a_scenario_passes_by_a_check_of_its_own(tmp_path):
    wrote(
        tmp_path,
        "ping",
        ("ping", "SUCCESS", {}),
        ("wire-schema-valid", "SUCCESS", {}),
        ("ping-more", "SKIPPED", {}),
    )
    verdict = judge(LEG, ["ping"], tmp_path, code=0)
    assert (verdict.problems, verdict.checks) == ([], 2)


@pytest.mark.parametrize(
    ("checks", "problem"),
    [
        ([], "nothing was exercised"),
        ([("wire-schema-valid", "SUCCESS", {})], "nothing was exercised"),
        ([("ping", "SKIPPED", {})], "nothing was exercised"),
        (
            [("ping", "SUCCESS", {}), ("pong", "FAILURE", {"errorMessage": "no pong"})],
            "pong: no pong",
        ),
        (
            [("ping", "SUCCESS", {}), ("tools-name-format", "WARNING", {"errorMessage": "a:b"})],
            "tools-name-format: warned: a:b",
        ),
        ([("ping", "SUCCESS", {"details": {"untestable": True}})], "ping: could not be tested"),
    ],
)
def test_a_scenario_that_proved_nothing_has_not_passed(tmp_path, checks, problem):
    wrote(tmp_path, "ping", *checks)
    assert judge(LEG, ["ping"], tmp_path, code=0).problems == [f"ping: {problem}"]


def test_a_scenario_is_not_mistaken_for_one_whose_name_begins_alike(tmp_path):
    wrote(tmp_path, "tools-list", ("tools-list", "SUCCESS", {}))
    assert judge(LEG, ["tools"], tmp_path, code=0).problems == ["tools: nothing was exercised"]


def test_a_scenario_that_did_not_run_has_not_passed_and_neither_has_a_suite_that_fails(tmp_path):
    assert judge(LEG, ["ping"], tmp_path, code=1).problems == [
        "the suite ended with 1",
        "ping: nothing was exercised",
    ]


def test_client_scenarios_are_found_in_their_folders(tmp_path):
    folder = tmp_path / "auth" / "basic-cimd-2026-11-22T12-01-47-506Z"
    folder.mkdir(parents=True)
    (folder / "checks.json").write_text(json.dumps([{"id": "cimd", "status": "SUCCESS"}]))
    assert judge(Leg("client", "2025-11-25"), ["auth/basic-cimd"], tmp_path, code=0).problems == []


def test_the_list_of_what_is_required_is_read_whole_or_not_at_all():
    many = "".join(f"  - one-{n} # why\n" for n in range(SCENARIOS["server", "2025-11-25"]))
    text = f"# words\nserver:\n{many}\nclient:\n  - other\nnot_scored:\n  - third\n"
    assert required(LEG, text) == [f"one-{n}" for n in range(30)]
    with pytest.raises(ValueError, match="29 scenarios are required, not 30"):
        required(LEG, text.replace("  - one-7 # why\n", ""))
