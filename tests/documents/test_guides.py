"""The blocks of docs/mcp.md and docs/tools.md, run as they are printed."""

import asyncio
import json
import logging
import re
import shutil
import signal
import urllib.error
import urllib.request
from contextlib import closing
from types import SimpleNamespace

import pytest

from edge.core.pages import MAX_SEPARATE, MAX_TEXT
from edge.core.results import rendering_of
from edge.display.lens_plan import SEPARATE_DWELL_S
from edge.tools.handler_results import to_response
from tests.documents.agent import Agent
from tests.documents.blocks import ROOT, block, commands, compare, shows, without_comment
from tests.documents.place import Place
from tools_cache.api.tool import Source
from tools_cache.api.wearer import Undo
from tools_cache.registry import manifest

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(240)]
MCP, TOOLS = "docs/mcp.md", "docs/tools.md"
SETTINGS = """from pydantic import BaseModel, Field


class Config(BaseModel):
    enabled: bool = True
    most: int = Field(5, ge=1, """
CONFIG = f"{SETTINGS}le=50"
DICE = {
    "schema.json": '{\n  "toolId": "my_dice"',
    "doc_summary.md": "Rolls one or more dice",
    "doc.md": "# my:dice",
    "handler.py": "import secrets",
    "config.py": f"{SETTINGS}le=20",
}
"""The files of the example of an own tool, each by the beginning of its block."""
TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def place():
    with closing(Place()) as place:
        yield place


# ------------------------------------------------------------------ docs/mcp.md


@shows(MCP, '{"mcpServers": {"glasses"')
def test_an_agent_starts_the_server_as_it_is_written_down(place):
    server = json.loads(block(MCP, '{"mcpServers": {"glasses"').text)["mcpServers"]["glasses"]
    with closing(Agent(place, " ".join([server["command"], *server["args"]]))) as agent:
        assert "clock__now" in {tool["name"] for tool in agent.ask("tools/list")["tools"]}


@shows(MCP, "glassd mcp --http 127.0.0.1:8788 ")
def test_the_server_listens_where_it_is_told_to_and_wants_its_token(place):
    place.write("token", TOKEN)
    plain, beyond = (
        without_comment(line) for line in block(MCP, "glassd mcp --http 127.0.0.1:8788 ").lines
    )
    url = place.with_own_ports(
        re.search(r"# (http://\S+)", block(MCP, "glassd mcp --http 127.0.0.1:8788 ").first)[1]
    )
    server = place.start(plain)
    server.wait_for(re.escape(url))
    assert initialised(url) == 200
    server.close()
    place.start(beyond).wait_for("8788|http")
    place.until(lambda: initialised(url) == 401, "without the token nobody comes in")
    assert initialised(url, token=TOKEN) == 200
    assert initialised(url, token=TOKEN, host="pi.local") == 200
    assert initialised(url, token=TOKEN, host="evil.example") in (403, 421)


