"""docs/control-api.md against the daemon: every example is sent, every route, field, code and
event kind is compared.
"""

import ast
import inspect
import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

import edge.cloud.enrolment.client
import edge.control
import edge.core.tools.selection_rules
import edge.daemon.cloud_config
import edge.link.pairing
import edge.runtime.events
from edge.cloud.enrolment.credentials import Enrolled
from edge.cloud.mqtt import faults
from edge.control import http
from edge.control.calls import LIFE_S, MAX_TTL_S
from edge.control.client import ControlClient
from edge.control.events import RING
from edge.control.routes import MAX_WAIT_S
from edge.core.call_state import CallState
from edge.core.pairing_state import PairingState
from edge.core.routing import RouteKind
from edge.runtime.events import DaemonEvent, as_json
from edge.runtime.paths import owner_beside
from edge.testing import wear
from firmware_bridge import messages, own_commands
from firmware_bridge.bonding import PairingReason
from tests.documents.blocks import ROOT, block, shows, without_comment
from tests.documents.http_examples import Daemon, Replayed, differences, examples, mutants
from tests.system import program
from tests.unit.control.house import open_house
from tools_cache.api.tool import Delivery, ErrorCode, ErrorType, type_of
from tools_cache.registry.manifest import digest

pytestmark = [pytest.mark.enable_socket, pytest.mark.timeout(300)]
DOCUMENT = "docs/control-api.md"
TEXT = (ROOT / DOCUMENT).read_text(encoding="utf-8")
EXAMPLES = examples(DOCUMENT)
ROUTES = re.findall(r"(?m)^### ((?:GET|POST|PUT|DELETE) /\S+)$", TEXT)
CURL, TOOLS = "curl --unix-socket /run/glassd/control.sock", '[[tools]]\nname = "my:order"'
ASKING = '"ask": "passkey"'
"""In a stream: from here on it waits for the next example."""
SOON_S = 40.0
SOUND_AND_PICTURES = {
    messages.MicrophoneChunk,
    messages.PhotoTaken,
    messages.PhotoFailed,
    messages.VoiceNoteFetched,
}
"""What the glasses say and no event stream tells."""


