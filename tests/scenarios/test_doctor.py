"""The doctor on a good machine: a whole daemon with its glasses, its broker and its cloud; and the same one made ill."""

import asyncio
import json
import os
import sys
import tarfile
from pathlib import Path

import pytest

from tests.scenarios.world import until, world

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]


async def doctor(place, *words, config=None):
    """Run the very command; gives (exit code, its JSON)."""
    env = {"PATH": os.environ["PATH"], "HOME": str(place.folder), "PYTHONPATH": str(Path.cwd()), "XDG_RUNTIME_DIR": "/nonexistent"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edge.cli", "doctor", "--json", "--config", str(config or settings(place)), *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=env,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert not err, err.decode()
    return process.returncode, json.loads(out)


def settings(place, **uplink):
    """Write the file of the world's daemon; what is said of the uplink overrules it."""
    broker = {"host": "127.0.0.1", "port": int(str(place.cloud["mqtt"]).rpartition(":")[2]), "tls": False, **uplink}
    lines = ["version = 1", "[edge]", f'id = "{place.edge_id}"', f'state_dir = "{place.folder}/state"', "[glasses]", 'radio = "inproc"',
             "[control]", f'socket = "{place.socket}"', "[cloud]", f'url = "{place.cloud["http"]}"', "[uplink]"]  # fmt: skip
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
        for check in ("os", "libraries", "config", "daemon", "state", "secrets", "adapter", "bond", "link", "mtu", "dns", "tcp", "tls",
                      "connack", "suback", "trip", "uplink", "builtin", "cloud", "registry", "database"):  # fmt: skip
            assert found[check] == "OK", (check, report["checks"])
        assert all(c["ms"] > 0 for c in report["checks"] if c["id"] in {"dns", "tcp", "connack", "suback", "trip"})
        assert place.daemon.uplink.status().up
        assert place.daemon.link.status().link == link
        assert not [h for h in place.happened[place.marked :] if h["event"] in {"uplink.down", "link.lost"}]
        with tarfile.open(tmp_path / "d.tar.gz") as tar:
            status = json.loads(tar.extractfile("glassd-doctor/status.json").read())
        assert status["edge_id"] == place.edge_id

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
