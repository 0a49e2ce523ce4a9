"""The doctor on a good machine: a whole daemon with its glasses, its broker and its cloud; and
the same one made ill.
"""

import asyncio
import json
import os
import sys
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from edge.doctor.checks import every
from edge.doctor.machine import ExaminedMachine
from edge.doctor.runner import CheckRunner
from edge.doctor.this_machine import this_machine
from firmware_bridge.sides import Side
from tests.scenarios.world import until, world
from tests.unit.doctor.house import needed

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]


async def doctor(place, *words, config=None):
    """Run the very command; gives (exit code, its JSON)."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(place.folder),
        "PYTHONPATH": str(Path.cwd()),
        "XDG_RUNTIME_DIR": "/nonexistent",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "edge.cli",
        "doctor",
        "--json",
        "--config",
        str(config or settings(place)),
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    out, err = await asyncio.wait_for(process.communicate(), 50)
    assert not err, err.decode()
    return process.returncode, json.loads(out)


def settings(place, **uplink):
    """Write the file of the world's daemon; what is said of the uplink overrules it."""
    broker = {
        "host": "127.0.0.1",
        "port": int(str(place.cloud["mqtt"]).rpartition(":")[2]),
        "tls": False,
        **uplink,
    }
    lines = [
        "version = 1",
        "[edge]",
        f'id = "{place.edge_id}"',
        f'state_dir = "{place.folder}/state"',
        "[glasses]",
        'radio = "inproc"',
        "[control]",
        f'socket = "{place.socket}"',
        "[cloud]",
        f'url = "{place.cloud["http"]}"',
        "[uplink]",
    ]
    lines += [f"{key} = {json.dumps(value)}" for key, value in broker.items()]
    file = place.folder / "doctored.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def marks(report):
    return {check["id"]: check["mark"] for check in report["checks"]}


@pytest.mark.requirement("I4-doctor-good")
async def test_a_good_machine_is_ok_and_the_daemon_does_not_notice_the_doctor(tmp_path, cloud):
    async with world(tmp_path) as place:
        place.cloud = cloud
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        link = place.daemon.link.status().link
        code, report = await doctor(place, "--bundle", str(tmp_path / "d.tar.gz"))
        found = marks(report)
        assert code == 0, [c for c in report["checks"] if c["mark"] == "FAIL"]
        assert report["ok"] is True
        for check in (
            "os",
            "libraries",
            "config",
            "daemon",
            "state",
            "secrets",
            "adapter",
            "bond",
            "link",
            "mtu",
            "dns",
            "tcp",
            "tls",
            "connack",
            "suback",
            "trip",
            "uplink",
            "builtin",
            "cloud",
            "registry",
            "database",
        ):
            assert found[check] == "OK", (check, report["checks"])
        assert all(
            c["ms"] > 0
            for c in report["checks"]
            if c["id"] in {"dns", "tcp", "connack", "suback", "trip"}
        )
        assert place.daemon.uplink.status().up
        assert place.daemon.link.status().link == link
        assert not [
            h
            for h in place.happened[place.marked :]
            if h["event"] in {"uplink.down", "glasses.lost"}
        ]
        with tarfile.open(tmp_path / "d.tar.gz") as tar:
            status = json.loads(tar.extractfile("glassd-doctor/status.json").read())
        assert status["edge_id"] == place.edge_id


@pytest.mark.requirement("I4-doctor-good")
async def test_glasses_that_are_away_are_no_fault_of_the_machine_and_a_broker_nobody_knows_is_one(
    tmp_path, cloud
):
    async with world(tmp_path) as place:
        place.cloud = cloud
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        await place.switch_glasses_off()
        await until(lambda: not place.daemon.link.status().ready, "glasses away")
        code, report = await doctor(place)
        assert code == 0, "glasses that are away are no fault of the machine"
        assert marks(report)["link"] == "WARN"

        code, report = await doctor(place, config=settings(place, host="no-such-host.invalid"))
        assert code == 1
        assert marks(report)["dns"] == "FAIL"
        assert report["next_action"].startswith("in ")


@pytest.mark.requirement("I4-doctor-good")
async def test_without_a_daemon_the_doctor_asks_the_machine_itself(tmp_path, cloud):
    async with world(tmp_path) as place:
        place.cloud = cloud
        code, report = await doctor(place)
        found = marks(report)
    assert code == 1
    assert found["daemon"] == "FAIL"
    assert found["trip"] == found["builtin"] == found["cloud"] == "OK"
    assert found["link"] == found["mtu"] == "SKIP"


# ------------------------------------------------------------------ what only its owner can do,
# done


async def sees(place, name, mark, says=""):
    """Climb as far as one check needs, in this process, until it ends with `mark` and says to
    do this.
    """
    machine = replace(
        this_machine({**os.environ, "GLASSD_SOCKET": str(place.socket)}), sockets=(place.socket,)
    )
    found = None
    async with asyncio.timeout(60):
        while not found or found.mark.value != mark:
            patient = ExaminedMachine(machine, config=settings(place), env=machine.env)
            try:
                async with CheckRunner(
                    needed(every(patient, named=True), name), now=time.monotonic
                ).running() as entries:
                    found = {entry.check.id: entry.finding async for entry in entries}[name]
            finally:
                await patient.closing.aclose()
    assert (found.fix.text if found.fix else "").startswith(says), found


@pytest.mark.requirement("I4-doctor-fixes")
async def test_what_the_doctor_says_of_glasses_is_done_by_their_wearer(tmp_path, cloud):
    async with world(tmp_path, "sim:even_g1", glasses={"model": ""}) as place:
        place.cloud = cloud
        await place.start_daemon()
        await until(lambda: place.daemon.link.status().attempts, "nothing found")
        await sees(place, "link", "WARN", "switch")

        await place.switch_glasses_on(mtu=251)
        status = place.daemon.link.status
        await until(
            lambda: [side.state for side in status().sides.values()] == ["up", "up"],
            "both sides up",
        )
        await sees(place, "link", "OK")
        place.mock.servers[Side.LEFT].leave()
        await until(lambda: status().sides[Side.LEFT].state == "lost", "the left side lost")
        await sees(place, "link", "WARN", "take that side of the glasses out of its case")
        place.mock.servers[Side.LEFT].come_back()
        await until(lambda: status().sides[Side.LEFT].state == "up", "the left side back")
        await sees(place, "link", "OK")

        await place.switch_glasses_off()
        place.model = "mock:display"
        await place.switch_glasses_on(mtu=23)
        await place.heard("glasses.ready", model="mock:display")
        await sees(place, "mtu", "WARN", "switch the glasses off and on")
        place.mark()
        await place.switch_glasses_off()
        await place.switch_glasses_on(mtu=247)
        await place.heard("glasses.ready", mtu=247)
        await sees(place, "mtu", "OK")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_what_is_kept_of_the_cloud_comes_by_itself_when_glassd_runs(tmp_path, cloud):
    async with world(tmp_path) as place:
        place.cloud = cloud
        await sees(place, "registry", "WARN", "it comes by itself when the cloud is reached")
        await place.start_daemon()
        await until(lambda: place.daemon.registry.describe()["origin"] == "cloud", "the registry")
        await sees(place, "registry", "OK")