class Cloud(BaseHTTPRequestHandler):
    """A cloud whose registry has no apps."""

    def do_GET(self):
        body = json.dumps({"version": "7", "sha256": digest([]), "apps": []}).encode()
        self.send_response(200 if self.path == "/api/registry" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nobody reads it."""


@pytest.fixture(scope="module")
def cloud():
    with HTTPServer(("127.0.0.1", 0), Cloud) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def glasses(cloud):
    """One daemon with mock glasses, a cloud, the tools that the document shows, and the MCP
    server `house`.
    """
    pytest.importorskip("mcp")
    config = f"""
[cloud]
url = "{cloud}"
[[mcp.servers]]
id = "house"
command = "{sys.executable}"
args = ["{Path(__file__).with_name("house_server.py")}"]
allowed_tools = ["lamp"]
confirm = "never"
"""
    with wear("mock:full", tools=block(DOCUMENT, TOOLS).text, config=config) as glasses:
        client = ControlClient((glasses.socket,))
        glasses.wait_for(
            lambda: client.request("GET", "/v1/servers")[1]["servers"][0]["available"],
            what="the MCP server",
            within_s=SOON_S,
        )
        glasses.wait_for(
            lambda: glasses.status()["registry"]["origin"] == "cloud",
            what="the cloud's registry",
            within_s=SOON_S,
        )
        yield glasses


@pytest.fixture(scope="module")
def replayed(glasses):
    """Every example with what really came, in order; one that waits for the next one runs
    beside it.
    """
    daemon, names, done = Daemon(glasses.socket, owner_beside(glasses.socket)), {}, {}
    with ThreadPoolExecutor(1) as beside:
        waiting = None
        for example in EXAMPLES:
            if ASKING in example.reply.body:
                known = dict(names)
                waiting = (example, known, beside.submit(daemon.send, example, known))
                names["PASSKEY"] = passkey(glasses)
                continue
            done[example.where] = replay(
                lambda example=example: daemon.send(example, names), example, names
            )
            if waiting:
                earlier, known, reply = waiting
                done[earlier.where] = replay(
                    lambda reply=reply: reply.result(SOON_S), earlier, known
                )
                waiting = None
    return done


def replay(send, example, names):
    known = dict(names)
    try:
        reply = send()
    except (AssertionError, OSError) as e:
        return Replayed(example, None, known, repr(e))
    problems = differences(example.reply, reply, names)
    return Replayed(example, reply, known, "\n".join(problems))


def passkey(glasses):
    """The code that the pairing glasses show."""
    end = time.monotonic() + SOON_S
    while not (found := re.findall(r"\b(\d{3}) (\d{3})\b", " ".join(glasses.lens))):
        assert time.monotonic() < end, f"the glasses show no code: {glasses.lens}"
        time.sleep(0.05)
    return "".join(found[0])


def title(example):
    return f"{example.where.rpartition(':')[2]}-{example.method}-{example.path}"


# ------------------------------------------------------------------ the examples


@shows(DOCUMENT, CURL)
def test_the_daemon_is_asked_with_curl_as_printed(glasses):
    curl = program("curl")
    command = (
        without_comment(block(DOCUMENT, CURL).first)
        .replace("/run/glassd/control.sock", str(glasses.socket))
        .split()
    )
    said = subprocess.run(
        [curl, "--silent", *command[1:]], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert json.loads(said)["glasses"]["state"] == "ready"


@shows(DOCUMENT, TOOLS, *(each.text for each in EXAMPLES))
@pytest.mark.requirement("I12-control-api")
@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_every_example_gets_the_reply_that_is_shown(replayed, example):
    assert not replayed[example.where].problem, (
        f"{example.where}: {example.method} {example.path}\n{replayed[example.where].problem}"
    )


@pytest.mark.requirement("I12-control-api")
@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_an_example_with_one_thing_wrong_is_noticed(replayed, example):
    real = replayed[example.where]
    assert real.reply is not None, real.problem
    wrong = list(mutants(example.reply))
    assert len(wrong) > 1
    missed = [what for what, reply in wrong if not differences(reply, real.reply, dict(real.names))]
    assert not missed, f"{example.where}: these mistakes are not noticed: {missed}"


# ------------------------------------------------------------------ routes and fields


def section(head):
    """The text under a heading, up to the next one of any level."""
    found = re.search(rf"(?ms)^#+ {re.escape(head)}\n(.*?)(?=^#+ |\Z)", TEXT)
    assert found, f"there is no heading {head!r}"
    return found[1]


def rows(text, head):
    """The cells of the table whose first column has this head."""
    found = re.search(rf"(?m)^\| {re.escape(head)} \|.*\n\|[-| ]+\n((?:\|.*\n?)*)", text)
    return (
        [
            [cell.strip() for cell in row.strip().strip("|").split("|")]
            for row in found[1].splitlines()
        ]
        if found
        else []
    )


def words(cell):
    return re.findall(r"`([^`]+)`", cell)


def form(pattern):
    """A path as the document writes it."""
    return re.sub(r"\(\[\^/\]\{1,\d+\}\)", "{id}", pattern)


async def test_every_route_is_in_the_document_with_its_role_and_no_other(tmp_path):
    async with open_house(tmp_path) as house:
        table = {
            (f"{method} {form(path.pattern)}", role.name.lower())
            for role, method, path, _ in house.server._entrances[0].routes._table
        }
    listed = {(words(route)[0], role) for route, role, *_ in rows(section("All routes"), "route")}
    assert {("GET /v1/status", "caller"), ("POST /v1/confirm", "owner")} <= listed
    assert listed == table
    assert sorted(ROUTES) == sorted(route for route, _ in table)


def test_every_route_has_an_example():
    shown = {
        (
            each.method,
            re.sub("/v1/(calls|bonds|servers)/[^/]+", r"/v1/\1/{id}", each.path.partition("?")[0]),
        )
        for each in EXAMPLES
    }
    assert {tuple(route.split()) for route in ROUTES} <= shown


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.startswith(("POST", "PUT")) and "sync" not in route],
)
def test_the_fields_of_a_request_are_those_that_are_read(glasses, route):
    method, _, path = route.partition(" ")
    example = next(each for each in EXAMPLES if each.path == "/v1/nothing")
    asked = type(example)(
        "",
        "",
        method,
        path.replace("{id}", "house"),
        True,
        {},
        '{"no_such_field": 1}',
        example.reply,
    )
    reply = Daemon(glasses.socket, owner_beside(glasses.socket)).send(asked, {})
    assert reply.status == 400, reply.body
    known = json.loads(reply.body)["error"]["fix"].removeprefix("known:").replace(",", " ").split()
    assert sorted(
        word for row in rows(section(route), "field") for word in words(row[0])
    ) == sorted(known)


def test_the_parameters_of_a_query_are_those_that_are_read():
    source = "\n".join(path.read_text(encoding="utf-8") for path in sources(edge.control))
    read = set(
        re.findall(
            r'\(request(?:\.query)?, "(\w+)"|request\.query\.get\("(\w+)"|"(\w+)" '
            r"(?:not )?in request\.query",
            source,
        )
    )
    listed = {
        word for route in ROUTES for row in rows(section(route), "query") for word in words(row[0])
    }
    assert listed == {word for found in read for word in found if word}


def test_the_fields_of_an_enrolment_are_those_that_are_shown():
    texts = dict.fromkeys(Enrolled.__struct_fields__, "") | {
        "port": 0,
        "enrol_port": 0,
        "begins": 0.0,
        "ends": 0.0,
    }
    listed = words(
        section("POST /v1/enrol")
        .partition("what may be shown of the enrolment: ")[2]
        .partition("409")[0]
    )
    assert set(Enrolled(**texts).to_json()) == set(listed) - {
        "HOST:PORT",
        "certificate",
        "password",
    }
    assert {Enrolled(**texts | {"identity": kind}).how for kind in ("", "key")} == {
        "certificate",
        "password",
    }


def test_the_limits_are_those_of_the_server():
    limits, table = http.HttpLimits(), {row[0]: row[1] for row in rows(TEXT, "limit")}
    assert list(table.values()) == [
        f"{limits.head // 1024} KiB",
        f"{limits.body // 1024} KiB",
        str(http.MAX_QUERY),
        str(limits.connections),
        str(limits.streams),
        str(limits.begins),
        str(limits.polls),
        f"{limits.request_s:g} s",
        f"{limits.idle_s:g} s",
        f"{limits.write_s:g} s",
        f"{limits.heartbeat_s:g} s",
    ]
    assert f"at most {MAX_TTL_S:g} | {LIFE_S:g} |" in section("POST /v1/call")
    assert f"at most {MAX_WAIT_S:g} |" in section("GET /v1/calls/{id}")
    assert f"The last {RING} are kept" in section("GET /v1/events")


# ------------------------------------------------------------------ codes, states, events


def sources(*modules):
    """The files of modules and packages."""
    for module in modules:
        if hasattr(module, "__path__"):
            yield from sorted(Path(module.__path__[0]).glob("*.py"))
        else:
            yield Path(inspect.getfile(module))


def codes_in(*modules):
    """Every CODE_LIKE text that is given to a call or is the key of a table, in these modules."""
    found = set()
    for path in sources(*modules):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            texts = (
                node.args
                if isinstance(node, ast.Call)
                else node.keys
                if isinstance(node, ast.Dict)
                else node.elts
                if isinstance(node, ast.Tuple)
                else []
            )
            texts = [
                side
                for text in texts
                for side in ((text.body, text.orelse) if isinstance(text, ast.IfExp) else [text])
            ]
            found |= {
                text.value
                for text in texts
                if isinstance(text, ast.Constant) and isinstance(text.value, str)
            }
    return {code for code in found if re.fullmatch(r"[A-Z][A-Z_]{3,}", code)} - {"POST", "DELETE"}


def test_the_error_codes_are_those_of_the_api_and_no_others():
    pairing = {reason.value.upper() for reason in PairingReason}
    enrolment = {fault.upper() for _, fault in faults._OS} | {faults.Fault.UNREACHABLE.upper()}
    own = codes_in(
        edge.control,
        edge.link.pairing,
        edge.core.tools.selection_rules,
        edge.cloud.enrolment.client,
        edge.daemon.cloud_config,
    )
    own |= {"BUSY"}
    elsewhere = {
        "TOO_LARGE",
        "NOT_RUNNING",
        "CODE_UNKNOWN",
        "CODE_USED",
        "CODE_EXPIRED",
        "CODE_OF_ANOTHER",
        "EDGE_TAKEN",
        "EDGE_REVOKED",
        "NO_CERTIFICATES",
    }
    tables = [
        rows(section("Errors"), "code"),
        rows(section("POST /v1/enrol"), "enrolment code"),
        rows(section("POST /v1/pairing"), "`failed` code"),
    ]
    common, enrol, failed = (
        {word for row in table for word in words(row[0]) if word.isupper()} for table in tables
    )
    assert own - elsewhere - common - enrol - failed == set()
    assert common | enrol | failed <= own | pairing | enrolment
    assert pairing <= failed
    assert enrolment <= enrol
    assert {code for code in common if code not in codes_in(edge.control)} <= codes_in(
        edge.link.pairing
    )


def test_the_codes_deliveries_and_states_are_those_there_are():
    types = {
        word: words(row[1])
        for row in rows(section("The answer of a call"), "type")
        for word in words(row[0])
    }
    assert set(types) == {kind.value for kind in ErrorType}
    for kind, codes in types.items():
        own = {code.value for code in ErrorCode if type_of(code).value == kind}
        assert own == (set(codes) or {kind}), kind
    assert [
        word for row in rows(section("The answer of a call"), "delivery") for word in words(row[0])
    ] == [d.value for d in Delivery]
    listed = next(
        row for row in rows(section("GET /v1/calls"), "field of each") if row[0] == "`state`"
    )
    assert set(words(listed[1])) == {state.value for state in CallState}
    route = next(
        row for row in rows(section("The answer of a call"), "field") if row[0] == "`meta.route`"
    )
    assert set(words(route[2])) == {kind.value for kind in RouteKind}
    step = next(
        row
        for row in rows(section("POST /v1/pairing"), "field of `step` and `failed`")
        if row[0] == "`state`"
    )
    assert set(words(step[1])) == {state.value for state in PairingState} - {"IDLE"}


VARIANTS = {
    "tools": ("what", ("initialized", "loaded", "unloaded", "used")),
    "uplink": ("up", (True, False)),
}
"""Kinds that have several names: the field that decides, and its values."""


def made(kind):
    """One event of this kind for each of its names, as it is sent."""
    field, values = VARIANTS.get(kind.kind, ("", (None,)))
    for value in values:
        event = kind(**{name: value if name == field else "" for name in kind.__struct_fields__})
        sent = as_json(event)
        yield sent.pop("event"), list(sent), event.of_a_call


def test_the_events_and_their_fields_are_those_that_are_sent():
    kinds = [
        each
        for each in vars(edge.runtime.events).values()
        if isinstance(each, type) and issubclass(each, DaemonEvent) and each.kind
    ]
    sent = {name: (keys, of_a_call) for kind in kinds for name, keys, of_a_call in made(kind)}
    listed = {
        name: (words(row[1]), row[2].startswith("*call*"))
        for row in rows(section("GET /v1/events"), "kind")
        for name in words(row[0])
    }
    assert listed == sent
    said = {row[0].strip("`"): words(row[1]) for row in rows(section("GET /v1/events"), "type")}
    kinds = {*messages.Event.__args__, *own_commands.OwnEvent.__subclasses__()}
    assert said == {
        kind.__name__: [name for name in kind.__struct_fields__ if name != "password"]
        for kind in kinds - {*SOUND_AND_PICTURES, messages.OwnEvent}
    }
    assert "WifiChanged" in said
