"""The command line as a program sees it: exit codes, only JSON on stdout, errors with a text,
no traceback.
"""

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from edge import cli
from edge.cli import build_parser
from edge.commands import completion
from edge.commands.options import VERBS
from edge.commands.shared import daemon
from edge.runtime.errors import UserError
from edge.runtime.events import CallReceived, LinkChanged
from firmware_bridge.catalog import supported
from tests import warm
from tests.unit.control.house import open_house
from tools_cache.api.tool import ErrorCode, ErrorType, ToolError, ToolResponse

pytestmark = pytest.mark.enable_socket

DEADLINE_S = 40.0


class Ran:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out.decode(), err.decode()

    @property
    def json(self):
        return json.loads(self.out)


def environment(**more):
    kept = {
        k: v
        for k, v in os.environ.items()
        if k in {"PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH"}
    }
    return {**kept, "HOME": "/nonexistent", "PYTHONIOENCODING": "utf-8", **more}


async def start(*words, stdin=None, **env):
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "edge.cli",
        *words,
        env=environment(**env),
        stdin=stdin or asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def glassd(*words, stdin: bytes | None = None, **env) -> Ran:
    """Run a verb to its end."""
    if words and words[0] in {"run", "sim", "devcloud", "demo", "mcp", "doctor"}:
        ran = await started(*words, stdin=stdin, **env)
    else:
        ran = Ran(
            *await warm.run(words, environment(**env), stdin=stdin or b"", limit_s=DEADLINE_S)
        )
    assert "Traceback" not in ran.err, ran.err
    return ran


async def started(*words, stdin: bytes | None = None, **env) -> Ran:
    """Run a verb to its end in a process that starts as a user's does."""
    process = await start(
        *words, stdin=asyncio.subprocess.PIPE if stdin is not None else None, **env
    )
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate(stdin)
    return Ran(process.returncode, out, err)


# ------------------------------------------------------------------ without a daemon


async def test_help_and_version_are_on_stdout():
    helped, version = await asyncio.gather(started("--help"), started("--version"))
    assert (helped.code, version.code, version.out) == (0, 0, "glassd 0.1.0\n")
    assert all(f"    {verb}" in helped.out for verb, _, _ in VERBS)
    assert "exit codes: 0 done" in helped.out


