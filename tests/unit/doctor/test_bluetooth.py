"""The radio: a real private D-Bus, a small org.bluez on it, the kernel's files below a folder."""

import shutil
import sys

import pytest

from edge.doctor.machine import Who
from edge.doctor.models import FixKind, Mark
from tests.e2e.broker import free_port
from tests.unit.doctor.house import BUS, FAKE_BLUEZ, needs_dbus

WAIT = "for _ in $(seq 4000); do {} && exit 0; sleep 0.01; done; exit 1"


@pytest.fixture
def radio(sandbox):
    """A machine with an adapter that the kernel knows, and BlueZ installed."""
    (sandbox.root / "sys/class/bluetooth/hci0").mkdir(parents=True)
    (sandbox.folder / "bluez-version").write_text("5.66")
    sandbox.unit("bluetooth")
    return sandbox


def serves(radio, *words):
    """Do what bluetoothd does when it starts."""
    return (
        f"{sys.executable} {FAKE_BLUEZ} {radio.bus} {' '.join(words)} > "
        f"{radio.folder}/said 2>&1 & echo $! > {radio.folder}/bluez.pid; "
    ) + WAIT.format(f"grep -q ready {radio.folder}/said")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_switch_that_is_off_is_switched_on(radio):
    for name, text in (("type", "bluetooth"), ("soft", "1"), ("hard", "0")):
        radio.write(f"/sys/class/rfkill/rfkill0/{name}", text + "\n")
    await radio.fails_until_cured("rfkill", "switched off")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_hardware_switch_needs_a_hand(radio):
    for name, text in (("type", "bluetooth"), ("soft", "0"), ("hard", "1")):
        radio.write(f"/sys/class/rfkill/rfkill0/{name}", text + "\n")
    finding = await radio.sees("rfkill")
    assert finding.mark is Mark.FAIL
    assert finding.fix.kind is FixKind.DO
    radio.write("/sys/class/rfkill/rfkill0/hard", "0\n")
    assert (await radio.sees("rfkill")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_another_kind_of_switch_is_ignored(radio):
    for name, text in (("type", "wlan"), ("soft", "1"), ("hard", "0")):
        radio.write(f"/sys/class/rfkill/rfkill0/{name}", text + "\n")
    assert (await radio.sees("rfkill")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_machine_without_bluetooth_gets_an_alternative(sandbox):
    finding = await sandbox.sees("adapter")
    assert finding.mark is Mark.FAIL
    assert "no Bluetooth at all" in finding.said
    assert "glassd demo" in finding.fix.text
    (sandbox.root / "sys/class/bluetooth/hci0").mkdir(parents=True)
    assert (await sandbox.sees("adapter")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_raspberry_pi_whose_bluetooth_was_given_away_gets_it_back(sandbox):
    sandbox.write("/boot/firmware/config.txt", "dtparam=audio=on\ndtoverlay=disable-bt\n")
    finding = await sandbox.fails_until_cured(
        "adapter", "switched off in /boot/firmware/config.txt"
    )
    assert finding.fix.text.endswith("reboot")
    assert (sandbox.root / "boot/firmware/config.txt").read_text() == "dtparam=audio=on\n"


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_dongle_is_counted_without_opening_it(sandbox):
    sandbox.configure(glasses={"radio": "usb:0"})
    finding = await sandbox.sees("adapter")
    assert finding.mark is Mark.FAIL
    assert "0 USB Bluetooth adapters" in finding.said
    sandbox.write("/sys/bus/usb/devices/1-1/bDeviceClass", "e0\n")
    assert (await sandbox.sees("adapter")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_dongle_that_the_units_sandbox_hides_is_shown_to_it(sandbox):
    """With the files that `make install` puts into share/glassd/radio."""
    sandbox.unit("glassd")
    sandbox.named, sandbox.config = False, None
    sandbox.write("/etc/glassd/glassd.toml", 'version = 1\n[glasses]\nradio = "usb:0"\n')
    sandbox.write("/sys/bus/usb/devices/1-1/bDeviceClass", "e0\n")
    shutil.copytree("systemd/radio", sandbox.root / "usr/local/share/glassd/radio")
    finding = await sandbox.fails_until_cured("adapter", "hidden from the service")
    assert finding.fix.text.endswith("systemctl restart glassd")
    assert (sandbox.root / "etc/udev/rules.d/70-glassd-usb.rules").exists()


@pytest.mark.enable_socket
@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_mock_that_does_not_run_is_started_in_a_terminal_of_its_own(sandbox):
    sandbox.install()
    sandbox.configure(glasses={"radio": f"tcp:127.0.0.1:{free_port()}"})
    finding = await sandbox.sees("adapter")
    assert finding.mark is Mark.FAIL
    assert finding.fix.text.startswith("start the mock, in a terminal of its own: glassd sim")
    sandbox.starts(finding)
    assert (await sandbox.comes_to_see("adapter")).said.endswith("a mock listens there")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_bus_that_does_not_run_is_started(radio):
    needs_dbus()
    config = radio.folder / "bus.conf"
    config.write_text(BUS.format(address=radio.bus))
    radio.unit("dbus", ActiveState="inactive")
    radio.hook(
        "dbus-started",
        f"dbus-daemon --config-file={config} --fork --nosyslog "
        f"--print-pid=3 3>{radio.folder}/bus.pid",
    )
    finding = await radio.fails_until_cured("bus", "cannot be reached")
    assert "systemctl enable --now dbus" in finding.fix.text


@pytest.mark.requirement("I4-doctor-fixes")
async def test_bluetoothd_that_does_not_run_is_started(radio):
    radio.start_bus()
    radio.hook("bluetooth-started", serves(radio))
    await radio.fails_until_cured("bluez", "bluetoothd does not run")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_without_systemd_services_are_started_the_old_way(radio):
    shutil.rmtree(radio.root / "run")
    radio.start_bus()
    radio.hook("bluetooth-started", serves(radio))
    finding = await radio.fails_until_cured("bluez", "does not run")
    assert finding.fix.text.endswith("service bluetooth start")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_bluez_that_is_not_installed_is_installed(radio):
    (radio.folder / "bluez-version").unlink()
    radio.start_bus()
    radio.hook("bluez-installed", f"echo 5.82 > {radio.folder}/bluez-version")
    radio.hook("bluetooth-started", serves(radio))
    await radio.fails_until_cured("bluez", "not installed")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_an_old_bluez_is_renewed(radio):
    (radio.folder / "bluez-version").write_text("5.50")
    radio.hook("bluez-installed", f"echo 5.66 > {radio.folder}/bluez-version")
    radio.start_bus()
    radio.start_bluez()
    await radio.fails_until_cured("bluez", "5.50 is older than 5.55")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_an_adapter_without_power_is_switched_on(radio):
    radio.start_bus()
    radio.start_bluez("--off")
    await radio.fails_until_cured("power", "hci0 is off")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_an_adapter_that_bluez_does_not_show_makes_it_start_again(radio):
    radio.start_bus()
    there = radio.start_bluez("--no-adapter")
    radio.hook("bluetooth-started", f"kill {there.pid}; {serves(radio)}")
    finding = await radio.fails_until_cured("power", "shows no adapter")
    assert finding.fix.text.endswith("systemctl restart bluetooth")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_user_refused_by_bluez_joins_its_group(radio):
    """The bus refuses for real, by its policy; a login with the new group is another policy."""
    policy = radio.start_bus(
        BUS.replace("</policy>", '<deny send_destination="org.bluez"/></policy>')
    )
    radio.start_bluez()
    finding = await radio.sees("bluez")
    assert finding.mark is Mark.FAIL
    assert "BlueZ does not talk to wearer" in finding.said
    await radio.cures(finding)
    assert "usermod -aG bluetooth wearer" in radio.ran
    policy.kill()
    policy.wait(10)
    radio.start_bus()
    radio.start_bluez()
    assert (await radio.sees("bluez")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_bluetoothd_is_made_to_come_back_when_it_dies(radio):
    await radio.fails_until_cured("restart", "stays dead", mark=Mark.WARN)


@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_receive_buffer_is_made_large_enough(radio):
    (radio.root / "etc/sysctl.d").mkdir(parents=True)
    radio.write("/proc/sys/net/core/rmem_default", "212992\n")
    await radio.fails_until_cured("buffer", "212992", mark=Mark.WARN)


@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_fixes_write_what_the_packaged_files_contain(radio):
    """The drop-ins of `make install` and the printed commands must not use the same names for
    different files.
    """
    from pathlib import Path

    await radio.cures(await radio.sees("restart"))
    ours = {
        line
        for line in Path("systemd/bluetooth.conf").read_text().splitlines()
        if line and line[0] != "#"
    }
    assert (
        set(
            (radio.root / "etc/systemd/system/bluetooth.service.d/glassd.conf")
            .read_text()
            .splitlines()
        )
        == ours
    )


@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_good_radio_is_ok_throughout(radio):
    radio.start_bus()
    radio.start_bluez()
    for check in ("rfkill", "adapter", "bus", "bluez", "power"):
        assert (await radio.sees(check)).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_another_radio_than_bluez_is_not_measured_by_it(sandbox):
    sandbox.configure(glasses={"radio": "inproc"})
    for check in ("rfkill", "adapter", "bus", "bluez", "power", "restart", "buffer"):
        assert (await sandbox.sees(check)).mark is Mark.SKIP


@pytest.mark.requirement("I4-doctor-fixes")
async def test_asking_never_starts_bluetoothd(radio):
    """D-Bus starts an activatable service when it is asked; the doctor only looks."""
    services = radio.folder / "services"
    services.mkdir()
    (services / "org.bluez.service").write_text(
        "[D-BUS Service]\nName=org.bluez\nExec=/usr/bin/touch "
        f"{radio.folder}/activated\nUser=root\n"
    )
    radio.start_bus(
        BUS.replace(
            "<type>system</type>", f"<type>session</type><servicedir>{services}</servicedir>"
        )
    )
    finding = await radio.sees("bluez")
    assert "does not run" in finding.said
    assert not (radio.folder / "activated").exists()


@pytest.mark.requirement("I4-doctor-fixes")
def test_the_user_named_in_a_fix_is_the_one_who_asks(sandbox):
    sandbox.changed = {"me": Who(4711, "ada")}
    assert (
        sandbox.machine.as_root(f"usermod -aG bluetooth {sandbox.machine.me.name}").text
        == "sudo usermod -aG bluetooth ada"
    )
