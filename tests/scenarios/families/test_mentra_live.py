"""Story: what a Mentra Live has of its own: photos over a bad link."""

from io import BytesIO

import pytest
from PIL import Image

from firmware_bridge.messages import Gesture, PhotoSize, PhotoTaken, TakePhoto
from tests.scenarios.world import until, world

MODEL = "sim:mentra_live"


@pytest.mark.asyncio(loop_scope="session")
async def test_photos_come_whole_over_a_bad_link(tmp_path):
    async with world(tmp_path, MODEL, glasses={"model": "mentra_live"}) as place:
        await place.switch_glasses_on(mtu=512, speed=20.0)
        await place.start_daemon()
        await place.ready()
        photos = []
        place.daemon.link.receive_photos(photos.append)
        place.mock.glasses.faults[None].lose_every = 6
        await place.daemon.link.request(TakePhoto(1, PhotoSize.SMALL), timeout_s=30.0)
        await until(lambda: photos, "the photo")
        [taken] = photos
        assert isinstance(taken, PhotoTaken)
        assert Image.open(BytesIO(taken.jpeg)).size == (320, 240)
        place.mock.glasses.faults[None].lose_every = 0
        place.mark()
        place.wearer_does(Gesture.BUTTON)
        await place.heard("glasses.event")
