"""Two checkouts in turns: each is measured with its own code, and what one lacks is said."""

import subprocess

import pytest

from benchmarks import compare
from benchmarks.table import Row

RUN = """
import json, sys, {uses}
print(json.dumps({{"what": "size", "value": edge.SIZE, "unit": "ms", "baseline": "b", "base": 2}}))
print(json.dumps({{"text": "a bar"}}))
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Make checkouts whose only code is a number, and a benchmark that prints it."""
    benchmarks = tmp_path / "benchmarks"
    benchmarks.mkdir()
    (benchmarks / "__init__.py").touch()
    (benchmarks / "run.py").write_text(RUN.format(uses="edge"))

    def make(name, size):
        (tmp_path / name / "edge").mkdir(parents=True)
        (tmp_path / name / "edge" / "__init__.py").write_text(f"SIZE = {size}\n")
        (tmp_path / name / "edge" / "cli.py").touch()
        (tmp_path / name / "tools_cache").mkdir()
        (tmp_path / name / "tools_cache" / "tool_registry.json").write_text("{}")
        (tmp_path / name / "benchmarks").symlink_to(benchmarks)
        return tmp_path / name

    monkeypatch.setenv("PYTHONPATH", str(make("elsewhere", 99)))
    monkeypatch.setattr(compare, "THIS", make("this", 4))
    return make


def rows(checkout, size, turns=2):
    return list(compare.compare(checkout("other", size), ["commands"], [], turns))


def test_each_checkout_is_measured_with_its_own_code(checkout):
    _, row, note = rows(checkout, 16)
    assert row.split() == "size 4.0 16.0 ms 0.25 x 2.00 x and 8.00 x of b".split()
    assert note.strip() == "a bar"


def test_children_that_take_no_environment_run_its_code_too(checkout, tmp_path):
    (tmp_path / "folder").mkdir()
    other = compare.Checkout("other", checkout("other", 16), tmp_path / "folder")
    other.prepare()
    code = "import edge, h11; print(edge.SIZE)"
    ran = subprocess.run(
        [other.python, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "16"


def test_the_median_of_all_turns_is_shown(tmp_path):
    measured = compare.Checkout("this", tmp_path, tmp_path)
    measured.rows["size", ""] = [Row("size", value) for value in (1.0, 100.0, 2.0)]
    (line,) = compare.table(measured, compare.Checkout("other", tmp_path, tmp_path))
    assert line.split() == ["size", "2.0", "-", "ms"]


def test_a_section_that_one_checkout_cannot_run_is_said(checkout, tmp_path):
    (tmp_path / "benchmarks" / "run.py").write_text(RUN.format(uses="edge.only_here"))
    (tmp_path / "this" / "edge" / "only_here.py").touch()
    lines = rows(checkout, 16, turns=1)
    assert any(line.split() == ["size", "4.0", "-", "ms"] for line in lines)
    assert any("other: commands ended early: ModuleNotFoundError" in line for line in lines)


def test_a_folder_that_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="not a checkout of glassd"):
        list(compare.compare(tmp_path, ["commands"], [], 1))
