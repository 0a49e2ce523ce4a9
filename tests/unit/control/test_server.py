"""The control sockets: who gets them, and how each misuse by a client ends."""

import asyncio
import contextlib
import json
import os
import socket
import stat

import pytest

from edge.control import http
from edge.control.dependencies import ControlDependencies
from edge.control.http import HttpLimits
from edge.control.server import ControlServer
from edge.control.sockets import SocketTaken
from edge.runtime.bus import Bus
from edge.runtime.events import CallReceived, LinkChanged, PrivateWords
from firmware_bridge.messages import Transcript
from tests.unit.control.house import BOOM, DEADLINE_S, open_house, parsed
from tools_cache.api.tool import ToolResponse

pytestmark = pytest.mark.enable_socket

GET = b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n"


def bare(path, **more):
    nothing = object()
    ports = dict.fromkeys(
        ("calls", "registry", "render", "store", "bus", "status", "say", "new_id"), nothing
    )
    from edge.runtime.clock import Clock

    ports["bus"] = Bus()
    return ControlServer(path, ControlDependencies(**ports), clock=Clock(), **more)


# ------------------------------------------------------------------ the socket file


async def test_the_socket_is_for_its_owner_and_group_only(tmp_path):
    old = os.umask(0o077)
    try:
        async with open_house(tmp_path) as house:
            assert stat.S_IMODE(house.path.stat().st_mode) == 0o660
    finally:
        os.umask(old)


async def test_the_group_named_gets_the_socket(tmp_path, monkeypatch):
    import grp

    group = next(g for g in grp.getgrall() if g.gr_gid != tmp_path.stat().st_gid)
    given = []
    monkeypatch.setattr(
        os, "chown", lambda path, uid, gid: given.append((path, uid, gid))
    )  # only root may give away
    async with open_house(tmp_path, group=group.gr_name) as house:
        assert given == [(house.path, -1, group.gr_gid)]


async def test_a_socket_that_has_its_group_already_is_not_given_away(tmp_path, monkeypatch):
    import grp

    monkeypatch.setattr(os, "chown", lambda *_: pytest.fail("systemd's filter forbids chown"))
    async with open_house(tmp_path, group=grp.getgrgid(os.getgid()).gr_name) as house:
        assert stat.S_IMODE(house.path.stat().st_mode) == 0o660


async def test_a_group_that_cannot_be_given_is_a_warning(tmp_path, monkeypatch, caplog):
    import grp

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    group = next(g for g in grp.getgrall() if g.gr_gid != tmp_path.stat().st_gid)
    monkeypatch.setattr(os, "chown", refuse)
    async with open_house(tmp_path, group=group.gr_name) as house:
        assert (await house.ask("GET", "/v1/status"))[0] == 200
    assert f"cannot give control.sock to group {group.gr_name}" in caplog.text


async def test_an_unknown_group_does_not_stop_the_daemon(tmp_path):
    async with open_house(tmp_path, group="no-such-group") as house:
        assert (await house.ask("GET", "/v1/status"))[0] == 200


async def test_a_socket_left_by_a_crash_is_replaced(tmp_path):
    path = tmp_path / "control.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    async with open_house(tmp_path) as house:
        assert (await house.ask("GET", "/v1/status"))[0] == 200


async def test_a_second_daemon_does_not_disturb_the_first(tmp_path):
    async with open_house(tmp_path) as house:
        with pytest.raises(SocketTaken, match=r"another glassd is running.*systemctl stop"):
            bare(house.path).open()
        assert (await house.ask("GET", "/v1/status"))[0] == 200


