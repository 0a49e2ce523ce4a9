"""The status and the doctor report the same of the radio, since they run the same code."""

import socket

import pytest
from msgspec.structs import replace

from edge.config.load import formed, load
from edge.daemon.status import Layers, document
from edge.daemon.status_checks import StatusLook
from edge.display.voice.engines import Engine
from edge.doctor.models import Mark
from edge.ports import GlassesStatus, UplinkStatus
from edge.runtime.clock import Clock
from firmware_bridge.capabilities import Capabilities, Origin
from tests.e2e.broker import free_port

UNPAIRED = GlassesStatus(
    state="RESTING",
    reason="no glasses are paired with this edge",
    issue="not_paired",
    hint="find and pair them: glassd up",
)
FAR = replace(UNPAIRED, issue="not_found", hint="bring them near")
READY = GlassesStatus(state="READY", ready=True)
CAPS = Capabilities.of("mock:display", {"display": True}, origin=Origin.FIRMWARE, now=1.0)


async def status(sandbox, glasses=UNPAIRED, *, radio_open=False):
    """Return what `GET /v1/status` replies on this machine with this state of the link."""
    settings = load(sandbox.config, {"HOME": "/nonexistent"})
    look = StatusLook(
        lambda: settings,
        sandbox.env,
        glasses=lambda: glasses,
        radio_open=lambda: radio_open,
        clock=Clock.system(),
        machine=lambda _env: sandbox.machine,
    )
    await look.look()
    return document(
        Layers(
            version="0",
            edge_id="e",
            radio=settings.glasses.radio,
            glasses=glasses,
            uplink=UplinkStatus(),
            registry={},
            calls={},
            audio={},
            services=(),
            seen=look.seen,
        ),
        now=2.0,
    )


async def agrees(sandbox, check, issue):
    """The status shows what this check of the doctor finds, and its fix is the next action."""
    finding = await sandbox.sees(check)
    assert finding.mark is Mark.FAIL
    shown = await status(sandbox)
    assert shown["adapter"] == {
        "radio": shown["adapter"]["radio"],
        "state": "failing",
        "issue": issue,
        "reason": finding.said,
        "hint": finding.fix.text,
    }
    assert shown["next_action"] == finding.fix.text


@pytest.fixture
def radio(sandbox):
    """A machine with an adapter that the kernel knows, and BlueZ installed."""
    (sandbox.root / "sys/class/bluetooth/hci0").mkdir(parents=True)
    (sandbox.folder / "bluez-version").write_text("5.66")
    return sandbox


@pytest.mark.requirement("I11-radio-said")
async def test_a_machine_without_bluetooth_is_named_in_the_status(sandbox):
    await agrees(sandbox, "adapter", "no_adapter")


@pytest.mark.requirement("I11-radio-said")
async def test_a_radio_switch_that_is_off_is_named_in_the_status(radio):
    for name, text in (("type", "bluetooth"), ("soft", "1"), ("hard", "0")):
        radio.write(f"/sys/class/rfkill/rfkill0/{name}", text + "\n")
    await agrees(radio, "rfkill", "powered_off")


async def test_one_of_two_radio_switches_that_is_on_is_enough(radio):
    for number, soft in ((0, "1"), (1, "0")):
        for name, text in (("type", "bluetooth"), ("soft", soft), ("hard", "0")):
            radio.write(f"/sys/class/rfkill/rfkill{number}/{name}", text + "\n")
    assert (await radio.sees("rfkill")).mark is Mark.OK


@pytest.mark.requirement("I11-radio-said")
async def test_a_machine_without_a_bus_is_named_in_the_status(radio):
    await agrees(radio, "bus", "no_service")


@pytest.mark.requirement("I11-radio-said")
async def test_a_bus_without_bluez_is_named_in_the_status(radio):
    radio.start_bus()
    await agrees(radio, "bluez", "no_service")


@pytest.mark.requirement("I11-radio-said")
async def test_an_adapter_without_power_is_named_in_the_status(radio):
    radio.start_bus()
    radio.start_bluez("--off")
    await agrees(radio, "power", "powered_off")


