"""What failed among others may show alone that it was no accident; nothing else gets a second
chance.
"""

import re
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import ALLOWED_SKIPS
from tests.second_chance import MOST, TIMES, judge, run_pytest

ROOT = Path(__file__).parents[3]
ONCE = """
import pathlib

def test_once():
    seen = pathlib.Path("seen")
    was = seen.exists()
    seen.touch()
    assert was
"""


class Suite:
    """A pytest that fails as it is told; remembers what it was asked."""

    def __init__(self, *, failed, status=1, alone=()):
        self.failed, self.status, self.alone = failed, status, list(alone)
        self.asked = []

    def __call__(self, words, listed):
        self.asked.append(list(words))
        if len(self.asked) > 1:
            return self.alone.pop(0) if self.alone else 0
        if self.failed is not None:
            listed.write_text("".join(f"{name}\n" for name in self.failed))
        return self.status


def verdict(suite, folder):
    said = []
    return judge(["--dist=loadfile"], folder=folder, run=suite, tell=said.append), "\n".join(said)


def test_a_clean_run_is_run_once(tmp_path):
    suite = Suite(failed=[], status=0)
    assert verdict(suite, tmp_path) == (0, "")
    assert suite.asked == [["--dist=loadfile"]]


def test_what_passes_alone_every_time_is_named_flaky_and_forgiven(tmp_path):
    suite = Suite(failed=["a.py::one", "b.py::two"])
    status, said = verdict(suite, tmp_path)
    assert status == 0
    assert "FLAKY, to be mended" in said
    assert "a.py::one" in said
    assert "b.py::two" in said
    assert [asked[-1] for asked in suite.asked[1:]] == ["a.py::one"] * TIMES + ["b.py::two"] * TIMES


@pytest.mark.parametrize("alone", [[1], [0, 1], [0, 0, 1], [0, 0, 0, 0, 1]])
def test_one_failure_alone_is_a_failure(tmp_path, alone):
    status, said = verdict(Suite(failed=["a.py::one", "b.py::two"], alone=alone), tmp_path)
    assert status == 1
    assert "FAILED, alone as well" in said


def test_many_failures_are_no_accident(tmp_path):
    suite = Suite(failed=[f"a.py::n{n}" for n in range(MOST + 1)])
    assert verdict(suite, tmp_path) == (1, "")
    assert len(suite.asked) == 1


@pytest.mark.parametrize(
    ("failed", "status"), [(None, 1), ([], 1), (["a.py::one"], 2), (["a.py::one"], 3)]
)
def test_a_run_that_failed_otherwise_than_by_its_tests_stays_failed(tmp_path, failed, status):
    suite = Suite(failed=failed, status=status)
    assert verdict(suite, tmp_path) == (status, "")
    assert len(suite.asked) == 1


@pytest.fixture
def real(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("CI", "true")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_fine.py").write_text("def test_fine(): pass\n")

    def run(name, text):
        (tmp_path / name).write_text(text)
        words = ["-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
        return judge(
            words, folder=tmp_path, run=partial(run_pytest, cwd=tmp_path), tell=lambda _text: None
        )

    return run


@pytest.mark.timeout(300)  # several whole runs of pytest, on a machine that has others to do
@pytest.mark.parametrize(
    ("name", "text", "status"),
    [("test_once.py", ONCE, 0), ("test_always.py", "def test_always(): assert False\n", 1)],
    ids=["once", "always"],
)
def test_of_a_real_run_what_fails_once_is_forgiven_and_what_fails_always_is_not(
    real, name, text, status
):
    assert real(name, text) == status


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "harm",
    [
        "import nothing_of_that_name\n",
        "import pytest\ndef test_left_out(): pytest.skip('because')\n",
    ],
)
def test_neither_a_file_that_cannot_be_read_nor_a_skip_is_forgiven_with_a_failure(real, harm):
    assert real("test_harm.py", harm + ONCE) != 0


def test_every_skip_that_ci_allows_names_tests_that_exist():
    for prefix in ALLOWED_SKIPS:
        file, _, name = prefix.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(
            rf"^(async )?def {name.partition('[')[0] or 'test_'}", text, re.MULTILINE
        ), prefix
