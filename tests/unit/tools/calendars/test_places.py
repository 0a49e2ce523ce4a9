"""Where calendars are kept: a folder, a real CalDAV-like HTTP server on loopback, and the child
that asks them.
"""

import asyncio
import http.server
import json
import os
import threading
import zlib
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from edge.tools.calendars import folder, worker
from edge.tools.calendars.dav import MAX_ANSWER, CalDavServer
from edge.tools.calendars.lookup import CalendarLookup, CalendarPlace
from tests.unit.tools.calendars.texts import moment, text
from tools_cache.api.calendars import CalendarTrouble, Plan, Trouble, failure
from tools_cache.api.tool import ErrorCode, ErrorType

pytestmark = pytest.mark.enable_socket
START, END = moment("2026-11-23T00:00:00Z"), moment("2026-11-24T00:00:00Z")
STANDUP = text("UID:1\nDTSTART:20261123T090000Z\nDURATION:PT1H\nSUMMARY:Stand-up")
PLAN = Plan(
    key="k-1",
    title="Review",
    start=moment("2026-11-23T15:00:00Z"),
    end=moment("2026-11-23T16:00:00Z"),
    attendees=("eva@example.com",),
)


# ------------------------------------------------------------------ a folder


def test_a_calendar_is_a_file_or_a_folder_of_files(tmp_path):
    (tmp_path / "work.ics").write_bytes(b"one")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "b.ICS").write_bytes(b"three")
    (tmp_path / "work" / "a.ics").write_bytes(b"two")
    (tmp_path / "work" / "note.txt").write_bytes(b"x")
    (tmp_path / "work" / ".hidden.ics").write_bytes(b"x")
    assert list(folder.texts(tmp_path, "work")) == [b"one", b"two", b"three"]
    assert list(folder.texts(tmp_path / "nowhere", "primary")) == [], "nothing is in it yet"


@pytest.mark.parametrize(
    "name", ["holidays", "../outside", "..", ".", "", "a/b", ".hidden", "a\0b", "a\nb"]
)
def test_a_calendar_that_is_not_there_or_leads_outside_is_not_known(tmp_path, name):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.ics").write_bytes(b"secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(CalendarTrouble) as e:
        list(folder.texts(inside, name))
    assert e.value.trouble is Trouble.UNKNOWN_CALENDAR


def test_what_is_too_large_or_no_file_is_refused_and_never_waited_for(tmp_path):
    (tmp_path / "primary").mkdir()
    with (tmp_path / "primary" / "big.ics").open("wb") as file:
        file.truncate(folder.MAX_FILE + 1)
    with pytest.raises(CalendarTrouble, match=r"big\.ics is larger than 4 MiB"):
        list(folder.texts(tmp_path, "primary"))
    (tmp_path / "primary" / "big.ics").unlink()
    os.mkfifo(tmp_path / "primary" / "pipe.ics")
    with pytest.raises(CalendarTrouble, match=r"pipe\.ics is no file"):
        list(folder.texts(tmp_path, "primary"))


def test_an_event_is_written_whole_once_and_never_over_another(tmp_path):
    assert folder.put(tmp_path, "k.ics", b"first") is True
    assert folder.put(tmp_path, "k.ics", b"second") is False
    assert [p.name for p in (tmp_path / "primary").iterdir()] == ["k.ics"], (
        "nothing half written is left"
    )
    assert (tmp_path / "primary" / "k.ics").read_bytes() == b"first"


THEIRS = "UID:{uid}\r\nDTSTART:20261123T090000Z\r\nSUMMARY;LANGUAGE=de:A\\, b\\nc"


def lookup(place):
    return CalendarLookup(place, now=lambda: 1_795_000_000.0)


@pytest.mark.requirement("I13-undo")
async def test_an_event_that_was_made_is_removed_once_and_others_stay(tmp_path):
    calendars = lookup(CalendarPlace(folder=tmp_path))
    made = await calendars.make(PLAN)
    (tmp_path / "primary" / "other.ics").write_bytes(text(THEIRS.format(uid="other@example.org")))
    (tmp_path / "primary" / "double.ics").write_bytes(
        text(THEIRS.format(uid="double@glassd")) + text(THEIRS.format(uid="x"))
    )
    for uid in ("other@example.org", "other@glassd", "other", "../k-1@glassd", "double@glassd"):
        assert await calendars.remove(uid) is None
    assert await calendars.remove(made.uid) == "Review"
    assert await calendars.remove(made.uid) is None
    assert sorted(p.name for p in (tmp_path / "primary").iterdir()) == ["double.ics", "other.ics"]
    (tmp_path / "primary" / "a-1.ics").write_bytes(text(THEIRS.format(uid="a-1@glassd")))
    assert await calendars.remove("a-1@glassd") == "A, b c"