def initialised(url, *, token="", host=""):
    """The status of an answer to a client that introduces itself; 0 when nobody listens."""
    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Host": host} if host else {}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).encode()
    open_url = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    try:
        with open_url(urllib.request.Request(url, body, headers), timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        e.close()
        return e.code
    except OSError:
        return 0


# ------------------------------------------------------------------ docs/tools.md


@pytest.fixture
def folder(place):
    """A copy of the tools that ship with glassd, as an owner's own folder."""
    copy = place.folder / "tools"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(
        ROOT / "tools_cache" / "tools", copy, ignore=shutil.ignore_patterns("__pycache__")
    )
    return copy


@shows(TOOLS, "tools_cache/tools/notes_add/")
def test_a_tool_is_these_four_files():
    where, *files = (line.split()[0] for line in block(TOOLS, "tools_cache/tools/notes_add/").lines)
    assert {p.name for p in (ROOT / where).iterdir() if p.is_file()} == set(files)


@shows(TOOLS, "glassd registry build      # lint")
def test_tools_are_built_checked_and_shown(place, folder):
    build, check, show = (
        without_comment(line) for line in block(TOOLS, "glassd registry build      # lint").lines
    )
    for command in (build, check):  # in a copy: the installation is other tests', too
        place.run(f"{command} --tools {folder}")
    assert "notes:add" in place.run(show)


@shows(
    TOOLS, "[tools]\npackages", *DICE.values(), "sudo systemctl reload glassd\nglassd call my:dice"
)
@pytest.mark.requirement("I11-documents")
def test_a_tool_of_an_owners_own_is_there_after_a_reload():
    with closing(Place()) as place:
        place.env["GLASSD_CONFIG"] = "glassd.toml"
        place.write("glassd.toml", 'version = 1\n[glasses]\nradio = "tcp:127.0.0.1:6402"\n')
        daemon = place.start("glassd run")
        place.until(place.status, "the daemon is there")
        for name, begins in DICE.items():
            place.write(f"packages/my_dice/{name}", block(TOOLS, begins).text)
        place.run("chmod -R go-w packages")
        settings = block(TOOLS, "[tools]\npackages").text.replace(
            "/etc/glassd/packages", str(place.folder / "packages")
        )
        place.write("glassd.toml", (place.folder / "glassd.toml").read_text() + settings)
        reload, call = block(TOOLS, "sudo systemctl reload glassd\nglassd call my:dice").lines
        assert "reload glassd" in reload
        daemon.process.send_signal(signal.SIGHUP)
        place.until(lambda: "my:dice" in place.run("glassd tools"), "the reload was heard")
        assert '"rolled": [' in place.run(call)
        place.run(f"glassd registry build --tools {place.folder / 'packages'}")


@shows(TOOLS, '"wearer": {')
def test_what_a_tool_says_to_the_wearer_is_read_as_printed():
    said = json.loads(f"{{{block(TOOLS, chr(34) + 'wearer').text}}}")
    document = {
        "name": "add",
        "description": "Adds.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "mentraExtensions": said,
    }
    wearer = manifest.definition("notes", document, source=Source.LOCAL).wearer
    assert wearer.name == said["wearer"]["name"]
    assert wearer.later == said["wearer"]["later"]
    assert wearer.undo == Undo(**said["wearer"]["undo"])


@shows(TOOLS, "$ glassd registry build\nerror:")
@pytest.mark.requirement("I11-documents")
def test_mistakes_in_a_tool_are_named_as_printed(place, folder):
    schema = json.loads((folder / "notes_add" / "schema.json").read_text())
    schema["latencyBudgetMs"] = 0
    schema["parameters"]["properties"]["text"]["minLenght"] = 1
    (folder / "notes_add" / "schema.json").write_text(json.dumps(schema))
    doc = folder / "notes_add" / "doc.md"
    doc.write_text(doc.read_text().replace("## Failure Modes", "## Failures"))
    [(command, printed)] = commands(block(TOOLS, "$ glassd registry build\nerror:").text)
    compare(printed, place.run(f"{command} --tools {folder}", fine=(1, 2)))


@shows(TOOLS, "STEPS = [")
@pytest.mark.requirement("I15-separate-pages")
def test_the_steps_of_a_result_have_a_page_each():
    names = {}
    exec(compile(block(TOOLS, "STEPS = [").text, TOOLS, "exec"), names)
    rendering = rendering_of(to_response("my:steps", asyncio.run(names["execute"]({}, None))))
    assert rendering.pages == ("1. Open the lid", "2. Press the blue button", "3. Close the lid")
    assert rendering.speech == "Open the lid"
    text = " ".join((ROOT / TOOLS).read_text(encoding="utf-8").split())
    assert f"stays for at least {SEPARATE_DWELL_S:.0f} s" in text
    assert f"At most {MAX_SEPARATE} texts, with {MAX_TEXT:,} characters together" in text


@shows(TOOLS, "async def execute(args, ctx):", "import logging\nfrom collections.abc", CONFIG)
def test_the_handlers_and_the_settings_build_and_run(place, folder):
    function, kind, config = (
        block(TOOLS, begins).text
        for begins in (
            "async def execute(args, ctx):",
            "import logging\nfrom collections.abc",
            CONFIG,
        )
    )
    (folder / "notes_add" / "handler.py").write_text(function)
    (folder / "notes_list" / "handler.py").write_text(kind)
    (folder / "notes_add" / "config.py").write_text(config)
    place.run(f"glassd registry build --tools {folder}")

    kept, rows, names = {}, [], {}
    exec(compile(function, TOOLS, "exec"), names)
    ctx = SimpleNamespace(kv=SimpleNamespace(set=store(kept.__setitem__)))
    assert asyncio.run(names["execute"]({"text": "milk"}, ctx)) == {"data": {"text": "Kept"}}
    assert kept == {"last": "milk"}
    exec(compile(kind, TOOLS, "exec"), names)
    db = SimpleNamespace(
        create_table=store(lambda *_: None),
        insert=store(lambda table, row: rows.append((table, row)) or 7),
    )
    tool = names["Keep"](db, logging.getLogger("glassd.tool.test"))
    assert asyncio.run(tool.run({"name": "Ada", "phone": "1"})) == {
        "data": {"id": 7, "text": "Kept Ada"}
    }
    assert rows == [("people", {"name": "Ada", "encrypted__phone": "1"})]
    exec(compile(config, TOOLS, "exec"), names)
    assert (names["Config"]().enabled, names["Config"]().most) == (True, 5)


def store(act):
    async def do(*words):
        return act(*words)

    return do


@shows(TOOLS, "glassd registry show notes:add --provider openai")
def test_what_models_are_told_can_be_printed(place, folder):
    form, losses, prompt = (
        without_comment(line)
        for line in block(TOOLS, "glassd registry show notes:add --provider openai").lines
    )
    assert json.loads(place.run(form))["function"]["name"] == "notes__add"
    assert "openaiStrict" in place.run(f"{losses} --tools {folder}")
    assert "notes__add" in place.run(prompt)
