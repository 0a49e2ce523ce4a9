"""A simulated Brilliant Labs Monocle: MicroPython, touch pads, text on its lens."""

from collections.abc import Sequence
from functools import partial

from firmware_bridge.codecs.frame.monocle import MonoclePeripheral
from firmware_bridge.codecs.frame.program import program
from firmware_bridge.codecs.frame.prompts import END, RAW_MODE, RawPrompt
from firmware_bridge.codecs.frame.terminal import MonocleDevice
from firmware_bridge.messages import Command, Done, Event, Reply
from firmware_bridge.models import Model
from firmware_bridge.own_commands import BlinkLight, SwitchLightOff
from firmware_bridge.packets import channel_of
from firmware_bridge.sides import Side
from firmware_bridge.sim.frame.glasses import FrameSession, identity, more_follow, serve
from firmware_bridge.sim.gatt import GattIdentity
from firmware_bridge.sim.model_parts import ModelParts, address_of
from firmware_bridge.sim.monocle.quirks import QUIRKS
from firmware_bridge.sim.quirks import choose


def parts(_model: Model, quirks: Sequence[str]) -> ModelParts:
    """Return the parts of one Monocle. Raises `QuirkError`."""
    chosen = choose(QUIRKS, quirks)
    device = MonocleDevice()
    start(device, chosen["running"])
    mtu = int(chosen["mtu"])
    return ModelParts((None,), partial(serve, device, MonocleSession), _more_follow, _identity, mtu)


def start(device: MonocleDevice, running: str) -> None:
    """Switch glasses on, on which this runs: "nothing", "glassd" or "other-program"."""
    if running == "glassd":
        device.files[RawPrompt.file] = program("monocle").text
        list(device.take(RAW_MODE + RawPrompt.start.encode() + END))
    elif running == "other-program":
        device.files["main.py"] = "while True:\n    pass\n"
        list(device.reboot(main=True))


def _more_follow(packet: bytes) -> bool:
    """Return whether more follows; what is typed is a stream."""
    return not channel_of(packet) and more_follow(packet)


def _identity(model: Model, _side: Side | None) -> GattIdentity:
    prompt = model.gatt.channels[0].service
    return identity(prompt, address_of(model.key), "monocle")


class MonocleSession(FrameSession):
    """One central's connection."""

    codec = MonoclePeripheral
    photo_height = 0.625

    def _other(self, command: Command | Event | Reply) -> Reply:
        match command:
            case BlinkLight(color, times=times):
                self._glasses.tell({"event": "light", "color": color.value, "times": times})
                return Done()
            case SwitchLightOff():
                self._glasses.tell({"event": "light", "color": None})
                return Done()
        return super()._other(command)
