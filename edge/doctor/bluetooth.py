"""Checks of the radio, from the hardware switch up to an adapter that BlueZ has powered.

The radio itself is not used: the daemon may be using it.
"""

import re
import socket
from pathlib import Path
from typing import Final

from edge.doctor.machine import ExaminedMachine
from edge.doctor.models import Check, Finding, Fix, Mark, do, fail, ok, quoted, run, skip, warn
from edge.doctor.subprocesses import in_thread
from firmware_bridge.errors import RadioReason
from firmware_bridge.transports.bluez import probe

OLDEST_BLUEZ: Final = (5, 55)
"""bleak 3 asks for it."""
BUFFER: Final = 8 * 1024 * 1024
"""Bytes of net.core.rmem_default with which no notification of a burst was lost (measured; the
kernel's 208 KiB lose a third).
"""
ENOUGH_BUFFER: Final = 1024 * 1024
CONNECT_S: Final = 2.0
DROP_IN: Final = "/etc/systemd/system/bluetooth.service.d/glassd.conf"
SYSCTL: Final = "/etc/sysctl.d/60-glassd.conf"
SHARES: Final = ("/usr/share/glassd/radio", "/usr/local/share/glassd/radio")
UNIT_DROP_INS: Final = "/etc/systemd/system/glassd.service.d"
USB_RULES: Final = "70-glassd-usb.rules"
PI_CONFIGS: Final = ("/boot/firmware/config.txt", "/boot/config.txt")


