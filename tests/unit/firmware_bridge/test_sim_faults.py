"""Faults on demand: the words are checked before anything happens, and each does below the
glasses what it says.
"""

import asyncio
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from firmware_bridge.errors import CommandRefused, LinkLost, RadioError, RadioReason
from firmware_bridge.messages import BatteryChanged, Hello, Ping, ShowPage, TextLine
from firmware_bridge.sides import Side
from firmware_bridge.sim.faults import FaultError, SimFault, is_fault, parse_fault, usage
from firmware_bridge.sim.inproc import start_mock
from firmware_bridge.sim.wearer import ScriptedWearer, ScriptError, WearerStep, parse, parse_script
from firmware_bridge.transports.ble import open_radio, scan
from firmware_bridge.transports.ble_connection import connect
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear, meet

pytestmark = pytest.mark.enable_socket

LONG = ShowPage("long", lines=tuple(TextLine(row, "in many pieces " * 12) for row in range(5)))
SHORT = ShowPage("short", lines=(TextLine(0, "one packet"),))

# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("drop", SimFault("drop")),
        ("drop:left", SimFault("drop", side=Side.LEFT)),
        ("drop:right@3s", SimFault("drop", side=Side.RIGHT, at_s=3)),
        ("lose-acks:5", SimFault("lose-acks", 5)),
        ("lose-acks:3:left", SimFault("lose-acks", 3, Side.LEFT)),
        ("delay:250", SimFault("delay", 250)),
        ("mtu:23@200ms", SimFault("mtu", 23, at_s=0.2)),
        ("cut:right", SimFault("cut", side=Side.RIGHT)),
        ("battery:7@0.5", SimFault("battery", 7, at_s=0.5)),
        ("away:2.5", SimFault("away", 2.5)),
        ("refuse:2", SimFault("refuse", 2)),
        ("refuse-pairing", SimFault("refuse-pairing")),
        ("forget-bond@10", SimFault("forget-bond", at_s=10)),
    ],
)
@pytest.mark.requirement("I4-faults-words")
def test_a_word_is_a_fault(word: str, fault: SimFault) -> None:
    assert parse_fault(word) == fault
    assert str(fault) == word.partition("@")[0]


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("explode", "'explode' is no fault; known: drop"),
        ("drop:up", "'up' is no side"),
        ("drop:left:right", "no side"),
        ("drop@soon", "@soon is no moment"),
        ("drop@-1", "no moment"),
        ("drop@nan", "no moment"),
        ("drop@", "no moment"),
        ("lose-acks", "N is a whole number from 0 to 1000"),
        ("lose-acks:left", "whole number"),
        ("lose-acks:1.5", "whole number"),
        ("mtu:22", "BYTES is a whole number from 23 to 517"),
        ("mtu:518", "23 to 517"),
        ("battery:101", "0 to 100"),
        ("delay:nan", "0 to 10000"),
        ("away:-1", "SECONDS is a number from 0 to 3600"),
        ("forget-bond:left", "concerns the pair"),
        ("x" * 200, "200 characters"),
    ],
)
def test_a_wrong_word_says_what_would_be_right(word: str, told: str) -> None:
    with pytest.raises(FaultError, match=told):
        parse_fault(word)


def test_every_fault_can_be_written_as_its_usage_says() -> None:
    numbers = {"N": "2", "MS": "5", "BYTES": "185", "PERCENT": "9", "SECONDS": "1"}
    for form, does in usage():
        kind, _, number = form.partition("[")[0].partition(":")
        assert parse_fault(f"{kind}:{numbers[number]}" if number else kind).kind == kind
        assert does


@pytest.mark.requirement("I4-faults-words")
def test_a_script_uses_the_same_words() -> None:
    assert parse("away:5") == WearerStep("away:5", fault=SimFault("away", 5))
    assert parse("battery:40@2s") == WearerStep(
        "battery:40@2s", fault=SimFault("battery", 40, at_s=2)
    )
    assert parse("battery 40") == WearerStep("battery", ("40",)), (
        "a wearer's own word stays what it was"
    )
    assert is_fault("drop:left@3s")
    assert not is_fault("tap")
    with pytest.raises(ScriptError, match="'up' is no side"):
        parse("drop:up")
    with pytest.raises(ScriptError, match="takes no words"):
        parse("away:5 6")


