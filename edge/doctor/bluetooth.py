"""Checks of the radio, from the hardware switch up to an adapter that BlueZ has powered.

The radio itself is not used: the daemon may be using it.
"""

import re
import socket
from pathlib import Path
from typing import Final

from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, Fix, Mark, do, fail, ok, quoted, run, skip, warn
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


class BluetoothChecks(CheckGroup):
    """Whether the radio works."""

    async def first_fault(self) -> tuple[RadioReason, Finding] | None:
        """Return the first failed check of those that decide whether the radio works; None if it
        does.
        """
        for kind, examine in (
            (RadioReason.POWERED_OFF, self.rfkill),
            (RadioReason.NO_ADAPTER, self.adapter),
            (RadioReason.NO_SERVICE, self.bus),
            (RadioReason.NO_SERVICE, self.bluez),
            (RadioReason.POWERED_OFF, self.power),
        ):
            finding = await examine()
            if finding.mark is Mark.FAIL:
                return kind, finding
        return None

    @property
    def _radio(self) -> str:
        return self._examined.radio

    def _other_radio(self) -> Finding | None:
        return None if self._radio == "bluez" else skip(f"the radio is {self._radio}, not BlueZ")

    # -------------------------------------------------------------- hardware

    async def rfkill(self) -> Finding:
        if other := self._other_radio():
            return other
        switches = [
            s
            for s in sorted(self._machine.path("/sys/class/rfkill").glob("*"))
            if _line(s / "type") == "bluetooth"
        ]
        on = [s for s in switches if _line(s / "hard") != "1" and _line(s / "soft") != "1"]
        for switch in () if on else switches:
            if _line(switch / "hard") == "1":
                return fail(
                    f"{switch.name} is off by its hardware switch",
                    do(
                        "switch Bluetooth on: by the switch or key of this "
                        "machine, or in its firmware setup"
                    ),
                )
            if _line(switch / "soft") == "1":
                soft, root = quoted(switch / "soft"), self._machine.me.is_root
                fix = f"echo 0 > {soft}" if root else f"echo 0 | sudo tee {soft} > /dev/null"
                return fail(f"{switch.name} is switched off (rfkill)", run(fix))
        return ok(f"{', '.join(s.name for s in on)} on" if on else "there is none")

    async def adapter(self) -> Finding:
        kind, _, rest = self._radio.partition(":")
        adapter = self._examined.layer("adapter")
        if kind == "bluez":
            return self._in_kernel()
        if adapter.get("state") == "ok":
            return ok(f"{self._radio}: in use by the daemon")
        if adapter.get("state") == "failing":
            fix = do(str(adapter.get("hint") or "see: glassd status"))
            return fail(str(adapter.get("reason") or adapter.get("issue")), fix)
        if kind == "usb":
            return self._dongle(int(rest))
        if kind == "tcp" and self._examined.status is None:
            return await self._connect(rest)
        return skip(f"{self._radio}: only the running daemon knows")

    def _in_kernel(self) -> Finding:
        known = self._machine.path("/sys/class/bluetooth")
        found = sorted(place.name for place in known.glob("hci*") if ":" not in place.name)
        if found:
            return ok(f"the kernel has {', '.join(found)}")
        for place in PI_CONFIGS:
            if re.search(r"(?m)^dtoverlay=(pi3-)?disable-bt", self._machine.read(place) or ""):
                path = quoted(self._machine.path(place))
                edit = f"sed -i -E '/^dtoverlay=(pi3-)?disable-bt/d' {path}"
                return fail(f"switched off in {place}", self._machine.as_root(edit, "reboot"))
        return fail(
            f"the kernel {'sees none' if known.is_dir() else 'has no Bluetooth at all'}",
            do("plug in a USB Bluetooth adapter; to try glassd without one: glassd demo"),
        )

    def _dongle(self, number: int) -> Finding:
        """Count USB devices of the class "wireless controller", without opening any."""
        found = [
            p.parent.name
            for p in sorted(self._machine.path("/sys/bus/usb/devices").glob("*/bDeviceClass"))
            if _line(p) == "e0"
        ]
        unit = self._examined.unit
        if number < len(found) and unit is not None and unit["PrivateDevices"] == "yes":
            problem = f"USB device {found[number]} is hidden from the service by its sandbox"
            return fail(f"{self._radio}: {problem}", self._install_drop_in())
        if number < len(found):
            return ok(f"{self._radio}: USB device {found[number]}")
        return fail(
            f"{self._radio}: there are {len(found)} USB Bluetooth adapters",
            do("plug the dongle in, or count again in glasses.radio: usb:0 is the first"),
        )

    def _install_drop_in(self) -> Fix:
        """Return the fix that installs the drop-in and the udev rule of glassd for this radio; the
        rule takes effect when the dongle is plugged in again.
        """
        m = self._machine
        places = [m.path(place) for place in SHARES]
        share = next((place for place in places if place.is_dir()), places[0])
        drop_in, rules = m.path(UNIT_DROP_INS) / "usb.conf", m.path("/etc/udev/rules.d") / USB_RULES
        return m.as_root(
            f"install -D -m 644 {quoted(share / 'usb.conf')} {quoted(drop_in)}",
            f"install -D -m 644 {quoted(share / USB_RULES)} {quoted(rules)}",
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

    async def bus(self) -> Finding:
        if other := self._other_radio():
            return other
        m = self._machine
        usual = f"unix:path={m.path('/run/dbus/system_bus_socket')}"
        seen = await probe.look(m.env.get("DBUS_SYSTEM_BUS_ADDRESS") or usual)
        if seen.no_bus:
            installed = m.which("dbus-daemon") or m.which("dbus-broker")
            fix = m.start("dbus") if installed else m.as_root("apt-get install -y dbus")
            return fail(f"the system bus cannot be reached: {seen.no_bus}", fix)
        self._examined.bluez = seen
        return ok("the system bus answers")

    async def bluez(self) -> Finding:
        if other := self._other_radio():
            return other
        seen, m = self._examined.bluez, self._machine
        assert seen is not None
        answer = (await m.ask("bluetoothctl", "--version")).out
        version = tuple(int(n) for n in re.findall(r"\d+", answer)[:2])
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
                f"BlueZ {answer.split()[-1]} is older than 5.55",
                m.as_root("apt-get install -y --only-upgrade bluez", "systemctl restart bluetooth"),
            )
        return ok(f"BlueZ {'.'.join(map(str, version)) or 'of unknown version'} serves")

    async def power(self) -> Finding:
        if other := self._other_radio():
            return other
        seen = self._examined.bluez
        assert seen is not None
        if not seen.adapters:
            fix = self._machine.as_root("systemctl restart bluetooth")
            return fail("BlueZ shows no adapter, though the kernel has one", fix)
        on = [a for a in seen.adapters if a.powered]
        if not on:
            return fail(f"{seen.adapters[0].name} is off", run("bluetoothctl power on"))
        return ok(", ".join(f"{a.name} {a.address} on" for a in on))

    # -------------------------------------------------------------- settings of the system

    async def restart(self) -> Finding:
        m = self._machine
        if other := self._other_radio():
            return other
        ran = await m.ask("systemctl", "show", "bluetooth.service", "--property=LoadState,Restart")
        properties = dict(line.split("=", 1) for line in ran.out.splitlines() if "=" in line)
        if ran.code != 0 or properties.get("LoadState") != "loaded":
            return skip("systemd has no bluetooth.service")
        if properties.get("Restart") != "no":
            return ok(f"Restart={properties.get('Restart')}")
        place = m.path(DROP_IN)
        return warn(
            "bluetoothd stays dead when it dies (Restart=no)",
            m.as_root(
                f"mkdir -p {quoted(place.parent)}",
                _write("[Service]\\nRestart=on-failure\\nRestartSec=3\\n", place),
                "systemctl daemon-reload",
            ),
        )

    async def buffer(self) -> Finding:
        m = self._machine
        if other := self._other_radio():
            return other
        text = m.read("/proc/sys/net/core/rmem_default")
        if text is None or not text.isdecimal():
            return skip("this kernel does not show net.core.rmem_default here")
        if int(text) >= ENOUGH_BUFFER:
            return ok(f"net.core.rmem_default = {text}")
        place = m.path(SYSCTL)
        problem = (
            f"net.core.rmem_default = {text}: bursts of notifications from the glasses are lost"
        )
        write = _write(f"net.core.rmem_default = {BUFFER}\\n", place)
        return warn(problem, m.as_root(write, f"sysctl -q -p {quoted(place)}"))


def _write(text: str, place: Path) -> str:
    """Return a command that writes a file, and can follow sudo."""
    return f"sh -c \"printf '{text}' > {quoted(place)}\""


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")[:64].strip()
    except OSError:
        return ""
