"""Photos of the simulated camera."""

from io import BytesIO

import pytest
from PIL import Image

from firmware_bridge.sim.camera import SimCamera


def test_a_photo_is_a_jpeg_of_the_wanted_size():
    camera = SimCamera()
    with Image.open(BytesIO(camera.take(320, 240))) as photo:
        assert (photo.format, photo.size) == ("JPEG", (320, 240))


def test_two_photos_of_the_bars_differ():
    camera = SimCamera()
    assert camera.take(320, 240) != camera.take(320, 240)


def test_a_photo_shows_what_the_wearer_looks_at(tmp_path):
    Image.new("RGB", (100, 50), "red").save(tmp_path / "red.png")
    camera = SimCamera()
    camera.look_at(tmp_path / "red.png")
    with Image.open(BytesIO(camera.take(64, 64))) as photo:
        red, green, blue = photo.getpixel((32, 32))
    assert red > 200
    assert max(green, blue) < 50


def test_what_is_no_picture_is_refused(tmp_path):
    (tmp_path / "note.png").write_text("hello")
    with pytest.raises(ValueError, match="is no picture"):
        SimCamera().look_at(tmp_path / "note.png")
    with pytest.raises(ValueError, match="is no picture"):
        SimCamera().look_at(tmp_path / "absent.png")


def test_a_picture_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("firmware_bridge.sim.camera.MAX_PIXELS", 99)
    Image.new("RGB", (10, 10)).save(tmp_path / "large.png")
    with pytest.raises(ValueError, match="10 × 10"):
        SimCamera().look_at(tmp_path / "large.png")
