"""What is stored with a step of a call: both are on disk, or neither."""

import pytest

from edge.ports import Alongside
from edge.storage.inbox import Arrival, Inbox, handle
from edge.storage.outbox import Outbox
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite.errors import UplinkBusy
from tests.unit.storage.support import a_call
from tools_cache.api.tool import Delivery, DeliveryReport, ToolResponse

NOBODY = DeliveryReport(Delivery.NONE)


@pytest.fixture
def outbox(db, hands):
    return Outbox(db, hands.clock, calls=Bounds(1))


def putting(outbox, lane, call_id, stored=None):
    work = outbox.putting(lane, lane, call_id, topic="t", body={}, ttl_s=60.0)
    return Alongside(work, (stored if stored is not None else []).append)


def failing(_connection):
    raise KeyError("mine")


async def test_a_call_that_finds_no_place_in_the_outbox_is_not_accepted(calls, outbox):
    stored = []
    for number, state in (("1", "RUNNING"), ("2", None)):
        call = a_call(call_id=number)
        also = putting(outbox, "call", number, stored)
        if state is None:
            with pytest.raises(UplinkBusy):
                await calls.admit(call, "cloud", then="RUNNING", also=also)
            assert await calls.get(number) is None
        else:
            assert (await calls.admit(call, "cloud", then="RUNNING", also=also)).fresh
            assert (await calls.get(number))["state"] == state
    assert [row.id for row in await outbox.load()] == ["1"]
    assert len(stored) == 1


async def test_a_call_that_is_known_is_not_sent_again(calls, outbox):
    await calls.admit(a_call(call_id="1"), "cloud")
    stored = []
    also = putting(outbox, "call", "1", stored)
    assert not (await calls.admit(a_call(call_id="1"), "cloud", also=also)).fresh
    assert (await outbox.load(), stored) == ([], [])


async def test_an_answer_its_result_and_its_message_are_stored_together(db, calls, outbox, hands):
    inbox = Inbox(db, hands.clock)
    (taken,) = await inbox.take([Arrival("call", "1", {}, 60.0, "reply")])
    await calls.admit(a_call(call_id="1"), "local", then="RUNNING")
    handling = Alongside(lambda c: handle(c, taken.seq), lambda _: None)
    broken = Alongside.all_of(putting(outbox, "answer", "1"), handling, Alongside(failing, failing))
    with pytest.raises(KeyError):
        await calls.finish("1", "ANSWERED", ToolResponse(data=1), delivery=NOBODY, also=broken)
    found = await calls.get("1")
    assert (found["state"], found["response"], found["delivery"]) == ("RUNNING", None, None)
    assert (await outbox.load(), len(await inbox.unhandled())) == ([], 1)
    stored = []
    whole = Alongside.all_of(putting(outbox, "answer", "1", stored), None, handling)
    assert await calls.finish("1", "ANSWERED", ToolResponse(data=1), delivery=NOBODY, also=whole)
    found = await calls.get("1")
    assert (found["state"], found["delivery"]) == ("ANSWERED", "none")
    assert [row.seq for row in await outbox.load()] == [put.seq for put in stored]
    assert await inbox.unhandled() == []


async def test_a_second_answer_takes_nothing_along(calls, outbox):
    await calls.admit(a_call(call_id="1"), "local", then="RUNNING")
    assert await calls.finish("1", "ANSWERED", ToolResponse(data=1))
    stored = []
    also = putting(outbox, "answer", "1", stored)
    assert not await calls.finish("1", "FAILED", ToolResponse(data=2), delivery=NOBODY, also=also)
    assert (await outbox.load(), stored) == ([], [])
    assert (await calls.get("1"))["delivery"] is None


async def test_a_delivery_and_what_goes_with_it_are_stored_together(calls, outbox):
    await calls.admit(a_call(call_id="1"), "local", then="RUNNING")
    await calls.finish("1", "ANSWERED", ToolResponse(data=1))
    shown, stored = DeliveryReport(Delivery.SHOWN), []
    with pytest.raises(KeyError):
        await calls.tell_delivery("1", shown, also=Alongside(failing, failing))
    assert (await calls.get("1"))["state"] == "ANSWERED"
    await calls.tell_delivery("1", shown, also=putting(outbox, "answer", "1", stored))
    assert (await calls.get("1"))["state"] == "DELIVERED"
    assert [row.seq for row in await outbox.load()] == [put.seq for put in stored]


def test_nothing_beside_nothing_is_nothing():
    assert Alongside.all_of(None, None) is None


async def test_a_call_that_is_stored_behind_is_known_at_once(calls):
    lost = []
    await calls.admit_behind(a_call(call_id="1"), "local", keys=("key:k",), failed=lost.append)
    again = await calls.known(a_call(call_id="2"), keys=("key:k",))
    assert (again.call_id, again.response) == ("1", None)
    assert (await calls.get("1"))["state"] == "RUNNING"
    await calls.admit_behind(a_call(call_id="3"), "local", keys=("key:k",), failed=lost.append)
    assert await calls.finish("1", "ANSWERED", ToolResponse(data=1))
    assert [str(error) for error in lost] == ["a call with this id or key is on disk already"]
    assert await calls.get("3") is None
