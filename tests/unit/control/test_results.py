"""The record of a call, at once or when it has its answer; grants; transitions of the session."""

import asyncio

import pytest

from edge.control import results
from edge.control.http import HttpLimits
from edge.core.grants import Grant, Granted
from edge.runtime.events import CallAnswered, CallCompleted, LinkChanged
from tests.unit.control.house import DEADLINE_S, open_house, row
from tools_cache.api.tool import ErrorCode, ToolResponse

pytestmark = pytest.mark.enable_socket

GOOD = ToolResponse(data=1, meta={"route": "cloud"})


async def wait_for_it(house, call_id="c5", how="wait=10"):
    """Request a record with a wait, and return when the daemon is waiting."""
    before = house.store.reads
    asking = asyncio.ensure_future(house.ask("GET", f"/v1/calls/{call_id}?{how}"))
    async with asyncio.timeout(DEADLINE_S):
        while house.store.reads == before:
            await asyncio.sleep(0)
    assert not asking.done()
    return asking


async def told(asking):
    async with asyncio.timeout(DEADLINE_S):
        return await asking


def running(call_id="c5", state="RUNNING"):
    return row(call_id, state=state, ok=None, delivery=None, response=None)


async def test_a_record_contains_how_its_answer_was_delivered(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c5"] = row(
            "c5", delivery="spoken", response=GOOD.with_meta(delivery="queued").to_json()
        )
        status, story = await house.ask("GET", "/v1/calls/c5")
    assert (status, story["response"]["meta"], story["delivery"]) == (
        200,
        {"route": "cloud", "delivery": "spoken"},
        "spoken",
    )


