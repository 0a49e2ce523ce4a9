"""The tools and the storage: the registry's files, the cloud over HTTP, free space, the
database.
"""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.config.model import Settings
from edge.doctor.machine import ExaminedMachine, Machine, Who
from edge.doctor.models import Mark
from edge.doctor.user_tools import UserToolChecks
from edge.storage.call_promises import CallPromises
from edge.storage.migrations import MIGRATIONS
from edge.storage.sqlite.database import SqliteDatabase
from edge.storage.sqlite.probe import look
from tests.e2e.broker import free_port
from tests.unit.doctor.house import NOW, copied
from tests.unit.doctor.test_service import answers
from tools_cache.builder import compiler
from tools_cache.registry.registry_store import Generation, RegistryStore

pytestmark = pytest.mark.enable_socket


# ------------------------------------------------------------------ tools


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_damaged_registry_of_this_installation_is_built_again(sandbox):
    artifact = copied(compiler.ARTIFACT, sandbox.folder / "tool_registry.json")
    artifact.write_bytes(artifact.read_bytes().replace(b"the", b"eht", 1))
    sandbox.install()
    sandbox.changed = {"registry": artifact}
    await sandbox.fails_until_cured("builtin", "sha256 is")
    artifact.unlink()
    finding = await sandbox.fails_until_cured("builtin", "No such file")
    assert finding.fix.text == f"glassd registry build --file {artifact}"