# ------------------------------------------------------------------ a server


class Dav(http.server.BaseHTTPRequestHandler):
    """Just enough of CalDAV: REPORT, PUT with If-None-Match, GET with a version, DELETE with
    If-Match, Basic auth; `server.say` overrides.
    """

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _do(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append((self.command, self.path, dict(self.headers.items()), body))
        if self.server.say is not None:
            return self._reply(*self.server.say)
        if self.headers.get("authorization") != "Basic ZXZhOmh1bnRlcjI=":
            return self._reply(401, {}, b"")
        if self.command == "PUT":
            new = self.path not in self.server.kept
            self.server.kept.setdefault(self.path, body)
            return self._reply(201 if new else 412, {}, b"")
        if self.command in ("GET", "DELETE"):
            return self._one()
        if not self.path.startswith("/dav/eva/"):
            return self._reply(404, {}, b"")
        texts = [b for path, b in self.server.kept.items() if path.startswith(self.path)]
        parts = "".join(
            f"<D:response><D:propstat><D:prop><C:calendar-data>{escape(t.decode())}</C:calendar-data></D:prop></D:propstat></D:response>"
            for t in texts
        )
        answer = (
            '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:" '
            f'xmlns:C="urn:ietf:params:xml:ns:caldav">{parts}</D:multistatus>'
        )
        return self._reply(207, {"Content-Type": "application/xml"}, answer.encode())

    def _one(self):
        body = self.server.kept.get(self.path)
        if body is None:
            return self._reply(404, {}, b"")
        version = f'"{zlib.crc32(body)}"'
        if self.command == "GET":
            self.server.kept |= self.server.then
            return self._reply(200, {"ETag": version}, body)
        if self.headers.get("if-match") != version:
            return self._reply(412, {}, b"")
        del self.server.kept[self.path]
        return self._reply(204, {}, b"")

    do_REPORT = do_PUT = do_GET = do_DELETE = _do  # noqa: N815 - the standard library's names

    def _reply(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dav)
    server.daemon_threads = True
    server.asked, server.kept, server.say = [], {"/dav/eva/personal/1.ics": STANDUP}, None
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}/dav/eva/personal"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def dav_server():
    with serving() as found:
        yield found


@pytest.fixture
def dav(dav_server):
    server, url = dav_server
    server.asked, server.kept, server.say = [], {"/dav/eva/personal/1.ics": STANDUP}, None
    server.then = {}
    return server, url


def asked(url, **more):
    return CalDavServer(url, **{"username": "eva", "password": "hunter2", **more})


def test_a_server_is_asked_for_the_window_and_nothing_else(dav):
    server, url = dav
    assert asked(url).texts("primary", START, END) == [STANDUP.replace(b"\r\n", b"\n")], (
        "XML knows one line end"
    )
    method, path, headers, body = server.asked[0]
    assert (method, path, headers["Depth"]) == ("REPORT", "/dav/eva/personal/", "1")
    assert b'start="20261123T000000Z" end="20261124T000000Z"' in body
    server.kept["/dav/eva/team room/x.ics"] = STANDUP
    asked(url).texts("team room", START, END)
    assert server.asked[1][1] == "/dav/eva/team%20room/"
    asked(url).texts("../../etc", START, END)
    assert server.asked[2][1] == "/dav/eva/..%2F..%2Fetc/"