@pytest.mark.requirement("I11-radio-said")
async def test_a_radio_that_works_is_fine_and_the_next_thing_is_to_pair(radio):
    radio.start_bus()
    radio.start_bluez()
    shown = await status(radio)
    assert (shown["adapter"]["state"], shown["next_action"]) == ("ok", UNPAIRED.hint)


@pytest.mark.requirement("I11-radio-said")
async def test_a_dongle_that_is_not_there_is_named_in_the_status(sandbox):
    sandbox.configure(glasses={"radio": "usb:9"})
    await agrees(sandbox, "adapter", "no_adapter")
    shown = await status(sandbox, radio_open=True)
    assert shown["adapter"]["state"] == "ok", "a dongle that we have open is there"


@pytest.mark.enable_socket
@pytest.mark.requirement("I11-radio-said")
async def test_a_virtual_radio_that_nobody_serves_is_named_in_the_status(sandbox):
    sandbox.configure(glasses={"radio": f"tcp:127.0.0.1:{free_port()}"})
    await agrees(sandbox, "adapter", "no_adapter")


@pytest.mark.parametrize(
    "glasses",
    [replace(UNPAIRED, state="READY", ready=True, issue="", hint="", capabilities=CAPS), FAR],
)
async def test_a_link_that_used_the_radio_shows_that_it_works(sandbox, glasses):
    assert (await status(sandbox, glasses))["adapter"]["state"] == "ok", (
        "the machine was not looked at"
    )


async def test_a_fault_that_only_the_link_can_find_stays_while_it_tries_again(radio):
    radio.start_bus()
    radio.start_bluez()
    deaf = GlassesStatus(
        state="SEEKING",
        issue="deaf",
        reason="nothing was heard",
        hint="systemctl restart bluetooth",
    )
    shown = await status(radio, deaf)
    assert (shown["adapter"]["state"], shown["adapter"]["issue"], shown["next_action"]) == (
        "failing",
        "deaf",
        deaf.hint,
    )


@pytest.mark.enable_socket
async def test_a_virtual_radio_that_the_link_may_be_connecting_to_is_left_alone(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as mock:
        sandbox.configure(glasses={"radio": f"tcp:127.0.0.1:{mock.getsockname()[1]}"})
        seeking = GlassesStatus(state="SEEKING")
        assert (await status(sandbox, seeking))["adapter"]["state"] == "unknown"
        failed = replace(
            seeking,
            state="RESTING",
            issue="no_adapter",
            reason="nobody is there",
            hint="start the mock",
        )
        assert (await status(sandbox, failed))["adapter"]["reason"] == "nobody is there"
        mock.setblocking(False)
        with pytest.raises(BlockingIOError):
            mock.accept()


@pytest.mark.requirement("I13-sound-engines")
async def test_what_speaks_is_looked_at_twice_a_minute_and_after_a_change_of_the_server(
    sandbox, monkeypatch
):
    asked, now = [], [0.0]

    def survey(server, *, has_built_in, limit_s):
        asked.append(server)
        return (Engine("built-in", ("en",)),)

    monkeypatch.setattr("edge.display.voice.engines.survey", survey)
    settings = [formed({})]
    look = StatusLook(
        lambda: settings[0],
        sandbox.env,
        glasses=lambda: READY,
        radio_open=lambda: True,
        clock=Clock(boot=lambda: now[0]),
        machine=lambda _env: sandbox.machine,
    )
    for later, server in (
        (0.0, ""),
        (20.0, ""),
        (5.0, "tcp://box:1"),
        (29.0, "tcp://box:1"),
        (3.0, "tcp://box:1"),
    ):
        now[0] += later
        settings[0] = formed({"audio": {"server": server}})
        await look.look()
    assert asked == ["", "tcp://box:1", "tcp://box:1"]
    assert look.seen.engines == ({"name": "built-in", "languages": ("en",), "reason": ""},)
