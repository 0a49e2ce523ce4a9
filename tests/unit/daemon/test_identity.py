"""The edge's name: made once, restored where it is known, never changed in silence."""

import re
from contextlib import AsyncExitStack

import pytest

from edge.cloud.enrolment.credentials import Enrolled, EnrolmentFiles
from edge.config.load import formed
from edge.config.validators import BadSettings
from edge.daemon import identity
from edge.daemon.app import Daemon
from edge.storage.sqlite import marker
from edge.storage.sqlite.marker import MarkerFile

DAMAGE = {
    "empty": b"",
    "binary": b"\xff\xfe\x00\x01",
    "a path": b"a/b",
    "a sign": b"#",
    "too long": b"x" * 70,
    "much too long": b"x" * 100_000,
    "zeros": bytes(64),
}


def enrolled(name):
    return Enrolled(
        edge_id=name,
        tenant="default",
        host="broker.example",
        port=8883,
        ca_pem="x",
        enrol_host="cloud.example",
        enrol_port=443,
        enrol_ca_pem="x",
    )


def harm(folder, way):
    path = folder / "edge_id"
    path.unlink(missing_ok=True)
    if way == "a directory":
        path.mkdir()
    elif way != "missing":
        path.write_bytes(DAMAGE[way])


@pytest.mark.requirement("I11-edge-id")
def test_an_edge_names_itself_once_and_for_all(tmp_path):
    first = identity.find("", tmp_path / "state")
    assert re.fullmatch(r"edge-[0-9a-f]{12}", first.edge_id)
    assert identity.find("", tmp_path / "state") == first
    assert first.alarms == {}
    assert identity.find("", tmp_path / "other").edge_id != first.edge_id


def test_a_configured_name_needs_no_file(tmp_path):
    assert identity.find("edge-mine", tmp_path / "state").edge_id == "edge-mine"
    assert not (tmp_path / "state").exists()


@pytest.mark.requirement("I11-edge-id")
@pytest.mark.parametrize("way", [*DAMAGE, "a directory"])
def test_a_damaged_name_that_nobody_knows_is_put_aside_and_said(tmp_path, way):
    old = identity.find("", tmp_path).edge_id
    harm(tmp_path, way)
    found = identity.find("", tmp_path)
    assert found.edge_id != old
    assert f"so this edge has a new name: {found.edge_id}" in found.alarms["edge_id"]
    assert (tmp_path / "edge_id.bad-1").exists()
    again = identity.find("", tmp_path)
    assert (again.edge_id, again.alarms) == (found.edge_id, {})


@pytest.mark.requirement("I11-edge-id")
@pytest.mark.parametrize("way", [*DAMAGE, "a directory", "missing"])
@pytest.mark.parametrize("who", ["enrolment", "marks"])
def test_a_name_that_is_known_elsewhere_is_restored_and_said(tmp_path, way, who):
    if who == "enrolment":
        EnrolmentFiles(tmp_path).save(enrolled("edge-old"))
        marker.write(
            tmp_path / "glassd.db", MarkerFile(labels={"edge_id": "edge-other"}), durable=False
        )
    else:
        marker.write(
            tmp_path / "glassd.db", MarkerFile(labels={"edge_id": "edge-old"}), durable=False
        )
    harm(tmp_path, way)
    found = identity.find("", tmp_path)
    assert found.edge_id == "edge-old"
    assert who in found.alarms["edge_id"]
    assert (identity.find("", tmp_path).edge_id, identity.find("", tmp_path).alarms) == (
        "edge-old",
        {},
    )


@pytest.mark.requirement("I11-edge-id")
def test_a_name_that_cannot_be_read_is_not_replaced(tmp_path):
    (tmp_path / "edge_id").symlink_to("edge_id")  # a loop, which root cannot read either
    with pytest.raises(BadSettings, match="cannot be read: Too many levels"):
        identity.find("", tmp_path)
    EnrolmentFiles(tmp_path).save(enrolled("edge-old"))
    found = identity.find("", tmp_path)
    assert found.edge_id == "edge-old"
    assert "check who may read it" in found.alarms["edge_id"]
    assert (tmp_path / "edge_id").is_symlink()


def test_a_damaged_enrolment_does_not_hide_what_the_marks_know(tmp_path):
    (tmp_path / "enrolled").mkdir()
    (tmp_path / "enrolled" / "enrolment.json").write_text("junk")
    marker.write(tmp_path / "glassd.db", MarkerFile(labels={"edge_id": "edge-old"}), durable=False)
    harm(tmp_path, "empty")
    assert identity.find("", tmp_path).edge_id == "edge-old"


@pytest.mark.requirement("I11-edge-id")
async def test_a_daemon_whose_name_was_damaged_keeps_it_and_says_so_in_status(tmp_path):
    settings = formed(
        {
            "edge": {"state_dir": str(tmp_path / "state")},
            "control": {"socket": str(tmp_path / "c.sock"), "group": ""},
            "glasses": {"radio": "inproc"},
        }
    )
    names, alarms = [], []
    for _ in range(2):
        async with AsyncExitStack() as stack:
            daemon = Daemon(settings, {})
            await daemon.open(stack)
            status = daemon.status()
        names.append(status["edge_id"])
        alarms.append(status["alarms"])
        harm(tmp_path / "state", "empty")
    assert names[0] == names[1]
    assert "edge_id" not in alarms[0]
    assert alarms[1]["edge_id"] == status["next_action"]
