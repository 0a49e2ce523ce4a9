"""Every block of the README, pasted and run in order; one machine with a small cloud, mock glasses and a daemon for most of it.

Put in the place of what is printed: free ports, and where a test says so an address on this machine or a shorter wait.
"""

import json
import re
import signal
import sys
import urllib.request
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import entry_points
from pathlib import Path
from threading import Thread

import pytest

from edge.store.room import Room
from tests.documents.agent import Agent
from tests.documents.blocks import ROOT, block, commands, compare, pattern, shows, without_comment
from tests.documents.place import Place
from tests.e2e.broker import free_port

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(300)]
README = "README.md"
TEXT = (ROOT / README).read_text(encoding="utf-8")


@pytest.fixture
def place():
    with closing(Place()) as place:
        yield place


@pytest.fixture(scope="module")
def house():
    """What “the three processes of the demo by hand” starts: cloud, glasses and daemon, for all blocks that need them."""
    with closing(Place()) as house:
        house.write("my.toml", block(README, "version = 1\n[glasses]").text)
        for line in block(README, "glassd devcloud --http").lines[:3]:
            house.start(line)
        house.daemon = house.terminals[-1]
        house.until(house.is_ready, "the three processes are ready")
        yield house


def typed(line):
    """A line of the demo without the words beside it."""
    return re.split(r"\s{2,}", line.strip())[0]


# ------------------------------------------------------------------ two commands, and what they show