async def test_a_waiting_client_gets_the_answer(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c5"] = running()
        asking = await wait_for_it(house)
        house.bus.publish(CallAnswered("other", "a:b", True, "local", "shown"))
        house.bus.publish(LinkChanged("READY"))
        house.end("c5", GOOD)
        status, story = await told(asking)
    assert (status, story["response"]["data"], story["response"]["meta"]["delivery"]) == (
        200,
        1,
        "shown",
    )


async def test_a_pending_call_ends_when_it_is_completed(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c5"] = running(state="PENDING")
        asking = await wait_for_it(house)
        house.bus.publish(CallAnswered("c5", "a:b", True, "queue", "queued", final=False))
        house.end("c5", GOOD, told=False)
        house.bus.publish(CallCompleted("c5", "a:b", True, "shown"))
        status, story = await told(asking)
    assert (status, story["response"]["data"], story["delivery"]) == (200, 1, "shown")


async def test_pending_is_an_answer_only_with_until_answer(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c5"] = running(state="PENDING")
        status, story = await house.ask("GET", "/v1/calls/c5?wait=10&until=answer")
        assert (status, story["state"]) == (200, "PENDING")
        assert await house.ask("GET", "/v1/calls/c5?wait=0.05") == (204, None)


async def test_a_call_that_becomes_pending_ends_the_wait(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c5"] = running(state="AWAITING_CONFIRMATION")
        asking = await wait_for_it(house, how="wait=10&until=answer")
        house.store.rows["c5"] = running(state="PENDING")
        house.bus.publish(CallAnswered("c5", "a:b", True, "queue", "queued", final=False))
        status, story = await told(asking)
    assert (status, story["state"], story["response"]) == (200, "PENDING", None)


async def test_after_the_wait_the_reply_is_204_and_the_connection_stays(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c5"] = running()
        ask = b"GET /v1/calls/c5?wait=0.05 HTTP/1.1\r\nHost: x\r\n\r\n"
        raw = await house.exchange(ask + b"GET /v1/lens HTTP/1.1\r\nHost: x\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 204")
    assert b'"lines":["Hello"]' in raw
    assert b"content-length" not in raw.split(b"\r\n\r\n")[0].lower()


async def test_the_connection_stays_also_when_each_request_comes_alone(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c5"] = running()
        reader, writer = await asyncio.open_unix_connection(str(house.path))
        async with asyncio.timeout(DEADLINE_S):
            for _ in range(2):
                writer.write(b"GET /v1/calls/c5?wait=0.05 HTTP/1.1\r\nHost: x\r\n\r\n")
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
        writer.close()


async def test_the_delivery_of_an_answer_is_awaited_briefly(tmp_path, monkeypatch):
    async with open_house(tmp_path) as house:
        house.end("c5", GOOD, told=False)
        asking = await wait_for_it(house)
        house.bus.publish(CallAnswered("c5", "a:b", True, "local", "shown"))
        _, story = await told(asking)
        assert story["delivery"] == "shown"
        monkeypatch.setattr(results, "SETTLE_S", 0.05)
        status, story = await house.ask("GET", "/v1/calls/c5?wait=10")
        assert (status, story["response"]["data"], story["delivery"]) == (200, 1, None)


async def test_a_wait_that_missed_events_reads_the_record_again(tmp_path):
    async with open_house(tmp_path) as house:
        house.store.rows["c5"] = running()
        asking = await wait_for_it(house)
        house.end("c5", GOOD)
        for number in range(600):
            house.bus.publish(LinkChanged(str(number)))
        status, story = await told(asking)
    assert (status, story["response"]["data"]) == (200, 1)


async def test_waiting_for_an_unknown_call_is_a_404(tmp_path):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask("GET", "/v1/calls/nope?wait=10")
    assert (status, answer["error"]["code"]) == (404, "NOT_FOUND")


async def test_waiting_clients_are_limited_and_reading_ones_are_not(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(polls=1)) as house:
        house.store.rows["c5"] = running()
        asking = await wait_for_it(house)
        status, answer = await house.ask("GET", "/v1/calls/c5?wait=10")
        assert (status, answer["error"]["code"]) == (503, "BUSY")
        assert (await house.ask("GET", "/v1/calls/c5"))[0] == 200
        house.end("c5", ToolResponse.failure(ErrorCode.DENIED, "no"))
        assert (await told(asking))[1]["code"] == "DENIED"
        assert (await house.ask("GET", "/v1/calls/c5?wait=10"))[0] == 200


@pytest.mark.parametrize(
    "query",
    ["wait=0", "wait=x", "wait=61", "wait=nan", "wait=inf", "wait=-1", "wait=", "until=ever"],
)
async def test_a_malformed_wait_is_a_400_that_names_it(tmp_path, query):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask("GET", f"/v1/calls/c1?{query}")
    assert status == 400
    assert answer["error"]["message"].startswith(query.partition("=")[0])


# ------------------------------------------------------------------ grants


@pytest.mark.requirement("M-grants")
async def test_permanent_grants_are_listed_and_revoked(tmp_path):
    async with open_house(tmp_path, user_id="ann") as house:
        house.confirmations.kept["bob", "notes:add"] = Granted(Grant.ALWAYS)
        assert await house.ask("GET", "/v1/grants") == (200, {"grants": []})
        assert await house.ask_as_owner(
            "PUT", "/v1/grants", {"tool": "cal:add", "grant": "always"}
        ) == (200, {"tool": "cal:add", "grant": "always"})
        assert await house.ask_as_owner(
            "PUT", "/v1/grants", {"tool": "cam:pay", "grant": "never"}
        ) == (200, {"tool": "cam:pay", "grant": "never"})
        _, listed = await house.ask("GET", "/v1/grants")
        assert [(g["tool"], g["grant"]) for g in listed["grants"]] == [
            ("cal:add", "always"),
            ("cam:pay", "never"),
        ]
        assert await house.ask_as_owner("DELETE", "/v1/grants?tool=cal:add") == (
            200,
            {"tool": "cal:add", "revoked": True},
        )
        status, again = await house.ask_as_owner("DELETE", "/v1/grants?tool=cal:add")
        assert (status, again["error"]["code"]) == (404, "NOT_FOUND")
    assert {key: kept.grant for key, kept in house.confirmations.kept.items()} == {
        ("ann", "cam:pay"): Grant.NEVER,
        ("bob", "notes:add"): Grant.ALWAYS,
    }


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"tool": "cal:add"}, 400, "grant: must be one of always, never"),
        ({"tool": "cal:add", "grant": "once"}, 400, "grant"),
        ({"tool": "cal:add", "grant": []}, 400, "grant"),
        ({"grant": "always"}, 400, "tool: must be text"),
        ({"tool": "notes:add", "grant": "always"}, 409, "notes:add runs without confirmation"),
        ({"tool": "notes:add", "grant": "always"}, 409, "runs without confirmation"),
        ({"tool": "cal:ad", "grant": "never"}, 404, "there is no tool cal:ad"),
        ({"tool": "cal:add", "grant": "never", "x": 1}, 400, "x: unknown"),
    ],
)
async def test_an_invalid_grant_is_refused_by_name(tmp_path, body, status, named):
    async with open_house(tmp_path) as house:
        found, answer = await house.ask_as_owner("PUT", "/v1/grants", body)
        assert (found, house.confirmations.kept) == (status, {})
        assert named in answer["error"]["message"]
        assert answer["error"]["fix"] or status == 400


@pytest.mark.requirement("I12-did-you-mean")
async def test_a_grant_for_a_mistyped_tool_names_the_nearest(tmp_path):
    async with open_house(tmp_path) as house:
        _, answer = await house.ask_as_owner(
            "PUT", "/v1/grants", {"tool": "note:add", "grant": "never"}
        )
        assert answer["error"]["fix"] == "did you mean notes:add? (all of them: glassd tools --all)"


async def test_revoking_needs_a_tool(tmp_path):
    async with open_house(tmp_path) as house:
        status, answer = await house.ask_as_owner("DELETE", "/v1/grants")
    assert (status, answer["error"]["message"]) == (400, "tool: must be text")


async def test_a_daemon_without_grants_reports_that(tmp_path):
    async with open_house(tmp_path, confirmations=None) as house:
        status, answer = await house.ask("GET", "/v1/grants")
    assert (status, answer["error"]["code"]) == (501, "UNSUPPORTED")


# ------------------------------------------------------------------ the session


async def test_the_session_shows_its_state_and_its_transitions(tmp_path):
    async with open_house(tmp_path) as house:
        house.sessions.moves *= 3
        assert await house.ask("GET", "/v1/session?limit=2") == (
            200,
            {"state": {"voice": True}, "transitions": house.sessions.moves[:2]},
        )
        assert (await house.ask("GET", "/v1/session?limit=0"))[0] == 400
    async with open_house(tmp_path, sessions=None) as house:
        assert await house.ask("GET", "/v1/session") == (
            200,
            {"state": {"voice": True}, "transitions": []},
        )
