"""The simulated camera: photos of a picture that the wearer looks at, as JPEG."""

from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw

MAX_PIXELS: Final = 16_000_000
"""Pixels of a picture to look at: more than any such camera has."""
_BARS: Final = ("white", "yellow", "cyan", "green", "magenta", "red", "blue", "black")


class SimCamera:
    """What is in front of the wearer: colour bars, or a picture file."""

    def __init__(self) -> None:
        self._scene: Image.Image | None = None
        self.photos = 0
        """Photos taken so far."""

    def look_at(self, file: Path) -> None:
        """Look at a picture file. Raises ValueError if it is none, or too large."""
        try:
            with Image.open(file) as picture:
                width, height = picture.size
                if width * height > MAX_PIXELS:
                    raise ValueError(f"{file} has {width} × {height} pixels; {MAX_PIXELS} in all")
                self._scene = picture.convert("RGB")
        except OSError as error:
            raise ValueError(f"{file} is no picture: {error}") from error

    def take(self, width: int, height: int, *, quality: int = 75, turned: int = 0) -> bytes:
        """Return a photo of this size (pixels) as JPEG; `quality` as of Pillow, 1 to 95. `turned`:
        degrees clockwise by which it must be turned to be upright, 0 or 180.
        """
        self.photos += 1
        scene = self._scene or _bars(width, height, self.photos)
        taken = BytesIO()
        scene.resize((width, height)).rotate(turned).save(taken, "JPEG", quality=quality)
        return taken.getvalue()


def _bars(width: int, height: int, number: int) -> Image.Image:
    """Return colour bars with a number, so that two photos differ."""
    picture = Image.new("RGB", (width, height))
    draw = ImageDraw.Draw(picture)
    for index, colour in enumerate(_BARS):
        left = index * width // len(_BARS)
        draw.rectangle((left, 0, (index + 1) * width // len(_BARS), height), fill=colour)
    draw.text((4, 4), f"photo {number}", fill="black")
    return picture
