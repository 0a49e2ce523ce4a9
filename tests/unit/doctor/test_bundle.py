"""The bundle: secrets planted everywhere a daemon stores text, and none of them inside."""

import json
import tarfile

import pytest

from edge.config.load import load
from edge.doctor.bundle import write
from edge.doctor.machine import ExaminedMachine
from edge.doctor.models import Check, ReportEntry, do, fail
from edge.doctor.redact import Redact
from edge.doctor.report import document
from edge.observability.audit import AuditLog
from edge.runtime.clock import Clock

PASSWORD, TOKEN, KEY_LINE = "corr3ct-horse-battery", "tok_7f3a9c1e", "MHcCAQEEIBhJ8d0pQmFrZUtleQ"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
CONFIRM = "6d0d0c7b4a1f4c3f8a5a0a1d9b2e7f60"
MAC, PATH_MAC = "C0:FF:EE:12:34:56", "dev_C0_FF_EE_12_34_56"
SAID = "call my mother about the biopsy"
PLANTED = (
    PASSWORD,
    TOKEN,
    KEY_LINE,
    JWT,
    CONFIRM,
    MAC,
    "C0_FF_EE_12_34_56",
    "FF:EE:12:34",
    SAID,
    "typo-secret-99",
    "ada-the-wearer",
    "envsecret-env",
    "comment-secret",
    "basic-dXNlcjpw",
    "s3cretkey99",
    "/home/ada",
)


async def bundled(sandbox):
    """Plant secrets, examine nothing, bundle everything: (file name → text)."""
    for name, text in (
        ("password", PASSWORD + "\n"),
        ("token", TOKEN),
        ("key.pem", f"-----BEGIN EC PRIVATE KEY-----\n{KEY_LINE}\n-----END EC PRIVATE KEY-----\n"),
    ):
        (sandbox.folder / name).write_text(text)
    (sandbox.folder / "cert.pem").write_text("x")
    f = sandbox.folder
    sandbox.configure(
        edge={"id": "edge-doctored", "user_id": "ada-the-wearer", "state_dir": str(sandbox.state)},
        glasses={"address": MAC},
        uplink={
            "host": "broker.local",
            "username": "ada-the-wearer",
            "password_file": f / "password",
            "key_file": f / "key.pem",
            "cert_file": f / "cert.pem",
        },
        cloud={"url": "https://cloud.example", "token_file": f / "token"},
    )
    settings = load(sandbox.config, {})
    sandbox.config.write_text(
        sandbox.config.read_text() + "# comment-secret\n[log]\npasword = 'typo-secret-99'\n"
    )
    (sandbox.folder / "journal").write_text(
        f"glassd[1]: edge.cloud.mqtt: password={PASSWORD} refused\nglassd[1]: authorization: "
        f"Bearer {JWT}\nglassd[1]: {PATH_MAC} connected from /home/ada/x\n"
        f"glassd[1]: https://ada:basic-dXNlcjpw@cloud.example token {CONFIRM}\n"
        f"glassd[1]: the link to {MAC} is up\n{KEY_LINE}\n"
    )
    log = AuditLog(sandbox.state / "audit" / "calls.jsonl", clock=Clock.system(), with_args=True)
    log.open()
    log(
        {
            "callId": "c-1",
            "toolId": "notes:add",
            "idempotencyKey": "s3cretkey99",
            "args": {"text": SAID},
            "reason": f"said {PASSWORD}",
        }
    )
    log.close()
    sandbox.changed = {"env": {**sandbox.env, "CLOUD_API_TOKEN": "envsecret-env"}}
    patient = ExaminedMachine(
        sandbox.machine, config=sandbox.config, settings=settings, env=sandbox.machine.env
    )
    patient.status = {
        "version": "0.1.0",
        "edge_id": "edge-doctored",
        "glasses": {"address": MAC, "model": "even_g1"},
        "alarms": {"x": f"passkey: {PASSWORD} envsecret-env"},
        "pairing": {"token": "short", "number": 7},
        "uplink": {"broker": "broker.local:8883"},
    }
    check = Check(id="x", layer="x", title="x", examine=None)
    report = document(
        [ReportEntry(1, check, fail(f"{MAC}: {TOKEN} refused", do(f"see {PASSWORD}")), 1.0)],
        "0.1.0",
    )
    path = sandbox.folder / "out" / "doctor.tar.gz"
    path.parent.mkdir()
    await write(path, patient, report)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["doctor.tar.gz"]
    with tarfile.open(path) as tar:
        return {
            m.name.removeprefix("glassd-doctor/"): tar.extractfile(m).read().decode()
            for m in tar.getmembers()
        }


