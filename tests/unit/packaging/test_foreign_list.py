"""Software of others that `make foreign-tests` installs stays out of every other environment."""

import re
from pathlib import Path

from tests.foreign import conftest

ROOT = Path(__file__).parents[3]
LINES = (ROOT / "tests" / "foreign" / "requirements.txt").read_text().splitlines()
PINNED = [line for line in LINES if line and not line.startswith("#")]
LINE = re.compile(
    r"([a-z][a-z0-9-]+)==(\d+(?:\.\d+)+(?:a\d+)?)  # ([\w.+-]+(?:[ ,][\w., -]+)?); \S.*"
)


def test_each_package_has_one_version_its_licence_and_a_reason():
    assert len(PINNED) > 10
    wrong = [line for line in PINNED if not LINE.fullmatch(line)]
    assert wrong == []


def test_no_address_of_a_registry_is_in_it():
    assert [line for line in LINES if "://" in line or line.startswith("-")] == []


def test_nothing_of_it_is_a_dependency_of_ours():
    names = {line.partition("==")[0] for line in PINNED}
    ours = (ROOT / "constraints.txt").read_text() + (ROOT / "pyproject.toml").read_text()
    assert [name for name in names if re.search(rf'(?:^|["\s]){name}(?![\w-])', ours)] == []


def test_without_these_packages_none_of_their_tests_is_collected():
    assert conftest.collect_ignore_glob == ["test_*.py"]
    folder = ROOT / "tests" / "foreign"
    assert len(list(folder.glob("test_*.py"))) > 5
