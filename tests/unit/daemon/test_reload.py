"""SIGHUP: what a changed configuration does to a running daemon, in its parts and as a whole
process.
"""

import asyncio
import json
import os
import pty
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.calls.turns import OpenTurns
from edge.cloud.enrolment.client import Enrolment, EnrolmentOptions
from edge.cloud.enrolment.credentials import EnrolmentFiles
from edge.config import reload as settings_again
from edge.config.load import formed
from edge.config.model import Settings, ToolSettings
from edge.config.validators import BadSettings
from edge.core.config_changes import LIVE, plan
from edge.daemon import reload, user_tools
from edge.daemon.apply_settings import tell_off
from edge.daemon.cloud_config import Certificates, CloudSource
from edge.daemon.reload import Reload
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import Alarmed, ConfigurationReloaded
from edge.runtime.sd_notify import Notifier
from tests.unit.commands.test_cli import DEADLINE_S, environment, glassd
from tests.unit.tools.test_registry import cloud  # noqa: F401 - a fixture
from tests.unit.tools.test_user_tools import WEATHER
from tools_cache.registry import reader

pytestmark = pytest.mark.enable_socket

RESTART = "glasses.scan_s"


@pytest.fixture(autouse=True)
def _hangups_count():
    """Under nohup SIGHUP is ignored, by us and by every child; these tests are about what it
    does otherwise.
    """
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


# ------------------------------------------------------------------ the plan


def test_what_can_change_live_is_taken_and_the_rest_is_named():
    now = formed(
        {
            "policy": {"disabled_tools": ["a:b"]},
            "glasses": {"scan_s": 5.0},
            "uplink": {"outbox_max": 10},
        }
    )
    wanted = formed(
        {
            "cloud": {"url": "http://c"},
            "log": {"level": "debug"},
            "glasses": {"scan_s": 7.0},
            "uplink": {"host": "b", "outbox_max": 20},
        }
    )
    found = plan(now, wanted)
    assert found.live == ("cloud.url", "log.level", "policy.disabled_tools", "uplink.host")
    assert found.restart == ("glasses.scan_s", "uplink.outbox_max")
    e = found.effective
    assert (e.cloud.url, e.log.level, e.policy.disabled_tools, e.uplink.host) == (
        "http://c",
        "debug",
        (),
        "b",
    )
    assert (e.glasses.scan_s, e.uplink.outbox_max) == (5.0, 10), (
        "what needs a restart stays as it is until then"
    )
    again = plan(e, wanted)
    assert (again.live, again.restart) == ((), found.restart), "it is named until the restart"
    assert plan(e, e).restart == ()


def test_every_live_key_is_a_key():
    known = {
        f"{name}.{key}"
        for name, section in Settings().sections().items()
        for key in section.__struct_fields__
    }
    assert known >= LIVE


# ------------------------------------------------------------------ reading again