@pytest.mark.requirement("I13-undo")
async def test_an_event_on_a_server_is_removed_only_as_it_was_looked_at(dav):
    server, url = dav
    place = CalendarPlace(folder=Path("/"), url=url, username="eva", password="hunter2")
    calendars = lookup(place)
    made = await calendars.make(PLAN)
    file = "/dav/eva/personal/k-1.ics"
    server.then = {file: server.kept[file] + b"\r\n"}  # somebody changes it in between
    with pytest.raises(CalendarTrouble, match="changed just now"):
        await calendars.remove(made.uid)
    assert file in server.kept
    server.then = {}
    assert await calendars.remove(made.uid) == "Review"
    assert await calendars.remove(made.uid) is None
    assert await calendars.remove("1@glassd") is None, "not one of ours"
    assert list(server.kept) == ["/dav/eva/personal/1.ics"]
    server.say = (503, {}, b"")
    with pytest.raises(CalendarTrouble) as e:
        asked(url).delete("k-1.ics", '"1"')
    assert failure(e.value).error.partial_side_effects


@pytest.mark.requirement("S2-124")
@pytest.mark.parametrize(
    ("status", "headers", "kind", "retryable", "wait_ms"),
    [
        (429, {}, ErrorType.RATE_LIMIT, True, 60_000),
        (429, {"Retry-After": "7"}, ErrorType.RATE_LIMIT, True, 7000),
        (429, {"Retry-After": "soon"}, ErrorType.RATE_LIMIT, True, 60_000),
        (429, {"Retry-After": "999999999999"}, ErrorType.RATE_LIMIT, True, 3_600_000),
        (429, {"Retry-After": "Sat, 01 Jan 2000 00:00:00 GMT"}, ErrorType.RATE_LIMIT, True, 1000),
        (401, {}, ErrorType.AUTH, False, None),
        (403, {}, ErrorType.AUTH, False, None),
        (503, {"Retry-After": "5"}, ErrorType.TRANSIENT, True, None),
        (500, {}, ErrorType.TRANSIENT, True, None),
        (408, {}, ErrorType.TRANSIENT, True, None),
        (404, {}, ErrorType.PERMANENT, False, None),
        (301, {"Location": "/elsewhere"}, ErrorType.PERMANENT, False, None),
        (200, {}, ErrorType.PERMANENT, False, None),
        (418, {}, ErrorType.PERMANENT, False, None),
    ],
)
def test_what_a_server_answers_becomes_an_error_of_the_seed(
    dav, status, headers, kind, retryable, wait_ms
):
    server, url = dav
    server.say = (status, headers, b"hunter2 in a body")
    with pytest.raises(CalendarTrouble) as e:
        asked(url).texts("primary", START, END)
    error = failure(e.value).error
    assert (error.type, error.retryable, error.retry_after_ms, error.partial_side_effects) == (
        kind,
        retryable,
        wait_ms,
        False,
    )
    assert "hunter2" not in str(error)
    assert len(server.asked) == 1, "a redirect is not followed"


def test_an_address_that_is_no_calendar_is_not_an_empty_calendar(dav):
    server, url = dav
    server.say = (404, {}, b"")
    with pytest.raises(CalendarTrouble) as e:
        asked(url).texts("holidays", START, END)
    assert e.value.trouble is Trouble.UNKNOWN_CALENDAR, (
        "the address may be right, and another calendar was asked for"
    )
    server.say = (207, {}, b"<html><body>Welcome</body></html>")
    with pytest.raises(CalendarTrouble, match=r"is calendar\.url a calendar\?"):
        asked(url).texts("primary", START, END)


@pytest.mark.requirement("S2-124")
def test_signing_in_again_is_asked_for_when_the_server_refuses_us(dav):
    from tools_cache.api.tool import ToolResponse

    _, url = dav
    with pytest.raises(CalendarTrouble) as e:
        asked(url, password="wrong").texts("primary", START, END)
    told = ToolResponse(error=failure(e.value).error).to_json()["error"]
    assert (told["type"], told["retryable"], told["reauthRequired"]) == ("AUTH", False, True)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<",
        b"<a><b></a>",
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>',
        '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'.encode(
            "utf-16"
        ),
        b"\xff\xfe",
        b"<x>" + b"a" * MAX_ANSWER,
    ],
)
def test_a_malformed_answer_is_refused(dav, body):
    server, url = dav
    server.say = (207, {}, body)
    with pytest.raises(CalendarTrouble) as e:
        asked(url).texts("primary", START, END)
    assert e.value.trouble is Trouble.REFUSED


def test_an_answer_cut_short_is_the_servers_trouble(dav):
    server, url = dav
    server.say = (207, {"Content-Length": "500", "Connection": "close"}, b"<x/>")
    with pytest.raises(CalendarTrouble) as e:
        asked(url).texts("primary", START, END)
    assert e.value.trouble is Trouble.AWAY


