"""The blocks about tools and calls, run as they are printed on one machine with a small cloud,
simulated glasses and a daemon.
"""

import base64
import json
import re
import signal
import urllib.request
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.documents.blocks import ROOT, block, commands, compare, pattern, shows, without_comment
from tests.documents.place import Place
from tests.unit.display.test_bitmap import png
from tools_cache.builder.compiler import TOOLS

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(300)]
MCP, COMMANDS, DEVCLOUD, HTTP_TOOLS = (
    "docs/mcp.md",
    "docs/commands.md",
    "docs/devcloud.md",
    "docs/http-tools.md",
)
MCP_SERVERS, CALLS, BUILTIN, SELECTION = (
    "docs/mcp-servers.md",
    "docs/calls.md",
    "docs/builtin-tools.md",
    "docs/tool-selection.md",
)
PAGER = "docs/pager.md"


@pytest.fixture(scope="module")
def house():
    """A small cloud, simulated glasses and a daemon, started as "three processes by hand" says."""
    with closing(Place()) as house:
        house.write("my.toml", block(DEVCLOUD, "version = 1\n[glasses]").text)
        for line in block(DEVCLOUD, "glassd devcloud --http").lines[:3]:
            house.start(line)
        house.daemon = house.terminals[-1]
        house.until(house.is_ready, "the three processes are ready")
        yield house


# ------------------------------------------------------------------ models


@shows(MCP, "$ glassd llm tools anthropic")
def test_a_models_reply_is_answered_and_printed_as_shown(house):
    reply = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_01A", "name": "clock__now", "input": {}}],
    }
    (house.folder / "reply.json").write_text(json.dumps(reply))
    for command, printed in commands(block(MCP, "$ glassd llm tools anthropic").text):
        compare(printed, house.run(without_comment(command)))
    assert "clock__now" in {
        tool["name"] for tool in json.loads((house.folder / "tools.json").read_text())
    }


# ------------------------------------------------------------------ three processes by hand


