"""Every promise has a test, every `requirement` mark names a promise."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from tests.requirements import DECLINED, PARTS, PROMISES

HERE = Path(__file__).parent


@functools.cache
def _marks() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in sorted(HERE.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if "requirement" not in text:
            continue
        for node in _functions(ast.parse(text)):
            if node.name.startswith("test_"):
                for mark in node.decorator_list:
                    if (
                        isinstance(mark, ast.Call)
                        and ast.unparse(mark.func) == "pytest.mark.requirement"
                    ):
                        for argument in mark.args:
                            found.setdefault(ast.literal_eval(argument), []).append(
                                f"{file.name}::{node.name}"
                            )
    return found


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function, also those of classes and those below an `if`; what stands inside of a
    function is no test.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.stmt):
            yield from _functions(node)


def test_every_promise_has_a_test():
    missing = sorted(set(PROMISES) - set(_marks()))
    assert not missing, f"promised, but no test says it proves it: {missing}"


def test_every_mark_names_a_promise():
    unknown = {name: tests for name, tests in _marks().items() if name not in PROMISES}
    assert not unknown, f"tests for what was never promised: {unknown}"


def test_a_promise_is_a_sentence_with_a_source():
    assert all(p.sentence.endswith(".") and p.source for p in PROMISES.values())


def test_no_promise_is_made_twice_and_none_is_declined_as_well():
    tree = ast.parse((HERE / "requirements.py").read_text(encoding="utf-8"))
    said = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "PROMISES"
    )
    names = [key.value for key in said.keys if key is not None]  # with each that is written twice
    names += [name for part in PARTS for name in (*part.PROMISES, *part.DECLINED)]
    assert len(names) == len(set(names))
    assert not set(PROMISES) & set(DECLINED)


def test_what_is_declined_says_why():
    assert all(reason.endswith(".") for reason in DECLINED.values())


def _rows(seed: int, first: int, last: int) -> set[str]:
    return {f"S{seed}-{number:02d}" for number in range(first, last + 1)}


ROWS = _rows(0, 1, 70) | _rows(1, 1, 50) | _rows(2, 1, 140) | _rows(3, 1, 40) | _rows(4, 1, 59)
"""Every row of the seed features."""


def test_every_row_is_promised_or_declined():
    cited = {
        f"{seed}-{int(row):02d}"
        for promise in PROMISES.values()
        for seed, row in re.findall(r"(S\d)-(\d+)", promise.source)
    }
    assert len(ROWS) == 359
    answered = cited | set(PROMISES) | set(DECLINED)
    assert not ROWS - answered
