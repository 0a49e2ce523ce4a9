"""Photos of the glasses' camera: one at a time, and an honest word when none comes."""

import asyncio

import pytest

from edge.ports import GlassesAway, GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.events import GlassesLost
from edge.tools.context import Context
from edge.tools.media import photos
from edge.tools.media.photos import GlassesCamera
from edge.tools.services import Services
from firmware_bridge import catalog
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.messages import Done, PhotoFailed, PhotoSize, PhotoTaken
from tests.unit.tools.test_glasses_settings import CLOCK
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolCall, ToolFailure

JPEG = b"\xff\xd8 a picture \xff\xd9"


def record(key):
    facts = catalog.find(key).capabilities
    return Capabilities.of(key, facts, origin=Origin.CATALOGUE, now=0.0)


class Glasses:
    """Glasses that answer an order with what `answer` makes of it, or raise `fault`."""

    def __init__(self, answer=None, *, model="mock:full", ready=True, fault=None):
        self.answer, self.fault = answer, fault
        self.state = GlassesStatus(ready=ready, capabilities=record(model))
        self.ordered = []
        self.give = None

    def status(self):
        return self.state

    def receive_photos(self, take):
        self.give = take

    async def request(self, command, *, timeout_s):
        self.ordered.append(command)
        if self.fault is not None:
            raise self.fault
        if self.answer is not None:
            asyncio.get_running_loop().call_soon(self.give, self.answer(command))
        return Done()


async def converted(avif):
    """Stand for the child process that reads an AVIF."""
    if b"damaged" in avif:
        raise ToolFailure.of(ErrorCode.NOT_ACCEPTED, "it is damaged")
    return JPEG


def camera_of(glasses, bus=None):
    return GlassesCamera(glasses, bus or Bus(), converted)


async def fails(camera, size="small"):
    with pytest.raises(ToolFailure) as failed:
        await camera.take(size)
    return failed.value.error


async def test_a_photo_arrives_for_its_order():
    glasses = Glasses(lambda order: PhotoTaken(order.photo, JPEG, 270))
    photo = await camera_of(glasses).take("large")
    assert photo.jpeg == JPEG
    assert photo.turned == 270
    assert [order.size for order in glasses.ordered] == [PhotoSize.LARGE]


async def test_a_photo_that_nobody_ordered_is_not_taken_for_the_one_that_was():
    glasses = Glasses()
    camera = camera_of(glasses)
    taking = asyncio.ensure_future(camera.take("small"))
    await asyncio.sleep(0)
    while not glasses.ordered:
        await asyncio.sleep(0)
    number = glasses.ordered[0].photo
    glasses.give(PhotoTaken(0, b"of the wearer"))
    glasses.give(PhotoTaken(number - 1, b"late"))
    glasses.give(PhotoTaken(number, JPEG))
    glasses.give(PhotoTaken(number, b"twice"))
    assert (await taking).jpeg == JPEG
    glasses.give(PhotoTaken(number, b"after the end"))


async def test_photos_are_taken_one_after_the_other():
    glasses = Glasses()
    camera = camera_of(glasses)
    both = [asyncio.ensure_future(camera.take("small")) for _ in range(2)]
    for number in (1, 2):
        while len(glasses.ordered) < number:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(glasses.ordered) == number
        glasses.give(PhotoTaken(glasses.ordered[-1].photo, b"%d" % number))
    taken = [(await each).jpeg for each in both]
    assert taken == [b"1", b"2"]


async def test_glasses_without_a_camera_are_not_asked():
    glasses = Glasses(model="mock:display")
    assert (await fails(camera_of(glasses))).code is ErrorCode.UNSUPPORTED
    assert glasses.ordered == []


async def test_glasses_that_are_away_are_not_asked():
    error = await fails(camera_of(Glasses(ready=False)))
    assert error.code is ErrorCode.SESSION_INACTIVE


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (GlassesAway("gone"), ErrorCode.SESSION_INACTIVE),
        (CommandRefused("busy", "another"), ErrorCode.NOT_ACCEPTED),
        (CommandRefused("unsupported", "no"), ErrorCode.UNSUPPORTED),
        (CommandTimeout("no answer"), ErrorCode.TIMEOUT),
    ],
)
async def test_an_order_that_is_not_taken_is_an_error_with_its_reason(fault, code):
    assert (await fails(camera_of(Glasses(fault=fault)))).code is code


async def test_a_photo_that_failed_says_why():
    glasses = Glasses(lambda order: PhotoFailed(order.photo, "2 of 40 packets were lost"))
    error = await fails(camera_of(glasses))
    assert error.code is ErrorCode.NOT_ACCEPTED
    assert "2 of 40 packets" in error.message


@pytest.mark.parametrize(
    ("rate", "size"),
    [(None, PhotoSize.MEDIUM), (4000.1, PhotoSize.MEDIUM), (3999.0, PhotoSize.SMALL)],
)
async def test_the_size_left_to_us_is_what_comes_in_ten_seconds(rate, size):
    glasses = Glasses(lambda order: PhotoTaken(order.photo, JPEG))
    camera = camera_of(glasses)
    camera._bytes_per_s = rate
    await camera.take("auto")
    assert glasses.ordered[-1].size is size


async def test_how_fast_a_photo_came_decides_about_the_next(monkeypatch):
    glasses = Glasses(lambda order: PhotoTaken(order.photo, JPEG))
    camera = camera_of(glasses)
    monkeypatch.setattr(photos, "MEDIUM_BYTES", len(JPEG))
    monkeypatch.setattr(photos, "SOON_S", 0.0)
    await camera.take("auto")
    await camera.take("auto")
    assert [order.size for order in glasses.ordered] == [PhotoSize.MEDIUM, PhotoSize.SMALL]


async def test_a_photo_as_avif_is_passed_on_as_jpeg():
    avif = b"\0\0\0\x1cftypavif" + bytes(100)
    glasses = Glasses(lambda order: PhotoTaken(order.photo, avif, 90))
    photo = await camera_of(glasses).take("small")
    assert (photo.jpeg, photo.turned) == (JPEG, 90)


async def test_a_photo_as_avif_that_cannot_be_read_says_why():
    avif = b"\0\0\0\x1cftypavif damaged"
    glasses = Glasses(lambda order: PhotoTaken(order.photo, avif))
    error = await fails(camera_of(glasses))
    assert (error.code, error.message) == (ErrorCode.NOT_ACCEPTED, "it is damaged")


async def test_glasses_that_go_away_end_the_wait_at_once():
    glasses, bus = Glasses(), Bus()
    taking = asyncio.ensure_future(fails(camera_of(glasses, bus)))
    while not glasses.ordered:
        await asyncio.sleep(0)
    bus.publish(GlassesLost("out of range"))
    async with asyncio.timeout(5):
        assert (await taking).code is ErrorCode.SESSION_INACTIVE


async def test_a_photo_that_never_comes_ends_in_time(monkeypatch):
    monkeypatch.setattr(photos, "ARRIVE_S", 0.01)
    camera = camera_of(Glasses())
    assert (await fails(camera)).code is ErrorCode.TIMEOUT
    assert camera._coming is None


async def test_no_other_tool_gets_the_camera():
    camera = object()
    services = Services(storage_for=None, alarms=None, clock=CLOCK, camera=lambda: camera)

    def context(tool):
        call = ToolCall(call_id="c1", tool=tool, args={}, origin=CallOrigin.CLI)
        return Context(call, services, None)

    assert context("glasses:take_photo").camera is camera
    with pytest.raises(ToolFailure, match="asks the wearer"):
        _ = context("spy:look").camera
