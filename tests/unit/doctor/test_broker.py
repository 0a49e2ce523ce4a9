"""The checks of the broker on a real Mosquitto: each fails by a real fault, and its printed fix
cures it.
"""

import asyncio
import json
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest

from edge.doctor.models import Mark
from tests.e2e.broker import MOSQUITTO, free_port, mosquitto, serving
from tests.system import needs, program
from tests.unit.doctor.certificates import Authority
from tests.unit.doctor.test_service import FAKE_DAEMON, STATUS, answers

pytestmark = [
    pytest.mark.enable_socket,
    needs("mosquitto"),
]
RUNGS = ("dns", "tcp", "tls", "connack", "suback", "trip")


@pytest.fixture
def secured(sandbox):
    """An authority, and a way to run a broker with a certificate of it."""
    authority = Authority(sandbox.folder)

    @contextmanager
    def run(*names, **times):
        certificate, key = authority.server(*names, **times)
        with mosquitto(sandbox.folder, extra=f"certfile {certificate}\nkeyfile {key}") as broker:
            yield broker

    run.authority = authority
    return run


async def only_fails(sandbox, rung):
    """The earlier checks are OK, this one fails, the later ones are not reached."""
    findings = {name: await sandbox.sees(name) for name in RUNGS}
    at = RUNGS.index(rung)
    assert [findings[name].mark for name in RUNGS] == [Mark.OK] * at + [Mark.FAIL] + [Mark.SKIP] * (
        len(RUNGS) - at - 1
    ), findings
    return findings[rung]


async def all_ok(sandbox):
    for name in RUNGS:
        finding = await sandbox.sees(name)
        assert finding.mark is Mark.OK, finding


async def rung_is_ok(sandbox, rung, within_s=40.0):
    """A broker applies a reload a moment after it is requested."""
    async with asyncio.timeout(within_s):
        while (await sandbox.sees(rung)).mark is not Mark.OK:
            await asyncio.sleep(0.02)


@pytest.mark.requirement("I4-doctor-broker")
async def test_without_a_broker_configured_nothing_is_wrong(sandbox):
    for name in (*RUNGS, "uplink"):
        assert (await sandbox.sees(name)).mark is Mark.SKIP


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_good_broker_is_ok_in_every_check(sandbox):
    with mosquitto(sandbox.folder) as broker:
        sandbox.configure(uplink={"host": "127.0.0.1", "port": broker.port, "tls": False})
        await all_ok(sandbox)
        said = (await sandbox.sees("suback")).said
    assert "glassd/v1/default/e/edge-doctored/reply/doctor-w0rd" in said, (
        "inside the edge's own prefix"
    )
    assert "as edge-doctored-doctor-w0rd (" in broker.log.read_text(), (
        "another client id than the edge's"
    )
    assert "as edge-doctored (" not in broker.log.read_text()


@pytest.mark.requirement("I4-doctor-broker")
async def test_an_unknown_host_name(sandbox):
    with mosquitto(sandbox.folder) as broker:
        sandbox.configure(
            uplink={"host": "no-such-host.invalid", "port": broker.port, "tls": False}
        )
        finding = await only_fails(sandbox, "dns")
        sandbox.edits(finding, host="localhost")
        await all_ok(sandbox)


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_closed_port_and_the_usual_one_is_named(sandbox, monkeypatch):
    with mosquitto(sandbox.folder) as broker:
        monkeypatch.setattr("edge.doctor.broker.PLAIN", broker.port)
        monkeypatch.setattr("edge.doctor.broker.SECURE", free_port())
        sandbox.configure(uplink={"host": "127.0.0.1", "port": free_port(), "tls": False})
        finding = await only_fails(sandbox, "tcp")
        assert f"port = {broker.port}, tls = false" in finding.fix.text
        sandbox.edits(finding)
        await all_ok(sandbox)


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_broker_of_this_machine_that_does_not_run_is_started(sandbox, monkeypatch):
    port = free_port()
    for name in ("PLAIN", "SECURE"):
        monkeypatch.setattr(f"edge.doctor.broker.{name}", port)
    config = sandbox.folder / "mosquitto.conf"
    config.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\nuser root\n"
        f"pid_file {sandbox.folder}/mosquitto.pid\n"
    )
    sandbox.unit("mosquitto", ActiveState="inactive")
    sandbox.hook(
        "mosquitto-started",
        f"{MOSQUITTO} -d -c {config}; for _ in $(seq 4000); "
        f"do (echo > /dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 0; sleep 0.01; done; exit 1",
    )
    sandbox.configure(uplink={"host": "127.0.0.1", "port": port, "tls": False})
    await sandbox.fails_until_cured("tcp", "Connection refused")
    await all_ok(sandbox)