async def test_no_verb_shows_the_verbs_and_is_wrong_usage():
    ran = await started()
    assert (ran.code, ran.out) == (2, "")
    assert "status" in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("statsu",), "did you mean status?"),
        (("call",), "required: TOOL\n"),
        (("calls", "--limit", "0"), "from 1 to 1000"),
        (("call", "a:b", "--ttl", "x"), "--ttl"),
        (("status", "--nope"), "unrecognized arguments: --nope"),
        (("completion", "tcsh"), "invalid choice"),
        (("registry",), "required: ACTION"),
        (("status", "--js"), "--js"),
        (("call", "a:b", "novalue"), "neither JSON nor key=value"),
        (("call", "a:b", "{"), "is not JSON"),
        (("run", "--config", "/nonexistent.toml"), "there is no such file"),
        (("pair", "--code", "12345"), "'12345' is not a code; a code has six digits"),
        (("up", "--code", "secret"), "six digits"),
        (("confirm", "--always"), "the answer is typed at the terminal"),
        (("confirm", "t", "--always", "--never"), "not allowed with"),
        (("confirm", "t", "--deny", "--always"), "--deny and --always exclude each other"),
        (("grants", "--always", "a:b", "--revoke", "a:b"), "not allowed with"),
        (("cancel",), "required: ID"),
        (
            ("call", "a:b", "--no-wait", "--confirm", "t"),
            "--confirm and --no-wait exclude each other",
        ),
        (("answer", "c1", "[1"), "is not JSON"),
        (("answer", "c1", "two", "words"), "neither JSON nor key=value"),
    ],
)
async def test_wrong_usage_is_exit_2_with_a_text(words, said):
    ran = await glassd(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert ran.err.startswith("error: ")


async def test_wrong_usage_with_json_is_one_document_too():
    ran = await glassd("call", "--json")
    assert (ran.code, ran.err, ran.json["error"]["code"]) == (2, "", "USAGE")


@pytest.mark.parametrize(
    "verb",
    [
        "status",
        "tools",
        "calls",
        "lens",
        "events",
        "say hello",
        "call a:b",
        "call a:b --no-wait",
        "confirm t",
        "grants",
        "cancel c1",
        "answer c1 yes",
        "metrics",
        "scan",
        "pair",
        "unpair",
        "up",
    ],
)
async def test_without_the_daemon_every_client_verb_is_exit_3(tmp_path, verb):
    words = (*verb.split(), "--socket", str(tmp_path / "none.sock"))
    people, program = await asyncio.gather(glassd(*words), glassd(*words, "--json"))
    assert (people.code, people.out, program.code, program.err) == (3, "", 3, "")
    assert "glassd is not running" in people.err
    assert "next:  start it: systemctl start glassd" in people.err
    assert program.json["error"]["code"] == "NOT_RUNNING"


async def test_a_bad_configuration_is_reported_line_by_line(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("version = 1\n[uplink]\nhots = 1\nport = true\n")
    ran = await glassd("run", "--config", str(config))
    assert ran.code == 2
    assert f"{config}: uplink.hots: unknown key; did you mean uplink.host?" in ran.err
    assert "uplink.port: must be a whole number" in ran.err


# ------------------------------------------------------------------ with a daemon


async def test_the_socket_is_found_by_variable_and_runtime_directory(tmp_path):
    (tmp_path / "glassd").mkdir()
    async with open_house(tmp_path / "glassd") as house:
        by_variable, by_runtime = await asyncio.gather(
            glassd("status", "--json", GLASSD_SOCKET=str(house.path)),
            glassd("status", "--json", XDG_RUNTIME_DIR=str(tmp_path)),
        )
        assert by_variable.json == by_runtime.json == house.status


async def test_status_has_a_line_per_layer_and_the_next_action(tmp_path):
    async with open_house(tmp_path) as house:
        house.status.update(
            {
                "edge_id": "edge-1",
                "link": {"state": "RESTING", "reason": "not found", "attempts": 3},
                "uplink": {"state": "up", "broker": "b:8883", "since_s": 180.0},
                "outbox": {"waiting": 3, "oldest_s": 125.0},
                "calls": {"running": 1, "pending": 3},
                "services": [
                    {"name": "uplink", "state": "crashed", "error": "boom"},
                    {"name": "link", "state": "running"},
                ],
                "alarms": {"disk": "the disk is full"},
                "next_action": "Switch your glasses on",
            }
        )
        ran = await glassd("status", "--socket", str(house.path))
    lines = ran.out.splitlines()
    assert lines[0] == "glassd 0.1.0  edge-1"
    assert "link      RESTING        reason not found, attempts 3" in lines
    assert "uplink    up             broker b:8883, since 3 min" in lines
    assert "outbox    waiting 3, oldest 2 min" in lines
    assert "calls     running 1, pending 3" in lines
    assert "services  uplink crashed boom" in lines
    assert "alarm     disk: the disk is full" in lines
    assert lines[-1] == "Next: Switch your glasses on"
    assert "\x1b" not in ran.out


async def test_status_has_a_line_per_side_and_repeats_nothing(tmp_path):
    async with open_house(tmp_path) as house:
        house.status.update(
            {
                "link": {
                    "state": "RESTING",
                    "reason": "not paired",
                    "hint": "pair them: glassd pair",
                },
                "next_action": "pair them: glassd pair",
                "glasses": {
                    "state": "ready",
                    "mtu": 251,
                    "sides": {
                        "left": {"state": "up", "battery": 87, "reason": ""},
                        "right": {"state": "lost", "battery": 60, "reason": "lost"},
                    },
                },
            }
        )
        lines = (await glassd("status", "--socket", str(house.path))).out.splitlines()
    glasses = lines.index("glasses   ready          mtu 251")
    assert lines[glasses + 1 : glasses + 3] == [
        "  left    up             battery 87",
        "  right   lost           battery 60",
    ]
    assert "link      RESTING        reason not paired" in lines


async def test_tools_are_a_table_with_why_some_are_hidden(tmp_path):
    async with open_house(tmp_path) as house:
        shown, everything, none, document = await asyncio.gather(
            *(
                glassd("tools", "--socket", str(house.path), *more)
                for more in ((), ("--all",), ("--category", "nope"), ("--all", "--json"))
            )
        )
    assert shown.out.splitlines() == ["notes:add  utility  local  Does it"]
    assert "hidden: needs a camera" in everything.out
    assert (none.code, shown.code) == (4, 0)
    assert [t["name"] for t in document.json["tools"]] == ["notes:add", "cam:shot"]


async def test_a_call_prints_the_result_and_how_it_reached_the_wearer(tmp_path):
    async with open_house(tmp_path) as house:
        people, program = await asyncio.gather(
            glassd("call", "notes:add", "text=milk", "--socket", str(house.path)),
            glassd("call", "notes:add", '{"text": "milk"}', "--socket", str(house.path), "--json"),
        )
        assert [dict(call.args) for call, _ in house.calls.seen] == [{"text": "milk"}] * 2
    assert people.code == program.code == 0
    assert json.loads(people.out.rsplit("\n", 2)[0]) == {"id": 1, "text": "milk"}
    assert people.out.splitlines()[-1] == "route local · 3 ms · delivery shown"
    assert (program.json["ok"], program.json["meta"]["delivery"], program.err) == (
        True,
        "shown",
        "",
    )


async def test_arguments_come_as_pairs_as_json_and_on_stdin(tmp_path):
    async with open_house(tmp_path) as house:
        where = ("--socket", str(house.path), "--json")
        await glassd(
            "call", "notes:add", '{"a": 1, "b": 2}', "b=3", "c=x y", "d=[1]", 'e="5"', "f==", *where
        )
        await glassd("call", "notes:add", "-", "z=true", *where, stdin='{"text": "Käse"}'.encode())
        assert [dict(call.args) for call, _ in house.calls.seen] == [
            {"a": 1, "b": 3, "c": "x y", "d": [1], "e": "5", "f": "="},
            {"text": "Käse", "z": True},
        ]


@pytest.mark.parametrize("content", [b"x" * 300_000, b"[]", b"", b"\xff"])
async def test_a_wrong_or_too_large_stdin_is_wrong_usage(tmp_path, content):
    ran = await glassd("call", "a:b", "-", "--socket", str(tmp_path / "none"), stdin=content)
    assert ran.code == 2


async def test_options_of_a_call_reach_the_daemon(tmp_path):
    async with open_house(tmp_path) as house:
        await glassd(
            "call",
            "notes:add",
            "--mode",
            "voice",
            "--wait",
            "delivery",
            "--key",
            "k",
            "--ttl",
            "7",
            "--socket",
            str(house.path),
        )
        ((call, wait),) = house.calls.seen
    assert (call.mode, wait, call.idempotency_key, call.ttl_s) == ("voice", "delivery", "k", 7.0)


async def test_no_wait_prints_the_id_once_it_is_on_disk(tmp_path):
    async with open_house(tmp_path) as house:
        people = await glassd("call", "notes:add", "--no-wait", "--socket", str(house.path))
        program = await glassd(
            "call", "notes:add", "--no-wait", "--socket", str(house.path), "--json"
        )
        first, second = (call.call_id for call in house.calls.begun)
        assert not house.calls.seen
    assert (people.code, people.out) == (0, f"{first}\n")
    assert (program.code, program.json) == (0, {"call_id": second, "state": "admitted"})


FAILURES = [
    (ErrorCode.TOOL_NOT_FOUND, {}, 4),
    (ErrorCode.TIMEOUT, {}, 5),
    (ErrorCode.DEADLINE_EXPIRED, {}, 5),
    (ErrorCode.NOT_ACCEPTED, {}, 5),
    (ErrorCode.APP_ACTIVATION_TIMEOUT, {}, 5),
    (ErrorCode.OFFLINE, {}, 1),
    (ErrorCode.HARDWARE_MISSING, {}, 1),
    (ErrorCode.DENIED, {"type": ErrorType.PERMANENT}, 1),
]


@pytest.mark.parametrize(("code", "more", "exit_code"), FAILURES)
def test_every_kind_of_failure_has_its_exit_code(code, more, exit_code):
    answer = ToolResponse(error=ToolError.of(code, "no", **more)).to_json()
    assert daemon.exit_code(answer) == exit_code


async def test_a_failed_call_prints_reason_and_fix_to_stderr(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.answers["cam:shot"] = ToolResponse.failure(
            ErrorCode.INVALID_ARGUMENTS,
            "Bad arguments",
            suggestion="look at the schema",
            details=[{"path": "zoom", "problem": "must be a number"}],
        )
        people = await glassd("call", "cam:shot", "--socket", str(house.path))
        program = await glassd("call", "cam:shot", "--socket", str(house.path), "--json")
    assert (people.code, people.out) == (1, "")
    assert people.err == (
        "error: Bad arguments (INVALID_ARGUMENTS)\n  zoom: "
        "must be a number\nnext:  look at the schema\n"
    )
    assert (program.code, program.err, program.json["error"]["code"]) == (
        1,
        "",
        "INVALID_ARGUMENTS",
    )


async def test_wrong_arguments_are_said_by_name_with_where_to_look(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.answers["cam:shot"] = ToolResponse.failure(
            ErrorCode.INVALID_ARGUMENTS,
            'Invalid parameters: root "text" is a required property, /zoom "x" is not a number',
            details=[
                {"path": "root", "problem": '"text" is a required property'},
                {"path": "/zoom", "problem": '"x" is not a number'},
            ],
        ).with_meta(tool="cam:shot")
        people = await glassd("call", "cam:shot", "--socket", str(house.path))
    assert people.err == (
        "error: cam:shot: text is missing (INVALID_ARGUMENTS)\n"
        '  /zoom: "x" is not a number\nnext:  glassd tools show cam:shot\n'
    )


async def test_other_details_add_no_empty_line(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.answers["registry:load"] = ToolResponse.failure(
            ErrorCode.TOOL_NOT_FOUND,
            "Nothing was loaded",
            details=[{"tool": "a:b", "reason": "no such tool"}],
        )
        ran = await glassd("call", "registry:load", "--socket", str(house.path))
    assert ran.err == "error: Nothing was loaded (TOOL_NOT_FOUND)\n"


async def test_text_from_a_tool_cannot_contain_control_codes(tmp_path):
    async with open_house(tmp_path) as house:
        house.calls.answers["notes:list"] = ToolResponse(data="evil \x1b]0;title\x07 text")
        ran = await glassd("call", "notes:list", "--socket", str(house.path))
    assert "\x1b" not in ran.out
    assert r"evil \x1b]0;title\x07 text" in ran.out


async def test_say_speaks_for_the_wearer(tmp_path):
    async with open_house(tmp_path) as house:
        ran = await glassd("say", "what", "time", "is", "it", "--socket", str(house.path))
        assert house.said == ["what time is it"]
    assert ran.out.startswith("heard what time is it\n")


async def test_the_lens_is_drawn_in_a_frame(tmp_path):
    async with open_house(tmp_path) as house:
        ran = await glassd("lens", "--socket", str(house.path))
        house.lens.update(lines=[])
        empty = await glassd("lens", "--socket", str(house.path))
        house.lens.update(page=0, pages=0)
        dark = await glassd("lens", "--socket", str(house.path))
    assert "│ Hello" in ran.out
    assert "│ (dark)" in dark.out
    assert "(dark)" not in empty.out


async def test_the_lens_is_drawn_as_a_picture_of_these_glasses_size(tmp_path):
    from PIL import Image

    async with open_house(tmp_path) as house:
        house.status["glasses"] = {
            "capabilities": {"display.width": {"value": 300}, "display.height": {"value": 60}}
        }
        ran = await glassd(
            "lens", "--png", str(tmp_path / "lens.png"), "--socket", str(house.path), "--json"
        )
        blocked = await glassd(
            "lens", "--png", "/nonexistent/lens.png", "--socket", str(house.path)
        )
    assert ran.code == 0
    with Image.open(tmp_path / "lens.png") as picture:
        assert picture.size == (300, 60)
        assert picture.convert("L").getextrema()[1] > 0
    assert (blocked.code, "cannot be written" in blocked.err) == (1, True)


async def test_watching_the_lens_shows_each_change(tmp_path):
    async with open_house(tmp_path) as house:
        process = await start("lens", "--watch", "--json", "--socket", str(house.path))
        async with asyncio.timeout(DEADLINE_S):
            assert json.loads(await process.stdout.readline())["lines"] == ["Hello"]
            while not house.server.streams:
                await asyncio.sleep(0)
            from edge.runtime.events import LensChanged

            house.lens["lines"] = ["Bye"]
            house.bus.publish(LensChanged("s", 1, 1, ("Bye",)))
            assert json.loads(await process.stdout.readline())["lines"] == ["Bye"]
            process.send_signal(signal.SIGINT)
            assert (await process.wait(), await process.stderr.read()) == (130, b"")


async def test_events_are_one_json_object_a_line_and_can_be_counted_and_chosen(tmp_path):
    async with open_house(tmp_path) as house:
        process = await start(
            "events", "--kind", "call", "--count", "2", "--socket", str(house.path)
        )
        async with asyncio.timeout(DEADLINE_S):
            while not house.server.streams:
                await asyncio.sleep(0.01)
            house.bus.publish(CallReceived("c1", "a:b", "cli"))
            house.bus.publish(LinkChanged("READY"))
            house.bus.publish(CallReceived("c2", "a:b", "cli"))
            out, err = await process.communicate()
    lines = [json.loads(line) for line in out.decode().splitlines()]
    assert [(line["event"], line["call_id"]) for line in lines] == [
        ("call.received", "c1"),
        ("call.received", "c2"),
    ]
    assert lines[0]["id"].endswith("-1")
    assert (process.returncode, err) == (0, b"")


async def test_when_the_daemon_stops_a_follower_ends_with_exit_3(tmp_path):
    async with open_house(tmp_path) as house:
        process = await start("events", "--socket", str(house.path))
        async with asyncio.timeout(DEADLINE_S):
            while not house.server.streams:
                await asyncio.sleep(0.01)
    async with asyncio.timeout(DEADLINE_S):
        _, err = await process.communicate()
    assert process.returncode == 3
    assert b"the daemon closed the connection" in err


async def test_ctrl_c_is_exit_130_without_output(tmp_path):
    async with open_house(tmp_path) as house:
        process = await start("events", "--socket", str(house.path))
        async with asyncio.timeout(DEADLINE_S):
            while not house.server.streams:
                await asyncio.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")


def test_a_closed_pipe_is_no_error():
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "edge.cli", "completion", "bash"],
            stdout=writing,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=DEADLINE_S,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")


# ------------------------------------------------------------------ verbs that need no daemon


async def test_the_registry_is_built_checked_and_shown(tmp_path):
    file = str(tmp_path / "r.json")
    unbuilt = await glassd("registry", "check", "--file", file, "--json")
    (tmp_path / "old.json").write_text("{}")
    stale = await glassd("registry", "check", "--file", str(tmp_path / "old.json"), "--json")
    missing = await glassd("registry", "show", "--file", file)
    built = await glassd("registry", "build", "--file", file, "--json")
    checked, shown, document = await asyncio.gather(
        *(
            glassd("registry", *words, "--file", file)
            for words in (("check",), ("show",), ("show", "--json"))
        )
    )
    assert (unbuilt.code, unbuilt.json["error"]["code"]) == (1, "NOT_BUILT")
    assert (stale.code, stale.json["error"]["code"], missing.code) == (1, "NOT_UP_TO_DATE", 4)
    assert (built.code, checked.code) == (0, 0)
    assert "notes:add" in shown.out
    assert document.json["version"] == built.json["version"]
    Path(file).write_text("{}")
    assert (await glassd("registry", "show", "--file", file)).code == 1


@pytest.mark.parametrize(
    "words",
    [
        ("sim", "mock:nope"),
        ("sim", "mock:display", "--mtu", "5"),
        ("devcloud", "--http", "nonsense"),
        ("devcloud", "--worker", "--broker", "127.0.0.1:1"),
        ("devcloud", "--worker", "--state", "nowhere"),
    ],
)
async def test_an_impossible_simulator_or_cloud_is_wrong_usage(words):
    ran = await glassd(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")


async def test_mock_glasses_announce_themselves_and_end_on_sigterm():
    process = await start("sim", "mock:display", "--radio", "tcp:127.0.0.1:0", "--json")
    async with asyncio.timeout(DEADLINE_S):
        ready = json.loads(await process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert (ready["event"], ready["model"], process.returncode) == ("ready", "mock:display", 0)


def test_a_missing_extra_is_named(monkeypatch):
    from edge.commands.shared import extras

    def nothing(name):
        raise ModuleNotFoundError("no", name="bumble.core")

    monkeypatch.setattr(extras, "import_module", nothing)
    with pytest.raises(UserError, match="glassd sim needs bumble") as caught:
        extras.load("firmware_bridge.sim.main", "sim")
    assert caught.value.fix.endswith("-m pip install -e '.[sim]'")


# ------------------------------------------------------------------ the daemon itself


def config_in(tmp_path, **more):
    state = more.get("state", tmp_path / "state")
    file = tmp_path / "glassd.toml"
    file.write_text(
        f'version = 1\n[edge]\nstate_dir = "{state}"\n[glasses]\nradio = "tcp:127.0.0.1:1"\n'
        f'[control]\nsocket = "{tmp_path}/control.sock"\ngroup = ""\n'
    )
    return str(file)


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_the_daemon_tells_systemd_when_it_serves_and_ends_cleanly(tmp_path, how, code):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(DEADLINE_S)
        process = await start(
            "run", "--config", config_in(tmp_path), NOTIFY_SOCKET=str(tmp_path / "notify")
        )
        assert "READY=1" in (await asyncio.to_thread(systemd.recv, 4096)).decode().split("\n")
        ran = await glassd("status", "--json", "--socket", str(tmp_path / "control.sock"))
        second = await glassd("run", "--config", config_in(tmp_path))
        process.send_signal(how)
        async with asyncio.timeout(DEADLINE_S):
            out, err = await process.communicate()
    assert ran.json["version"] == "0.1.0"
    assert (second.code, "another glassd is running" in second.err) == (1, True)
    assert (process.returncode, out) == (code, b"")
    assert b"Traceback" not in err
    assert not (tmp_path / "control.sock").exists()


async def test_a_file_as_state_directory_is_reported_once(tmp_path):
    (tmp_path / "file").touch()
    ran = await glassd("run", "--config", config_in(tmp_path, state=tmp_path / "file" / "state"))
    assert ran.code == 2
    assert "glassd cannot start" in ran.err
    assert "must be a directory" in ran.err


@pytest.mark.requirement("I11-disk-directory")
async def test_a_directory_as_database_is_reported_once(tmp_path):
    state = tmp_path / "state"
    (state / "glassd.db").mkdir(parents=True)
    ran = await glassd("run", "--config", config_in(tmp_path, state=state))
    assert ran.code == 2
    assert f"{state}/glassd.db is a directory" in ran.err
    assert f"mv {state}/glassd.db {state}/glassd.db.directory" in ran.err
    assert "full" not in ran.err


def test_a_service_that_keeps_crashing_is_explained():
    from edge.commands.serving import _crashed
    from edge.daemon.supervisor import TooManyCrashes

    told = _crashed(
        ExceptionGroup("a", [ExceptionGroup("b", [TooManyCrashes("uplink crashed 5 times")])])
    )
    assert (type(told), str(told)) == (UserError, "uplink crashed 5 times")
    bug = ExceptionGroup("a", [KeyError("x")])
    assert _crashed(bug) is bug


# ------------------------------------------------------------------ completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_completion_names_every_verb_and_option(shell):
    ran = await glassd("completion", shell)
    assert ran.code == 0
    for verb in completion.verbs_of(build_parser()):
        assert verb.name in ran.out
        for option in verb.options:
            assert all(name.lstrip("-") in ran.out for name in option.names)


def complete(*words):
    """Return what bash offers at the end of `glassd WORDS…`."""
    script = completion.bash(completion.verbs_of(build_parser()))
    line = " ".join(f"'{word}'" for word in ("glassd", *words))
    ask = (
        f"{script}\nCOMP_WORDBREAKS=:; COMP_WORDS=({line}); "
        f'COMP_CWORD={len(words)}; _glassd; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    ran = subprocess.run(
        ["bash", "-u"], input=ask, capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    assert ran.stderr == ""
    return set(ran.stdout.split())


def test_bash_completes_verbs_options_and_values():
    assert complete("st") == {"status"}
    assert complete("call", "--m") == {"--mode"}
    assert complete("call", "--mode", "v") == {"voice"}
    assert complete("registry", "") >= {"build", "check", "show", "--json"}
    assert complete("completion", "") >= {"bash", "zsh", "fish"}
    assert "pyproject.toml" not in complete("call", "--key", "")


def test_bash_completes_model_names_with_a_colon():
    assert complete("sim", "") >= {"mock:display", "mock:audio", "mock:full", "sim:even_g1"}
    assert complete("sim", "mock") == {"mock:display", "mock:audio", "mock:full"}
    assert complete("sim", "mock", ":") == {"display", "audio", "full"}, (
        "bash puts what it offers behind the last colon"
    )
    assert complete("sim", "mock", ":", "d") == {"display"}
    simulated = {model.key for model in supported() if model.simulator}
    assert complete("demo", "--glasses", "sim", ":") == simulated
    assert "--radio" in complete("sim", "mock", ":", "full", "--")


def test_the_scripts_are_good_shell():
    script = completion.bash(completion.verbs_of(build_parser()))
    subprocess.run(["bash", "-n"], input=script, text=True, check=True, timeout=DEADLINE_S)


# ------------------------------------------------------------------ the tree itself


def test_every_verb_has_its_module_and_its_json():
    from importlib import import_module

    tree = completion._subparsers(build_parser())
    for name, _, _ in VERBS:
        module = import_module(f"edge.commands.{cli.MODULES.get(name, name)}")
        assert callable(getattr(module, name)), name
        verb = completion._verb(name, "", tree.choices[name])
        assert any("--json" in option.names for option in verb.options), name


def test_exit_codes_are_those_of_the_help():
    assert (
        cli.DONE,
        cli.FAILED,
        cli.USAGE,
        cli.NOT_RUNNING,
        cli.NOTHING,
        cli.TIMED_OUT,
        cli.INTERRUPTED,
    ) == (0, 1, 2, 3, 4, 5, 130)


def test_the_help_is_the_same_without_the_parsers_of_the_verbs():
    assert build_parser(names=True).format_help() == build_parser().format_help()


@pytest.mark.parametrize("columns", ["60", "120", "wide", ""])
def test_the_help_is_as_wide_as_argparse_makes_it(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    ours = build_parser(names=True)
    shown = ours.format_help()
    ours.formatter_class = argparse.RawDescriptionHelpFormatter
    assert shown == ours.format_help()
