"""The report: lines for people, one document for programs, one thing to do first."""

import argparse
import io
import json
from contextlib import redirect_stderr, redirect_stdout

import pytest

from edge.cli import main
from edge.commands.doctor import _OutputLines
from edge.commands.shared.console import Screen
from edge.doctor.models import Check, ReportEntry, do, fail, ok, run, skip, warn
from edge.doctor.report import document, lines, next_action, summary


def entry(number, finding, *, title="x", layer="radio", effect=False, ms=0.0):
    return ReportEntry(
        number,
        Check(id=f"c{number}", layer=layer, title=title, examine=None, effect=effect),
        finding,
        ms,
    )


@pytest.mark.requirement("I4-doctor-good")
def test_one_failure_makes_the_whole_not_ok_and_a_warning_does_not():
    assert document([entry(1, ok("a")), entry(2, warn("b", do("c")))], "1")["ok"] is True
    told = document([entry(1, ok("a")), entry(2, fail("b", run("c")))], "1")
    assert told["ok"] is False
    assert told["counts"] == {"OK": 1, "WARN": 0, "FAIL": 1, "SKIP": 0}
    assert told["checks"][1]["fix"] == {"kind": "run", "text": "c"}


def test_the_next_thing_to_do_is_the_lowest_cause_of_the_worst():
    daemon = entry(1, fail("not running", do("start it")), title="daemon", effect=True)
    disk, clock = (
        entry(3, fail("full", run("rm x")), title="disk"),
        entry(4, fail("wrong", run("date")), title="clock"),
    )
    small = entry(2, warn("small", run("grow")), title="buffer")
    assert next_action([daemon, small, disk, clock]) == "rm x  (3, disk)"
    assert next_action([daemon, small]) == "start it  (1, daemon)"
    assert next_action([small]) == "grow  (2, buffer)"
    assert next_action([entry(1, skip("not looked at", run("sudo glassd doctor")))]) == ""


def test_a_line_has_its_latency_and_the_fix_below():
    assert lines(entry(1, fail("two\nlines", run("mend")), ms=12.4)) == [
        "two · 12 ms",
        "lines",
        "run: mend",
    ]
    assert lines(entry(1, ok("quick"), ms=0.3)) == ["quick"]


def test_checks_not_reached_for_one_reason_share_a_line():
    out = io.StringIO()
    told = _OutputLines(Screen(out, out, {}, as_json=False), lines)
    for e in (
        entry(8, fail("off", run("on")), title="bus"),
        entry(9, skip("not reached: see 8 (bus)"), title="BlueZ"),
        entry(10, skip("not reached: see 9 (BlueZ)"), title="power"),
        entry(11, ok("fine"), title="space", layer="disk"),
    ):
        told.show(e)
    told.flush()
    assert out.getvalue().splitlines() == [
        "radio",
        "    8  FAIL  bus               off",
        "             run: on",
        " 9-10  SKIP  BlueZ             not reached: see 8 (bus), for power too",
        "",
        "disk",
        "   11  OK    space             fine",
    ]
    assert (
        summary([entry(1, ok("a")), entry(2, skip("b"))], 0.25) == "2 checks in 0.2 s: 1 OK, 1 SKIP"
    )


def told_by(*words):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["doctor", *words])
    return code, out.getvalue(), err.getvalue()


@pytest.mark.requirement("I4-doctor-good")
def test_the_verb_on_this_very_machine(tmp_path, monkeypatch):
    """No daemon runs on that socket on any machine: the report says so, in both forms, with
    exit code 1.
    """
    config = tmp_path / "c.toml"
    config.write_text(
        f'version = 1\n[edge]\nstate_dir = "{tmp_path}/state"\n[glasses]\nradio = "inproc"\n'
    )
    words = ("--config", str(config), "--socket", str(tmp_path / "none.sock"))
    code, out, err = told_by(*words)
    assert (code, err) == (1, "")
    assert "\n    6  FAIL  daemon            glassd is not running (no answer at " in out
    assert f"do: start it, in a terminal of its own: glassd run --config {config}" in out
    assert out.splitlines()[-1].startswith("Next: ")
    code, out, err = told_by(*words, "--json", "--bundle", str(tmp_path / "b.tgz"))
    report = json.loads(out)
    assert (code, err) == (1, "")
    assert [c["number"] for c in report["checks"]] == list(range(1, len(report["checks"]) + 1))
    assert report["bundle"] == str(tmp_path / "b.tgz")
    assert (tmp_path / "b.tgz").stat().st_size > 500


def test_a_bundle_that_cannot_be_written_is_reported(tmp_path):
    code, _, err = told_by(
        "--config", str(tmp_path / "none.toml"), "--bundle", str(tmp_path / "no" / "b.tgz")
    )
    assert code == 1
    assert "cannot be written" in err
    assert "Traceback" not in err


def test_a_missing_configuration_is_a_finding(tmp_path):
    code, out, _ = told_by("--config", str(tmp_path / "none.toml"), "--json")
    config = next(c for c in json.loads(out)["checks"] if c["id"] == "config")
    assert code == 1
    assert "there is no such file" in config["said"]


def test_the_words_of_the_command_line():
    from edge.cli import build_parser

    args = build_parser().parse_args(["doctor", "--bundle", "f"])
    assert isinstance(args, argparse.Namespace)
    assert args.bundle == "f"
