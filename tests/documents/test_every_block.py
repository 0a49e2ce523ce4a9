"""No block of the documents without a test, no verb, option or exit code in them that there is
not.
"""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

from edge import cli
from edge.commands.options import VERBS
from tests.documents.blocks import ALL, DOCUMENTS, ROOT, SHOWN

TESTS = (
    "test_readme",
    "test_glasses",
    "test_using",
    "test_mini_app",
    "test_guides",
    "test_control_api",
    "test_mqtt",
    "test_mqtt_tables",
    "test_speech",
    "test_microphone",
    "test_recording",
)
ELSEWHERE = {
    ("README.md", "sudo apt install bluez make"): (
        "needs root, apt and a radio",
        "tests/unit/packaging/test_install.py::test_everything_has_its_place",
    ),
    ("docs/install.md", "sudo apt install ./dist/glassd_"): (
        "needs root and apt; `make deb-test` does it",
        "tests/unit/packaging/test_deb.py::test_its_files_are_roots_in_the_distributions_places_and_no_settings_file_is_dpkgs",
    ),
    ("docs/cloud.md", "$ glassd up -"): (
        "needs Mosquitto and an enrolment code",
        "tests/scenarios/test_enrolment.py::test_the_devcloud_shows_a_code_and_glassd_up_takes_it",
    ),
    ("docs/mcp-servers.md", "$ systemctl reload glassd\n$ glassd servers"): (
        "needs npx, the internet and a sign-in",
        "tests/scenarios/test_sign_in.py::",
    ),
    ("docs/devcloud.md", "mosquitto -p 1884 &"): (
        "needs Mosquitto",
        "tests/e2e/test_workers.py::test_a_worker_of_the_command_line_serves_on_when_the_cloud_it_stands_beside_is_killed",
    ),
    ("docs/speech.md", "glassd call glasses:set volume=40"): (
        "needs glasses with a speaker",
        "tests/scenarios/voice/test_sound.py::test_the_volume_that_the_wearer_sets_is_heard_and_outlives_the_daemon",
    ),
    ("docs/microphone.md", "pip install 'glassd[ears]'"): (
        "needs the internet, root and apt",
        "tests/unit/packaging/test_install.py::test_everything_has_its_place",
    ),
    ("docs/microphone.md", "pip install 'glassd[ears-sherpa]'"): (
        "needs the internet",
        "tests/unit/hearing/engines/test_sherpa.py::test_a_real_model_understands_speech",
    ),
    ("docs/link.md", "stateDiagram-v2"): (
        "a drawing, printed by the table that it shows",
        "tests/unit/link/test_link_state.py::",
    ),
    ("docs/pager.md", " edge of Anna"): (
        "a drawing of the way of a message",
        "tests/scenarios/everyday/test_pager.py::test_a_page_reaches_the_other_lens_also_after_either_was_away",
    ),
    ("docs/mqtt.md", " wearer   glasses"): (
        "a drawing of the parts",
        "tests/documents/test_mqtt.py::test_a_call_that_the_cloud_answers",
    ),
    ("docs/mcp.md", "openssl rand -hex 24 | sudo install"): (
        "needs root and systemd",
        "tests/unit/packaging/test_units.py::test_systemd_verifies_the_units_for_agents_and_finds_little_to_complain_about",
    ),
}
"""(document, beginning of a block) → (why it is not run here, the test that shows what can be
shown of it).
"""


def shown_by_tests():
    for name in TESTS:
        importlib.import_module(f"tests.documents.{name}")
    return SHOWN


@pytest.mark.requirement("I11-documents")
def test_every_block_is_run_by_one_test_or_has_a_reason_why_not():
    known = [*shown_by_tests(), *ELSEWHERE]
    homeless = [
        str(each)
        for each in ALL
        if sum(each.document == d and each.text.startswith(begins) for d, begins in known) != 1
    ]
    assert not homeless, "blocks without a test (tests/documents), or with two:\n" + "\n".join(
        homeless
    )
    gone = [
        key
        for key in known
        if not any(each.document == key[0] and each.text.startswith(key[1]) for each in ALL)
    ]
    assert not gone, f"tests of blocks that no document has: {gone}"


