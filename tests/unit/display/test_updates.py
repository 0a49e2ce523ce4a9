"""A newer version of the page on the lens: only the rows that differ are sent."""

import pytest
from hypothesis import given, strategies as st

from edge.display.lens import changed_rows
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import TextLine, UpdatePage
from tests.unit.display.fakes import DISPLAY
from tools_cache.api.tool import Delivery

CALL = "c1"
BEFORE, AFTER = "Copying\n1 of 4\nbackup.tar", "Copying\n2 of 4\nbackup.tar"


async def test_only_the_changed_row_of_a_page_is_sent(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.tell(BEFORE, call_id=CALL, brief=True)
        report = await stage.tell(AFTER, call_id=CALL, brief=True)
        assert report.state is Delivery.SHOWN
        assert len(glasses.pages()) == 1
        (update,) = glasses.updates()
        assert [(line.row, line.text) for line in update.lines] == [(1, "2 of 4")]
        assert stage.lens()["lines"] == ["Copying", "2 of 4", "backup.tar"]


async def test_a_row_that_is_gone_is_emptied(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.tell(BEFORE, call_id=CALL, brief=True)
        await stage.tell("Copying\n1 of 4", call_id=CALL, brief=True)
        assert glasses.updates()[0].lines == (TextLine(2, ""),)


@pytest.mark.parametrize(("code", "tries"), [("no_scene", 2), ("unsupported", 1)])
async def test_a_page_that_cannot_be_changed_is_sent_whole(open_stage, code, tries) -> None:
    tried = []

    def refuse(command) -> None:
        if isinstance(command, UpdatePage):
            tried.append(command)
            raise CommandRefused(code, "")

    async with open_stage(DISPLAY) as (stage, glasses):
        glasses.refuse = refuse
        for text in (BEFORE, AFTER, BEFORE):
            assert (await stage.tell(text, call_id=CALL, brief=True)).state is Delivery.SHOWN
        assert len(glasses.pages()) == 3
        assert len(tried) == tries, "what they never can is not tried again on this connection"


async def test_another_scene_or_another_connection_gets_a_whole_page(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.tell(BEFORE, call_id=CALL, brief=True)
        await stage.tell(AFTER, call_id="c2", brief=True)
        glasses.link += 1
        await stage.tell(BEFORE, call_id="c2", brief=True)
        assert not glasses.updates()


LINES = st.lists(
    st.builds(TextLine, st.integers(0, 4), st.sampled_from(["a", "b"]), st.sampled_from([0, 300])),
    max_size=6,
).map(tuple)


@given(LINES, LINES)
def test_a_lens_that_takes_the_changes_shows_the_new_page(old, new) -> None:
    changes = changed_rows(old, new)
    rows = {line.row for line in changes}
    result = [line for line in old if line.row not in rows]
    result += [line for line in changes if line.text]
    if changes:
        assert sorted(result, key=repr) == sorted(new, key=repr)