@shows(DEVCLOUD, "glassd devcloud --http", "version = 1\n[glasses]")
@pytest.mark.requirement("I11-documents")
def test_three_processes_by_hand_serve_a_call(house):
    call = block(DEVCLOUD, "glassd devcloud --http").lines[3]
    said = house.run(call)
    assert "1024" in said
    assert (house.folder / "lens.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


# ------------------------------------------------------------------ commands


@shows(COMMANDS, "$ glassd tools --category utility")
def test_the_tools_are_known_without_a_daemon_and_say_how_old_they_are(house):
    [(command, printed)] = commands(block(COMMANDS, "$ glassd tools --category utility").text)
    house.daemon.close()
    try:
        house.env["GLASSD_CONFIG"] = "my.toml"  # “when GLASSD_CONFIG=my.toml says so”
        compare(printed, house.run(command))
    finally:
        house.daemon = house.start(block(DEVCLOUD, "glassd devcloud --http").lines[2])
        house.until(house.is_ready, "the daemon is back")


# ------------------------------------------------------------------ your own tools, and other
# servers' tools


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


@shows(HTTP_TOOLS, "# weather.toml", "$ systemctl reload glassd                # or")
@pytest.mark.requirement("I11-documents")
def test_ten_lines_of_toml_are_a_tool(house):
    toml = block(HTTP_TOOLS, "# weather.toml").text
    assert "https://wttr.in/" in toml
    with ExitStack() as stack:
        server = stack.enter_context(HTTPServer(("127.0.0.1", 0), Weather))
        Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        house.write(
            "tools.d/weather.toml",
            toml.replace("https://wttr.in", f"http://127.0.0.1:{server.server_port}"),
        )
        (reload, _), (listing, printed), (call, _) = commands(
            block(HTTP_TOOLS, "$ systemctl reload glassd                # or").text
        )
        assert "kill -HUP" in reload
        house.daemon.process.send_signal(signal.SIGHUP)
        house.until(lambda: house.run(listing, fine=(0, 1)), "the reload was heard")
        compare(printed, house.run(listing))
        house.run(without_comment(call))
        assert "INVALID_ARGUMENTS" in house.run(
            "glassd call my:weather town=5", fine=(1,)
        )  # the schema is in force
        house.run(without_comment(call))
        lens = house.run("glassd lens")
        assert "Weather" in lens
        assert "Berlin: 7 C" in lens


@shows(MCP_SERVERS, '[[mcp.servers]]\nid = "files"')
def test_the_servers_of_the_example_are_settings_that_are_read(place):
    token = place.write("home-token", "secret")
    text = block(MCP_SERVERS, '[[mcp.servers]]\nid = "files"').text.replace(
        "/etc/glassd/home-token", str(token)
    )
    from edge.config.load import load

    place.write("glassd.toml", f"version = 1\n{text}")
    settings = load(place.folder / "glassd.toml", {})
    assert [server.id for server in settings.mcp.servers] == ["files", "home"]


# ------------------------------------------------------------------ calls, built-in tools, tool
# selection


@shows(CALLS, "$ glassd call com.example.calendar:create_event")
def test_a_call_that_needs_a_yes_is_printed_as_shown(house):
    [(command, printed)] = commands(
        block(CALLS, "$ glassd call com.example.calendar:create_event").text
    )
    said = house.run(command)
    compare(printed, said)
    token = re.search(r"token +([0-9a-f]+)", said)[1]
    house.run(f"glassd confirm {token} --deny", fine=(0, 1))


@shows(CALLS, "  [wearer]")
def test_the_wearers_language_and_time_zone_are_settings_that_are_read(place):
    place.write("glassd.toml", f"version = 1\n{block(CALLS, '  [wearer]').text}")
    from edge.config.load import load

    wearer = load(place.folder / "glassd.toml", {}).wearer
    assert (wearer.locale, wearer.timezone) == ("de-DE", "Europe/Berlin")


@shows("docs/confirmation.md", "Calendar: Create event?")
def test_a_question_has_the_lines_that_its_guide_shows(house):
    asked, *particulars = block("docs/confirmation.md", "Calendar: Create event?").lines
    args = {
        "title": "Lunch",
        "attendees": ["ann@example.org", "bob@example.org"],
        "start": "2030-12-01T12:00:00Z",
    }
    said = house.run(
        f"glassd call com.example.calendar:create_event '{json.dumps(args)}' --no-wait"
    )
    compare([f"waits for a yes: {asked}", *(f"  {line}" for line in particulars), "…"], said)
    house.run(f"glassd confirm {re.search(r'token +([0-9a-f]+)', said)[1]} --deny", fine=(0, 1))


@shows(BUILTIN, "$ glassd call glasses:show_image")
def test_a_picture_is_read_from_its_path_as_printed(house):
    (house.folder / "map.png").write_bytes(base64.b64decode(png(8, 8, bytes(64))))
    for command, _ in commands(block(BUILTIN, "$ glassd call glasses:show_image").text):
        house.run(command)


@shows(BUILTIN, '$ glassd call kb:search \'{"query"')
def test_documents_calendars_and_silence_are_asked_for_as_printed(house):
    house.write(
        ".local/state/glassd/kb/studio/returns.md", "# Returns\nOur return policy: thirty days.\n"
    )
    for command, _ in commands(block(BUILTIN, '$ glassd call kb:search \'{"query"').text):
        house.run(command)


@shows(BUILTIN, "$ glassd call contacts:add")
def test_a_contact_is_kept_as_printed(house):
    for command, _ in commands(block(BUILTIN, "$ glassd call contacts:add").text):
        house.run(command)


@shows(BUILTIN, "$ glassd call reminder:add")
def test_a_reminder_is_added_and_done_as_printed(house):
    for command, _ in commands(block(BUILTIN, "$ glassd call reminder:add").text):
        house.run(command)


@shows(SELECTION, "$ glassd call registry:search query=")
def test_a_tool_is_found_and_invoked_by_the_registrys_own_tools(house):
    house.run("glassd call timer:start seconds=600 label=pasta", fine=(0,))
    (search, printed), (invoke, _) = commands(
        block(SELECTION, "$ glassd call registry:search query=").text
    )
    said = house.run(search)
    assert re.search(pattern(printed[0].strip()), said), said
    house.run(invoke)


@shows(SELECTION, "$ glassd tools disable kb:search")
def test_tools_are_switched_off_and_on_as_printed(house):
    for command, printed in commands(block(SELECTION, "$ glassd tools disable kb:search").text):
        compare([*printed, "…"], house.run(command, fine=(0, 1, 2)))


@shows(SELECTION, "[policy]\ncloud_may")
def test_what_the_cloud_may_call_is_opened_by_a_line_and_a_reload(house):
    def asked():
        body = json.dumps(
            {"edge_id": house.status()["edge_id"], "tool": "notes:list", "args": {}}
        ).encode()
        url = house.with_own_ports("http://127.0.0.1:8787/devcloud/invoke")
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            request, timeout=60
        ) as answer:
            return json.loads(answer.read())

    assert asked()["error"]["code"] == "DENIED"
    settings = block(DEVCLOUD, "version = 1\n[glasses]").text
    house.write("my.toml", settings + block(SELECTION, "[policy]\ncloud_may").text)
    house.daemon.process.send_signal(signal.SIGHUP)
    house.until(lambda: asked()["ok"], "the reload was heard")