@pytest.mark.requirement("I11-documents")
def test_blocks_are_run_in_the_order_in_which_they_are_read():
    for name in TESTS:
        text = (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")
        last: dict[str, int] = {}
        for (document, begins), test in shown_by_tests().items():
            if test.startswith(f"{name}.py"):
                line = next(
                    each.line
                    for each in ALL
                    if each.document == document and each.text.startswith(begins)
                )
                last[f"{document} {test}"] = max(line, last.get(f"{document} {test}", 0))
        for document in DOCUMENTS:
            tests = [
                key.rpartition("::")[2]
                for key in sorted((k for k in last if k.startswith(document)), key=last.__getitem__)
            ]
            assert tests == sorted(tests, key=lambda test: text.index(f"def {test}(")), (
                f"{name}.py: not in the order of {document}"
            )


@pytest.mark.parametrize("key", ELSEWHERE)
def test_what_is_not_run_here_is_shown_by_a_test_that_exists(key):
    reason, test = ELSEWHERE[key]
    file, _, name = test.partition("::")
    assert reason
    assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")


def test_units_and_packages_that_a_document_names_exist():
    for document in DOCUMENTS:
        text = (ROOT / document).read_text(encoding="utf-8")
        for unit in re.findall(r"systemctl (?:--\S+ )*\w+ (?:--\S+ )*(glassd[\w.-]*)", text):
            name = unit if "." in unit else f"{unit}.service"
            assert list((ROOT / "systemd").rglob(name)), f"{document}: {unit}"


# ------------------------------------------------------------------ verbs, options, exit codes


def named(document):
    """Every `glassd VERB …` in a document, in blocks and between backticks."""
    text = (ROOT / document).read_text(encoding="utf-8")
    spans = re.findall(r"`(glassd [^`]+)`", text)
    for each in (each for each in ALL if each.document == document):
        typed = [line for line in each.lines if each.language == "sh" or line.startswith("$ ")]
        spans += [
            part
            for line in typed
            for part in re.findall(r"(?:^|[$;|&] )\s*(glassd [^|&;#]+)", line)
        ]
    return spans


def help_of(verb, capsys):
    assert cli.main([*verb, "--help"]) == 0, verb
    return capsys.readouterr().out


@pytest.mark.requirement("I11-verbs")
@pytest.mark.parametrize("document", [*DOCUMENTS, "CONTRIBUTING.md"])
def test_every_verb_and_option_that_a_document_names_exists(document, capsys):
    verbs = {name for name, _, _ in VERBS}
    for span in named(document):
        words = span.split()[1:]
        if words[0].startswith("--") or words[0] == "VERB":
            assert words[0] in {"--help", "--version", "VERB"}, span
            continue
        assert words[0].rstrip(",:.") in verbs, f"{document}: {span}"
        asked = help_of([words[0]], capsys)
        if words[0] == "registry" or (
            words[0] in ("tools", "servers") and len(words) > 1 and words[1].isalpha()
        ):
            asked += help_of(words[:2], capsys) if len(words) > 1 and words[1].isalpha() else ""
        for option in re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", span):
            assert option in asked, f"{document}: {span}: {option}"


@pytest.mark.requirement("I11-verbs")
def test_every_verb_stands_in_the_table_of_commands():
    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    first_cells = " ".join(re.findall(r"^\| (`glassd.*?) \| .*\|$", text, re.MULTILINE)).replace(
        "\\|", "|"
    )
    for name, _, _ in VERBS:
        assert re.search(rf"\b{name}\b", first_cells), (
            f"glassd {name} is not in the table of docs/commands.md"
        )


@pytest.mark.requirement("I11-verbs")
def test_the_options_of_the_mcp_server_are_those_of_its_guide(capsys):
    asked = help_of(["mcp"], capsys)
    table = re.findall(
        r"^\| `(--[a-z-]+)", (ROOT / "docs/mcp.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(table) >= 4
    assert not [option for option in table if option not in asked]
    forms = re.findall(
        r"^\| `(\w+)` \|", (ROOT / "docs/tools.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    providers = help_of(["registry", "show"], capsys)
    assert not [
        form
        for form in forms
        if form.startswith(("mcp", "openai", "anthropic", "gemini")) and form not in providers
    ]


@pytest.mark.requirement("I11-verbs")
def test_the_exit_codes_in_the_help_are_those_of_the_program(capsys):
    asked = help_of([], capsys)
    codes = dict(
        re.findall(
            r"(\d) ([\w ]+?)(?: ·|\n)", asked.partition("exit codes:")[2].partition("\n")[0] + "\n"
        )
    )
    assert codes == {
        str(cli.DONE): "done",
        str(cli.FAILED): "failed",
        str(cli.USAGE): "wrong usage or configuration",
        str(cli.NOT_RUNNING): "the daemon is not running",
        str(cli.NOTHING): "nothing found",
        str(cli.TIMED_OUT): "timed out",
    }
    printed = re.search(
        r"^Exit codes: (.+?)\.\s",
        (ROOT / "docs/commands.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )[1]
    assert (
        printed.split() == ", ".join(f"{code} {meaning}" for code, meaning in codes.items()).split()
    )
    assert cli.main(["no-such-verb"]) == cli.USAGE
    assert cli.main(["status", "--socket", "/nonexistent/control.sock"]) == cli.NOT_RUNNING


@pytest.mark.requirement("I11-documents")
def test_the_file_that_explains_every_key_is_read_without_a_complaint(tmp_path):
    from edge.config.load import load

    text = (ROOT / "systemd" / "glassd.toml").read_text(encoding="utf-8")
    tomllib.loads(text)
    (tmp_path / "glassd.toml").write_text(text)
    load(tmp_path / "glassd.toml", {})