@shows(README, "make demo")
def test_make_has_the_two_commands():
    makefile = (ROOT / "Makefile").read_text()
    for line in block(README, "make demo").lines:
        target = without_comment(line).split()[1]
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), line
    for target in re.findall(r"(?:`|^|^sudo )make ([a-z-]+)", TEXT, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"


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
    assert f"\n{title}\ninvoke {invoked.split()[1]} " in (ROOT / "edge/demo/tour.script").read_text(encoding="utf-8")
    demo.type('invoke glasses:show_text {"text": "Your table is ready", "title": "Bistro"}')
    demo.wait_for(r"(?s)" + ".*".join(pattern(line) for line in (invoked, *lens)))
    comes = {
        "say": r"clock:now", "call com.example.calc:evaluate": "= 42", "call com.example.prime": "1000003", "caps": r"tools, \d+ for these glasses",
        "call com.example.photo:inspect": "HARDWARE_MISSING.*camera", "offline": "offline:", "call com.example.tasks": "com.example.tasks:add",
        "online": "com.example.tasks:add: finished now",
    }  # fmt: skip
    for act in acts:
        before = demo.type(act)
        wanted = next(what for begins, what in comes.items() if act.startswith(begins))
        demo.wait_for(wanted, after=before + len(act))
    for word in words.split(", "):
        before = demo.type(word)
        if word != "quit":
            demo.wait_for(r"\S", after=before + len(word) + 1)
    demo.end(0)


# ------------------------------------------------------------------ agents


@shows(README, '{"mcpServers": {\n  "glasses"')
def test_three_lines_give_an_agent_glasses(place):
    server = json.loads(block(README, '{"mcpServers": {\n  "glasses"').text)["mcpServers"]["glasses"]
    with closing(Agent(place, " ".join([server["command"], *server["args"]]))) as agent:
        names = {tool["name"] for tool in agent.ask("tools/list")["tools"]}
        shown = agent.ask("tools/call", name="glasses__show_text", arguments={"text": "Hello"})
        assert "glasses__show_text" in names
        assert not shown.get("isError"), shown
        assert "Hello" in place.run("glassd lens")  # “`glassd lens --watch` in a terminal is what the wearer sees”


@shows(README, "$ glassd llm tools anthropic")
def test_a_models_reply_is_answered_and_printed_as_shown(house):
    reply = {"role": "assistant", "content": [
        {"type": "tool_use", "id": "toolu_01A", "name": "clock__now", "input": {}}]}  # fmt: skip
    (house.folder / "reply.json").write_text(json.dumps(reply))
    for command, printed in commands(block(README, "$ glassd llm tools anthropic").text):
        compare(printed, house.run(without_comment(command)))
    assert "clock__now" in {tool["name"] for tool in json.loads((house.folder / "tools.json").read_text())}


# ------------------------------------------------------------------ on your own machine


@shows(README, "pip install '.[voice,enrol,calendar]'", "glassd 0.1.0  edge-")
def test_a_daemon_without_a_cloud_prints_this_status(place):
    install, run, status = (without_comment(line) for line in block(README, "pip install '.[voice").lines)
    assert_extras(install)
    sample = block(README, "glassd 0.1.0  edge-")
    sim = re.search(r"`(glassd sim mock:display --radio tcp:127\.0\.0\.1:)\d+`", TEXT)[1]
    port = free_port()
    place.start(f"{sim}{port}")
    place.write(".config/glassd/glassd.toml", f'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:{port}"\n')
    place.env["GLASSD_CONFIG"] = str(place.folder / ".config/glassd/glassd.toml")  # as if there were no /etc/glassd
    place.start(run)
    place.until(place.is_ready, "glasses ready")
    place.until(lambda: place.status()["registry"]["compatible"] > 4, "the tools are judged by the glasses")
    compare(sample.lines, place.run(status), {"/etc/glassd/glassd.toml": r"\S+", "14 running": r"1\d running"})


def assert_extras(text):
    extras = {extra for found in re.findall(r"\[([a-z,]+)\]'", text) for extra in found.split(",")}
    import tomllib

    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras
    assert extras <= known.keys()


def test_every_extra_that_a_document_names_exists():
    for document in [README, *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]:
        for found in re.findall(r"(?:glassd|\.)\[([a-z,]+)\]", (ROOT / document).read_text(encoding="utf-8")):
            assert_extras(f"[{found}]'")


@shows(README, "glassd devcloud --http", "version = 1\n[glasses]")
@pytest.mark.requirement("I11-documents")
def test_three_processes_by_hand_serve_a_call(house):
    call = block(README, "glassd devcloud --http").lines[3]
    said = house.run(call)
    assert "1024" in said
    assert (house.folder / "lens.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@shows(README, "$ glassd tools --category utility")
def test_the_tools_are_known_without_a_daemon_and_say_how_old_they_are(house):
    [(command, printed)] = commands(block(README, "$ glassd tools --category utility").text)
    house.daemon.close()
    try:
        house.env["GLASSD_CONFIG"] = "my.toml"  # “when GLASSD_CONFIG=my.toml says so”
        compare(printed, house.run(command))
    finally:
        house.daemon = house.start(block(README, "glassd devcloud --http").lines[2])
        house.until(house.is_ready, "the daemon is back")


# ------------------------------------------------------------------ pairing


@shows(README, "$ glassd up\nLooking for glasses")
def test_glasses_that_show_a_code_are_paired_as_printed(place):
    sim = place.start("glassd sim mock:display --pairing passkey --radio tcp:127.0.0.1:6402 --control m.sock --out .")
    sim.wait_for("tcp:127")
    place.env["GLASSD_CONFIG"] = str(place.write("glassd.toml", 'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:6402"\nconnect = "paired"\n'))
    place.start("glassd run")
    place.until(place.status, "the daemon is there")
    [(command, printed)] = commands(block(README, "$ glassd up\nLooking for glasses").text)
    up = place.start(command)
    up.wait_for("Type it here: ")
    code = place.until(lambda: re.search(r"\d{3} \d{3}", " ".join(place.ask_mock("m.sock", do="lens")["lines"])), "a code on the lens")[0]
    up.type(code.replace(" ", ""))
    compare([*printed, "…"], up.end(0))  # below it: the next thing to do, which depends on the machine


# ------------------------------------------------------------------ glasses of two radios, and faults


@shows(README, "glassd sim mock:full  ", "glasses   ready          model even_g1", "$ glassd tools --all\nglasses:notify")
@pytest.mark.requirement("I11-documents")
def test_simulated_glasses_run_as_printed_and_a_lost_arm_is_in_status(place):
    plain, drop, away, _with_script, demo = (without_comment(line) for line in block(README, "glassd sim mock:full  ").lines)
    for command in (plain, drop):
        sim = place.start(f"{command} --radio tcp:127.0.0.1:0")
        sim.wait_for("tcp:127.0.0.1:")
        sim.close()
    place.start(f"{away.replace('@9s', '@6s')} --radio tcp:127.0.0.1:6402").wait_for("tcp:127")
    place.env["GLASSD_CONFIG"] = str(place.write("glassd.toml", 'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:6402"\nmodel = "even_g1"\n'))
    place.start("glassd run")
    place.until(place.is_ready, "the glasses are there")
    status = block(README, "glasses   ready          model even_g1")
    place.until(lambda: re.search(r"right\s+lost", place.run("glassd status")), "the right arm is lost")
    glasses = place.run("glassd status").partition("glasses  ")[2].partition("uplink  ")[0]
    compare(status.lines, f"glasses  {glasses}")
    for command, printed in commands(block(README, "$ glassd tools --all\nglasses:notify").text):
        said = place.run(command)
        for line in printed:
            assert re.search(rf"^{pattern(line)}\s*$", said, re.MULTILINE), f"{line!r} is not in\n{said}"
    shown = place.start(demo)
    shown.wait_for("connected: even_g1")
    shown.type("quit")
    shown.end(0)


@shows(README, "# The wearer speaks, and leaves", '{"do": "tap"}')
def test_a_scripted_wearer_and_the_control_channel(place):
    place.write("walk.script", block(README, "# The wearer speaks, and leaves").text)
    sim = place.start(f"{without_comment(block(README, 'glassd sim mock:full  ').lines[3])} --radio tcp:127.0.0.1:0")
    sim.wait_for('"event": ?"ready"')
    requests = re.findall(r'\{"do".*?\}+(?=\s|$)', block(README, '{"do": "tap"}').text)
    assert len(requests) == 8
    for request in map(json.loads, requests):
        answer = place.ask_mock("m.sock", **request)
        assert answer["ok"], (request, answer)
    assert (place.folder / "pictures").is_dir()


@shows(README, "def test_a_note_is_shown(glassd_mock)")
@pytest.mark.requirement("I11-documents")
def test_the_example_of_the_pytest_fixture_passes_as_it_is_printed(place):
    place.write("test_app.py", block(README, "def test_a_note_is_shown(glassd_mock)").text)
    installed = any(point.value == "edge.pytest_plugin" for point in entry_points(group="pytest11"))
    plugin = "" if installed else "-p edge.pytest_plugin"
    said = place.run(f"{sys.executable} -m pytest -q -p no:cacheprovider {plugin} test_app.py", within_s=200)
    assert "2 passed" in said
    assert "import start_mock" not in TEXT
    assert 'start_mock("mock:full", radio="tcp:127.0.0.1:0")' in TEXT
    place.run(
        f"{sys.executable} -c 'import asyncio\nfrom firmware_bridge.sim.inproc import start_mock\nasync def main():\n"
        '    mock = await start_mock("mock:full", radio="tcp:127.0.0.1:0")\n    assert mock.mount.radio.startswith("tcp:127"); await mock.close()\n'
        "asyncio.run(main())'"
    )


# ------------------------------------------------------------------ tools of your own, and of other servers


class Weather(BaseHTTPRequestHandler):
    """Stands in for the address of the example: no test needs the internet."""

    def do_GET(self):
        said = b"Berlin: 7 C" if self.path.startswith("/Berlin") else b"?"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        """Nobody reads it."""


@shows(README, "# weather.toml", "$ systemctl reload glassd                # or")
@pytest.mark.requirement("I11-documents")
def test_ten_lines_of_toml_are_a_tool(house):
    toml = block(README, "# weather.toml").text
    assert "https://wttr.in/" in toml
    with ExitStack() as stack:
        server = stack.enter_context(HTTPServer(("127.0.0.1", 0), Weather))
        Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        house.write("tools.d/weather.toml", toml.replace("https://wttr.in", f"http://127.0.0.1:{server.server_port}"))
        (reload, _), (listing, printed), (call, _) = commands(block(README, "$ systemctl reload glassd                # or").text)
        assert "kill -HUP" in reload
        house.daemon.process.send_signal(signal.SIGHUP)
        house.until(lambda: house.run(listing, fine=(0, 1)), "the reload was heard")
        compare(printed, house.run(listing))
        house.run(without_comment(call))
        assert "INVALID_ARGUMENTS" in house.run("glassd call my:weather town=5", fine=(1,))  # the schema is in force
        house.run(without_comment(call))
        lens = house.run("glassd lens")
        assert "Weather" in lens
        assert "Berlin: 7 C" in lens


@shows(README, '[[mcp.servers]]\nid = "files"')
def test_the_servers_of_the_example_are_settings_that_are_read(place):
    token = place.write("home-token", "secret")
    text = block(README, '[[mcp.servers]]\nid = "files"').text.replace("/etc/glassd/home-token", str(token))
    from edge.settings_reading import load

    place.write("glassd.toml", f"version = 1\n{text}")
    settings = load(place.folder / "glassd.toml", {})
    assert [server.id for server in settings.mcp.servers] == ["files", "home"]


# ------------------------------------------------------------------ calls, tools, offers


@shows(README, "$ glassd call com.example.calendar:create_event")
def test_a_call_that_needs_a_yes_is_printed_as_shown(house):
    [(command, printed)] = commands(block(README, "$ glassd call com.example.calendar:create_event").text)
    said = house.run(command)
    compare(printed, said)
    token = re.search(r"token +([0-9a-f]+)", said)[1]
    house.run(f"glassd confirm {token} --deny", fine=(0, 1))


@shows("docs/confirmation.md", "Execute com.example.calendar:create_event")
def test_a_question_has_the_lines_that_its_guide_shows(house):
    asked, *particulars = block("docs/confirmation.md", "Execute com.example.calendar:create_event").lines
    args = {"title": "Lunch", "attendees": ["ann@example.org", "bob@example.org"], "start": "2026-12-01T12:00:00Z"}
    said = house.run(f"glassd call com.example.calendar:create_event '{json.dumps(args)}' --no-wait")
    compare([f"waits for a yes: {asked}", *(f"  {line}" for line in particulars), "…"], said)
    house.run(f"glassd confirm {re.search(r'token +([0-9a-f]+)', said)[1]} --deny", fine=(0, 1))


@shows(README, "$ glassd call kb:search '{\"query\"")
def test_documents_calendars_and_silence_are_asked_for_as_printed(house):
    house.write(".local/state/glassd/kb/studio/returns.md", "# Returns\nOur return policy: thirty days.\n")
    for command, _ in commands(block(README, "$ glassd call kb:search '{\"query\"").text):
        house.run(command)


@shows(README, "$ glassd call registry:search query=")
def test_a_tool_is_found_and_invoked_by_the_registrys_own_tools(house):
    house.run("glassd call timer:start seconds=600 label=pasta", fine=(0,))
    (search, printed), (invoke, _) = commands(block(README, "$ glassd call registry:search query=").text)
    said = house.run(search)
    assert re.search(pattern(printed[0].strip()), said), said
    house.run(invoke)


@shows(README, "$ glassd tools disable kb:search")
def test_tools_are_switched_off_and_on_as_printed(house):
    for command, printed in commands(block(README, "$ glassd tools disable kb:search").text):
        compare([*printed, "…"], house.run(command, fine=(0, 1, 2)))


@shows(README, "[policy]\ncloud_may")
def test_what_the_cloud_may_call_is_opened_by_a_line_and_a_reload(house):
    def asked():
        body = json.dumps({"edge_id": house.status()["edge_id"], "tool": "notes:list", "args": {}}).encode()
        url = house.with_own_ports("http://127.0.0.1:8787/devcloud/invoke")
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return json.loads(answer.read())

    assert asked()["error"]["code"] == "DENIED"
    settings = block(README, "version = 1\n[glasses]").text
    house.write("my.toml", settings + block(README, "[policy]\ncloud_may").text)
    house.daemon.process.send_signal(signal.SIGHUP)
    house.until(lambda: asked()["ok"], "the reload was heard")


# ------------------------------------------------------------------ the doctor, and the map


@shows(README, "$ glassd doctor\nsystem")
def test_the_doctor_looks_at_what_the_sample_lists(place):
    sample = block(README, "$ glassd doctor\nsystem").text
    place.env["GLASSD_CONFIG"] = str(place.write("glassd.toml", "version = 1\n"))
    said = place.run("glassd doctor", fine=(0, 1))
    assert re.findall(r"^[a-z]+$", said, re.MULTILINE) == re.findall(r"^[a-z]+$", sample, re.MULTILINE)
    assert f"{Room(Path('/srv'), Path('/srv'), bytes=0, total=1).problem}: glassd takes no new calls" in sample
    found = len(json.loads(place.run("glassd doctor --json", fine=(0, 1)))["checks"])
    assert re.search(r"^(\d+) checks in", sample, re.MULTILINE)[1] == str(found) == re.search(r"^(\d+) checks in", said, re.MULTILINE)[1]


@shows(README, "                               edge/cli.py")
def test_the_paths_that_are_named_exist():
    for path in re.findall(r"`((?:edge|firmware_bridge|tools_cache|tests|docs|systemd)/[\w/.]+?)`", TEXT):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"\bedge/\w+\.py", block(README, "                               edge/cli.py").text):
        assert (ROOT / path).exists(), path
