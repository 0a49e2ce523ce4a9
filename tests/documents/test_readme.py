"""The blocks of the README, run in order as they are printed.

Replaced in what is printed: ports by free ones and, where a test says so, an address or a waiting
time.
"""

import importlib
import json
import re
from contextlib import closing

import pytest

from tests.documents.agent import Agent
from tests.documents.blocks import DOCUMENTS, ROOT, block, compare, pattern, shows, without_comment
from tests.e2e.broker import free_port

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(300)]
README, ARCHITECTURE = "README.md", "docs/architecture.md"
TEXT = (ROOT / README).read_text(encoding="utf-8")


def typed(line):
    """A line of the demo without the words beside it."""
    return re.split(r"\s{2,}", line.strip())[0]


# ------------------------------------------------------------------ try it


@shows(README, "make demo")
def test_make_has_the_two_commands():
    makefile = (ROOT / "Makefile").read_text()
    for line in block(README, "make demo").lines:
        target = without_comment(line).split()[1]
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), line
    for document in DOCUMENTS:
        text = (ROOT / document).read_text(encoding="utf-8")
        for target in re.findall(r"(?:`|^|^sudo )make ([a-z-]+)", text, re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{document}: make {target}"


@shows(README, "== The cloud's own agent uses the glasses", "say what time is it")
@pytest.mark.requirement("I11-documents")
def test_what_a_person_types_into_the_demo_does_what_is_said_beside_it(place):
    lines = [typed(line) for line in block(README, "say what time is it").lines]
    *acts, words = lines
    demo = place.start("glassd demo")
    demo.wait_for("Type what the wearer does")
    [count] = re.findall(r"\d+ tools, \d+ for these glasses", TEXT)
    demo.wait_for(rf"{count} \(cloud\)")
    title, invoked, *lens = block(README, "== The cloud's own agent uses the glasses").lines
    assert f"\n{title}\ninvoke {invoked.split()[1]} " in (ROOT / "edge/demo/tour.script").read_text(
        encoding="utf-8"
    )
    demo.type('invoke glasses:show_text {"text": "Your table is ready", "title": "Bistro"}')
    demo.wait_for(r"(?s)" + ".*".join(pattern(line) for line in (invoked, *lens)))
    comes = {
        "say": r"clock:now",
        "call com.example.calc:evaluate": "= 42",
        "call com.example.prime": "1000003",
        "caps": r"tools, \d+ for these glasses",
        "call com.example.photo:inspect": "HARDWARE_MISSING.*camera",
        "offline": "offline:",
        "call com.example.tasks": "com.example.tasks:add",
        "online": "com.example.tasks:add: finished now",
    }
    for act in acts:
        before = demo.type(act)
        wanted = next(what for begins, what in comes.items() if act.startswith(begins))
        demo.wait_for(wanted, after=before + len(act))
    for word in words.split(", "):
        before = demo.type(word)
        if word != "quit":
            demo.wait_for(r"\S", after=before + len(word) + 1)
    demo.end(0)


# ------------------------------------------------------------------ first steps


@shows(README, "pip install '.[voice,enrol,calendar]'", "glassd 0.1.0  edge-")
def test_a_daemon_without_a_cloud_prints_this_status(place):
    install, run, status = (
        without_comment(line) for line in block(README, "pip install '.[voice").lines
    )
    assert_extras(install)
    sample = block(README, "glassd 0.1.0  edge-")
    sim = re.search(r"`(glassd sim mock:display --radio tcp:127\.0\.0\.1:)\d+`", TEXT)[1]
    port = free_port()
    place.start(f"{sim}{port}")
    place.write(
        ".config/glassd/glassd.toml", f'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:{port}"\n'
    )
    place.env["GLASSD_CONFIG"] = str(
        place.folder / ".config/glassd/glassd.toml"
    )  # as if there were no /etc/glassd
    place.start(run)
    place.until(place.is_ready, "glasses ready")
    place.until(
        lambda: place.status()["registry"]["compatible"] > 4, "the tools are judged by the glasses"
    )
    compare(
        sample.lines,
        place.run(status),
        {
            "/etc/glassd/glassd.toml": r"\S+",
            "14 running": r"1\d running",
            "off            recogniser auto": r"(off|missing) .*",  # the extra `ears`
        },
    )


def assert_extras(text):
    extras = {extra for found in re.findall(r"\[([a-z,]+)\]'", text) for extra in found.split(",")}
    import tomllib

    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras
    assert extras <= known.keys()


def test_every_extra_that_a_document_names_exists():
    for document in DOCUMENTS:
        for found in re.findall(
            r"(?:glassd|\.)\[([a-z,]+)\]", (ROOT / document).read_text(encoding="utf-8")
        ):
            assert_extras(f"[{found}]'")


# ------------------------------------------------------------------ agents


@shows(README, '{"mcpServers": {\n  "glasses"')
def test_three_lines_give_an_agent_glasses(place):
    server = json.loads(block(README, '{"mcpServers": {\n  "glasses"').text)["mcpServers"][
        "glasses"
    ]
    with closing(Agent(place, " ".join([server["command"], *server["args"]]))) as agent:
        names = {tool["name"] for tool in agent.ask("tools/list")["tools"]}
        shown = agent.ask("tools/call", name="glasses__show_text", arguments={"text": "Hello"})
        assert "glasses__show_text" in names
        assert not shown.get("isError"), shown
        assert "Hello" in place.run(
            "glassd lens"
        )  # “`glassd lens --watch` in a terminal is what the wearer sees”


# ------------------------------------------------------------------ configuration, development


@shows(README, "version = 1\n[audio]")
@pytest.mark.requirement("I11-documents")
def test_the_configuration_is_read_as_printed(tmp_path):
    from edge.config.load import load

    (tmp_path / "glassd.toml").write_text(
        block(README, "version = 1\n[audio]").text, encoding="utf-8"
    )
    settings = load(tmp_path / "glassd.toml", {})
    assert (settings.audio.voice, settings.uplink.host) == ("de-DE", "broker.local")
    assert settings.policy.disabled_tools == ("com.example.camera:shoot",)


@shows(README, "edge/     ")
def test_the_layout_names_what_exists():
    layout = block(README, "edge/     ").text
    assert len(layout.splitlines()) <= 15
    for path in re.findall(r"\b[a-z_]+/[\w/.]*", layout):
        assert (ROOT / path).exists(), path


@shows(ARCHITECTURE, "  edge/cli.py                       the command")
def test_the_paths_that_are_named_exist():
    for document in DOCUMENTS:
        text = (ROOT / document).read_text(encoding="utf-8")
        for path in re.findall(
            r"`((?:edge|firmware_bridge|tools_cache|tests|docs|systemd)/[\w/.]+?)`", text
        ):
            assert (ROOT / path).exists(), f"{document}: {path}"
    for path in re.findall(
        r"\bedge/[\w/]*(?:\.py)?",
        block(ARCHITECTURE, "  edge/cli.py                       the command").text,
    ):
        assert (ROOT / path).exists(), path


def test_the_walk_of_one_call_names_what_exists():
    text = (ROOT / ARCHITECTURE).read_text(encoding="utf-8")
    walk = text.partition("## The walk of one call")[2].partition("\n## ")[0]
    steps = re.findall(r"`(edge/[\w/]+)\.py`\s+`(\w[\w.]*)`", walk)
    assert len(steps) >= 15
    for path, name in steps:
        found = importlib.import_module(path.replace("/", "."))
        for part in name.split("."):
            found = getattr(found, part, None)
            assert found is not None, f"{path}.py has no {name}"


@pytest.mark.requirement("I12-documents")
def test_links_lead_to_files_and_headings():
    for document in [*DOCUMENTS, "CONTRIBUTING.md", "DECISIONS.md", "CHANGELOG.md"]:
        text = re.sub(r"(?ms)^```.*?^```", "", (ROOT / document).read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if not target.startswith("https://"):
                file, _, anchor = target.partition("#")
                page = (ROOT / document).parent / file if file else ROOT / document
                assert page.exists(), f"{document}: {target}"
                assert not anchor or anchor in anchors(page.read_text(encoding="utf-8")), (
                    f"{document}: {target}"
                )


def anchors(page):
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"(?m)^#+ (.+)$", re.sub(r"(?ms)^```.*?^```", "", page))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.requirement("I12-documents")
def test_the_readme_is_short():
    assert len(TEXT.splitlines()) <= 200
    for document in DOCUMENTS:  # tables and blocks keep their lines whole
        text = re.sub(r"(?ms)^```.*?^```", "", (ROOT / document).read_text(encoding="utf-8"))
        assert not [
            line
            for line in text.splitlines()
            if len(line) > 100 and not line.startswith(("|", "<!--"))
        ], document


@pytest.mark.requirement("I12-documents")
def test_the_index_of_decisions_gives_each_its_status_and_date():
    text = (ROOT / "DECISIONS.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \| \[(.+)\]\(#.+\) \| (.+) \| (.+) \|$", text, re.MULTILINE)
    entries = re.findall(r"^## (\d+)\. (.+)\n\nStatus: (.+)\. Date: (.+)\.$", text, re.MULTILINE)
    assert len(entries) == len(re.findall("^## ", text, re.MULTILINE))
    assert listed == entries
    assert [int(number) for number, *_ in entries] == list(range(1, len(entries) + 1))
    assert all(
        re.match(r"(active|superseded|replaced by \d+)\b", status) for _, _, status, _ in entries
    )


@pytest.mark.requirement("I12-documents")
def test_the_changelog_has_one_line_per_change():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    changes = lines[lines.index("### Added") :]
    assert not [line for line in changes if line.startswith(" ") or len(line) > 160]