@pytest.mark.requirement("I4-doctor-broker")
async def test_an_authority_that_is_not_trusted(sandbox, secured):
    with secured("localhost") as broker:
        sandbox.configure(uplink={"host": "localhost", "port": broker.port})
        finding = await only_fails(sandbox, "tls")
        sandbox.edits(finding, ca_file=secured.authority.ca)
        await all_ok(sandbox)
        assert "good until" in (await sandbox.sees("tls")).said


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_certificate_for_another_name_shows_which(sandbox, secured):
    with secured("localhost") as broker:
        sandbox.configure(
            uplink={"host": "127.0.0.1", "port": broker.port, "ca_file": secured.authority.ca}
        )
        finding = await only_fails(sandbox, "tls")
        assert finding.fix.text.endswith('host = "localhost"')
        sandbox.edits(finding)
        await all_ok(sandbox)


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_certificate_past_its_day_is_renewed(sandbox, secured):
    with secured("localhost", ends=-1) as broker:
        sandbox.configure(
            uplink={"host": "localhost", "port": broker.port, "ca_file": secured.authority.ca}
        )
        finding = await only_fails(sandbox, "tls")
        assert "expired" in finding.said
        assert finding.fix.text.startswith("renew the broker's certificate")
        secured.authority.server("localhost")
        sandbox.hook("mosquitto-reloaded", f"kill -HUP {broker.process.pid}")
        await sandbox.does(finding)
        await rung_is_ok(sandbox, "tls")
        await all_ok(sandbox)


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_certificate_that_ends_soon_is_a_warning(sandbox, secured):
    import time

    (sandbox.folder / "wall").write_text(str(time.time()))
    with secured("localhost", ends=5) as broker:
        sandbox.configure(
            uplink={"host": "localhost", "port": broker.port, "ca_file": secured.authority.ca}
        )
        finding = await sandbox.sees("tls")
        assert finding.mark is Mark.WARN
        assert (await sandbox.sees("trip")).mark is Mark.OK, "a warning does not stop the climb"
        assert finding.fix.text.startswith("renew the broker's certificate before ")
        secured.authority.server("localhost")
        broker.stop()
        broker.start()
        await all_ok(sandbox)


