"""`make lens-sheet`: plays about a hundred situations on simulated glasses and writes contact
sheets of what was on their lenses, with a list of boxes, cut lines and flashes.

    python -m tests.lens_sheet [--out DIR] [--glasses mock:full] [--only WORD]
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.lens_sheet import sheet, situations
from tests.lens_sheet.film import Take
from tests.lens_sheet.stage import Station, opened

GLASSES = ("mock:full", "sim:even_g1")


async def played(model: str, only: str, station: Station) -> list[Take]:
    """Play what contains the word `only`, one situation after the other."""
    with tempfile.TemporaryDirectory() as folder:
        stage = await opened(Path(folder), model, station)
        short = model.rpartition(":")[2]
        try:
            for name, act in situations.of(model).items():
                if only.lower() in name.lower():
                    await stage.play(f"{short}: {name}", act)
        finally:
            await stage.world.close()
    return stage.film.takes


async def everything(models: list[str], only: str) -> list[Take]:
    station = Station()
    async with await station.open():
        takes = await asyncio.gather(*(played(model, only, station) for model in models))
    return [take for found in takes for take in found]


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
    wrong = [take for take in takes if take.problems or not take.lit]
    for take in wrong:
        said = "; ".join(take.problems) or "nothing was shown"
        say(f"{take.name}: {said}  [{', '.join(take.deliveries)}]")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