@pytest.mark.requirement("I4-doctor-bundle")
async def test_no_planted_secret_is_in_the_bundle(sandbox):
    files = await bundled(sandbox)
    found = [(name, secret) for name, text in files.items() for secret in PLANTED if secret in text]
    assert found == []


@pytest.mark.requirement("I4-doctor-bundle")
async def test_what_helps_is_in_the_bundle(sandbox):
    files = await bundled(sandbox)
    assert set(files) == {
        "report.json",
        "status.json",
        "config.toml",
        "versions.json",
        "audit.jsonl",
        "journal.txt",
        "unit.txt",
    }
    assert "host = 'broker.local'" in files["config.toml"]
    assert "password_file = " in files["config.toml"], "where a secret stands is no secret"
    assert "pasword = ***" in files["config.toml"]
    assert json.loads(files["status.json"])["uplink"]["broker"] == "broker.local:8883"
    assert json.loads(files["status.json"])["glasses"]["address"] == "C0:…:56", (
        "enough to tell two sides apart"
    )
    assert json.loads(files["audit.jsonl"])["toolId"] == "notes:add"
    assert "args" not in json.loads(files["audit.jsonl"])
    assert "the link to C0:…:56 is up" in files["journal.txt"]
    assert json.loads(files["versions.json"])["packages"]["aiomqtt"]
    assert json.loads(files["report.json"])["checks"][0]["mark"] == "FAIL"


@pytest.mark.requirement("I4-doctor-bundle")
async def test_the_journal_is_asked_for_no_debug_lines(sandbox):
    """DEBUG lines may hold arguments of calls; they are not even read."""
    await bundled(sandbox)
    asked = next(line for line in sandbox.ran.splitlines() if line.startswith("journalctl"))
    assert " -p info " in asked
    assert " -u glassd.service " in asked


@pytest.mark.parametrize(
    "text",
    [
        "version = 1\npassword = 'typo-secret-99'\n[uplink",
        "\xff\xfe",
        "[uplink]\nhost = typo-secret-99\n",
    ],
)
@pytest.mark.requirement("I4-doctor-bundle")
def test_an_unparsable_configuration_shows_names_only(text):
    shown = Redact().config(text.encode("latin-1"))
    assert "typo-secret" not in shown
    assert "[uplink]" in shown or "uplink" not in text or "[uplink]" not in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("00:1A:7d:DA:71:13 and 00-1A-7D-DA-71-13", "00:…:13 and 00-…-13"),
        ("at 12:30:45 UTC", "at 12:30:45 UTC"),
        ("password: hunter2", "password: ***"),
        ("019ae4c5-94d4-7cb5-a3a9-40a6f7a1b0c4", "019ae4c5-94d4-7cb5-a3a9-40a6f7a1b0c4"),
        ("version 1.0.7e137272", "version 1.0.7e137272"),
        ("/home/ada/.local/state", "~/.local/state"),
        ("edge_id edge-b74992f4880c", "edge_id edge-b74992f4880c"),
    ],
)
@pytest.mark.requirement("I4-doctor-bundle")
def test_what_is_taken_out_and_what_stays(text, shown):
    assert Redact()(text) == shown


@pytest.mark.requirement("I4-doctor-bundle")
def test_a_secret_of_several_lines_is_hidden_line_by_line():
    redact = Redact()
    redact.hide("first-line-abc\nsecond-line-def\n")
    assert redact("x second-line-def y") == "x *** y"
    assert redact.value({"second-line-def": ["first-line-abc", 7, None, True]}) == {
        "***": ["***", 7, None, True]
    }


@pytest.mark.requirement("I4-doctor-bundle")
async def test_a_bundle_that_cannot_be_written_leaves_nothing(sandbox):
    patient = ExaminedMachine(sandbox.machine, config=sandbox.config, env={})
    with pytest.raises(OSError, match="No such file"):
        await write(sandbox.folder / "none" / "b.tar.gz", patient, {})
