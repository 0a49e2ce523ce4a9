"""Records every picture that a simulated lens showed, when, and what is wrong with it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.lens import SimLens
from tests.lens_sheet.boxes import DrawnRows, boxes_in_text

BRIEF_S = 1.2
"""A lit page that another one replaces sooner, without the wearer's doing, is a flash."""
BLINK_S = 0.5
"""A row that is replaced sooner was not read, though the heading stays."""


@dataclass
class Frame:
    """One picture of the lens; `until` is when the next one came."""

    image: Image.Image
    text: tuple[str, ...]
    at: float
    problems: list[str] = field(default_factory=list)
    until: float | None = None
    lost: tuple[str, ...] = ()
    """Characters that are boxes."""
    drawn: tuple[str, ...] = ()
    """Rows that the daemon drew as pixels."""

    @property
    def words(self) -> str:
        """All that can be read, a row a line; also the rows that the daemon drew."""
        return "\n".join([*self.text, *self.drawn])

    @property
    def lit(self) -> bool:
        return self.image.getbbox() is not None

    @property
    def seconds(self) -> float:
        return (self.until or time.monotonic()) - self.at


@dataclass
class Take:
    """One situation as it was played: its frames, and the deliveries of its calls. `dark`: nothing
    is to be shown or said.
    """

    name: str
    dark: bool = False
    frames: list[Frame] = field(default_factory=list)
    deliveries: list[str] = field(default_factory=list)
    acts: list[float] = field(default_factory=list)
    """When the wearer did something, or a call took the page away."""
    spoken_s: list[float] = field(default_factory=list)
    """Seconds of each text that was spoken."""
    failed: str = ""

    @property
    def lit(self) -> list[Frame]:
        return [frame for frame in self.frames if frame.lit]

    def judge(self) -> None:
        """Find boxes, pages that were gone before anybody could read them, and old ones that came
        back; and whether there was anything at all.
        """
        for frame in self.frames:
            if frame.lost:
                frame.problems.append(f"boxes for {' '.join(frame.lost)}")
        for at, (frame, after) in enumerate(zip(self.frames, self.frames[1:], strict=False)):
            asked = any(frame.at <= act <= after.at for act in self.acts)
            works = bool(frame.text) and frame.text[-1].endswith("…")
            if not frame.lit or asked or works or frame.seconds >= BRIEF_S:
                continue
            if _same_page(frame, after):
                continue
            back = any(frame.image == old.image for old in self.frames[:at])
            what = "an old page came back" if back else "a page was gone"
            frame.problems.append(f"{what} for {frame.seconds:.2f} s")

        if bool(self.lit or self.spoken_s) is self.dark:
            self.failed = self.failed or f"{'something' if self.dark else 'nothing'} was shown"

    @property
    def problems(self) -> list[str]:
        found = [f"{p}: {' / '.join(f.text)[:60]}" for f in self.frames for p in f.problems]
        return [*found, *([self.failed] if self.failed else [])]


class Film(list[dict[str, Any]]):
    """Stands where a world keeps what the glasses reported, and takes a picture each time."""

    def __init__(self, glasses: Callable[[], MockGlasses]) -> None:
        super().__init__()
        self._glasses = glasses
        self.drawn = DrawnRows()
        self.takes: list[Take] = []

    def append(self, event: dict[str, Any]) -> None:
        super().append(event)
        if self.takes:
            if event.get("event") == "speaker" and event["samples"]:
                self.takes[-1].spoken_s.append(event["seconds"])
            self._expose(self._glasses().lens)

    def _expose(self, lens: SimLens) -> None:
        image = lens.to_image().convert("L")
        frames = self.takes[-1].frames
        if frames and frames[-1].image == image:
            return
        now = time.monotonic()
        if frames:
            frames[-1].until = now
        rows = self.drawn.on(image)
        lost = boxes_in_text(lens).union(*map(self.drawn.lost_in, rows))
        faults = _cut_lines(lens) + [f"cut ink: {row.text}" for row in rows if row.clipped]
        drawn = tuple(row.text for row in rows)
        frames.append(
            Frame(image, tuple(lens.text()), now, faults, lost=tuple(sorted(lost)), drawn=drawn)
        )

    def cut(self, name: str) -> Take:
        """Begin another situation."""
        self.drawn.rows.clear()
        if self.takes and self.takes[-1].frames:
            self.takes[-1].frames[-1].until = time.monotonic()
        self.takes.append(Take(name))
        return self.takes[-1]


def _cut_lines(lens: SimLens) -> list[str]:
    font, room = lens._font, lens.width - 2 * lens._margin
    return [
        f"cut: {line.text}"
        for line in lens.lines
        if line.row >= lens.rows or line.x + font.width(line.text) > room
    ]


def _same_page(frame: Frame, after: Frame) -> bool:
    """Its heading stays, or most of its pixels: a row changed, a mark or a picture came. Rows that
    were not there long enough to be read were another page, even below the same heading.
    """
    if frame.text and frame.text[:1] == after.text[:1]:
        return frame.seconds >= BLINK_S or set(frame.text) <= set(after.text)
    both = zip(frame.image.tobytes(), after.image.tobytes(), strict=True)
    kept = sum(bool(old and new) for old, new in both)
    return kept > 0.8 * sum(map(bool, frame.image.tobytes()))
