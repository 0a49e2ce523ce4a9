"""The scene in a note: how much of its time is left for the next daemon."""

import pytest

from edge.core.results import Rendering
from edge.display.lens import Sheet
from edge.display.presentation import Presentation
from edge.display.saved_scene import from_note, to_note
from edge.runtime.clock import Clock
from firmware_bridge.messages import Done, TextLine


def clock(boot: float, wall: float, boot_id: str = "b1") -> Clock:
    return Clock(boot=lambda: boot, wall=lambda: wall, boot_id=boot_id)


@pytest.mark.parametrize(
    ("later", "left_s"),
    [
        (clock(104, 5000), 6),  # the same boot: the wall clock may be set meanwhile
        (clock(111, 5000), None),
        (clock(3, 1004, "b2"), 6),  # another boot: the wall clock alone went on
        (clock(3, 1011, "b2"), None),
        (clock(3, 999, "b2"), None),  # it was set back: nobody knows how much time passed
    ],
)
async def test_a_scene_has_the_time_that_it_had_left(later, left_s) -> None:
    item = Presentation("c1", "s", Rendering(), 0, 0.0, lambda *_: None)
    item.sheets = (Sheet((TextLine(0, "dinner"),), dwell_s=10.0),)
    item.light(Done(drawn=6), 100.0)
    found = from_note(to_note(item, clock(100, 1000)), later, lambda *_: None)
    assert (None if found is None else found.until - later.boot()) == left_s