@shows(BUILTIN, "[tool.domaindoc]\nenabled", "$ glassd call domaindoc:create")
def test_documents_in_sections_are_switched_on_and_kept_as_printed(house):
    settings = block(DEVCLOUD, "version = 1\n[glasses]").text
    house.write("my.toml", settings + block(BUILTIN, "[tool.domaindoc]\nenabled").text)
    house.daemon.process.send_signal(signal.SIGHUP)
    house.until(
        lambda: "domaindoc:create" in house.run("glassd tools", fine=(0, 1)),
        "the reload was heard",
    )
    house.write("garden.md", "# Beds\nBeans\n# Tools\nSpade\n")
    for command, _ in commands(block(BUILTIN, "$ glassd call domaindoc:create").text):
        house.run(command)


@shows(BUILTIN, "[tool.email]\nimap_host")
def test_the_account_whose_mail_is_announced_is_settings_that_are_read(place):
    place.write("glassd.toml", f"version = 1\n{block(BUILTIN, '[tool.email]').text}")
    from edge.config.load import load

    tool = load(place.folder / "glassd.toml", {}).tool
    assert tool.wrong == {}
    assert tool.values["email:unread"]["notify_from"] == ["anna@example.com", "bank.example"]


@shows(PAGER, '{\n  "message": {')
def test_the_message_of_a_pager_is_signed_as_its_page_says():
    from edge.devcloud.pager_relay import pager_app
    from tools_cache.everyday.pager import keys, messages
    from tools_cache.schema import compile_schema

    printed = json.loads(block(PAGER, '{\n  "message": {').text)
    message, signature = printed["message"], printed["signature"]
    assert keys.is_signed(message["key"], signature, messages.signed_bytes(message))
    deliver = json.loads((TOOLS / "pager_deliver" / "schema.json").read_text(encoding="utf-8"))
    relay = next(tool for tool in pager_app().tools if tool["name"] == "relay")
    for schema in (deliver["parameters"], relay["inputSchema"]):
        assert compile_schema(schema).errors(dict(printed)) == []
        assert compile_schema(schema).errors({**printed, "message": {**message, "to": "Ben"}})
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", (ROOT / PAGER).read_text(), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert {name for name in named if name in message} == message.keys()


@shows(PAGER, '{"undelivered": {')
def test_the_report_of_a_pager_is_taken_as_its_page_prints_it():
    from tools_cache.schema import compile_schema

    printed = json.loads(block(PAGER, '{"undelivered": {').text)
    path = TOOLS / "pager_deliver" / "schema.json"
    deliver = compile_schema(json.loads(path.read_text(encoding="utf-8"))["parameters"])
    assert deliver.errors(printed) == []
    for reason in ("refused", "expired"):
        assert f"| `{reason}` |" in (ROOT / PAGER).read_text(encoding="utf-8")
        assert deliver.errors({"undelivered": {**printed["undelivered"], "reason": reason}}) == []
    assert deliver.errors({"undelivered": {**printed["undelivered"], "reason": "other"}})
