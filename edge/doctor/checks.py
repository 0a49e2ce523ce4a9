"""The list of all checks, in the order they are reported."""

from typing import Final

from edge.doctor.access import AccessChecks
from edge.doctor.bluetooth import BluetoothChecks
from edge.doctor.broker import STEP_S, BrokerChecks
from edge.doctor.disk import DiskChecks
from edge.doctor.enrolment import EnrolmentChecks
from edge.doctor.glasses import GlassesChecks
from edge.doctor.machine import ExaminedMachine
from edge.doctor.microphone import MicrophoneChecks
from edge.doctor.models import Check
from edge.doctor.registry import ASK_S, RegistryChecks
from edge.doctor.servers import ServerChecks
from edge.doctor.service import ServiceChecks
from edge.doctor.system import SystemChecks
from edge.doctor.timekeeping import ClockChecks
from edge.doctor.user_tools import UserToolChecks
from edge.doctor.voice import VoiceChecks

_CONFIG: Final = ("config",)
_DAEMON: Final = ("daemon",)
_BOTH: Final = ("config", "daemon")
_CLOUD: Final = ("daemon", "enrolment")


def every(examined: ExaminedMachine, *, named: bool) -> tuple[Check, ...]:
    """List the checks. `named`: a configuration or a socket was named, so the installed service
    is not the daemon to examine.
    """
    return (*_of_this_machine(examined, named=named), *_of_the_cloud(examined), *_of_data(examined))


def _of_this_machine(examined: ExaminedMachine, *, named: bool) -> tuple[Check, ...]:
    system, service = SystemChecks(examined), ServiceChecks(examined, named=named)
    access, radio = AccessChecks(examined), BluetoothChecks(examined)
    glasses, voice = GlassesChecks(examined), VoiceChecks(examined)
    microphone = MicrophoneChecks(examined).microphone
    return (
        Check("os", "system", "operating system", system.os),
        Check("libraries", "system", "libraries", system.libraries, after=_CONFIG),
        Check("fonts", "system", "fonts", system.fonts, after=_CONFIG),
        Check("config", "system", "configuration", system.config, after=("unit",)),
        Check("unit", "service", "systemd unit", service.unit, effect=True),
        Check("daemon", "service", "daemon", service.daemon, after=_CONFIG, effect=True),
        Check("state", "service", "state directory", access.state, needs=_CONFIG),
        Check("secrets", "service", "secrets", access.secrets, needs=_CONFIG),
        Check("rfkill", "radio", "radio switch", radio.rfkill, after=_BOTH),
        Check("adapter", "radio", "adapter", radio.adapter, after=_BOTH),
        Check("bus", "radio", "D-Bus", radio.bus, after=_BOTH),
        Check("bluez", "radio", "BlueZ", radio.bluez, needs=("bus", "adapter")),
        Check("power", "radio", "adapter power", radio.power, needs=("bluez", "rfkill")),
        Check("restart", "radio", "BlueZ restarts", radio.restart, after=_BOTH),
        Check("buffer", "radio", "receive buffer", radio.buffer, after=_BOTH),
        Check("bond", "glasses", "paired glasses", glasses.bond, _CONFIG, after=("daemon", "bus")),
        Check("link", "glasses", "link", glasses.link, needs=_DAEMON, effect=True),
        Check("mtu", "glasses", "MTU", glasses.mtu, needs=_DAEMON, effect=True),
        Check("voice", "glasses", "voice", voice.voice, needs=_CONFIG),
        Check("microphone", "glasses", "microphone", microphone, _CONFIG, after=_DAEMON),
    )


def _of_the_cloud(examined: ExaminedMachine) -> tuple[Check, ...]:
    """Each check of the broker needs the one before it."""
    broker, enrolment = BrokerChecks(examined), EnrolmentChecks(examined)
    steps = (
        ("dns", "broker name", broker.dns, 2.0),
        ("tcp", "broker TCP", broker.tcp, 1.0),
        ("tls", "broker TLS", broker.handshake, 1.6),
        ("connack", "broker CONNACK", broker.connack, 1.6),
        ("suback", "broker SUBACK", broker.suback, 1.2),
        ("trip", "round trip", broker.trip, 1.2),
    )
    before = ("config", *(name for name, *_ in steps))
    return (
        Check("enrolment", "broker", "enrolment", enrolment.enrolled, _CONFIG, after=_DAEMON),
        *(
            Check(name, "broker", title, examine, (needed,), _CLOUD, deadline_s=STEP_S * factor)
            for needed, (name, title, examine, factor) in zip(before, steps, strict=False)
        ),
        Check(
            "uplink",
            "broker",
            "daemon's uplink",
            broker.uplink,
            needs=_CONFIG,
            after=("trip", *_CLOUD),
            effect=True,
        ),
    )


def _of_data(examined: ExaminedMachine) -> tuple[Check, ...]:
    tools, own = RegistryChecks(examined), UserToolChecks(examined)
    servers, disk, clock = ServerChecks(examined), DiskChecks(examined), ClockChecks(examined)
    after_cloud = ("cloud", "daemon")
    enrolled, longest_s = ("enrolment",), 2 * ASK_S
    return (
        Check("builtin", "tools", "built-in tools", tools.builtin),
        Check("cloud", "tools", "cloud", tools.cloud, _CONFIG, enrolled, deadline_s=longest_s),
        Check("registry", "tools", "cloud's tools", tools.stored, _CONFIG, after=after_cloud),
        Check("folders", "tools", "folders", own.folders, needs=_CONFIG),
        Check("own", "tools", "your own tools", own.own, _CONFIG, after=_DAEMON),
        Check("servers", "tools", "other MCP servers", servers.servers, _CONFIG, after=_DAEMON),
        Check("space", "disk", "free space", disk.space, _CONFIG, after=_DAEMON),
        Check("database", "disk", "database", disk.database, _CONFIG, _DAEMON, deadline_s=4.0),
        # timedatectl starts a service when it is asked: seconds on a small machine
        Check("clock", "clock", "clock", clock.clock, after=("cloud",), deadline_s=6.0),
    )
