"""Nothing that everyday tools put on a lens is for programs alone."""

import pytest

from tests.lens_sheet import situations
from tests.lens_sheet.__main__ import play
from tests.lens_sheet.everyday.texts import LONG
from tests.lens_sheet.readable import cut_without_mark, unreadable
from tests.scenarios.everyday.readable import UNREADABLE

pytestmark = pytest.mark.enable_socket
GLASSES = "mock:display"
PACE = 0.1
"""Nobody reads here, so nobody has to be waited for."""


@pytest.mark.timeout(300)
@pytest.mark.asyncio(loop_scope="session")
async def test_no_everyday_answer_shows_what_only_programs_read():
    parts = situations.everyday_parts(GLASSES)
    takes = await play([(GLASSES, part) for part in parts], PACE)
    assert len(takes) == sum(len(part.acts) for part in parts) > 150
    assert [(take.name, take.failed) for take in takes if take.failed] == []
    for take in takes:
        shown = [frame.words for frame in take.lit]
        found = [page for page in shown if UNREADABLE.search(page)]
        pages = [page for page in shown if not is_question(page)]
        found += [problem for page in pages for problem in unreadable(page)]
        found += cut_without_mark(pages, LONG)
        assert found == [], (take.name, pages)


def is_question(page):
    """Questions show texts as they are, so that the wearer knows what is agreed to."""
    return "double tap: no" in page


@pytest.mark.parametrize(
    "rows",
    [
        "contact 3f2a9c1e-6c55-4e0b-9d3a-0b7f1c2d3e4f",
        "Sent: 5f3c9a01",
        "1795840534-6",
        "MSG-AB12CD34 came",
        "at 1795250000",
        "2026-11-21T11:30",
        "Born 1981-05-04",
        '{"beds": 1}',
        "for {{data.name}}",
        "[tool.web]",
        "Anna: None",
        "null h ago",
        "Dear Anna,\\nthe key",
        "Anna  Berg",
        "10:47 glasses:clear",
    ],
)
def test_what_only_programs_read_is_found(rows):
    assert len(unreadable(f"Tomorrow\n{rows}\n1/2")) >= 1


@pytest.mark.parametrize(
    "rows",
    [
        "Tomorrow 09:00: call Anna",
        "+44 20 7946 0999",
        "PAGER-AB12",
        "tap: next · double tap: no  1/2",
        "a long text […]",
        "Feels like 4°, wind 22 km/h from the south-west",
        "maria.del.carmen@ayuntamiento-de-madrid.example",
        "Nothing found: visa",
    ],
)
def test_what_people_read_is_not_taken_for_it(rows):
    assert unreadable(rows) == []


def test_a_text_that_ends_without_a_mark_is_found():
    long = "The ferry does not leave today because of the wind. Take the bus."
    assert cut_without_mark(["The ferry does not leave today 1/2", "because of"], [long]) == [long]
    assert cut_without_mark(["The ferry does not leave today because…"], [long]) == []
    assert cut_without_mark([long[:30] + " 1/2", long[30:] + " 2/2"], [long]) == []
    assert cut_without_mark(["No ferry"], [long]) == []
