"""`make lens-sheet`: plays its situations on simulated glasses and writes contact sheets of what
was on their lenses, with a list of boxes (in text and in drawn rows), cut lines and flashes.

    python -m tests.lens_sheet [--out DIR] [--glasses mock:full] [--only WORD]
"""

import argparse
import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.lens_sheet import sheet, situations
from tests.lens_sheet.everyday.services import services
from tests.lens_sheet.film import Take
from tests.lens_sheet.situations import Part
from tests.lens_sheet.stage import Station, opened, small_cloud
from tests.system import find
from tests.unit.tools.mail.servers import Dovecot

GLASSES = ("mock:full", "sim:even_g1")


async def played(
    model: str,
    part: Part,
    station: Station,
    cloud: dict[str, Any],
    dovecot: Dovecot | None = None,
    pace: float = 1.0,
) -> list[Take]:
    """Play one situation after the other."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        near = None
        if part.everyday:
            near = await stack.enter_async_context(services(folder, dovecot))
        about = {"wearer": part.wearer, "microphone": {"language": part.language}}
        more = {"cloud": cloud if part.cloud else None, "services": near, "pace": pace}
        stage = await opened(folder, model, station, about, **more)
        short = model.rpartition(":")[2]
        try:
            for name, act in part.acts.items():
                await stage.play(f"{short}: {name}", act)
        finally:
            await stage.world.close()
    return stage.film.takes


def chosen_parts(model: str, only: str) -> list[Part]:
    """Return what has the word `only` in its name."""
    parts = (
        replace(part, acts={n: act for n, act in part.acts.items() if only.lower() in n.lower()})
        for part in situations.of(model)
    )
    return [part for part in parts if part.acts]


async def everything(models: list[str], only: str = "") -> list[Take]:
    """Play all parts beside each other."""
    return await play([(model, part) for model in models for part in chosen_parts(model, only)])


async def play(wanted: list[tuple[str, Part]], pace: float = 1.0) -> list[Take]:
    """Play parts on glasses, beside each other."""
    station = Station()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(await station.open())
        cloud = {}
        if any(part.cloud for _, part in wanted):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            cloud = await stack.enter_async_context(small_cloud(Path(folder)))
        dovecot = None
        if any(part.everyday for _, part in wanted) and find("dovecot"):
            dovecot = Dovecot()
            stack.callback(dovecot.close)
            dovecot.start()
        takes: list[list[Take]] = []
        for everyday in (False, True):  # all at once would be too slow to tell what flashes
            playing = (
                played(model, part, station, cloud, dovecot, pace)
                for model, part in wanted
                if part.everyday is everyday
            )
            takes += await asyncio.gather(*playing)
        return [take for part in takes for take in part]


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make lens-sheet", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("lens-sheet-out"))
    parser.add_argument("--glasses", action="append", choices=GLASSES, help="these alone")
    parser.add_argument("--only", default="", metavar="WORD", help="situations with this word")
    chosen = parser.parse_args()
    takes = asyncio.run(everything(chosen.glasses or list(GLASSES), chosen.only))
    chosen.out.mkdir(parents=True, exist_ok=True)
    for path in sheet.write(takes, chosen.out):
        say(str(path))
    say(f"{sum(len(take.lit) for take in takes)} lenses in {len(takes)} situations")
    wrong = [take for take in takes if take.problems]
    for take in wrong:
        say(f"{take.name}: {'; '.join(take.problems)}  [{', '.join(take.deliveries)}]")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
