"""An enrolled edge: what the enrolment brought, and that the checks use its broker."""

import pytest

from edge.cloud.enrolment.credentials import Enrolled, EnrolmentFiles
from edge.doctor.models import FixKind, Mark
from tests.e2e.broker import mosquitto
from tests.system import needs
from tests.unit.doctor.certificates import Authority
from tests.unit.doctor.house import NOW


def enrolled(sandbox, **more):
    kept = {
        "edge_id": "edge-doctored",
        "tenant": "home",
        "host": "localhost",
        "port": 8883,
        "ca_pem": "x",
        "enrol_host": "h",
        "enrol_port": 1,
        "enrol_ca_pem": "x",
        **more,
    }
    EnrolmentFiles(sandbox.state).save(Enrolled(**kept))


@pytest.mark.requirement("I4-doctor-fixes")
async def test_an_edge_without_a_cloud_learns_how_to_enrol(sandbox):
    finding = await sandbox.sees("enrolment")
    assert finding.mark is Mark.SKIP
    assert "glassd up CODE" in finding.fix.text


@pytest.mark.requirement("I4-doctor-fixes")
@pytest.mark.parametrize(
    ("days", "mark", "word"),
    [(-1, Mark.FAIL, "past its end"), (5, Mark.WARN, "ends in 5.0 days"), (80, Mark.OK, "80 days")],
)
async def test_how_long_our_certificate_lives(sandbox, days, mark, word):
    enrolled(sandbox, identity="identity-x.pem", ends=NOW + days * 86400)
    finding = await sandbox.sees("enrolment")
    assert finding.mark is mark
    assert word in finding.said


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_damaged_enrolment_asks_for_a_new_code(sandbox):
    enrolled(sandbox)
    (sandbox.state / "enrolled" / "enrolment.json").write_text("{")
    finding = await sandbox.sees("enrolment")
    assert finding.mark is Mark.FAIL
    assert finding.fix.kind is FixKind.DO
    enrolled(sandbox)
    assert (await sandbox.sees("enrolment")).mark is Mark.OK


@pytest.mark.enable_socket
@needs("mosquitto")
@pytest.mark.requirement("I4-doctor-broker")
async def test_the_checks_use_the_broker_of_the_enrolment(sandbox):
    authority = Authority(sandbox.folder)
    certificate, key = authority.server("localhost")
    rights = sandbox.folder / "acl"
    rights.write_text("topic readwrite glassd/v1/home/e/edge-doctored/#\n")
    with mosquitto(
        sandbox.folder, extra=f"certfile {certificate}\nkeyfile {key}\nacl_file {rights}"
    ) as broker:
        enrolled(sandbox, port=broker.port, ca_pem="", username="edge", password="hunter2hunter2")
        finding = await sandbox.sees("tls")
        assert finding.mark is Mark.FAIL
        assert "glassd up CODE" in finding.fix.text, "an enrolment is not edited"
        enrolled(sandbox, port=broker.port, ca_pem=authority.ca.read_text())
        for rung in ("enrolment", "dns", "tcp", "tls", "connack", "suback", "trip"):
            finding = await sandbox.sees(rung)
            assert finding.mark is Mark.OK, (rung, finding)


@pytest.mark.enable_socket
@needs("mosquitto")
@pytest.mark.requirement("I4-doctor-broker")
async def test_a_clock_that_was_never_set_is_reported_before_certificates(sandbox):
    (sandbox.folder / "wall").write_text("1000000000")
    (sandbox.folder / "timedate").write_text("CanNTP=yes\nNTP=no\n")
    with mosquitto(sandbox.folder) as broker:
        sandbox.configure(uplink={"host": "localhost", "port": broker.port})
        finding = await sandbox.sees("tls")
        assert finding.mark is Mark.FAIL
        assert "the clock says 2001" in finding.said
        await sandbox.cures(finding)
        assert "the clock says" not in (await sandbox.sees("tls")).said
