"""The list of all checks, in the order they are reported."""

from edge.doctor.access import AccessChecks
from edge.doctor.bluetooth import BluetoothChecks
from edge.doctor.broker import BrokerChecks
from edge.doctor.disk import DiskChecks
from edge.doctor.enrolment import EnrolmentChecks
from edge.doctor.glasses import GlassesChecks
from edge.doctor.machine import ExaminedMachine
from edge.doctor.models import Check
from edge.doctor.registry import RegistryChecks
from edge.doctor.servers import ServerChecks
from edge.doctor.service import ServiceChecks
from edge.doctor.system import SystemChecks
from edge.doctor.timekeeping import ClockChecks
from edge.doctor.user_tools import UserToolChecks


def every(patient: ExaminedMachine, *, named: bool) -> tuple[Check, ...]:
    """List the checks. `named`: a configuration or a socket was named, so the installed service
    is not the daemon meant.
    """
    layers = (
        SystemChecks(patient),
        ServiceChecks(patient, named=named),
        AccessChecks(patient),
        BluetoothChecks(patient),
        GlassesChecks(patient),
        EnrolmentChecks(patient),
        BrokerChecks(patient),
        RegistryChecks(patient),
        UserToolChecks(patient),
        ServerChecks(patient),
        DiskChecks(patient),
        ClockChecks(patient),
    )
    return tuple(check for layer in layers for check in layer.checks())
