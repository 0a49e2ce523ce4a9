"""One user's own files: whatever name comes from outside, nothing beyond the folder is read,
written or told of.
"""

import asyncio
import errno
import os
import threading

import pytest

from edge.storage.sqlite.database import StoreFull
from edge.storage.tools import user_files
from edge.storage.tools.user_files import MAX_FILE, BadName
from edge.storage.tools.user_stores import PrivateStores
from tools_cache.api.tool import ErrorCode, ErrorType


@pytest.fixture
async def files(tmp_path):
    stores = PrivateStores(tmp_path / "state" / "users", key=tmp_path / "tools.key")
    yield stores.of("anna", "io.x").files
    await stores.close()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "state/users/anna/tools/io.x/files"


@pytest.mark.requirement("S4-12")
async def test_files_and_folders_are_made_read_listed_and_deleted(files, folder):
    assert (await files.names(), await files.exists("a.txt"), await files.delete("a.txt")) == (
        [],
        False,
        False,
    )
    assert not folder.exists()  # looking makes nothing
    await files.write("a.txt", "äpfel")
    await files.write("deep/er/b.bin", b"\x00\x01")
    await files.write("a.txt", "more")
    await files.make_folder("empty/inside")
    await files.make_folder("empty/inside")
    assert await files.names() == ["a.txt", "deep/er/b.bin"]
    assert await files.names("deep") == ["deep/er/b.bin"]
    assert await files.names("nowhere") == []
    assert (await files.read("a.txt"), await files.read("deep/er/b.bin")) == (b"more", b"\x00\x01")
    assert [await files.exists(n) for n in ("a.txt", "empty/inside", "deep/er/c", "no/b")] == [
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(FileNotFoundError):
        await files.read("deep/none")
    with pytest.raises(OSError, match="not empty"):
        await files.delete("deep")
    assert [await files.delete(n) for n in ("empty/inside", "a.txt", "a.txt")] == [
        True,
        True,
        False,
    ]
    assert {p.name for p in folder.rglob("*")} == {"deep", "er", "b.bin", "empty"}


BAD_NAMES = [
    "../x",
    "a/../../x",
    "..",
    ".",
    "/etc/passwd",
    "//x",
    "a//b",
    "a/",
    "",
    ".hidden",
    "a/.half",
    "x\x00y",
    "a\nb",
    "a" * 101,
    "1/2/3/4/5/6",
]


@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.requirement("S4-12")
async def test_no_name_leads_out_of_the_folder(files, tmp_path, name):
    (tmp_path / "state").mkdir()
    (tmp_path / "x").write_text("outside")
    attempts = [
        files.write(name, "mine"),
        files.read(name),
        files.exists(name),
        files.delete(name),
        files.make_folder(name),
    ]
    for attempt in [*attempts, *([files.names(name)] if name else [])]:
        with pytest.raises(BadName) as reported:
            await attempt
        assert (reported.value.error.code, reported.value.error.type) == (
            ErrorCode.INVALID_ARGUMENTS,
            ErrorType.VALIDATION,
        )
    assert (tmp_path / "x").read_text() == "outside"
    assert list((tmp_path / "state").rglob("*")) == []


@pytest.mark.requirement("S4-12")
async def test_no_link_leads_out_of_the_folder(files, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("outside")
    await files.write("inside.txt", "inside")
    (folder / "way").symlink_to(outside)
    (folder / "file").symlink_to(outside / "secret.txt")
    (folder / "loop").symlink_to("inside.txt")
    for name in ("way/secret.txt", "file", "loop"):
        with pytest.raises(BadName, match=r"link|no folder"):
            await files.read(name)
    for attempt in (
        files.write("way/new.txt", "x"),
        files.make_folder("way/new"),
        files.delete("way/secret.txt"),
        files.exists("way/secret.txt"),
        files.names("way"),
    ):
        with pytest.raises(BadName, match="no folder"):
            await attempt
    assert await files.exists("file") is False
    assert await files.names() == ["inside.txt"]
    await files.write("file", "mine")  # the link is replaced, not followed
    assert ((outside / "secret.txt").read_text(), await files.read("file")) == ("outside", b"mine")
    assert await files.delete("way") is True
    assert [p.name for p in outside.iterdir()] == ["secret.txt"]


@pytest.mark.requirement("S4-12")
async def test_a_pipe_is_no_file_and_nobody_waits_for_it(files, folder):
    await files.make_folder("a")
    os.mkfifo(folder / "pipe")
    async with asyncio.timeout(40):
        with pytest.raises(BadName, match="is no file"):
            await files.read("pipe")
        with pytest.raises(BadName, match="is no folder"):
            await files.write("pipe/x", "x")


async def test_sizes_and_numbers_are_bounded(files, monkeypatch):
    await files.write("a", b"x" * MAX_FILE)
    with pytest.raises(StoreFull, match="at most 4 MiB"):
        await files.write("b", b"x" * (MAX_FILE + 1))
    monkeypatch.setattr(user_files, "MAX_BYTES", MAX_FILE + 10)
    with pytest.raises(StoreFull, match="together"):
        await files.write("b", b"x" * 11)
    await files.write("b", b"x" * 10)
    monkeypatch.setattr(user_files, "MAX_FILES", 3)
    await files.make_folder("c")
    for attempt in (files.make_folder("d"), files.write("e", "")):
        with pytest.raises(StoreFull, match="3 files"):
            await attempt
    assert await files.names() == ["a", "b"]
    await files.delete("a")
    await files.write("e", "")


async def test_many_writers_at_once_stay_within_the_bounds(files, monkeypatch):
    monkeypatch.setattr(user_files, "MAX_BYTES", 1000)
    done = await asyncio.gather(
        *(files.write(f"f{n}", b"x" * 100) for n in range(30)), return_exceptions=True
    )
    assert sum(d is None for d in done) == 10
    assert {type(d) for d in done if d is not None} == {StoreFull}
    assert len(await files.names()) == 10


async def test_what_is_deleted_while_others_look_is_no_error_of_theirs(files, monkeypatch):
    """The walk over the files is stopped half way; a delete that were not waiting would take
    what comes next from under it.
    """
    for n in range(3):
        await files.write(f"f{n}", b"x")
    walking, go, real = threading.Event(), threading.Event(), user_files._walk

    def slow(*args):
        for n, found in enumerate(real(*args)):
            if n == 0:
                walking.set()
                go.wait(30)
            yield found

    monkeypatch.setattr(user_files, "_walk", slow)
    writing = asyncio.create_task(files.write("new", b"x"))
    assert await asyncio.to_thread(walking.wait, 30)
    deleting = [asyncio.create_task(files.delete(f"f{n}")) for n in range(3)]
    await asyncio.wait(deleting, timeout=0.2)  # time enough, were nobody in the way
    go.set()
    await writing
    assert await asyncio.gather(*deleting) == [True, True, True]
    assert await files.names() == ["new"]


async def test_a_half_written_file_is_neither_seen_nor_in_the_way(files, folder):
    await files.write("a", "whole")
    (folder / ".half").write_text("ha")
    assert await files.names() == ["a"]
    await files.write("a", "new")
    assert (await files.read("a"), (folder / ".half").exists()) == (b"new", False)


async def test_a_full_disk_is_reported_and_the_old_file_stays(files, folder, monkeypatch):
    await files.write("a", "whole")

    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(user_files.os, "fsync", full)
        with pytest.raises(StoreFull, match="No space left"):
            await files.write("a", "new")
    assert (await files.read("a"), [p.name for p in folder.iterdir()]) == (b"whole", ["a"])
    await files.write("a", "new")
    assert await files.read("a") == b"new"
