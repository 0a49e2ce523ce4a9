"""What the house lends: nothing before it is asked for, the same afterwards, and another after
a reload.
"""

import subprocess
import sys

import pytest
from msgspec.structs import replace

from edge.config.model import CalendarConfig, KnowledgeConfig, Settings
from edge.config.validators import BadSettings
from edge.core.config_changes import plan
from edge.daemon.tool_services import ToolServices
from edge.runtime.clock import Clock
from edge.storage.tools.packages import Packages, PackageStorage
from tools_cache.api import notes
from tools_cache.api.knowledge import Question
from tools_cache.api.tool import ErrorType, ToolFailure

DAV = Settings(
    calendar=CalendarConfig(url="https://dav.example/eva/", username="eva", password_file="/secret")
)
CLOCK = Clock(boot=lambda: 100.0, wall=lambda: 1_795_257_000.0, boot_id="b")


@pytest.fixture
async def lend(tmp_path):
    made, packages = [], Packages(tmp_path / "packages")

    def of(settings, secret=lambda file, name: "hunter2"):
        made.append(
            ToolServices(
                settings,
                state=tmp_path,
                clock=CLOCK,
                secret=secret,
                notes=PackageStorage(packages, "notes"),
            )
        )
        return made[-1]

    of.storage = PackageStorage(packages, "notes")
    yield of
    for one in made:
        await one.close()
    await packages.close()


def test_a_daemon_that_lends_nothing_yet_has_loaded_nothing_of_it():
    code = (
        "import sys, edge.daemon.app; print(sorted(n for n in sys.modules if "
        "n.startswith(('edge.tools.calendars', 'edge.storage.tools.knowledge', "
        "'edge.storage.history', 'edge.observability.history', 'tools_cache.api.history', "
        "'edge.storage.tools.encryption', 'tools_cache.api.calendars', "
        "'tools_cache.api.knowledge'))))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert ran.stdout.strip() == "[]"


async def test_documents_and_notes_are_found_and_another_folder_takes_their_place(tmp_path, lend):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text("word")
    lending = lend(Settings(kb=KnowledgeConfig(folder=str(tmp_path / "one"))))
    await lend.storage.execute(notes.CREATE)
    await lend.storage.execute(notes.INSERT, "word of mine", "word of mine", 5.0)
    base = lending.knowledge()
    assert [e.id for e in await base.search(Question(terms=("word",)))] == ["one.md"]
    assert [e.id for e in await base.search(Question(terms=("word",), namespace="personal"))] == [
        "note:1"
    ]
    lending.use(Settings(kb=KnowledgeConfig(folder=str(tmp_path / "two"))))
    assert [e.id for e in await lending.knowledge().search(Question(terms=("word",)))] == ["two.md"]
    assert lending.knowledge() is base


async def test_without_configuration_calendars_are_in_the_state_directory(tmp_path, lend):
    assert lend(Settings()).calendars().place.folder == tmp_path / "calendars"


async def test_the_password_is_read_at_first_use_and_after_a_reload(lend):
    asked = []
    lending = lend(DAV, secret=lambda file, name: asked.append((file, name)) or "hunter2")
    assert asked == []
    assert lending.calendars().place.password == "hunter2"
    assert lending.calendars() is lending.calendars()
    lending.use(replace(DAV, calendar=replace(DAV.calendar, url="https://other.example/x/")))
    assert lending.calendars().place.url == "https://other.example/x/"
    assert asked == [("/secret", "glassd-calendar-password")] * 2


async def test_a_password_that_cannot_be_read_is_a_persons_work(lend, caplog):
    def unreadable(file, name):
        raise BadSettings("/secret: cannot be read: Permission denied")

    with pytest.raises(ToolFailure) as e:
        lend(DAV, secret=unreadable).calendars()
    assert (e.value.error.type, e.value.error.retryable) == (ErrorType.AUTH, False)
    assert "/secret" not in str(e.value.error), "where it stands is for the log"
    assert "/secret" in caplog.text


def test_folders_and_servers_change_without_a_restart():
    found = plan(Settings(), replace(DAV, kb=KnowledgeConfig(folder="/srv/kb")))
    assert found.restart == ()
    assert set(found.live) == {
        "kb.folder",
        "calendar.url",
        "calendar.username",
        "calendar.password_file",
    }