async def test_settings_are_read_in_a_child_with_the_environment_on_top(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text('version = 1\n[glasses]\nmodel = "mock:audio"\n')
    found = await settings_again.read(config, {**os.environ, "GLASSD_LOG__LEVEL": "debug"})
    assert (found.glasses.model, found.log.level, found.source) == ("mock:audio", "debug", config)


async def test_what_lies_in_the_working_directory_is_no_library_of_the_reader(
    tmp_path, monkeypatch
):
    (tmp_path / "pydantic.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "c.toml"
    config.write_text("version = 1\n")
    assert (await settings_again.read(config, os.environ)).source == config


async def test_a_reload_reports_faults_as_the_start_does(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("version = 1\n[uplink]\nhots = 1\n")
    with pytest.raises(
        BadSettings, match=r"uplink\.hots: unknown key; did you mean uplink\.host\?"
    ):
        await settings_again.read(config, os.environ)


async def test_a_reader_that_gives_nothing_is_a_refusal(tmp_path, monkeypatch):
    monkeypatch.setattr(settings_again, "_CHILD", "import sys; sys.exit(3)")
    with pytest.raises(BadSettings, match="the process that reads it ended with 3"):
        await settings_again.read(None, os.environ)
    monkeypatch.setattr(
        settings_again, "_CHILD", "import sys; sys.stdout.write('cedge.settings\\nNewer\\n.')"
    )  # of another version
    with pytest.raises(BadSettings, match="the process that reads it ended with 0"):
        await settings_again.read(None, os.environ)
    monkeypatch.setattr(settings_again, "_CHILD", "import time; time.sleep(600)")
    with pytest.raises(BadSettings, match="was not read in 0 s"):
        await settings_again.read(None, os.environ, limit_s=0.1)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    with pytest.raises(BadSettings, match="no child process"):
        await settings_again.read(None, os.environ)


# ------------------------------------------------------------------ taking it


class Roof:
    """Takes what it is given; says when it cannot."""

    def __init__(self):
        self.taken = []
        self.broken = self.unread = self.held = ""

    def prepared(self, wanted):
        if self.broken:
            raise BadSettings(self.broken)
        return lambda: self.taken.append(wanted)

    async def read_tools(self, wanted):
        if self.unread:
            raise BadSettings(self.unread)
        return self.held


class Rig:
    def __init__(self):
        self.roof, self.bus, self.wanted = Roof(), Bus(), Settings()
        self.reload = Reload(
            Settings(),
            read=self.read,
            applier=self.roof,
            bus=self.bus,
            notifier=Notifier({}),
            turns=OpenTurns(),
        )

    async def read(self):
        if isinstance(self.wanted, BadSettings):
            raise self.wanted
        return self.wanted

    async def once(self):
        """Reload; gives what was said."""
        with self.bus.listen() as heard:
            await self.reload.once()
            self.bus.publish(None)
            said = []
            async for happening in heard:
                if happening is None:
                    return said
                said.append(happening)


@pytest.mark.requirement("I5-reload-refused")
@pytest.mark.parametrize("where", ["the file", "its secrets", "its tools"])
async def test_a_bad_configuration_is_refused_whole_and_the_old_one_stays_until_a_good_one_comes(
    where, caplog
):
    rig = Rig()
    if where == "the file":
        rig.wanted = BadSettings("c.toml: uplink.hots: unknown key")
    else:
        rig.wanted = formed({"log": {"level": "debug"}})
        setattr(rig.roof, "broken" if where == "its secrets" else "unread", "/x: cannot be read")
    (alarm,) = await rig.once()
    assert (alarm.alarm, alarm.over) == ("configuration", False)
    assert ("/x: cannot be read" if where != "the file" else "unknown key") in alarm.text
    assert (rig.roof.taken, rig.reload.settings) == ([], Settings())
    assert rig.reload.describe()["error"] == alarm.text
    assert "the previous one stays active" in caplog.text
    rig.wanted, rig.roof.broken, rig.roof.unread = formed({"log": {"level": "debug"}}), "", ""
    over, told = await rig.once()
    assert over == Alarmed("configuration", "the configuration is good again", over=True)
    assert told == ConfigurationReloaded(("log.level",), ())
    assert (rig.reload.describe()["error"], rig.roof.taken[0].log.level) == ("", "debug")


@pytest.mark.requirement("I5-reload-named")
async def test_what_needs_a_restart_is_named_until_it_is_taken_back(caplog):
    rig = Rig()
    rig.roof.held = "tools of this installation (2 is on disk, 1 is locked)"
    rig.wanted = formed({"glasses": {"scan_s": 3.0}})
    assert await rig.once() == [ConfigurationReloaded((), (RESTART, rig.roof.held))]
    assert f"takes effect only after a restart: {RESTART}" in caplog.text
    rig.roof.held, rig.wanted = "", Settings()
    assert await rig.once() == [ConfigurationReloaded((), ())]
    assert rig.reload.describe() == {"file": "", "reloads": 2, "needs_restart": [], "error": ""}


def test_the_watchdog_waits_for_every_child_of_a_reload():
    assert reload.LONGEST_S > settings_again.LIMIT_S + user_tools.LIMIT_S + reader.LIMIT_S


async def test_a_reload_that_changes_nothing_of_the_broker_ends_no_link(tmp_path):
    def of(**more):
        return formed({"uplink": {"host": "broker.example", **more}})

    enrolment = Enrolment(
        EnrolmentFiles(tmp_path),
        EnrolmentOptions("e", "1", with_keys=False),
        bus=Bus(),
        clock=Clock.system(),
        chance=lambda: 0.5,
    )
    choice = CloudSource(of(), {}, enrolment, edge_id="e", secret=lambda _file, _name: None)
    assert choice.uplink().tls is not None
    assert choice.under(of()).uplink() == choice.given
    assert choice.under(of(username="u")).uplink() != choice.given
    assert (
        choice.under(formed({"uplink": {"host": "broker.example", "tls": False}})).uplink()
        != choice.given
    )
    assert Certificates("/a", "", "", {}) != Certificates("/b", "", "", {})


# ------------------------------------------------------------------ the signal


async def test_a_hangup_reloads_unless_the_terminal_went_away(monkeypatch):
    there, asked, ended = [True], asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(reload, "has_terminal", lambda: there[0])
    monkeypatch.setattr(
        reload.os, "kill", lambda _pid, number: ended.set() if number == signal.SIGTERM else None
    )
    with reload.on_hangup(asked.set):
        signal.raise_signal(signal.SIGHUP)
        async with asyncio.timeout(40):
            await asked.wait()
        asked.clear()
        there[0] = False
        signal.raise_signal(signal.SIGHUP)
        async with asyncio.timeout(40):
            await ended.wait()
        assert not asked.is_set()
    asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)


def test_a_terminal_is_known_from_none():
    """In sessions of their own: only there a terminal can be had."""
    master, slave = pty.openpty()
    look = (
        "import os, sys; [os.open(name, os.O_RDWR) for name in sys.argv[1:]]; "
        "from edge.daemon.reload import has_terminal; print(has_terminal())"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", look, *given],
            start_new_session=True,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for given in ([os.ttyname(slave)], [])
    ]
    os.close(slave)
    os.close(master)
    assert told == ["True\n", "False\n"]


# ------------------------------------------------------------------ the whole daemon


class Running:
    """`glassd run` as systemd runs it; `said` waits for words on the notify socket."""

    def __init__(self, folder):
        self.folder, self.config, self._said = folder, folder / "glassd.toml", ""
        self.env = {
            "XDG_RUNTIME_DIR": str(folder),
            "STATE_DIRECTORY": str(folder / "state"),
            "NOTIFY_SOCKET": str(folder / "notify"),
        }
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.setblocking(False)
        self._notify.bind(self.env["NOTIFY_SOCKET"])

    def write(self, text):
        self.config.write_text(f'version = 1\n[control]\ngroup = ""\n{text}')

    async def said(self, word):
        async with asyncio.timeout(DEADLINE_S):
            while word not in self._said:
                self._said += (
                    await asyncio.get_running_loop().sock_recv(self._notify, 4096)
                ).decode() + "\n"
        self._said = self._said.partition(word)[2]

    async def reload(self, text):
        self.write(text)
        self.process.send_signal(signal.SIGHUP)
        await self.said("RELOADING=1")
        await self.said("READY=1")

    async def ask(self, verb, *more):
        ran = await glassd(verb, "--json", *more, **self.env)
        assert ran.code == 0, ran.out + ran.err
        return json.loads(ran.out.splitlines()[-1]) if verb == "events" else ran.json

    async def offered(self):
        return {tool["name"] for tool in (await self.ask("tools"))["tools"]}


@asynccontextmanager
async def running(folder, text):
    it = Running(folder)
    it.write(text)
    (folder / "glassd").mkdir()
    log = (folder / "log").open("wb")
    it.process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "edge.cli",
        "run",
        "--config",
        str(it.config),
        env=environment(**it.env),
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        await it.said("READY=1")
        yield it
    finally:
        if it.process.returncode is None:
            it.process.terminate()
        async with asyncio.timeout(DEADLINE_S):
            await it.process.wait()
        log.close()
        it._notify.close()


@pytest.mark.requirement(
    "I5-reload-live", "I5-reload-refused", "I5-list-changed", "S3-37", "S4-08", "S4-13"
)
async def test_a_hangup_changes_what_can_change_and_says_what_cannot(tmp_path):
    notes = {"notes:add", "notes:list", "notes:remove", "notes:search"}
    async with running(tmp_path, "") as daemon:
        assert notes <= await daemon.offered()
        (tmp_path / "tools.d").mkdir()
        (tmp_path / "tools.d" / "weather.toml").write_text(WEATHER)

        await daemon.reload(
            '[policy]\ndisabled_tools = ["notes:*"]\n[glasses]\nscan_s = 3.0\n[log]\nlevel '
            '= "debug"\n[tool.clock.now]\ntimezone = "Asia/Tokyo"\n'
            '[wearer]\nlocale = "de_DE"\ntimezone = "Europe/Berlin"\n'
        )
        assert (await daemon.ask("call", "clock:now"))["data"]["timezone"] == "Asia/Tokyo"
        offered = await daemon.offered()
        assert (notes & offered, "my:weather" in offered) == (set(), True)
        told = await daemon.ask(
            "events", "--kind", "tools_list_changed", "--count", "1", "--after", "0-0"
        )
        assert notes <= set(told["removed"])
        assert (told["event"], told["added"]) == ("tools_list_changed", ["my:weather"])
        status = await daemon.ask("status")
        assert status["configuration"]["needs_restart"] == [RESTART]
        assert status["wearer"] == {"locale": "de-DE", "timezone": "Europe/Berlin"}

        await daemon.reload("[policy]\ndisabled_tolls = []\n")
        status = await daemon.ask("status")
        assert "did you mean policy.disabled_tools?" in status["configuration"]["error"]
        assert (
            status["next_action"]
            == status["alarms"]["configuration"]
            == status["configuration"]["error"]
        )
        assert not notes & await daemon.offered()

        await daemon.reload("[tool.clock.now]\nenabled = false\n[tool.timer.list]\nenabled = 3\n")
        hidden = {
            tool["name"]: tool["reason"]
            for tool in (await daemon.ask("tools", "--all"))["tools"]
            if tool["reason"]
        }
        assert hidden["clock:now"] == "switched off ([tool.clock.now] enabled = false)"
        assert "its settings are wrong ([tool.timer.list] enabled: " in hidden["timer:list"]

        await daemon.reload("")
        assert {"clock:now", "timer:list"} <= await daemon.offered()
        status = await daemon.ask("status")
        assert (
            status["configuration"]["error"],
            status["configuration"]["needs_restart"],
            status["configuration"]["reloads"],
        ) == ("", [], 3)
        assert "configuration" not in status["alarms"]
        assert notes <= await daemon.offered()
    assert daemon.process.returncode == 0
    log = (tmp_path / "log").read_text()
    assert (
        "WARNING edge.daemon.apply_settings: tool timer:list is off: its settings are wrong" in log
    )
    assert f"takes effect only after a restart: {RESTART}" in log
    assert "Traceback" not in log


@pytest.mark.requirement("I5-reload-live", "S3-37")
async def test_another_cloud_and_another_broker_are_followed_without_a_restart(tmp_path, cloud):  # noqa: F811
    async with running(tmp_path, "") as daemon:
        assert (await daemon.ask("status"))["uplink"]["state"] == "not configured"
        await daemon.reload(
            f'[cloud]\nurl = "{cloud.url}"\n[uplink]\nhost = "127.0.0.1"\nport = 1\ntls = false\n'
        )
        async with asyncio.timeout(2 * DEADLINE_S):
            while "com.calc:add" not in await daemon.offered():
                pass
            while (await daemon.ask("status"))["uplink"]["broker"] != "127.0.0.1:1":
                pass
        await daemon.reload("")
        async with asyncio.timeout(2 * DEADLINE_S):
            while "com.calc:add" in await daemon.offered():
                pass
            while (await daemon.ask("status"))["uplink"]["state"] != "not configured":
                pass


@pytest.mark.parametrize("unit", ["glassd.service", "user/glassd.service"])
@pytest.mark.requirement("I5-reload-live")
def test_systemd_reloads_by_the_same_signal(unit):
    lines = (Path(__file__).parents[3] / "systemd" / unit).read_text().splitlines()
    assert "ExecReload=sh -c 'kill -HUP \"$MAINPID\"'" in lines


def test_tools_that_are_off_take_one_line_of_the_log(caplog):
    off = {
        "a:one": "switched off (set enabled = true in [tool.a])",
        "b:two": "not configured: set url in [tool.b]",
        "c:three": "its settings are wrong ([tool.c.three] most: Input should be a valid integer)",
    }
    with caplog.at_level("INFO"):
        tell_off(replace(Settings(), tool=ToolSettings(off=off)))
    assert [record.getMessage() for record in caplog.records] == [
        f"tool c:three is off: {off['c:three']}",
        "2 tools are switched off or not configured; glassd tools --all says why",
    ]