class BluetoothChecks:
    """The checks of this layer."""

    def __init__(self, patient: ExaminedMachine) -> None:
        self._patient = patient
        self._machine = patient.machine

    def checks(self) -> tuple[Check, ...]:
        return (
            Check(
                id="rfkill",
                title="radio switch",
                examine=self._rfkill,
                layer="radio",
                after=("config", "daemon"),
            ),
            Check(
                id="adapter",
                title="adapter",
                examine=self._adapter,
                layer="radio",
                after=("config", "daemon"),
            ),
            Check(
                id="bus",
                title="D-Bus",
                examine=self._bus,
                layer="radio",
                after=("config", "daemon"),
            ),
            Check(
                id="bluez",
                title="BlueZ",
                examine=self._bluez,
                layer="radio",
                needs=("bus", "adapter"),
            ),
            Check(
                id="power",
                title="adapter power",
                examine=self._power,
                layer="radio",
                needs=("bluez", "rfkill"),
            ),
            Check(
                id="restart",
                title="BlueZ restarts",
                examine=self._restart,
                layer="radio",
                after=("config", "daemon"),
            ),
            Check(
                id="buffer",
                title="receive buffer",
                examine=self._buffer,
                layer="radio",
                after=("config", "daemon"),
            ),
        )

    async def first_fault(self) -> tuple[RadioReason, Finding] | None:
        """Return the first failed check of those that decide whether the radio works at all;
        None when it does.
        """
        for kind, examine in (
            (RadioReason.POWERED_OFF, self._rfkill),
            (RadioReason.NO_ADAPTER, self._adapter),
            (RadioReason.NO_SERVICE, self._bus),
            (RadioReason.NO_SERVICE, self._bluez),
            (RadioReason.POWERED_OFF, self._power),
        ):
            finding = await examine()
            if finding.mark is Mark.FAIL:
                return kind, finding
        return None

    @property
    def _radio(self) -> str:
        return self._patient.radio

    def _other_radio(self) -> Finding | None:
        return None if self._radio == "bluez" else skip(f"the radio is {self._radio}, not BlueZ")

    # -------------------------------------------------------------- hardware

    async def _rfkill(self) -> Finding:
        if other := self._other_radio():
            return other
        switches = [
            s
            for s in sorted(self._machine.path("/sys/class/rfkill").glob("*"))
            if _said(s / "type") == "bluetooth"
        ]
        on = [s for s in switches if _said(s / "hard") != "1" and _said(s / "soft") != "1"]
        for switch in () if on else switches:
            if _said(switch / "hard") == "1":
                return fail(
                    f"{switch.name} is off by its hardware switch",
                    do(
                        "switch Bluetooth on: by the switch or key of this "
                        "machine, or in its firmware setup"
                    ),
                )
            if _said(switch / "soft") == "1":
                soft = quoted(switch / "soft")
                command = (
                    f"echo 0 > {soft}"
                    if self._machine.me.is_root
                    else f"echo 0 | sudo tee {soft} > /dev/null"
                )
                return fail(f"{switch.name} is switched off (rfkill)", run(command))
        return ok(f"{', '.join(s.name for s in on)} on" if on else "there is none")

    async def _adapter(self) -> Finding:
        kind, _, rest = self._radio.partition(":")
        said = self._patient.layer("adapter")
        if kind == "bluez":
            return self._in_kernel()
        if said.get("state") == "ok":
            return ok(f"{self._radio}: in use by the daemon")
        if said.get("state") == "failing":
            return fail(
                str(said.get("reason") or said.get("issue")),
                do(str(said.get("hint") or "see: glassd status")),
            )
        if kind == "usb":
            return self._dongle(int(rest))
        if kind == "tcp" and self._patient.status is None:
            return await self._connect(rest)
        return skip(f"{self._radio}: only the running daemon knows")

    def _in_kernel(self) -> Finding:
        found = sorted(
            p.name
            for p in self._machine.path("/sys/class/bluetooth").glob("hci*")
            if ":" not in p.name
        )
        if found:
            return ok(f"the kernel has {', '.join(found)}")
        for place in PI_CONFIGS:
            if re.search(r"(?m)^dtoverlay=(pi3-)?disable-bt", self._machine.read(place) or ""):
                path = quoted(self._machine.path(place))
                return fail(
                    f"switched off in {place}",
                    self._machine.as_root(
                        f"sed -i -E '/^dtoverlay=(pi3-)?disable-bt/d' {path}", "reboot"
                    ),
                )
        known = (
            "sees none"
            if self._machine.path("/sys/class/bluetooth").is_dir()
            else "has no Bluetooth at all"
        )
        return fail(
            f"the kernel {known}",
            do("plug in a USB Bluetooth adapter; to try glassd without one: glassd demo"),
        )

    def _dongle(self, number: int) -> Finding:
        """Count USB devices of the class "wireless controller", without opening any."""
        found = [
            p.parent.name
            for p in sorted(self._machine.path("/sys/bus/usb/devices").glob("*/bDeviceClass"))
            if _said(p) == "e0"
        ]
        unit = self._patient.unit
        if number < len(found) and unit is not None and unit["PrivateDevices"] == "yes":
            return fail(
                f"{self._radio}: USB device {found[number]} is hidden "
                "from the service by its sandbox",
                self._shown(),
            )
        if number < len(found):
            return ok(f"{self._radio}: USB device {found[number]}")
        return fail(
            f"{self._radio}: there are {len(found)} USB Bluetooth adapters",
            do("plug the dongle in, or count again in glasses.radio: usb:0 is the first"),
        )

    def _shown(self) -> Fix:
        """The drop-in and the udev rule that come with glassd for this radio; the dongle's rule
        takes effect when it is plugged in again.
        """
        m = self._machine
        places = [m.path(place) for place in SHARES]
        share = next((place for place in places if place.is_dir()), places[0])
        return m.as_root(
            f"install -D -m 644 {quoted(share / 'usb.conf')} "
            f"{quoted(m.path(UNIT_DROP_INS) / 'usb.conf')}",
            f"install -D -m 644 {quoted(share / USB_RULES)} "
            f"{quoted(m.path('/etc/udev/rules.d') / USB_RULES)}",
            "udevadm control --reload",
            "udevadm trigger",
            "systemctl daemon-reload",
            "systemctl restart glassd",
        )

    async def _connect(self, rest: str) -> Finding:
        host, _, port = rest.rpartition(":")
        try:
            connecting = await in_thread(
                lambda: socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S)
            )
        except OSError as e:
            return fail(
                f"{self._radio}: {e.strerror or e}",
                do(
                    "start the mock, in a terminal of its own: "
                    f"glassd sim mock:full --radio {self._radio}"
                ),
            )
        connecting.close()
        return ok(f"{self._radio}: a mock listens there")

    # -------------------------------------------------------------- BlueZ

    async def _bus(self) -> Finding:
        if other := self._other_radio():
            return other
        address = (
            self._machine.env.get("DBUS_SYSTEM_BUS_ADDRESS")
            or f"unix:path={self._machine.path('/run/dbus/system_bus_socket')}"
        )
        seen = await probe.look(address)
        if seen.no_bus:
            installed = self._machine.which("dbus-daemon") or self._machine.which("dbus-broker")
            start = (
                self._machine.start("dbus")
                if installed
                else self._machine.as_root("apt-get install -y dbus")
            )
            return fail(f"the system bus cannot be reached: {seen.no_bus}", start)
        self._patient.bluez = seen
        return ok("the system bus answers")

    async def _bluez(self) -> Finding:
        if other := self._other_radio():
            return other
        seen, m = self._patient.bluez, self._machine
        assert seen is not None
        said = (await m.ask("bluetoothctl", "--version")).out
        version = tuple(int(n) for n in re.findall(r"\d+", said)[:2])
        if seen.no_service:
            if not seen.activatable and not version:
                return fail(
                    "BlueZ is not installed",
                    m.as_root("apt-get install -y bluez", "systemctl enable --now bluetooth"),
                )
            return fail("bluetoothd does not run", m.start("bluetooth"))
        if seen.refused:
            return fail(
                f"BlueZ does not talk to {m.me.name}: {seen.refused}",
                m.as_root(f"usermod -aG bluetooth {m.me.name}"),
            )
        if version and version < OLDEST_BLUEZ:
            return fail(
                f"BlueZ {said.split()[-1]} is older than 5.55",
                m.as_root("apt-get install -y --only-upgrade bluez", "systemctl restart bluetooth"),
            )
        return ok(f"BlueZ {'.'.join(map(str, version)) or 'of unknown version'} serves")

    async def _power(self) -> Finding:
        if other := self._other_radio():
            return other
        seen = self._patient.bluez
        assert seen is not None
        if not seen.adapters:
            return fail(
                "BlueZ shows no adapter, though the kernel has one",
                self._machine.as_root("systemctl restart bluetooth"),
            )
        on = [a for a in seen.adapters if a.powered]
        if not on:
            return fail(f"{seen.adapters[0].name} is off", run("bluetoothctl power on"))
        return ok(", ".join(f"{a.name} {a.address} on" for a in on))

    # -------------------------------------------------------------- settings of the system that
    # save trouble

    async def _restart(self) -> Finding:
        m = self._machine
        if other := self._other_radio():
            return other
        ran = await m.ask("systemctl", "show", "bluetooth.service", "--property=LoadState,Restart")
        told = dict(line.split("=", 1) for line in ran.out.splitlines() if "=" in line)
        if ran.code != 0 or told.get("LoadState") != "loaded":
            return skip("systemd has no bluetooth.service")
        if told.get("Restart") != "no":
            return ok(f"Restart={told.get('Restart')}")
        place = m.path(DROP_IN)
        return warn(
            "bluetoothd stays dead when it dies (Restart=no)",
            m.as_root(
                f"mkdir -p {quoted(place.parent)}",
                self._written("[Service]\\nRestart=on-failure\\nRestartSec=3\\n", place),
                "systemctl daemon-reload",
            ),
        )

    async def _buffer(self) -> Finding:
        m = self._machine
        if other := self._other_radio():
            return other
        text = m.read("/proc/sys/net/core/rmem_default")
        if text is None or not text.isdecimal():
            return skip("this kernel does not show net.core.rmem_default here")
        if int(text) >= ENOUGH_BUFFER:
            return ok(f"net.core.rmem_default = {text}")
        place = m.path(SYSCTL)
        said = f"net.core.rmem_default = {text}: bursts of notifications from the glasses are lost"
        return warn(
            said,
            m.as_root(
                self._written(f"net.core.rmem_default = {BUFFER}\\n", place),
                f"sysctl -q -p {quoted(place)}",
            ),
        )

    def _written(self, text: str, place: Path) -> str:
        """A command that writes a file and can stand behind sudo."""
        return f"sh -c \"printf '{text}' > {quoted(place)}\""


def _said(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")[:64].strip()
    except OSError:
        return ""