@pytest.mark.requirement("I4-doctor-broker")
async def test_tls_towards_a_plain_port(sandbox):
    with mosquitto(sandbox.folder) as broker:
        sandbox.configure(uplink={"host": "localhost", "port": broker.port})
        finding = await only_fails(sandbox, "tls")
        sandbox.edits(finding)
        await all_ok(sandbox)


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_broker_that_wants_a_password(sandbox):
    passwords, ours = sandbox.folder / "passwords", sandbox.folder / "ours"
    subprocess.run(
        [program("mosquitto_passwd"), "-c", "-b", str(passwords), "edge", "hunter2hunter2"],
        check=True,
        capture_output=True,
    )
    ours.write_text("hunter2hunter2\n")
    with mosquitto(
        sandbox.folder, extra=f"allow_anonymous false\npassword_file {passwords}"
    ) as broker:
        sandbox.configure(uplink={"host": "127.0.0.1", "port": broker.port, "tls": False})
        finding = await only_fails(sandbox, "connack")
        sandbox.edits(finding, username="edge", password_file=ours)
        await all_ok(sandbox)


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_broker_that_forbids_reading(sandbox):
    """Mosquitto's access list never refuses a SUBSCRIBE, others do: a small broker replies
    0x87, then 0x01.
    """
    code = bytearray(b"\x87")

    async def broker(reader, writer):
        while head := await reader.readexactly(2):
            body = await reader.readexactly(head[1])
            if head[0] == 0x10:
                writer.write(b"\x20\x03\x00\x00\x00")
            elif head[0] == 0x82:
                writer.write(b"\x90\x04" + body[:2] + b"\x00" + code)

    async with serving(broker) as port:
        sandbox.configure(uplink={"host": "127.0.0.1", "port": port, "tls": False})
        finding = await only_fails(sandbox, "suback")
        assert "read and write glassd/v1/default/e/edge-doctored/#" in finding.fix.text
        code[0] = 1
        assert (await sandbox.sees("suback")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_broker_that_forbids_writing(sandbox):
    rights = sandbox.folder / "acl"
    rights.write_text("topic read #\n")
    with mosquitto(sandbox.folder, extra=f"acl_file {rights}") as broker:
        sandbox.configure(uplink={"host": "127.0.0.1", "port": broker.port, "tls": False})
        finding = await only_fails(sandbox, "trip")
        topic = re.match(
            r"let this edge read and write (\S+) in the broker's access list", finding.fix.text
        )[1]
        rights.write_text(f"topic readwrite {topic}\n")
        sandbox.hook("mosquitto-reloaded", f"kill -HUP {broker.process.pid}")
        await sandbox.does(finding)
        await rung_is_ok(sandbox, "trip")


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_refusal_of_the_doctors_client_id_is_a_warning(sandbox):
    """Access lists by client id know the edge but not its doctor; the daemon itself is
    connected.
    """
    rights = sandbox.folder / "acl"
    rights.write_text("pattern readwrite glassd/v1/default/e/%c/#\n")
    (sandbox.folder / "status.json").write_text(
        json.dumps({**STATUS, "uplink": {"state": "up", "broker": "b"}, "outbox": {"waiting": 2}})
    )
    sandbox.start(
        sys.executable,
        str(FAKE_DAEMON),
        str(sandbox.folder / "c.sock"),
        str(sandbox.folder / "status.json"),
        ready="ready",
    )
    with mosquitto(sandbox.folder, extra=f"acl_file {rights}") as broker:
        sandbox.configure(uplink={"host": "127.0.0.1", "port": broker.port, "tls": False})
        finding = await sandbox.sees("trip")
        assert finding.mark is Mark.WARN
        assert "the daemon itself is connected" in finding.said
        assert "2 calls wait" in (await sandbox.sees("uplink")).said


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_closed_port_is_corrected(sandbox, monkeypatch):
    for name in ("PLAIN", "SECURE"):
        monkeypatch.setattr(f"edge.doctor.broker.{name}", free_port())
    with mosquitto(sandbox.folder) as broker:
        sandbox.configure(uplink={"host": "127.0.0.1", "port": free_port(), "tls": False})
        finding = await only_fails(sandbox, "tcp")
        assert "nothing listens here" in finding.fix.text
        sandbox.edits(finding, host="localhost", port=broker.port)
        await all_ok(sandbox)


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_daemon_started_before_its_configuration_is_restarted(sandbox):
    sandbox.unit("glassd")
    sandbox.named = False
    (sandbox.root / "var/lib/glassd").mkdir(parents=True, mode=0o700)
    answers(sandbox, uplink={"state": "not configured", "since_s": 2.0})
    sandbox.configure(uplink={"host": "127.0.0.1", "port": free_port(), "tls": False})
    after = json.dumps(
        {**STATUS, "uplink": {"state": "up", "broker": "b"}, "outbox": {"waiting": 0}}
    )
    sandbox.hook("glassd-started", f"echo '{after}' > {sandbox.folder}/status.json")
    await sandbox.fails_until_cured("uplink", "before [uplink] was written", mark=Mark.WARN)


@pytest.mark.parametrize(
    ("layer", "mark", "word"),
    [
        (
            {"state": "down", "since_s": 300.0, "reason": "not authorised"},
            Mark.FAIL,
            "not authorised",
        ),
        (
            {"state": "down", "since_s": 2.0, "reason": "connecting"},
            Mark.WARN,
            "connecting since 2 s",
        ),
    ],
)
@pytest.mark.requirement("I4-doctor-broker")
async def test_the_daemons_own_connection_is_reported_too(sandbox, layer, mark, word):
    (sandbox.folder / "status.json").write_text(json.dumps({**STATUS, "uplink": layer}))
    sandbox.start(
        sys.executable,
        str(FAKE_DAEMON),
        str(sandbox.folder / "c.sock"),
        str(sandbox.folder / "status.json"),
        ready="ready",
    )
    sandbox.configure(uplink={"host": "127.0.0.1", "port": free_port(), "tls": False})
    finding = await sandbox.sees("uplink")
    assert finding.mark is mark
    assert word in finding.said
    (sandbox.folder / "status.json").write_text(
        json.dumps({**STATUS, "uplink": {"state": "up", "broker": "b"}})
    )
    assert (await sandbox.sees("uplink")).mark is Mark.OK, "it came by itself, as the fix says"


@pytest.mark.requirement("I4-doctor-broker")
async def test_a_silent_broker_is_a_timeout(sandbox, monkeypatch):
    monkeypatch.setattr("edge.doctor.broker.STEP_S", 1.0)

    async def silent(reader, _writer):
        await reader.read()

    async with serving(silent) as port:
        sandbox.configure(uplink={"host": "127.0.0.1", "port": port, "tls": False})
        began = asyncio.get_running_loop().time()
        finding = await sandbox.sees("connack")
    assert finding.mark is Mark.FAIL
    assert asyncio.get_running_loop().time() - began < 20
