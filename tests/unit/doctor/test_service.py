"""The service: its unit as systemd shows it, the daemon behind the control socket, the owners
of its files.
"""

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from edge import __version__
from edge.doctor.machine import Who
from edge.doctor.models import FixKind, Mark
from tests.unit.doctor.house import closed, forbidden

FAKE_DAEMON = Path(__file__).with_name("fake_daemon.py")
STATUS = {
    "version": "0.1.0",
    "edge_id": "edge-doctored",
    "services": [{"name": "link", "state": "running", "error": ""}],
    "alarms": {},
}


@pytest.fixture
def service(sandbox):
    """A machine on which glassd is installed as a service; the test owns its files."""
    sandbox.unit("glassd")
    sandbox.write("/etc/glassd/glassd.toml", "version = 1\n")
    sandbox.config = None
    sandbox.named = False
    (sandbox.root / "var/lib/glassd").mkdir(parents=True, mode=0o700)
    return sandbox


def answers(sandbox, **status):
    """A daemon with this status."""
    (sandbox.folder / "status.json").write_text(json.dumps({**STATUS, **status}))
    sandbox.start(
        sys.executable,
        str(FAKE_DAEMON),
        str(sandbox.folder / "c.sock"),
        str(sandbox.folder / "status.json"),
        ready="ready",
    )


def comes_up(service):
    """Do what the service does when it starts."""
    (service.folder / "status.json").write_text(json.dumps(STATUS))
    said = service.folder / "said"
    return (
        f"{sys.executable} {FAKE_DAEMON} {service.folder}/c.sock "
        f"{service.folder}/status.json > {said} 2>&1 & echo $! > {service.folder}/glassd.pid; "
        f"for _ in $(seq 4000); do grep -q ready {said} && exit 0; sleep 0.01; done; exit 1"
    )


# ------------------------------------------------------------------ unit