def test_the_guide_names_every_fault_and_its_script_is_one() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text(encoding="utf-8")
    for form, _ in usage():
        assert f"`{form}`" in guide, form
    script = next(block for block in guide.split("```") if block.startswith("\n# The wearer"))
    assert [str(step.fault) for step in parse_script(script) if step.fault] == [
        "away:10",
        "battery:9",
    ]


# ------------------------------------------------------------------ deeds, over the real host
# stacks


class Setup:
    def __init__(self, radio, mock, ear: Ear) -> None:
        self.radio, self.mock, self.ear = radio, mock, ear

    async def inject(self, word: str) -> bool:
        return await self.mock.injector.inject(parse_fault(word))


@pytest.fixture
async def setup(tmp_path):
    radio = await open_radio("inproc")
    ear = Ear()
    mock = await start_mock("mock:display", radio.air, out_dir=tmp_path, tell=ear)
    yield Setup(radio, mock, ear)
    await mock.close()
    await radio.close()


@asynccontextmanager
async def met(setup: Setup):
    async with meet(setup.radio) as (driver, transport):
        await driver.request(Hello("test", "1"), timeout_s=DEADLINE_S)
        yield driver, transport


@pytest.mark.requirement("I4-faults-deeds")
async def test_a_dropped_link_is_made_again(setup: Setup) -> None:
    assert await setup.inject("drop") is False, "there was none"
    async with met(setup) as (driver, _):
        assert await setup.inject("drop") is True
        with pytest.raises(LinkLost):
            await driver.request(Ping(), timeout_s=DEADLINE_S)
    async with met(setup) as (driver, _):
        await driver.request(SHORT, timeout_s=DEADLINE_S)
    assert [e["fault"] for e in setup.ear.events if e["event"] == "fault"] == ["drop", "drop"]


@pytest.mark.requirement("I4-faults-deeds")
async def test_glasses_out_of_range_are_silent_until_the_time_is_over(setup: Setup) -> None:
    async with met(setup) as (driver, transport):
        assert await setup.inject("away:0.6")
        async with asyncio.timeout(DEADLINE_S):
            assert [p async for p in transport.packets()] == []
        assert driver is not None
    with pytest.raises(RadioError) as error:
        await scan(setup.radio, timeout_s=0.2)
    assert error.value.reason is RadioReason.NOT_FOUND
    async with met(setup) as (driver, _):
        await driver.request(SHORT, timeout_s=DEADLINE_S)


async def test_glasses_that_walk_off_while_they_advertise_are_not_heard_either(
    setup: Setup,
) -> None:
    await scan(setup.radio, timeout_s=DEADLINE_S)
    assert await setup.inject("away:30") is False, "no link was lost"
    with pytest.raises(RadioError):
        await scan(setup.radio, timeout_s=0.2)
    setup.mock.servers[None].come_back()
    await scan(setup.radio, timeout_s=DEADLINE_S)


async def test_lost_acknowledgements_are_asked_for_again_and_nothing_is_shown_twice(
    setup: Setup,
) -> None:
    async with met(setup) as (driver, _):
        await setup.inject("lose-acks:3")
        for number in range(4):
            await driver.request(ShowPage(f"s{number}", lines=(TextLine(0, "x"),)), timeout_s=10)
        await setup.inject("lose-acks:0")
        await driver.request(SHORT, timeout_s=DEADLINE_S)
    scenes = [e["scene"] for e in setup.ear.events if e["event"] == "lens" and e["scene"]]
    assert scenes == ["s0", "s1", "s2", "s3", "short"]


@pytest.mark.requirement("I4-faults-deeds")
async def test_every_nth_packet_is_lost_and_no_other(setup: Setup) -> None:
    transport = await connect(
        setup.radio, await scan(setup.radio, timeout_s=DEADLINE_S), timeout_s=DEADLINE_S
    )
    subscription = setup.mock.servers[None]._current
    await setup.inject("lose-acks:3")
    for number in range(1, 10):
        await subscription.notify(bytes([number]))
    arriving = transport.packets()
    async with asyncio.timeout(DEADLINE_S):
        assert [(await anext(arriving))[0] for _ in range(6)] == [1, 2, 4, 5, 7, 8]
    await transport.close()