async def test_of_two_daemons_starting_at_once_one_gets_the_socket(tmp_path):
    """The first has the lock but not yet the socket."""
    import fcntl

    with (tmp_path / "control.sock.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        with pytest.raises(SocketTaken, match="another glassd"):
            bare(tmp_path / "control.sock").open()
    second = bare(tmp_path / "control.sock")
    second.open()
    second.close()


async def test_the_live_socket_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "control.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen(1)
        with pytest.raises(SocketTaken, match="another glassd"):
            bare(path).open()
    assert path.exists()


async def test_a_file_in_the_way_is_named_and_kept(tmp_path):
    path = tmp_path / "control.sock"
    path.write_text("precious")
    with pytest.raises(SocketTaken, match=r"control\.sock: is in the way and is no socket"):
        bare(path).open()
    assert path.read_text() == "precious"


async def test_a_too_long_path_names_the_setting(tmp_path):
    with pytest.raises(SocketTaken, match=r"107 bytes; set control\.socket"):
        bare(tmp_path / ("x" * 120) / "control.sock").open()


async def test_after_the_end_the_socket_is_gone_and_the_next_daemon_can_start(tmp_path):
    async with open_house(tmp_path) as house:
        await house.ask("GET", "/v1/status")
    assert not house.path.exists()
    async with open_house(tmp_path) as again:
        assert (await again.ask("GET", "/v1/status"))[0] == 200


async def test_the_end_of_the_service_hangs_up_on_everyone(tmp_path):
    async with open_house(tmp_path) as house:
        reader, writer = await asyncio.open_unix_connection(str(house.path))
        writer.write(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b": glassd\n\n")
    async with asyncio.timeout(DEADLINE_S):
        await reader.read()
    writer.close()


# ------------------------------------------------------------------ HTTP, kept within bounds


async def test_one_connection_carries_many_requests_also_sent_at_once(tmp_path):
    async with open_house(tmp_path) as house:
        raw = await house.exchange(GET * 3)
    assert raw.count(b"HTTP/1.1 200") == 3


async def test_head_is_refused_without_a_body_and_the_connection_goes_on(tmp_path):
    async with open_house(tmp_path) as house:
        raw = await house.exchange(b"HEAD /v1/status HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
    refused, _, rest = raw.partition(b"\r\n\r\n")
    assert refused.startswith(b"HTTP/1.1 405")
    assert b"Allow: GET" in refused
    assert rest.startswith(b"HTTP/1.1 200")


async def test_a_request_arriving_byte_by_byte_is_served(tmp_path):
    async with open_house(tmp_path) as house:
        reader, writer = await asyncio.open_unix_connection(str(house.path))
        for byte in GET:
            writer.write(bytes([byte]))
            await writer.drain()
        writer.write_eof()
        async with asyncio.timeout(DEADLINE_S):
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()


@pytest.mark.parametrize(
    "raw",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /v1/say HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/say HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /v1/say HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET //[ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://[bad/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/calls?" + b"a=1&" * 40 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_bytes_that_are_not_http_get_a_400_and_the_connection_ends(tmp_path, raw):
    async with open_house(tmp_path) as house:
        reader, writer = await asyncio.open_unix_connection(str(house.path))
        writer.write(raw)
        async with asyncio.timeout(DEADLINE_S):
            answer = await reader.read()
        writer.close()
        status, body = parsed(answer)
        assert (status, body["error"]["code"]) == (400, "INVALID_REQUEST")
        assert b"connection: close" in answer.lower()
        assert (await house.ask("GET", "/v1/status"))[0] == 200


async def test_a_head_too_large_is_refused(tmp_path):
    async with open_house(tmp_path) as house:
        status, _ = parsed(
            await house.exchange(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000, eof=False)
        )
    assert status == 431


@pytest.mark.parametrize("head", [b"Content-Length: 300000", b"Transfer-Encoding: chunked"])
async def test_a_body_too_large_is_refused_with_its_reason(tmp_path, head):
    body = b"a" * 300_000
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    raw = (
        b"POST /v1/say HTTP/1.1\r\nHost: x\r\n"
        + head
        + b"\r\n\r\n"
        + (chunked if b"chunked" in head else body)
    )
    async with open_house(tmp_path) as house:
        status, answer = parsed(await house.exchange(raw))
        assert not house.said
    assert status == 413
    assert "262144 bytes" in answer["error"]["message"]


async def test_a_body_at_the_limit_is_accepted(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(body=1000)) as house:
        text = json.dumps({"text": "x"})
        assert (
            await house.ask_as_owner("POST", "/v1/say", (text + " " * (1000 - len(text))).encode())
        )[0] == 200
        assert (
            await house.ask_as_owner("POST", "/v1/say", (text + " " * (1001 - len(text))).encode())
        )[0] == 413


async def test_a_client_waiting_for_100_continue_is_told_to_go_on(tmp_path):
    async with open_house(tmp_path) as house:
        reader, writer = await asyncio.open_unix_connection(str(house.owners))
        writer.write(
            b"POST /v1/say HTTP/1.1\r\nHost: x\r\nExpect: "
            b"100-continue\r\nContent-Length: 14\r\n\r\n"
        )
        async with asyncio.timeout(DEADLINE_S):
            assert b"100" in await reader.readuntil(b"\r\n\r\n")
            writer.write(b'{"text": "hi"}')
            assert b"200" in await reader.readuntil(b"\r\n\r\n")
        writer.close()


async def test_a_client_that_dribbles_its_request_is_cut_off(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(request_s=0.2)) as house:
        status, body = parsed(await house.exchange(b"GET /v1/sta", eof=False))
    assert (status, body["error"]["code"]) == (408, "TIMEOUT")


async def test_dribbling_on_does_not_buy_more_time(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(request_s=0.3)) as house:
        reader, writer = await asyncio.open_unix_connection(str(house.path))
        answer = asyncio.ensure_future(reader.read())
        began = asyncio.get_running_loop().time()
        while not answer.done() and asyncio.get_running_loop().time() < began + DEADLINE_S:
            writer.write(b"X")
            await asyncio.wait([answer], timeout=0.05)
        assert asyncio.get_running_loop().time() - began < DEADLINE_S / 2
        assert b"408" in answer.result()
        writer.close()


async def test_a_silent_client_is_disconnected(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(idle_s=0.1)) as house:
        assert await house.exchange(b"", eof=False) == b""


async def test_a_client_that_disconnects_mid_request_affects_no_other(tmp_path):
    async with open_house(tmp_path) as house:
        assert (
            await house.exchange(
                b"POST /v1/say HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nhal"
            )
            == b""
        )
        assert not house.said
        assert (await house.ask("GET", "/v1/status"))[0] == 200


async def test_one_client_too_many_is_refused_until_another_leaves(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(connections=2)) as house:
        places = [await asyncio.open_unix_connection(str(house.path)) for _ in range(2)]
        for reader, writer in places:
            writer.write(GET)
            await reader.readuntil(b"\r\n\r\n")
        status, body = parsed(await house.exchange(b"", eof=False))
        assert (status, body["error"]["code"]) == (503, "BUSY")
        places[0][1].close()
        async with asyncio.timeout(DEADLINE_S):
            while (await house.ask("GET", "/v1/status"))[0] != 200:
                pass
        places[1][1].close()


async def test_a_bug_in_a_handler_is_a_500_and_nothing_else_fails(tmp_path, caplog):
    async with open_house(tmp_path) as house:
        status, body = await house.ask("POST", "/v1/call", {"tool": BOOM})
        assert (status, body["error"]["code"]) == (500, "INTERNAL")
        assert "a bug of ours" not in json.dumps(body)
        assert (await house.ask("GET", "/v1/status"))[0] == 200
    assert "a bug of ours" in caplog.text


# ------------------------------------------------------------------ events


class Follower:
    """A hand-written reader of server-sent events."""

    @classmethod
    async def join(cls, house, last: str | None = None, query: str = ""):
        self = cls()
        self.reader, self.writer = await asyncio.open_unix_connection(str(house.path))
        head = f"Last-Event-ID: {last}\r\n" if last else ""
        self.writer.write(f"GET /v1/events{query} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
        async with asyncio.timeout(DEADLINE_S):
            self.head = await self.reader.readuntil(b"\r\n\r\n")
        return self

    async def block(self) -> dict:
        """The next block, chunk framing taken away; comments are skipped unless alone."""
        fields: dict = {}
        async with asyncio.timeout(DEADLINE_S):
            while True:
                line = (await self.reader.readline()).decode().rstrip("\r\n")
                if line.startswith(":"):
                    fields["comment"] = line[1:].strip()
                elif ": " in line:
                    name, _, value = line.partition(": ")
                    fields[name] = json.loads(value) if name == "data" else value
                elif not line and fields:
                    return fields


def moved(number: int, filler: str = "") -> LinkChanged:
    return LinkChanged(state=str(number), reason=filler)


async def test_events_are_streamed_with_growing_ids(tmp_path):
    async with open_house(tmp_path) as house:
        follower = await Follower.join(house)
        assert b"text/event-stream" in follower.head
        assert "comment" in await follower.block()
        house.bus.publish(moved(1))
        house.bus.publish(moved(2))
        one, two = await follower.block(), await follower.block()
        assert [one["data"]["state"], two["data"]["state"]] == ["1", "2"]
        assert one["data"]["event"] == "link.state"
        assert int(two["id"].rpartition("-")[2]) == int(one["id"].rpartition("-")[2]) + 1
        follower.writer.close()


async def test_a_follower_may_leave_out_the_events_of_calls(tmp_path):
    async with open_house(tmp_path) as house:
        all_of_it, less = await Follower.join(house), await Follower.join(house, query="?calls=0")
        await all_of_it.block()
        await less.block()
        for number in range(3):
            house.bus.publish(CallReceived(f"c-{number}", "notes:add", "cli"))
        house.bus.publish(moved(1))
        assert [(await all_of_it.block())["data"]["event"] for _ in range(4)] == [
            "call.received"
        ] * 3 + ["link.state"]
        seen = await less.block()
        assert seen["data"]["event"] == "link.state"
        elsewhere = await Follower.join(
            house, seen["id"]
        )  # its numbers mean nothing to the whole stream
        assert await elsewhere.block() == {
            "event": "missed",
            "data": {"event": "missed", "missed": None},
        }
        for follower in (all_of_it, less, elsewhere):
            follower.writer.close()


async def test_a_returning_follower_gets_missed_events_once(tmp_path):
    async with open_house(tmp_path) as house:
        first = await Follower.join(house)
        await first.block()
        house.bus.publish(moved(1))
        seen = (await first.block())["id"]
        first.writer.close()
        house.bus.publish(moved(2))
        house.bus.publish(moved(3))
        again = await Follower.join(house, seen)
        await again.block()
        assert [(await again.block())["data"]["state"] for _ in range(2)] == ["2", "3"]
        house.bus.publish(moved(4))
        assert (await again.block())["data"]["state"] == "4"
        again.writer.close()


async def test_a_follower_without_an_id_gets_new_events_only(tmp_path):
    async with open_house(tmp_path) as house:
        early = await Follower.join(house)
        await early.block()
        house.bus.publish(moved(1))
        await early.block()
        late = await Follower.join(house)
        await late.block()
        house.bus.publish(moved(2))
        assert (await late.block())["data"]["state"] == "2"
        early.writer.close()
        late.writer.close()


async def test_a_follower_that_asks_for_all_gets_the_first_events(tmp_path):
    async with open_house(tmp_path) as house:
        early = await Follower.join(house)
        await early.block()
        house.bus.publish(moved(1))
        await early.block()
        late = await Follower.join(house, "0")
        assert "data" not in await late.block()
        assert (await late.block())["data"]["state"] == "1"
        early.writer.close()
        late.writer.close()


async def test_what_fell_out_of_the_ring_is_counted(tmp_path):
    async with open_house(tmp_path, ring=3) as house:
        follower = await Follower.join(house)
        await follower.block()
        house.bus.publish(moved(0))
        seen = (await follower.block())["id"]
        for number in range(1, 11):
            house.bus.publish(moved(number))
        while (await follower.block()).get("data", {}).get("state") != "10":
            pass
        again = await Follower.join(house, seen)
        await again.block()
        gap = await again.block()
        assert (gap["event"], gap["data"]["missed"]) == ("missed", 7)
        assert [(await again.block())["data"]["state"] for _ in range(3)] == ["8", "9", "10"]
        follower.writer.close()
        again.writer.close()


async def test_a_slow_reader_learns_how_many_events_it_missed(tmp_path):
    async with open_house(tmp_path, ring=8) as house:
        slow, quick = await Follower.join(house), await Follower.join(house)
        await quick.block()
        total, filler = 400, "x" * 4000
        for number in range(total):
            house.bus.publish(moved(number, filler))
            assert (await quick.block())["data"]["state"] == str(number)
        got, missed = 0, 0
        await slow.block()
        while got + missed < total:
            block = await slow.block()
            if block.get("event") == "missed":
                missed += block["data"]["missed"]
            else:
                got += 1
        assert missed > 0
        assert got + missed == total
        slow.writer.close()
        quick.writer.close()


async def test_events_that_come_at_once_are_counted_too(tmp_path):
    async with open_house(tmp_path, ring=512) as house:
        follower = await Follower.join(house)
        await follower.block()
        for number in range(600):
            house.bus.publish(moved(number))
        gap = await follower.block()
        assert gap["data"] == {"event": "missed", "missed": 88}
        assert (await follower.block())["data"]["state"] == "88"
        follower.writer.close()


async def test_an_id_from_an_earlier_run_gets_all_stored_events(tmp_path):
    async with open_house(tmp_path) as house:
        early = await Follower.join(house)
        await early.block()
        house.bus.publish(moved(1))
        await early.block()
        follower = await Follower.join(house, "deadbeef-999")
        assert (await follower.block())["data"] == {"event": "missed", "missed": None}
        assert (await follower.block())["data"]["state"] == "1"
        early.writer.close()
        follower.writer.close()


async def test_silence_is_filled_with_comments(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(heartbeat_s=0.05)) as house:
        follower = await Follower.join(house)
        assert [("comment" in await follower.block()) for _ in range(3)] == [True] * 3
        follower.writer.close()


async def test_followers_are_limited_and_leave_room_for_requests(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(streams=1)) as house:
        follower = await Follower.join(house)
        status, body = await house.ask("GET", "/v1/events")
        assert (status, body["error"]["code"]) == (503, "BUSY")
        follower.writer.close()


async def test_a_follower_that_leaves_frees_its_place_at_once(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(streams=1)) as house:
        for _ in range(3):
            follower = await Follower.join(house)
            assert b"200" in follower.head
            follower.writer.close()
            async with asyncio.timeout(DEADLINE_S):
                while house.server.streams:
                    await asyncio.sleep(0)


async def test_a_follower_that_stops_reading_is_disconnected(tmp_path):
    async with open_house(tmp_path, limits=HttpLimits(write_s=0.1)) as house:
        follower = await Follower.join(house)
        await follower.block()
        house.bus.publish(moved(0, "x" * 4_000_000))
        async with asyncio.timeout(DEADLINE_S):
            while house.server.streams:
                await asyncio.sleep(0)
        follower.writer.close()


async def test_writing_to_a_lost_client_ends_only_its_connection(tmp_path, monkeypatch, caplog):
    """uvloop's transports raise RuntimeError there; so does the one of this test."""
    real = asyncio.StreamWriter.write

    def write(self, data):
        if self.is_closing():
            raise RuntimeError("unable to perform operation; the handler is closed")
        real(self, data)

    monkeypatch.setattr(asyncio.StreamWriter, "write", write)
    async with open_house(tmp_path) as house:
        other = await Follower.join(house)
        await other.block()
        for n in range(20):
            follower = await Follower.join(house)
            follower.writer.transport.abort()
            house.bus.publish(moved(n))
            await asyncio.sleep(0)
        status, _ = await house.ask("GET", "/v1/status")
        assert status == 200
        assert (await other.block())["data"]["state"] == "0"
        other.writer.close()
    assert "unexpected error" not in caplog.text


async def test_an_internal_error_disconnects_one_client_only(tmp_path, caplog):
    async with open_house(tmp_path) as house:
        other = await Follower.join(house)
        await other.block()

        async def stumbling(*_):
            raise ZeroDivisionError("a bug of ours")

        house.server._answer, real = stumbling, house.server._answer
        reader, writer = await asyncio.open_unix_connection(str(house.path))
        writer.write(GET)
        async with asyncio.timeout(DEADLINE_S):
            assert await reader.read() == b""
        writer.close()
        house.server._answer = real
        assert (await house.ask("GET", "/v1/status"))[0] == 200
        house.bus.publish(moved(7))
        assert (await other.block())["data"]["state"] == "7"
        other.writer.close()
    assert "unexpected error while serving a control client" in caplog.text


def test_a_query_with_too_many_parameters_is_refused_with_their_number():
    with pytest.raises(http.RequestRefused) as refused:
        http._target("/v1/calls?" + "&".join(["a=1"] * (http.MAX_QUERY + 1)))
    assert f"at most {http.MAX_QUERY} parameters" in refused.value.reply.body["error"]["fix"]


async def test_a_client_that_comes_while_the_service_stops_is_disconnected(tmp_path, monkeypatch):
    """Its task is cancelled before it began."""
    server = bare(tmp_path / "control.sock")
    running = asyncio.create_task(server.run())
    accept, accepted = ControlServer._accept, []

    def accept_and_stop(self, entrance, reader, writer):
        running.cancel()
        accept(self, entrance, reader, writer)
        accepted.append(writer)

    monkeypatch.setattr(ControlServer, "_accept", accept_and_stop)
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.sleep(0)
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control.sock"))
        await asyncio.wait([running])
        assert accepted[0].is_closing()
        assert await reader.read() == b""
        writer.close()


async def test_a_client_that_comes_when_the_service_has_stopped_is_disconnected(
    tmp_path, monkeypatch
):
    """The event loop may have accepted it before."""
    server = bare(tmp_path / "control.sock")
    running = asyncio.create_task(server.run())
    accept, failed = ControlServer._accept, []

    def stop_and_accept(self, entrance, reader, writer):
        running.cancel()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, problem: failed.append(problem))
        loop.call_soon(accept, self, entrance, reader, writer)

    monkeypatch.setattr(ControlServer, "_accept", stop_and_accept)
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.sleep(0)
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "control.sock"))
        await asyncio.wait([running])
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
    assert failed == []


async def test_plain_requests_and_others_take_turns_on_one_connection(tmp_path):
    body = b'{"tool": "notes:add"}'
    plain = b"POST /v1/call HTTP/1.1\r\nHost: x\r\nContent-Length: 21\r\n\r\n" + body
    chunked = (
        b"POST /v1/call HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"15\r\n" + body + b"\r\n0\r\n\r\n"
    )
    async with open_house(tmp_path) as house:
        house.calls.answers["notes:add"] = ToolResponse(data=1)
        reader, writer = await asyncio.open_unix_connection(str(house.path))
        answers = []
        for parts in ([plain], [chunked], [plain + plain], [], [plain[:30], plain[30:]], [plain]):
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), DEADLINE_S)
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            answers.append((head.split(b"\r\n")[0], (await reader.readexactly(length))[:20]))
        assert len(answers) == len(house.calls.seen) == 6
        assert set(answers) == {(b"HTTP/1.1 200 ", b'{"ok":true,"data":1,')}
        writer.close()


async def test_a_stream_has_the_same_head_after_a_request_in_one_piece_and_in_two(tmp_path):
    request, heads = b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n", []
    async with open_house(tmp_path) as house:
        for parts in ([request], [request[:20], request[20:]]):
            reader, writer = await asyncio.open_unix_connection(str(house.path))
            for part in parts:
                writer.write(part)
                await writer.drain()
            heads.append(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), DEADLINE_S))
            writer.close()
    assert heads[0] == heads[1]
    assert b"chunked" in heads[0]


async def test_private_words_are_given_to_no_follower(tmp_path):
    async with open_house(tmp_path) as house:
        follower = await Follower.join(house)
        await follower.block()
        house.bus.publish(PrivateWords(Transcript("a secret", final=True)))
        house.bus.publish(moved(1))
        block = await follower.block()
        assert (block["data"]["state"], block["id"].rpartition("-")[2]) == ("1", "1")
        follower.writer.close()
