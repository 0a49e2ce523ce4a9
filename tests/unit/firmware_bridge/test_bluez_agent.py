"""Our pairing agent on a real private bus, with a bluetoothd that asks what the real one asks
(facts: lab, t8).
"""

import asyncio
import shutil
import subprocess
from contextlib import asynccontextmanager

import pytest
from dbus_fast import Message, MessageType, RequestNameReply, Variant
from dbus_fast.aio import MessageBus

from firmware_bridge.bonding import How, Witness
from firmware_bridge.transports.bluez import agent, watch
from firmware_bridge.transports.bluez.agent import AGENT, PATH, BluezBonding, closed
from firmware_bridge.transports.bluez.watch import BLUEZ, BluezError
from tests.system import needs

DBUS_DAEMON = shutil.which("dbus-daemon")
pytestmark = [pytest.mark.enable_socket, needs("dbus-daemon")]

ADDRESS = "F0:5A:6F:52:8B:15"
DEVICE = "/org/bluez/hci0/dev_F0_5A_6F_52_8B_15"
OTHER = "/org/bluez/hci0/dev_F0_00_00_00_00_99"
DEADLINE_S = 40.0


@pytest.fixture(scope="module")
def bus_address(tmp_path_factory):
    """A bus of our own; ended by pid."""
    place = tmp_path_factory.mktemp("bus")
    process = subprocess.Popen(
        [
            DBUS_DAEMON,
            "--session",
            "--nofork",
            "--print-address=1",
            f"--address=unix:path={place / 'bus'}",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


class Bluetoothd:
    """Takes agents, keeps devices, asks. `calls` is what was called, in order."""

    def __init__(self, bus) -> None:
        self.bus = bus
        self.calls = []
        self.news = asyncio.Condition()
        self.agent = None
        self.refuse = set()
        self.devices = {
            DEVICE: {"Address": Variant("s", ADDRESS), "Paired": Variant("b", True)},
            OTHER: {"Address": Variant("s", "F0:00:00:00:00:99")},
        }
        bus.add_message_handler(self.on_message)

    def on_message(self, message):
        if message.message_type is not MessageType.METHOD_CALL or message.destination not in (
            BLUEZ,
            self.bus.unique_name,
        ):
            return None
        self.calls.append((message.member, *message.body))
        if message.member in self.refuse:
            return Message.new_error(message, "org.bluez.Error.Failed", "not now")
        match message.member:
            case "RegisterAgent":
                self.agent = message.sender
            case "UnregisterAgent":
                self.agent = None
            case "GetManagedObjects":
                objects = {
                    path: {"org.bluez.Device1": props} for path, props in self.devices.items()
                }
                return Message.new_method_return(
                    message, "a{oa{sa{sv}}}", [{"/org/bluez": {}, **objects}]
                )
            case "RemoveDevice":
                del self.devices[message.body[0]]
        return Message.new_method_return(message)

    async def ask(self, member, signature, *body):
        """Ask the agent; gives its answer's body, or the name of the error."""
        async with asyncio.timeout(DEADLINE_S):
            answer = await self.bus.call(
                Message(
                    destination=self.agent,
                    path=PATH,
                    interface=AGENT,
                    member=member,
                    signature=signature,
                    body=list(body),
                )
            )
        return answer.error_name if answer.message_type is MessageType.ERROR else answer.body


@asynccontextmanager
async def bluetoothd(bus_address):
    bus = await MessageBus(bus_address=bus_address).connect()
    daemon = Bluetoothd(bus)
    try:
        assert await bus.request_name(BLUEZ) is RequestNameReply.PRIMARY_OWNER
        yield daemon
    finally:
        await closed(bus)


class Person:
    def __init__(self, *, passkey=None, says=True):
        self.number, self.says, self.seen = passkey, says, []
        self.asked = asyncio.Event()
        self.called_off = asyncio.Event()

    async def passkey(self):
        self.asked.set()
        if self.number is not None:
            return self.number
        try:
            await asyncio.Event().wait()
        finally:
            self.called_off.set()

    async def same(self, number):
        self.seen.append(number)
        return self.says

    async def show(self, number):
        self.seen.append(number)


@asynccontextmanager
async def asking(bus_address, person, **options):
    witness = Witness(person, **options)
    async with (
        bluetoothd(bus_address) as daemon,
        BluezBonding(bus_address).asking(ADDRESS, witness),
    ):
        yield daemon, witness


@pytest.mark.requirement("I4-agent-window")
async def test_the_agent_is_the_default_one_only_while_pairing(bus_address):
    async with bluetoothd(bus_address) as daemon:
        async with BluezBonding(bus_address).asking(ADDRESS, Witness(Person())):
            assert daemon.calls == [
                ("RegisterAgent", PATH, "KeyboardDisplay"),
                ("RequestDefaultAgent", PATH),
            ]
            assert daemon.agent
        assert daemon.calls[-1] == ("UnregisterAgent", PATH)
        assert daemon.agent is None


async def test_a_passkey_is_asked_for_and_handed_over(bus_address):
    async with asking(bus_address, Person(passkey=12345)) as (daemon, witness):
        assert await daemon.ask("RequestPasskey", "o", DEVICE) == [12345]
        assert witness.how is How.PASSKEY


@pytest.mark.parametrize(
    ("says", "answer", "how"),
    [(True, [], How.COMPARED), (False, "org.bluez.Error.Rejected", How.JUST_WORKS)],
)
async def test_numbers_are_compared(bus_address, says, answer, how):
    person = Person(says=says)
    async with asking(bus_address, person) as (daemon, witness):
        assert await daemon.ask("RequestConfirmation", "ou", DEVICE, 54321) == answer
        assert (person.seen, witness.how, witness.declined) == ([54321], how, not says)


async def test_a_code_to_be_typed_on_the_glasses_is_shown_once(bus_address):
    person = Person()
    async with asking(bus_address, person) as (daemon, witness):
        for entered in range(3):
            assert await daemon.ask("DisplayPasskey", "ouq", DEVICE, 54321, entered) == []
        assert (person.seen, witness.how) == ([54321], How.PASSKEY)


@pytest.mark.requirement("I4-agent-window")
@pytest.mark.parametrize(
    ("member", "signature", "body"),
    [
        ("RequestPasskey", "o", [OTHER]),
        ("RequestConfirmation", "ou", [OTHER, 1]),
        ("DisplayPasskey", "ouq", [OTHER, 1, 0]),
        ("RequestPinCode", "o", [DEVICE]),
        ("RequestAuthorization", "o", [DEVICE]),
        ("DisplayPinCode", "os", [DEVICE, "0000"]),
        ("AuthorizeService", "os", [DEVICE, "1800"]),
        ("RequestPasskey", "s", ["nonsense"]),
        ("RequestPasskey", "", []),
        ("RequestMoney", "o", [DEVICE]),
    ],
)
async def test_everything_else_is_refused_and_proves_nothing(bus_address, member, signature, body):
    person = Person(passkey=1)
    async with asking(bus_address, person) as (daemon, witness):
        assert await daemon.ask(member, signature, *body) == "org.bluez.Error.Rejected"
        assert not person.asked.is_set()
        assert (person.seen, witness.how) == ([], How.JUST_WORKS)


async def test_only_bluetoothd_may_ask(bus_address):
    person = Person(passkey=1)
    async with asking(bus_address, person) as (daemon, _witness):
        stranger = await MessageBus(bus_address=bus_address).connect()
        try:
            answer = await stranger.call(
                Message(
                    destination=daemon.agent,
                    path=PATH,
                    interface=AGENT,
                    member="RequestPasskey",
                    signature="o",
                    body=[DEVICE],
                )
            )
            assert answer.error_name == "org.bluez.Error.Rejected"
            assert not person.asked.is_set()
        finally:
            await closed(stranger)


async def test_a_person_who_does_not_answer_is_a_rejection(bus_address):
    async with asking(bus_address, Person(), answer_s=0.05) as (daemon, witness):
        assert await daemon.ask("RequestPasskey", "o", DEVICE) == "org.bluez.Error.Rejected"
        assert witness.declined


async def test_cancel_takes_the_question_away_and_the_next_one_is_asked(bus_address):
    person = Person()
    async with asking(bus_address, person) as (daemon, _witness):
        first = asyncio.ensure_future(daemon.ask("RequestPasskey", "o", DEVICE))
        async with asyncio.timeout(DEADLINE_S):
            await person.asked.wait()
            assert await daemon.ask("Cancel", "") == []
            assert await first == "org.bluez.Error.Canceled"
            assert person.called_off.is_set()
        person.number = 7
        assert await daemon.ask("RequestPasskey", "o", DEVICE) == [7]


async def test_leaving_while_a_question_is_open_takes_it_away(bus_address):
    person = Person()
    async with bluetoothd(bus_address) as daemon:
        async with BluezBonding(bus_address).asking(ADDRESS, Witness(person)):
            asked = asyncio.ensure_future(daemon.ask("RequestPasskey", "o", DEVICE))
            async with asyncio.timeout(DEADLINE_S):
                await person.asked.wait()
        assert person.called_off.is_set()
        asked.cancel()
        await asyncio.wait([asked])


@pytest.mark.requirement("I4-agent-restart")
async def test_a_restarted_bluetoothd_gets_the_agent_again(bus_address):
    person = Person(passkey=99)
    async with (
        bluetoothd(bus_address) as first,
        BluezBonding(bus_address).asking(ADDRESS, Witness(person)),
    ):
        await first.bus.call(
            Message(
                destination="org.freedesktop.DBus",
                path="/org/freedesktop/DBus",
                interface="org.freedesktop.DBus",
                member="ReleaseName",
                signature="s",
                body=[BLUEZ],
            )
        )
        async with bluetoothd(bus_address) as second:
            async with asyncio.timeout(DEADLINE_S):
                while len(second.calls) < 2:
                    await asyncio.sleep(0.01)
            assert [call[0] for call in second.calls] == ["RegisterAgent", "RequestDefaultAgent"]
            assert await second.ask("RequestPasskey", "o", DEVICE) == [99]


async def test_a_bluetoothd_that_refuses_the_agent_is_an_error(bus_address):
    async with bluetoothd(bus_address) as daemon:
        daemon.refuse.add("RequestDefaultAgent")
        with pytest.raises(BluezError, match=r"org\.bluez\.Error\.Failed: not now"):
            async with BluezBonding(bus_address).asking(ADDRESS, Witness(Person())):
                raise AssertionError("never reached")
        assert daemon.agent is None


async def test_without_bluetoothd_it_is_an_error(bus_address):
    with pytest.raises(BluezError, match=r"ServiceUnknown|not provided|NameHasNoOwner"):
        async with BluezBonding(bus_address).asking(ADDRESS, Witness(Person())):
            raise AssertionError("never reached")


async def test_a_silent_bluetoothd_is_given_up(bus_address, monkeypatch):
    monkeypatch.setattr(agent, "CALL_S", 0.1)
    monkeypatch.setattr(watch, "CALL_S", 0.1)
    bus = await MessageBus(bus_address=bus_address).connect()
    try:
        await bus.request_name(BLUEZ)
        bus.add_message_handler(
            lambda message: True if message.message_type is MessageType.METHOD_CALL else None
        )
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(TimeoutError):
                async with BluezBonding(bus_address).asking(ADDRESS, Witness(Person())):
                    raise AssertionError("never reached")
    finally:
        await closed(bus)


async def test_forgetting_removes_the_bonded_device_and_no_other(bus_address):
    async with bluetoothd(bus_address) as daemon:
        bonding = BluezBonding(bus_address)
        assert await bonding.forget(ADDRESS.lower()) is True
        assert ("RemoveDevice", DEVICE) in daemon.calls
        assert await bonding.forget(ADDRESS) is False
        assert await bonding.forget("F0:00:00:00:00:99") is False, "known, but never paired"
        assert list(daemon.devices) == [OTHER]
