import sys

import pytest

from tools_cache import checker
from tools_cache.checker import CheckerFailed, check_all, unusable

SCHEMAS = {"a:good": {"type": "object"}, "a:bad": {"type": "strin"}, "a:bomb": {"anyOf": [{}] * 3000}}


def test_only_what_does_not_compile_is_named():
    assert sorted(check_all(SCHEMAS)) == ["a:bad", "a:bomb"]


@pytest.mark.enable_socket
async def test_a_child_process_says_the_same():
    assert await unusable(SCHEMAS) == check_all(SCHEMAS)


async def test_nothing_to_check_starts_no_child(monkeypatch):
    monkeypatch.setattr(checker.sys, "executable", "/nonexistent")
    assert await unusable({}) == {}


@pytest.mark.enable_socket
async def test_a_child_that_dies_is_an_error(monkeypatch):
    monkeypatch.setattr(checker.sys, "executable", "/bin/false")
    with pytest.raises(CheckerFailed, match="ended with"):
        await unusable(SCHEMAS)


@pytest.mark.enable_socket
async def test_a_child_that_hangs_is_ended(monkeypatch, tmp_path):
    slow = tmp_path / "slow"
    slow.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    slow.chmod(0o755)
    monkeypatch.setattr(checker.sys, "executable", str(slow))
    with pytest.raises(CheckerFailed, match="no answer"):
        await unusable(SCHEMAS, limit_s=0.1)