@pytest.mark.requirement("I4-faults-deeds")
async def test_what_is_delayed_comes_late_and_in_order(setup: Setup) -> None:
    transport = await connect(
        setup.radio, await scan(setup.radio, timeout_s=DEADLINE_S), timeout_s=DEADLINE_S
    )
    subscription = setup.mock.servers[None]._current
    await setup.inject("delay:150")
    began = time.monotonic()
    for number in range(20):
        if number == 10:
            await setup.inject("delay:0")  # what comes now must not overtake
        await subscription.notify(bytes([number]))
    arriving = transport.packets()
    async with asyncio.timeout(DEADLINE_S):
        got = [(await anext(arriving))[0] for _ in range(20)]
    assert got == list(range(20))
    assert 0.15 <= time.monotonic() - began < 20 * 0.15, "late, but all of them together"
    await transport.close()


@pytest.mark.requirement("I4-faults-deeds")
async def test_an_mtu_counts_from_the_next_connection_which_comes_at_once(setup: Setup) -> None:
    async with met(setup) as (driver, transport):
        assert transport.max_packet == 244
        await setup.inject("mtu:23")
        with pytest.raises(LinkLost):
            await driver.request(Ping(), timeout_s=DEADLINE_S)
    async with met(setup) as (driver, transport):
        assert transport.max_packet == 20
        await driver.request(SHORT, timeout_s=DEADLINE_S)


@pytest.mark.requirement("I4-faults-deeds")
async def test_a_cut_comes_in_the_middle_of_a_message(setup: Setup) -> None:
    async with met(setup) as (driver, _):
        await setup.inject("cut")
        await driver.request(SHORT, timeout_s=DEADLINE_S)
        with pytest.raises(LinkLost):
            await driver.request(LONG, timeout_s=DEADLINE_S)
    assert setup.mock.glasses.lens.scene == "short", "half a message is not shown"
    async with met(setup) as (driver, _):
        await driver.request(LONG, timeout_s=DEADLINE_S)
    assert setup.mock.glasses.lens.scene == "long", "one cut is one cut"


@pytest.mark.requirement("I4-faults-deeds")
async def test_every_nth_command_is_refused_in_the_familys_own_words(setup: Setup) -> None:
    async with met(setup) as (driver, _):
        await setup.inject("refuse:2")
        for _ in range(2):
            await driver.request(SHORT, timeout_s=DEADLINE_S)
            with pytest.raises(CommandRefused, match="busy"):
                await driver.request(SHORT, timeout_s=DEADLINE_S)


@pytest.mark.requirement("I4-faults-deeds")
async def test_a_fault_waits_for_its_moment_and_the_earliest_comes_first(setup: Setup) -> None:
    async with met(setup) as (driver, _):
        assert await setup.inject("battery:5@300ms")
        assert await setup.inject("battery:9@100ms")
        assert setup.mock.glasses.battery == 87
        levels = []
        async with asyncio.timeout(DEADLINE_S):
            async for event in driver.events():
                if isinstance(event, BatteryChanged):
                    levels.append(event.level)
                if len(levels) == 2:
                    break
    assert levels == [9, 5]


async def test_what_these_glasses_cannot_have_is_refused(setup: Setup) -> None:
    with pytest.raises(FaultError, match="mock:display is one radio; leave the side out"):
        await setup.inject("drop:left")


@pytest.mark.requirement("I4-faults-deeds")
async def test_pairing_can_be_refused_and_bonds_forgotten(setup: Setup) -> None:
    security = setup.mock.security
    assert await setup.inject("refuse-pairing")
    assert security.refusing
    security._inviting = False
    assert await setup.inject("forget-bond")
    assert security.inviting, "as after a reset"


@pytest.mark.requirement("I4-faults-words")
async def test_a_scripted_wearer_walks_away_and_comes_back(setup: Setup) -> None:
    wearer = ScriptedWearer(
        setup.mock.glasses, inject=setup.mock.injector.inject, leave=lambda: None
    )
    async with met(setup):
        assert await wearer.do(parse("away:0.1")) is True
        await setup.ear.wait("disconnected")
    async with met(setup):
        assert await wearer.do(parse("tap")) is True