@pytest.mark.requirement("S2-82")
def test_only_a_write_that_was_sent_is_reported_as_uncertain(dav):
    server, url = dav
    assert asked(url).put("k.ics", b"x") is True
    assert server.asked[0][2]["If-None-Match"] == "*"
    assert asked(url).put("k.ics", b"y") is False, "it is there: nothing is replaced"
    assert server.kept["/dav/eva/personal/k.ics"] == b"x"
    server.say = (503, {}, b"")
    with pytest.raises(CalendarTrouble) as e:
        asked(url).put("l.ics", b"x")
    assert failure(e.value).error.partial_side_effects is True
    server.say = (429, {}, b"")
    with pytest.raises(CalendarTrouble) as e:
        asked(url).put("l.ics", b"x")
    assert failure(e.value).error.partial_side_effects is False
    with serving() as (_, gone):
        pass
    with pytest.raises(CalendarTrouble) as e:
        asked(gone).put("l.ics", b"x")
    assert (failure(e.value).error.code, failure(e.value).error.partial_side_effects) == (
        ErrorCode.NETWORK_ERROR,
        False,
    )


# ------------------------------------------------------------------ the child


def room(place, **more):
    return CalendarLookup(place, now=lambda: 1_795_257_000.0, **more)


async def test_the_child_reads_writes_once_and_leaves_nothing_in_the_daemon(tmp_path):
    inside = room(
        CalendarPlace(
            folder=tmp_path, meeting_url="https://meet.example/me", email="me@example.com"
        )
    )
    made = await inside.make(PLAN)
    assert (made.uid, made.fresh, made.link, made.invites) == (
        "k-1@glassd",
        True,
        "https://meet.example/me",
        False,
    )
    assert (await inside.make(PLAN)).fresh is False
    agenda = await inside.between(START, END, calendars=["primary"])
    assert [(b.title, b.start, b.end) for b in agenda.busy] == [("Review", PLAN.start, PLAN.end)]
    assert "DTSTAMP:20261121T103000Z" in (tmp_path / "primary" / "k-1.ics").read_text()


async def test_the_child_asks_the_server(dav):
    _, url = dav
    inside = room(
        CalendarPlace(folder=Path("/nowhere"), url=url, username="eva", password="hunter2")
    )
    agenda = await inside.between(START, END, calendars=["primary"])
    assert [b.title for b in agenda.busy] == ["Stand-up"]
    assert "hunter2" not in repr(inside.place)


def missing(folder):
    """Nothing is there."""


def a_file(folder):
    folder.write_text("BEGIN:VCALENDAR")


@pytest.mark.requirement("I11-folder-said")
@pytest.mark.parametrize(
    ("there", "why"),
    [(missing, "there is no such folder"), (a_file, "this is a file, not a folder")],
)
async def test_a_named_folder_that_cannot_be_read_is_not_an_empty_calendar(tmp_path, there, why):
    stick = tmp_path / "stick" / "calendars"
    stick.parent.mkdir()
    there(stick)
    inside = room(CalendarPlace(folder=stick, named=True))
    for asked_for in (inside.between(START, END, calendars=["primary"]), inside.make(PLAN)):
        with pytest.raises(CalendarTrouble) as e:
            await asked_for
        error = failure(e.value).error
        assert (error.code, error.message) == (
            ErrorCode.TOOL_UNAVAILABLE,
            f"The calendar folder {stick} cannot be used: {why}",
        )
        assert "[calendar] folder" in error.suggestion
    assert not stick.is_dir(), "no folder is made where one should be mounted"
    stick.unlink(missing_ok=True)
    stick.mkdir()
    assert (await inside.between(START, END, calendars=["primary"])).busy == (), (
        "it is there now, and empty"
    )
    assert (await inside.make(PLAN)).fresh


async def test_the_daemons_own_folder_is_made_with_the_first_event(tmp_path):
    inside = room(CalendarPlace(folder=tmp_path / "state" / "calendars"))
    assert (await inside.between(START, END, calendars=["primary"])).busy == ()
    assert (await inside.make(PLAN)).fresh