@pytest.mark.parametrize(
    ("properties", "word", "mark"),
    [
        (
            {
                "ActiveState": "failed",
                "SubState": "failed",
                "Result": "exit-code",
                "NRestarts": "7",
            },
            "exit-code, restarted 7 times",
            Mark.FAIL,
        ),
        (
            {"ActiveState": "activating", "SubState": "auto-restart", "Result": "watchdog"},
            "watchdog",
            Mark.FAIL,
        ),
        ({"ActiveState": "inactive", "SubState": "dead"}, "not running", Mark.FAIL),
        ({"LoadState": "masked"}, "masked", Mark.FAIL),
        ({"NeedDaemonReload": "yes"}, "changed since", Mark.WARN),
        ({"WatchdogUSec": "infinity"}, "hangs is not restarted", Mark.WARN),
        ({"User": "root"}, "needs no root", Mark.WARN),
        ({"UnitFileState": "disabled"}, "does not start with the machine", Mark.WARN),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_wrong_unit_is_corrected(service, properties, word, mark):
    service.unit("glassd", **properties)
    await service.fails_until_cured("unit", word, mark=mark)


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_unit_whose_user_was_never_made_gets_it(service):
    made = service.folder / "user-made"
    service.changed = {"user": lambda name: Who(os.getuid(), name) if made.exists() else None}
    service.unit("glassd", ActiveState="failed", Result="exit-code")
    await service.fails_until_cured("unit", "there is no user glassd")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_good_unit_shows_its_user(service):
    finding = await service.sees("unit")
    assert finding.mark is Mark.OK
    assert "as glassd, watchdog 30s" in finding.said


@pytest.mark.requirement("I4-doctor-fixes")
async def test_without_a_service_the_fix_installs_it(sandbox):
    sandbox.named = False
    sandbox.unit("other")
    finding = await sandbox.sees("unit")
    assert finding.mark is Mark.SKIP
    assert "make install" in finding.fix.text


@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_doctor_uses_the_paths_of_the_service(service):
    service.write("/etc/glassd/glassd.toml", "version = 1\n[edge]\nid = 'edge-of-the-service'\n")
    finding = await service.sees("config")
    assert str(service.root / "etc/glassd/glassd.toml") in finding.said
    assert str(service.root / "var/lib/glassd") in (await service.sees("state")).said


@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_environment_of_the_unit_counts(service):
    service.unit("glassd", Environment="GLASSD_EDGE__STATE_DIR=relative/path FOO=1")
    finding = await service.sees("config")
    assert finding.mark is Mark.FAIL
    assert "GLASSD_EDGE__STATE_DIR" in finding.said


# ------------------------------------------------------------------ daemon


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_daemon_that_does_not_answer_is_started_again(service):
    service.hook("glassd-started", comes_up(service))
    await service.fails_until_cured("daemon", "not running")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_daemon_that_hangs_differs_from_a_missing_one(service, monkeypatch):
    monkeypatch.setattr("edge.doctor.service.ANSWER_S", 0.1)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(service.folder / "c.sock"))
        deaf.listen()
        finding = await service.sees("daemon")
    assert finding.mark is Mark.FAIL
    assert "did not answer within" in finding.said
    assert finding.fix.text.endswith("systemctl restart glassd")
    monkeypatch.undo()
    service.hook("glassd-started", f"rm {service.folder}/c.sock; {comes_up(service)}")
    await service.cures(finding)
    assert (await service.sees("daemon")).mark is Mark.OK


@pytest.mark.enable_socket
@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_daemon_without_a_unit_is_started_in_a_terminal(sandbox):
    sandbox.install()
    sandbox.configure(
        glasses={"radio": "tcp:127.0.0.1:1"},
        control={"socket": sandbox.folder / "c.sock", "group": ""},
    )
    finding = await sandbox.sees("daemon")
    assert (
        finding.fix.text
        == f"start it, in a terminal of its own: glassd run --config {sandbox.config}"
    )
    sandbox.changed = {"version": __version__}
    sandbox.starts(finding)
    assert "edge edge-doctored" in (await sandbox.comes_to_see("daemon")).said


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_daemon_of_the_version_before_is_restarted(service):
    answers(service, version="0.0.9")
    finding = await service.sees("daemon")
    assert finding.mark is Mark.WARN
    assert "the version before 0.1.0" in finding.said
    service.hook("glassd-started", f"sed -i s/0.0.9/0.1.0/ {service.folder}/status.json")
    await service.cures(finding)
    assert (await service.sees("daemon")).mark is Mark.OK


@pytest.mark.parametrize(
    ("status", "word", "mark"),
    [
        (
            {"services": [{"name": "link", "state": "crashed", "error": "OSError"}]},
            "service link keeps failing: OSError",
            Mark.FAIL,
        ),
        ({"alarms": {"database": "it was damaged"}}, "it was damaged", Mark.WARN),
    ],
)
@pytest.mark.requirement("I4-doctor-fixes")
async def test_alarms_of_the_daemon_are_reported(service, status, word, mark):
    answers(service, **status)
    finding = await service.sees("daemon")
    assert finding.mark is mark
    assert word in finding.said
    service.hook("glassd-started", f"echo '{json.dumps(STATUS)}' > {service.folder}/status.json")
    await service.cures(finding)
    assert (await service.sees("daemon")).mark is Mark.OK


async def test_a_daemon_of_another_configuration_is_examined_by_its_own_radio(sandbox):
    sandbox.configure()
    answers(sandbox, adapter={"radio": "inproc"})
    daemon, adapter, bus = (
        await sandbox.sees("daemon"),
        await sandbox.sees("adapter"),
        await sandbox.sees("bus"),
    )
    assert daemon.mark is Mark.WARN
    assert "its radio is inproc, the configuration examined here says bluez" in daemon.said
    assert daemon.fix.text.endswith("glassd doctor --config FILE")
    assert (adapter.mark, bus.mark) == (Mark.SKIP, Mark.SKIP)
    sandbox.configure(glasses={"radio": "inproc"})  # the FILE it was started with
    assert (await sandbox.sees("daemon")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_daemon_whose_unit_does_not_run_is_not_asked(service):
    service.unit("glassd", ActiveState="failed")
    assert (await service.sees("daemon")).mark is Mark.SKIP


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_user_without_access_joins_the_sockets_group(sandbox):
    """The kernel refuses for real: root goes on as nobody, any other user removes its own
    permission.
    """
    answers(sandbox)
    folder, root = sandbox.folder / "run", os.getuid() == 0
    folder.mkdir()
    (sandbox.folder / "c.sock").rename(folder / "c.sock")
    sandbox.changed = {
        "sockets": (folder / "c.sock",),
        "me": Who(os.getuid() or 65534, "ada", frozenset()),
        "user": lambda name: Who(1, name),
    }
    with forbidden(folder, groups=()) if root else closed(folder):
        finding = await sandbox.sees("daemon")
    assert finding.mark is Mark.FAIL
    assert finding.said.startswith("you may not use")
    assert "usermod -aG" in finding.fix.text
    assert finding.fix.text.endswith(" ada")
    await sandbox.cures(finding)
    assert "usermod -aG" in sandbox.ran
    if root:
        with forbidden(folder, groups=(1,)):
            finding = await sandbox.sees("daemon")
    else:
        finding = await sandbox.sees("daemon")
    assert finding.mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
def test_a_user_already_in_the_group_logs_in_again(sandbox):
    from edge.doctor.machine import ExaminedMachine
    from edge.doctor.service import ServiceChecks
    from edge.runtime.errors import UserError

    refused = UserError(
        "PERMISSION",
        "you may not",
        "join the group: sudo usermod -aG glassd $USER, then log in again",
        exit_code=3,
    )
    me = Who(1000, "ada", frozenset({1000}))
    for groups, kind, word in (
        (frozenset({1000}), FixKind.RUN, "sudo usermod -aG glassd ada"),
        (frozenset({1000, 990}), FixKind.DO, "newgrp glassd"),
    ):
        sandbox.changed = {
            "me": me,
            "gid": {"glassd": 990}.get,
            "user": lambda name, g=groups: Who(1000, name, g),
        }
        finding = ServiceChecks(ExaminedMachine(sandbox.machine), named=True)._no_answer(refused)
        assert finding.fix.kind is kind
        assert word in finding.fix.text


# ------------------------------------------------------------------ whose files


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_state_directory_open_to_others_is_closed(sandbox):
    sandbox.state.chmod(0o755)
    await sandbox.fails_until_cured("state", "mode 0755")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_state_directory_its_owner_cannot_write_is_opened_to_him(sandbox):
    sandbox.state.chmod(0o500)
    await sandbox.fails_until_cured("state", "cannot write")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_files_of_a_run_as_root_are_given_back(sandbox):
    """`sudo glassd run` once, and the service cannot write its own database."""
    (sandbox.state / "glassd.db").touch()
    if os.getuid() == 0:
        daemon = "daemon"  # a user every Debian has
        os.chown(sandbox.state, 1, 1)
        sandbox.changed = {"user": lambda name: Who(1, name)}
        sandbox.unit("glassd", User=daemon, StateDirectory="../../../state")
        sandbox.named = False
        await sandbox.fails_until_cured("state", "glassd.db does not belong to daemon")
        assert (sandbox.state / "glassd.db").stat().st_uid == 1
    else:
        sandbox.changed = {"user": lambda name: Who(1, name)}
        sandbox.unit("glassd", User="daemon", StateDirectory="../../../state")
        sandbox.named = False
        assert "chown -R daemon:" in (await sandbox.sees("state")).fix.text


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_file_where_the_directory_should_be_is_moved_away(sandbox):
    sandbox.state.rmdir()
    sandbox.state.touch()
    await sandbox.fails_until_cured("state", "is no directory")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_secret_others_may_read_is_closed(sandbox):
    secret = sandbox.folder / "password"
    secret.write_text("hunter2hunter2")
    secret.chmod(0o644)
    sandbox.configure(uplink={"host": "h", "username": "u", "password_file": secret})
    finding = await sandbox.fails_until_cured("secrets", "others may read it")
    assert "hunter2" not in str(finding)


ACCOUNT = {
    "imap_host": "a.example",
    "smtp_host": "a.example",
    "username": "me",
    "address": "me@example.com",
}


@pytest.mark.requirement("I4-doctor-fixes")
@pytest.mark.parametrize(
    ("section", "key", "more"),
    [
        ("tool.email", "password_file", ACCOUNT),
        ("tool.email", "token_file", ACCOUNT),
        ("tool.kasa", "password_file", {"enabled": True, "username": "me"}),
        ("tool.web.search", "key_file", {"search_url": "https://a.example"}),
        ("calendar", "password_file", {"url": "https://a.example", "username": "me"}),
    ],
)
async def test_the_secret_of_a_tool_is_one_too(sandbox, section, key, more):
    secret = sandbox.folder / "secret-of-a-tool"
    sandbox.configure(**{section: {**more, key: secret}})
    if section.startswith("tool."):
        assert (await sandbox.sees("secrets")).said == "there are none", "it is not there yet"
    secret.write_text("hunter2hunter2")
    secret.chmod(0o644)
    finding = await sandbox.fails_until_cured("secrets", "secret-of-a-tool has mode 0644")
    assert "hunter2" not in str(finding)
    said = (await sandbox.sees("secrets")).said
    assert said == "only the daemon may read secret-of-a-tool", "named once"


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_secret_the_service_cannot_read_is_given_to_it(sandbox):
    secret = sandbox.folder / "token"
    secret.write_text("t0ken-t0ken")
    secret.chmod(0o600)
    sandbox.configure(cloud={"token_file": secret})
    assert (await sandbox.sees("secrets")).mark is Mark.OK
    if os.getuid() == 0:
        sandbox.write("/etc/glassd/glassd.toml", sandbox.config.read_text())
        sandbox.config, sandbox.named = None, False
        sandbox.changed = {"user": lambda name: Who(1, name, frozenset({1}))}
        sandbox.unit("glassd", User="daemon")
        await sandbox.fails_until_cured("secrets", "cannot be read by daemon")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_credential_of_systemd_is_for_root_alone(service):
    credential = service.write("/etc/credstore/glassd-mqtt-password", "hunter2hunter2")
    credential.chmod(0o644)
    await service.fails_until_cured("secrets", "others may read it")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_key_of_an_enrolment_is_a_secret_too(sandbox):
    kept = sandbox.state / "enrolled"
    kept.mkdir()
    (kept / "identity-1.pem").write_text("x")
    (kept / "identity-1.pem").chmod(0o604)
    await sandbox.fails_until_cured("secrets", "identity-1.pem has mode 0604")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_check_that_needs_root_is_skipped_with_sudo(sandbox):
    """The service's files are its own: for other users that is no fault, and the report tells
    how to see more.
    """
    (sandbox.state / "glassd").mkdir()
    sandbox.configure(
        edge={"id": "e", "state_dir": sandbox.state / "glassd"}, cloud={"url": "http://127.0.0.1:1"}
    )
    sandbox.changed = {"me": Who(os.getuid() or 65534, "ada")}
    with forbidden(sandbox.state, groups=()) if os.getuid() == 0 else closed(sandbox.state):
        found = {
            name: await sandbox.sees(name)
            for name in ("state", "space", "database", "registry", "bond", "enrolment")
        }
    assert {name: f.mark for name, f in found.items() if f.mark is not Mark.SKIP} == {}
    assert {f.fix.text for f in found.values()} == {"sudo glassd doctor"}


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_secret_only_the_service_may_read_is_no_fault_of_the_configuration(service):
    keep = service.folder / "keep"
    keep.mkdir()
    (keep / "password").touch()
    service.write(
        "/etc/glassd/glassd.toml",
        f'version = 1\n[uplink]\nhost = "h"\nusername = "u"\npassword_file = "{keep}/password"\n',
    )
    service.changed = {"me": Who(os.getuid() or 65534, "ada"), "user": lambda name: Who(990, name)}
    with forbidden(keep, groups=()) if os.getuid() == 0 else closed(keep):
        finding = await service.sees("config")
    assert finding.mark is Mark.SKIP
    assert "the daemon may be allowed" in finding.said
    assert finding.fix.text == "sudo glassd doctor"


# ------------------------------------------------------------------ the owner's socket


@pytest.mark.requirement("CONSENT-roles")
async def test_a_user_who_may_only_call_learns_the_second_group(sandbox, monkeypatch):
    from edge.control.client import ControlClient
    from edge.runtime.errors import UserError

    answers(sandbox)
    request = ControlClient.request

    def shut(client, method, path, *more, **how):
        if path == "/v1/confirm":
            raise UserError(
                "PERMISSION",
                "you may not use owner.sock",
                "join the group: sudo usermod -aG glassd-owner $USER, then log in again",
                exit_code=3,
            )
        return request(client, method, path, *more, **how)

    monkeypatch.setattr(ControlClient, "request", shut)
    finding = await sandbox.sees("daemon")
    assert finding.mark is Mark.WARN
    assert "not confirm, pair and configure" in finding.said
    assert "usermod -aG glassd-owner" in finding.fix.text
