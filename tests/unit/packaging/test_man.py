"""The man page and the completions are the tree of verbs, told in other words."""

import subprocess

import pytest
from man import _actions, _plain, _subparsers, page
from places import Layout, files

from edge.cli import build_parser
from tests.system import program


@pytest.fixture(scope="module")
def text():
    return page(build_parser())


def verbs(parser, path="glassd"):
    for name, verb in _subparsers(parser).choices.items():
        if _subparsers(verb) is None:
            yield f"{path} {name}", verb
        else:
            yield from verbs(verb, f"{path} {name}")


@pytest.mark.requirement("I4-man")
def test_every_verb_and_option_stands_in_the_man_page(text):
    parts = text.split("\n.SS ")
    for path, verb in verbs(build_parser()):
        mine = [p for p in parts if p.startswith((f'"{_plain(path)}"', f'"{_plain(path)} '))]
        assert mine, path
        for action in _actions(verb):
            assert all(f"\\fB{_plain(name)}\\fR" in mine[0] for name in action.option_strings), (
                path,
                action.option_strings,
            )


def test_the_same_tree_gives_the_same_page(text):
    assert page(build_parser()) == text


def test_the_formatter_has_no_complaint(text):
    groff = program("groff")
    ran = subprocess.run(
        [groff, "-Kutf8", "-man", "-ww", "-Tutf8"],
        input=text,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "companion daemon" in ran.stdout


def test_text_stays_text():
    assert _plain(".SH x\\y --a") == "\\&.SH x\\ey \\-\\-a"


@pytest.mark.requirement("I4-man")
def test_the_completions_ship_for_three_shells_and_know_every_verb():
    placed = files(Layout("/usr"))
    scripts = [text.decode() for path, text in placed.items() if "complet" in path]
    assert len(scripts) == 3
    for path, _ in verbs(build_parser()):
        assert all(path.split()[1] in script for script in scripts), path


def test_zsh_runs_the_completion_also_when_it_loads_it_by_itself():
    script = files(Layout("/usr"))["/usr/share/zsh/vendor-completions/_glassd"].decode()
    assert script.startswith("#compdef glassd\n")
    assert '_glassd "$@"' in script.splitlines()[-1]
