"""The names that the wearer may say, read from the stores of the shipped tools."""

import logging

import pytest
from msgspec.structs import replace

from edge.core.tools.snapshot import Entry, Snapshot
from edge.daemon import known_names
from edge.daemon.known_names import KnownNamesReader
from edge.storage.tools.user_stores import PrivateStores
from tests.unit.tools.compiled import shipped
from tools_cache.api.tool import Source
from tools_cache.everyday.contact_book import ContactBook
from tools_cache.everyday.pager.book import PagerBook, Sender
from tools_cache.everyday.pager.keys import new_private_key, public_key
from tools_cache.registry import manifest


class House:
    """The names of the user `local`, who has tools and stores."""

    def __init__(self, path):
        self.path = path
        apps = manifest.load(shipped().encode(), source=Source.LOCAL).apps
        self.entries = [Entry(tool, app.name) for app in apps for tool in app.tools]
        self.opened = []
        self.stores = PrivateStores(path / "users", key=path / "tools.key")
        self.reader = KnownNamesReader(
            "local", lambda: Snapshot.of("1", self.entries), self.private, self.stores.has_tables
        )

    def private(self, user, package):
        self.opened.append((user, package))
        return self.stores.of(user, package)

    def book(self, user="local"):
        return ContactBook(self.stores.of(user, "contacts").db)

    async def trust(self, pager, **facts):
        book = PagerBook(self.stores.of("local", "pager").db)
        await book.keep(Sender(pager, public_key(new_private_key()), **facts))

    def change(self, name, **changes):
        self.entries = [
            replace(entry, **changes) if entry.definition.name == name else entry
            for entry in self.entries
        ]

    def stored(self, tool):
        found = self.reader.current.of_tool.get(tool)
        return dict(found.stored) if found is not None else None


@pytest.fixture
async def house(tmp_path):
    found = House(tmp_path)
    yield found
    await found.stores.close()


async def test_a_user_without_contacts_costs_neither_a_folder_nor_a_file(house):
    assert not await house.reader.read()
    assert house.opened == []
    assert [*house.path.iterdir()] == []
    assert house.reader.describe() == {}
    assert house.reader.current is known_names.NONE


async def test_the_names_of_contacts_may_be_said_to_find_and_to_remove_one(house):
    await house.book().add({"name": "Jérôme Dubois", "phones": ["1"], "note": "Secret"})
    await house.book("other").add({"name": "Not Mine"})
    assert await house.reader.read()
    expected = {"jerome dubois": "Jérôme Dubois", "jerome": "Jérôme", "dubois": "Dubois"}
    assert house.stored("contacts:find") == house.stored("contacts:remove") == expected
    assert {*house.reader.current.of_tool} == {"contacts:find", "contacts:remove"}
    before = house.reader.current
    assert not await house.reader.read()
    assert house.reader.current is before, "the grammar is not made again"


async def test_names_follow_the_contacts_and_are_counted(house):
    anna = await house.book().add({"name": "Anna"})
    await house.book().add({"name": "Room 4"})
    await house.reader.read()
    assert house.reader.describe() == {"names": 1, "names_left_out": 1}
    await house.book().remove(anna)
    assert await house.reader.read()
    assert house.reader.describe() == {"names": 0, "names_left_out": 1}


async def test_a_pager_may_be_named_as_the_wearer_calls_it_while_it_is_trusted(house):
    await house.trust("PAGER-AAAA", name="Calls itself so", alias="My sister")
    await house.trust("PAGER-BBBB", name="Nobody")
    await house.trust("PAGER-CCCC", alias="Carl", revoked=True)
    await house.reader.read()
    assert house.stored("pager:send") == {"my sister": "My sister"}
    assert house.reader.current.of_tool["pager:send"].text_follows


@pytest.mark.parametrize("why", [{"hidden": "off"}, {"missing": ("display",)}])
async def test_a_tool_that_cannot_be_called_gets_no_names(house, why):
    await house.book().add({"name": "Anna"})
    house.change("contacts:find", **why)
    await house.reader.read()
    assert {*house.reader.current.of_tool} == {"contacts:remove"}
    house.change("contacts:remove", **why)
    house.opened.clear()
    await house.reader.read()
    assert house.opened == []


async def test_a_tool_that_runs_elsewhere_gets_no_names(house):
    await house.book().add({"name": "Anna"})
    for entry in house.entries:
        definition = replace(entry.definition, source=Source.CLOUD)
        house.change(definition.name, definition=definition)
    assert not await house.reader.read()


async def test_names_that_cannot_be_read_leave_those_of_before_and_one_line(house, caplog):
    await house.book().add({"name": "Anna Berg"})
    await house.reader.read()
    await house.stores.close()
    (house.path / "tools.key").unlink()
    house.stores = PrivateStores(house.path / "users", key=house.path / "tools.key")
    with caplog.at_level(logging.DEBUG):
        assert not await house.reader.read()
        assert not await house.reader.read()
    assert "anna berg" in house.stored("contacts:find")
    (line,) = [record for record in caplog.records if record.name == known_names.__name__]
    assert line.levelno == logging.WARNING
    assert not [record for record in caplog.records if "anna" in record.getMessage().casefold()]


async def test_names_that_take_too_long_are_not_waited_for(house, monkeypatch):
    await house.book().add({"name": "Anna"})
    monkeypatch.setattr(known_names, "READ_S", 0.0)
    assert not await house.reader.read()
    assert house.reader.describe() == {}


def test_calls_that_change_contacts_or_pagers_may_change_names(house):
    changing = [
        e.definition.name for e in house.entries if house.reader.may_change(e.definition.name)
    ]
    assert {"contacts:add", "contacts:sync", "contacts:remove", "pager:trust"} <= {*changing}
    assert not {"contacts:find", "notes:add", "clock:now", "nobody:knows"} & {*changing}