@contextmanager
def cloud(status=200, *, now=NOW, headers=()):
    """Run a cloud's HTTP server: it needs a token where `status` is 401, and has its own time."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            welcome = self.headers.get(
                "Authorization"
            ) == "Bearer t0ken-t0ken" or not self.path.endswith("/api/registry")
            self.send_response_only(200 if welcome else status)
            for name, value in (("Date", formatdate(now, usegmt=True)), *headers):
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_args):
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(10)


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_cloud_that_answers_is_ok(sandbox):
    with cloud() as url:
        sandbox.configure(cloud={"url": url})
        assert (await sandbox.sees("cloud")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_cloud_that_is_not_there(sandbox):
    sandbox.configure(cloud={"url": f"http://127.0.0.1:{free_port()}"})
    finding = await sandbox.sees("cloud")
    assert finding.mark is Mark.FAIL
    with cloud() as url:
        sandbox.edits(finding, url=url)
        assert (await sandbox.sees("cloud")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_cloud_that_wants_a_token(sandbox):
    token = sandbox.folder / "token"
    token.write_text("t0ken-t0ken\n")
    with cloud(401) as url:
        sandbox.configure(cloud={"url": url})
        finding = await sandbox.sees("cloud")
        assert finding.mark is Mark.FAIL
        sandbox.edits(finding, token_file=token)
        assert (await sandbox.sees("cloud")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_cloud_that_moved_says_where(sandbox):
    with cloud() as there, cloud(301, headers=[("Location", f"{there}/moved/api/registry")]) as url:
        sandbox.configure(cloud={"url": url})
        finding = await sandbox.sees("cloud")
        assert finding.mark is Mark.FAIL
        assert finding.fix.text.endswith(f'url = "{there}/moved"')
        sandbox.edits(finding)
        assert (await sandbox.sees("cloud")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_cloud_with_a_problem_of_its_own(sandbox):
    """The fix is to do nothing: the cloud has to recover."""
    with cloud(500) as url:
        sandbox.configure(cloud={"url": url})
        finding = await sandbox.sees("cloud")
        assert "answers 500" in finding.said
        assert (
            finding.fix.text == "the cloud has a problem of its own; glassd keeps trying by itself"
        )


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_clock_that_differs_from_the_clouds_is_set_to_it(sandbox):
    with cloud(now=NOW + 7200) as url:
        sandbox.configure(cloud={"url": url})
        finding = await sandbox.fails_until_cured("clock", "2 hours behind the cloud's")
        assert "date -u -s '" in finding.fix.text
    with cloud(now=NOW - 400_000) as url:
        sandbox.configure(cloud={"url": url})
        assert "days ahead of" in (await sandbox.sees("clock")).said


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_damaged_copy_of_the_clouds_registry_is_removed(sandbox):
    folder = sandbox.state / "registry"
    for n in range(2):
        RegistryStore(folder).save(Generation(b"{}", f"http://{n}", fetched_wall=NOW - 60))
    current = folder / "current.json"
    current.write_bytes(current.read_bytes() + b"!")
    with cloud() as url:
        sandbox.configure(cloud={"url": url})
        await sandbox.fails_until_cured("registry", "current.json")
    assert not (folder / "damaged.json").exists(), "the doctor moved nothing by itself"


@pytest.mark.requirement("I4-doctor-fixes")
async def test_an_old_copy_shows_its_age(sandbox):
    RegistryStore(sandbox.state / "registry").save(
        Generation(b"{}", "http://c", fetched_wall=NOW - 3 * 86400)
    )
    sandbox.configure(cloud={"url": f"http://127.0.0.1:{free_port()}"})
    finding = await sandbox.sees("registry")
    assert finding.mark is Mark.WARN
    assert "3 d ago" in finding.said


# ------------------------------------------------------------------ room


@pytest.mark.requirement("I4-doctor-fixes")
async def test_free_space_is_reported(sandbox):
    finding = await sandbox.sees("space")
    assert "MiB free on" in finding.said


@pytest.mark.requirement("I4-doctor-fixes")
def test_on_small_disks(tmp_path):
    """6 MiB each, really full: unneeded files of glassd go first; afterwards space is short,
    but there is some.
    """
    run = subprocess.run(
        ["unshare", "-Urm", sys.executable, "-m", "tests.unit.doctor.on_small_disk", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ, PYTHONPATH=str(Path.cwd())),
    )
    if "Operation not permitted" in run.stderr or "mount:" in run.stderr:
        pytest.skip("this machine lets nobody mount a small file system")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    for way, word, fix, after in (
        ("aside", "takes no new calls", "rm -r", Mark.WARN),
        ("journal", "takes no new calls", "journalctl --vacuum-size=50M", Mark.WARN),
        ("own", "takes no new calls", "it has 6 MiB in all, glassd may need 128", Mark.WARN),
        ("readonly", "read-only", "mount -o remount,rw", Mark.WARN),
        ("inodes", "inodes free", "du --inodes", Mark.WARN),
    ):
        mark, said, text, then, _ = told[way]
        assert (mark, then) == (Mark.FAIL, after), (way, told[way])
        assert word in said
        assert fix in text


@pytest.mark.requirement("I11-disk-alarm")
async def test_a_disk_fault_found_by_the_daemon_is_reported(sandbox):
    answers(
        sandbox,
        alarms={
            "storage": (
                "Nothing new can be stored in /x: disk I/O error. Next: "
                "look for disk errors with dmesg"
            )
        },
    )
    finding = await sandbox.sees("space")
    assert (finding.mark, finding.code, "disk I/O error" in finding.said) == (
        Mark.FAIL,
        "STORAGE_UNAVAILABLE",
        True,
    )


# ------------------------------------------------------------------ database


@pytest.fixture
async def database(sandbox):
    path = sandbox.state / "glassd.db"
    db = await SqliteDatabase.open(path, (*MIGRATIONS,))
    await db.write(
        lambda c: (
            c.execute("CREATE TABLE big(t)")
            and c.executemany(
                "INSERT INTO big VALUES (?)", [(f"row {n} " * 20,) for n in range(2000)]
            ).rowcount
        )
    )
    await db.close()
    return path


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_whole_database_is_ok_and_left_as_it_is(sandbox, database):
    before = database.read_bytes()
    finding = await sandbox.sees("database")
    assert finding.mark is Mark.OK
    assert f"schema {len(MIGRATIONS)}, whole" in finding.said
    assert database.read_bytes() == before


@pytest.mark.requirement("I4-doctor-fixes")
async def test_the_database_of_a_running_daemon_is_read_beside_it(sandbox, database):
    db = await SqliteDatabase.open(database, (*MIGRATIONS,))
    try:
        assert (await sandbox.sees("database")).mark is Mark.OK
        assert await db.write(lambda c: c.execute("DELETE FROM big").rowcount) == 2000
        assert (await sandbox.sees("database")).mark is Mark.OK
    finally:
        await db.close()


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_damaged_page_is_found_and_the_file_put_away(sandbox, database):
    with database.open("r+b") as file:
        file.seek(database.stat().st_size // 2)
        file.write(os.urandom(8192))
    await sandbox.fails_until_cured("database", "damaged")
    assert (sandbox.state / "damaged" / "glassd.db").exists(), "kept, not deleted"


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_file_that_is_no_database_is_put_away(sandbox):
    (sandbox.state / "glassd.db").write_bytes(
        b"not a database at all, and long enough to have a header of its own" * 100
    )
    await sandbox.fails_until_cured("database", "damaged")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_damaged_database_of_the_service_is_put_aside_by_a_restart(sandbox):
    """The command is the service's; what it starts does what the daemon does:
    `SqliteDatabase.open`.
    """
    sandbox.unit("glassd", StateDirectory="../../../state")
    sandbox.named, sandbox.config = False, None
    (sandbox.root / "var/lib").mkdir(parents=True)
    path = sandbox.state / "glassd.db"
    path.write_bytes(b"not a database at all, and long enough to have a header of its own" * 100)
    script = sandbox.folder / "open.py"
    script.write_text(
        "import asyncio, sys, pathlib\nfrom edge.storage.sqlite.database import SqliteDatabase\n"
        "from edge.storage.migrations import MIGRATIONS\n"
        "async def main():\n    await (await "
        "SqliteDatabase.open(pathlib.Path(sys.argv[1]), MIGRATIONS)).close()\nasyncio.run(main())\n"
    )
    sandbox.hook("glassd-started", f"exec {sys.executable} {script} {path}")
    finding = await sandbox.fails_until_cured("database", "damaged")
    assert finding.fix.text.endswith("systemctl restart glassd")


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_damaged_database_of_a_daemon_in_a_terminal_is_put_aside_by_starting_it_again(
    sandbox,
):
    answers(sandbox)
    path = sandbox.state / "glassd.db"
    path.write_bytes(b"not a database at all, and long enough to have a header of its own" * 100)
    finding = await sandbox.sees("database")
    assert (
        finding.fix.text
        == "stop glassd run, and start it again: it puts the file aside and begins a fresh one"
    )
    await (await SqliteDatabase.open(path, MIGRATIONS)).close()  # what a daemon that starts does
    assert (await sandbox.sees("database")).mark is Mark.OK


@pytest.mark.requirement("I4-doctor-fixes")
async def test_a_database_of_a_newer_glassd(sandbox, database):
    import sqlite3

    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA user_version=999")
    connection.close()
    finding = await sandbox.sees("database")
    assert finding.mark is Mark.FAIL
    assert "newer glassd" in finding.said


@pytest.mark.requirement("I4-doctor-fixes")
def test_a_check_of_every_page_is_given_up_in_time(tmp_path):
    import sqlite3

    path = tmp_path / "large.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(x)")
    connection.executemany("INSERT INTO t VALUES (?)", ((f"{n:0>100}",) for n in range(50_000)))
    connection.commit()
    connection.close()
    assert look(path, seconds=-1).unfinished
    assert not look(path, seconds=60).unfinished


# ------------------------------------------------------------------ the owner's own tools


@pytest.mark.requirement("S3-11")
async def test_an_error_in_an_owners_tool_names_its_file_and_so_does_a_missing_secret(sandbox):
    folder = sandbox.config.parent / "tools.d"
    assert (await sandbox.sees("own")).mark is Mark.SKIP
    folder.mkdir()
    tool = {
        "name": "my:lamp",
        "description": "d",
        "execution": {"url": "https://h.example/${env.LAMP}"},
    }
    (folder / "lamp.json").write_text(json.dumps(tool))
    assert (await sandbox.sees("own")).mark is Mark.OK
    (folder / "oops.json").write_text(json.dumps({**tool, "exection": {}}))
    finding = await sandbox.sees("own")
    assert (finding.mark, finding.said) == (
        Mark.WARN,
        "oops.json (my:lamp): exection: there is no such field; did you mean execution?",
    )
    assert f"correct {folder / 'oops.json'}, then: systemctl reload glassd" in finding.fix.text
    (folder / "oops.json").unlink()
    assert (await sandbox.sees("own")).mark is Mark.OK


async def test_a_tool_that_waits_for_a_secret_is_reported(tmp_path):
    (tmp_path / "tools.d").mkdir()
    (tmp_path / "tools.d" / "lamp.json").write_text(
        json.dumps(
            {"name": "my:lamp", "description": "d", "execution": {"url": "https://h/${env.L}"}}
        )
    )
    settings = replace(Settings(), source=tmp_path / "glassd.toml")
    status = {"registry": {"own": {"tools": 1, "withheld": {"my:lamp": "${env.L} is not set"}}}}
    finding = await UserToolChecks(
        ExaminedMachine(
            Machine(env={}, me=Who(1000, "u"), sockets=()), settings=settings, status=status
        )
    ).own()
    assert (finding.mark, finding.said) == (Mark.WARN, "my:lamp is hidden: ${env.L} is not set")
    assert "then restart glassd" in finding.fix.text


@pytest.mark.requirement("I11-disk-directory")
async def test_a_directory_in_the_databases_place_is_moved_away(sandbox):
    (sandbox.state / "glassd.db").mkdir()
    await sandbox.fails_until_cured("database", "is a directory")


@pytest.mark.requirement("I11-damage-said")
@pytest.mark.parametrize("harm", ["missing", "empty"])
async def test_a_database_that_is_gone_though_there_was_one_is_put_away(sandbox, harm):
    path = sandbox.state / "glassd.db"
    await (
        await SqliteDatabase.open(path, MIGRATIONS, promises=CallPromises(edge_id="e", boot_id="b"))
    ).close()
    path.unlink()
    if harm == "empty":
        path.touch()
    await sandbox.fails_until_cured("database", harm)