@pytest.mark.parametrize("key", ["../../etc/x", "a" * 65, "", "ü", "a.b", "c/1"])
async def test_a_key_that_is_no_file_name_becomes_one(key, tmp_path):
    from edge.tools.calendars.lookup import _key

    assert len(_key(key)) == 32
    assert _key(key).isalnum()
    assert _key("01a20284-e862-705d-867c-466dad169b2a") == "01a20284-e862-705d-867c-466dad169b2a"


@pytest.mark.requirement("S2-82")
async def test_a_child_that_hangs_is_ended_and_its_write_reported_as_uncertain(tmp_path):
    pid = tmp_path / "pid"
    script = f"echo $$ > {pid}.half; mv {pid}.half {pid}; exec sleep 600"
    stuck = room(CalendarPlace(folder=tmp_path), deadline_s=0.3, command=("sh", "-c", script))
    for asking, uncertain in (
        (stuck.between(START, END, calendars=["primary"]), False),
        (stuck.make(PLAN), True),
    ):
        with pytest.raises(CalendarTrouble) as e:
            await asking
        assert (e.value.trouble, e.value.uncertain) == (Trouble.AWAY, uncertain)
        if pid.exists():  # on a very busy machine it was ended before it could say who it is
            with pytest.raises(ProcessLookupError):
                os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize(
    "child",
    [
        ("true",),
        ("sh", "-c", "echo no json"),
        ("sh", "-c", "head -c 5000000 /dev/zero"),
        ("/no/such/program",),
    ],
)
async def test_a_child_that_says_nothing_sensible_is_a_refusal(tmp_path, child):
    with pytest.raises(CalendarTrouble) as e:
        await room(CalendarPlace(folder=tmp_path), command=child).between(
            START, END, calendars=["primary"]
        )
    assert e.value.trouble is Trouble.REFUSED


async def test_cancelling_ends_the_child_at_once(tmp_path):
    started = tmp_path / "started"
    stuck = room(
        CalendarPlace(folder=tmp_path),
        command=(
            "sh",
            "-c",
            f"echo $$ > {started}.half; mv {started}.half {started}; exec sleep 600",
        ),
    )
    task = asyncio.ensure_future(stuck.between(START, END, calendars=["primary"]))
    async with asyncio.timeout(20):
        while not started.exists():
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_the_child_answers_whatever_goes_wrong(tmp_path, monkeypatch):
    window = {
        "do": "between",
        "start": START.isoformat(),
        "end": END.isoformat(),
        "calendars": ["primary"],
        "place": {"folder": str(tmp_path)},
    }
    assert worker.answer(window) == {"busy": [], "unread": 0}
    (tmp_path / "primary").mkdir()
    (tmp_path / "primary" / "a.ics").write_bytes(STANDUP)
    assert [b["title"] for b in worker.answer(window)["busy"]] == ["Stand-up"]
    import builtins

    real = builtins.__import__

    def without(name, *args, **more):
        if name == "icalendar":
            raise ModuleNotFoundError("No module named 'icalendar'", name="icalendar")
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    told = worker.answer(window)
    monkeypatch.undo()
    assert "pip install 'glassd[calendar]'" in told["text"]
    blocked = tmp_path / "file"
    blocked.write_text("x")
    make = {
        "do": "make",
        "plan": {
            "key": "k",
            "title": "t",
            "start": START.isoformat(),
            "end": END.isoformat(),
            "online": False,
        },
        "now": START.isoformat(),
        "place": {"folder": str(blocked)},
    }
    assert worker.answer(make)["trouble"] == "refused"
    json.dumps(told)


def test_each_busy_time_names_its_calendar(tmp_path):
    pytest.importorskip("icalendar")
    times = "DTSTART:20261123T090000Z\nDTEND:20261123T100000Z\n"
    event = f"BEGIN:VEVENT\nUID:1\nSUMMARY:x\n{times}END:VEVENT\n"
    for name in ("primary", "work"):
        (tmp_path / f"{name}.ics").write_text(f"BEGIN:VCALENDAR\n{event}END:VCALENDAR\n")
    day = {"start": "2026-11-23T00:00:00+00:00", "end": "2026-11-24T00:00:00+00:00"}
    place = {"folder": str(tmp_path)}
    found = worker.answer(
        {"do": "between", "place": place, "calendars": ["primary", "work"], **day}
    )
    assert [one["calendar"] for one in found["busy"]] == ["primary", "work"]
