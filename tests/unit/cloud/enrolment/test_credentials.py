"""What enrolment brought, on disk: whole or not there, whatever happens between two writes."""

import contextlib
import json
import os
import ssl
import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.cloud.enrolment.credentials import DamagedEnrolment, Enrolled, EnrolmentFiles
from tests.e2e.certificates import Authority

KEPT = Enrolled(
    edge_id="edge-1",
    tenant="acme",
    host="mqtt.example",
    port=8883,
    ca_pem="CA",
    enrol_host="enrol.example",
    enrol_port=443,
    enrol_ca_pem="CA",
    cloud_token="t0ken",
    begins=1.0,
    ends=2.0,
)


@pytest.fixture
def files(tmp_path):
    return EnrolmentFiles(tmp_path)


def names(tmp_path):
    return sorted(p.name for p in (tmp_path / "enrolled").iterdir())


def test_the_next_daemon_loads_credentials_that_only_the_owner_reads(files, tmp_path):
    os.umask(os.umask(0))  # whatever the umask is
    saved = files.save(KEPT, identity_pem=b"KEY AND CERT")
    assert EnrolmentFiles(tmp_path).load() == saved
    assert saved.identity.startswith("identity-")
    assert {stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "enrolled").iterdir()} == {0o600}
    assert stat.S_IMODE((tmp_path / "enrolled").stat().st_mode) == 0o700


def test_an_edge_that_never_enrolled_has_nothing(files):
    assert files.load() is None


def test_a_new_identity_replaces_the_old_one_and_its_file(files, tmp_path):
    first = files.save(KEPT, identity_pem=b"one")
    second = files.save(first, identity_pem=b"two")
    assert names(tmp_path) == ["enrolment.json", second.identity]


@pytest.mark.requirement("I4-enrol-renewal")
@pytest.mark.parametrize("dies_at", range(1, 5))
def test_a_power_cut_leaves_the_old_or_the_new_identity(files, tmp_path, monkeypatch, dies_at):
    old = files.save(KEPT, identity_pem=b"old")
    steps = []

    def cut(do):
        def done(*args, **kwargs):
            steps.append(do)
            if len(steps) == dies_at:
                raise KeyboardInterrupt
            return do(*args, **kwargs)

        return done

    with monkeypatch.context() as patch:
        for name in ("replace", "unlink"):
            patch.setattr(Path, name, cut(getattr(Path, name)))
        with contextlib.suppress(KeyboardInterrupt):
            files.save(replace(old, begins=3.0, ends=4.0), identity_pem=b"new")
    found = files.load()
    content = (tmp_path / "enrolled" / found.identity).read_bytes()
    assert (content, found.ends) in [(b"old", 2.0), (b"new", 4.0)]
    assert files.save(found, identity_pem=b"newer").identity in names(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"version": 2}',
        b'{"version": 1, "edge_id": 3}',
        b"[" * 100_000,
        b"x" * 300_000,
        b"null",
        b'"x"',
    ],
)
def test_a_damaged_document_is_said_with_what_to_do(files, tmp_path, content):
    files.save(KEPT)
    (tmp_path / "enrolled" / "enrolment.json").write_bytes(content)
    with pytest.raises(DamagedEnrolment, match="enrol again: glassd up CODE"):
        files.load()


@pytest.mark.parametrize(
    "change",
    [
        {"port": "8883"},
        {"identity": "../../etc/shadow"},
        {"ends": None},
        {"tenant": "a/b"},
        {"host": ""},
        {"pool": "#"},
        {"cloud_url": "h"},
    ],
)
def test_a_document_that_says_what_cannot_be_is_damaged(files, tmp_path, change):
    files.save(KEPT)
    path = tmp_path / "enrolled" / "enrolment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DamagedEnrolment):
        files.load()


def test_no_secret_is_in_what_may_be_shown():
    kept = replace(KEPT, password="hunter2", username="u")
    assert "hunter2" not in repr(kept) + json.dumps(kept.to_json())
    assert "t0ken" not in repr(kept) + json.dumps(kept.to_json())


def test_a_context_trusts_one_authority_only_and_verifies(files, tmp_path):
    ca = Authority(tmp_path)
    pair = ca.sign("edge-1", client=True)
    saved = files.save(KEPT, identity_pem=pair.key.read_bytes() + pair.cert.read_bytes())
    context = files.context(saved, ca_pem=ca.pem.decode())
    assert len(context.get_ca_certs()) == 1
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
