"""The list of all checks, in the order they are reported."""

from edge.doctor.access import Access
from edge.doctor.bluetooth import Bluetooth
from edge.doctor.broker import Broker
from edge.doctor.disk import Disk
from edge.doctor.glasses import Glasses
from edge.doctor.membership import Membership
from edge.doctor.own import OwnTools
from edge.doctor.patient import Patient
from edge.doctor.registry import Registry
from edge.doctor.servers import Servers
from edge.doctor.service import Service
from edge.doctor.system import System
from edge.doctor.timekeeping import Timekeeping
from edge.doctor.words import Check


def every(patient: Patient, *, named: bool) -> tuple[Check, ...]:
    """List the checks. `named`: a configuration or a socket was named, so the installed service
    is not the daemon meant.
    """
    layers = (
        System(patient),
        Service(patient, named=named),
        Access(patient),
        Bluetooth(patient),
        Glasses(patient),
        Membership(patient),
        Broker(patient),
        Registry(patient),
        OwnTools(patient),
        Servers(patient),
        Disk(patient),
        Timekeeping(patient),
    )
    return tuple(check for layer in layers for check in layer.checks())
