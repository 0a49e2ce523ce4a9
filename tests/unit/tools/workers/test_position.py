"""Where the device is: a gpsd on loopback that speaks its JSON protocol, well and badly."""

import time
from datetime import UTC, datetime

import pytest

from edge.tools.workers import position
from tests.unit.tools.recorded_services import TPV, gpsd, unused_address
from tools_cache.api.tool import ErrorCode, ToolFailure

pytestmark = pytest.mark.enable_socket
HERE = {"latitude": 60.397, "longitude": 5.3245, "source": "gpsd"}
HOME = {"latitude": 50.9, "longitude": 7.0}
NO_FIX = {"class": "TPV", "device": "/dev/ttyACM0", "mode": 1}
FLAT = {key: value for key, value in TPV.items() if key != "altHAE"} | {"mode": 2}
SKY = {"class": "SKY", "nSat": 11, "uSat": 7, "satellites": [{"PRN": 1, "used": True}]}


def at(age_s):
    """Return the time of a report of this age, as gpsd writes it."""
    then = datetime.fromtimestamp(time.time() - age_s, UTC)
    return {"time": then.isoformat(timespec="milliseconds").replace("+00:00", "Z")}


def refuses(problem, *reports, within_s=0.3, **how):
    with gpsd(*reports, **how) as address, pytest.raises(ToolFailure, match=problem) as raised:
        position.by_gpsd(address, within_s=within_s)
    assert raised.value.error.code is ErrorCode.NETWORK_ERROR


@pytest.mark.requirement("I15-maps")
@pytest.mark.parametrize("fix", [TPV, FLAT], ids=["3D", "2D"])
def test_the_first_report_with_a_position_is_taken(fix):
    with gpsd(NO_FIX, SKY, {**fix, "mode": 0}, fix, {**fix, "lat": 1.0}) as address:
        assert position.by_gpsd(address) == HERE


@pytest.mark.parametrize("mode", [None, 0, 1, "3", True])
def test_a_report_without_a_fix_is_no_position(mode):
    refuses(r"within 0 s$", {**TPV, "mode": mode})


def test_an_old_position_is_not_taken_and_its_age_is_said():
    refuses(
        "reported no position within 0 s; its last one is from 2 hours ago",
        {**TPV, **at(3 * 3600)},
        {**TPV, **at(2 * 3600)},
    )
    refuses("position; its last one is from 2 minutes ago", {**TPV, **at(125)}, stays=False)


def test_a_fresh_position_after_an_old_one_is_taken():
    with gpsd({**TPV, "lat": 1.0, **at(7200)}, {**TPV, **at(100)}) as address:
        assert position.by_gpsd(address) == HERE


@pytest.mark.parametrize("said", [at(-86_400), {"time": None}, {"time": "x"}, {"time": [1]}])
def test_a_position_whose_age_is_unknown_is_taken(said):
    """A machine without a clock of its own is behind the satellites until it has a network."""
    with gpsd({**TPV, **said}) as address:
        assert position.by_gpsd(address) == HERE


def test_the_place_of_the_settings_stands_for_an_old_position():
    with gpsd({**TPV, **at(7200)}, stays=False) as address:
        assert position.here({"gpsd": address, **HOME}) == {**HOME, "source": "home"}
    with gpsd(NO_FIX, stays=False) as address, pytest.raises(ToolFailure, match="no position"):
        position.here({"gpsd": address})


@pytest.mark.parametrize(
    "hostile",
    [
        b"no json",
        b"\xff\xfe\x00",
        b"[" * 10_000,
        b"9" * 10_000,
        b"null",
        b'["TPV"]',
        b'{"class":"TPV","mode":3,"lat":NaN,"lon":5}',
        b'{"class":"TPV","mode":3,"lat":1e999,"lon":5}',
        b'{"class":"ERROR","message":"x"}',
        {**TPV, "lat": "60"},
        {**TPV, "lat": True},
        {**TPV, "lon": 500},
        {**TPV, "lon": None},
        {**TPV, "class": ["TPV"]},
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_report_that_makes_no_sense_is_passed_over(hostile):
    refuses(r"within 0 s$", hostile)
    with gpsd(hostile, TPV) as address:
        assert position.by_gpsd(address) == HERE


def test_a_line_without_an_end_and_a_flood_are_left():
    started = time.monotonic()
    refuses(r"reported no position$", b"x" * (position.MAX_LINE * 4), within_s=20)
    refuses(r"reported no position$", *[b"x" * 4000] * 100, within_s=20)
    assert time.monotonic() - started < 10


def test_a_gpsd_that_ends_or_is_not_there_is_reported():
    refuses(r"reported no position$", stays=False)
    with pytest.raises(ToolFailure, match="cannot be reached: Connection refused"):
        position.by_gpsd(unused_address())
