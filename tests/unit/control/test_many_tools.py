"""`GET /v1/tools` as bytes: pages, ETags, what makes a listing another one, and that listing
thousands of tools lets other tasks run.
"""

import asyncio
import json
from types import SimpleNamespace
from urllib.parse import quote, urlencode

import pytest

from edge.control import listings
from edge.control.http import Reply, Request, Written
from edge.control.listings import Listings
from edge.control.tools import ToolRoutes
from edge.core.tools.registry import Union
from edge.core.tools.selection import SelectionLimits
from edge.core.tools.selection_rules import AVAILABLE, HIDDEN, OFFERED, Choice, Facts, UserRules
from edge.tools.selection import SelectionSettings
from tests.unit.control.house import open_house
from tests.unit.tools.test_selection import FEW, MANY, house as chosen_tools
from tests.unit.tools.test_snapshot import app, glasses

pytestmark = pytest.mark.enable_socket


def apps(count, each=20):
    return [app(f"com.a{n:03}", *(f"t{m:02}" for m in range(each))) for n in range(count)]


def snapshot(*found, record=None, version="v"):
    return Union.of((), found).snapshot(version, record, stale=False)


class Ports(SimpleNamespace):
    """What listings depend on; `looked` counts the entries whose state was asked for."""

    def __init__(self, now, choice=None):
        super().__init__(registry=self, choice=choice, user_id="local", now=now, about={})
        self.looked = 0
        self.new_id = lambda: "start"
        self.origin = lambda: self.about

    def snapshot(self):
        return self.now


class Chosen:
    """A hand-written `ChoicePort` in which all tools have one state."""

    def __init__(self, state=OFFERED, known=True):
        self.state, self.known, self.looked, self.change = state, known, 0, None

    def choice(self, entry, user_id, mode=None):
        self.looked += 1
        if self.change:
            self.change()
        return Choice(self.state, "why")

    def version(self):
        return self.state if self.known else None

    def describe(self):
        return {"turn": 1}


async def ask(routes, tag="", **query) -> Reply:
    headers = {"if-none-match": tag} if tag else {}
    return await routes.show(Request("GET", "/v1/tools", query, headers, b""))


def document(reply):
    assert isinstance(reply.body, Written)
    return json.loads(b"".join(reply.body.parts))


def names(reply):
    return [tool["name"] for tool in document(reply)["tools"]]


def tag_of(reply):
    return dict(reply.headers).get("ETag", "")


def routes_of(ports):
    return ToolRoutes(ports, Listings(ports))


# ------------------------------------------------------------------ many


@pytest.mark.requirement("I5-10000")
async def test_a_list_of_thousands_does_not_block_others():
    ports, turns = Ports(snapshot(*apps(200))), 0

    async def somebody_else():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(somebody_else())
    reply = await ask(routes_of(ports))
    beside.cancel()
    assert len(names(reply)) == 4000
    assert document(reply)["counts"] == {OFFERED: 4000, AVAILABLE: 0, HIDDEN: 0}
    written = sum(len(page) for page in reply.body.parts)
    assert turns >= (written + 2 * 4000 * listings.LOOK) // listings.STEP // 2


async def test_tools_that_are_looked_at_and_left_out_do_not_block_others():
    ports, turns = Ports(snapshot(*apps(200))), 0

    async def somebody_else():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(somebody_else())
    assert names(await ask(routes_of(ports), category="none")) == []
    beside.cancel()
    assert turns >= 2 * 4000 * listings.LOOK // listings.STEP - 2, "counted, then looked at again"


@pytest.mark.parametrize("page", [1, 5_000, 1_000_000])
async def test_pages_have_every_tool_once_and_none_is_larger_than_allowed(monkeypatch, page):
    monkeypatch.setattr(listings, "MAX_PAGE", page)
    routes = routes_of(Ports(snapshot(*apps(5))))
    found, after, sizes = [], "", []
    while True:
        reply = await ask(routes, after=after)
        tools = document(reply)["tools"]
        assert tools, "a page has at least one tool"
        found += [tool["name"] for tool in tools]
        sizes.append(len(json.dumps(tools, separators=(",", ":"))) - 2)
        assert document(reply)["counts"][OFFERED] == 100
        after = document(reply)["next"]
        if not after:
            break
    assert found == names(await ask(routes)) == sorted(found)
    assert len(found) == 100
    assert len(sizes) == {1: 100, 5_000: len(sizes), 1_000_000: 1}[page]
    assert page == 1 or max(sizes) <= page
    assert len(sizes) * page >= sum(sizes) or page == 1


async def test_a_page_after_a_tool_that_has_gone_goes_on_at_the_next_one():
    routes = routes_of(Ports(snapshot(app("a", "t1", "t3", "t5"))))
    assert names(await ask(routes, after="a:t2")) == ["a:t3", "a:t5"]
    assert document(await ask(routes, after="z"))["tools"] == []
    assert document(await ask(routes, after="z"))["next"] == ""


async def test_an_answer_that_is_not_paged_has_no_next_field():
    routes = routes_of(Ports(snapshot(app("a", "t1"))))
    assert "next" not in document(await ask(routes))
    assert document(await ask(routes, after=""))["next"] == ""


async def test_all_pages_at_once_are_the_pages_one_after_the_other(monkeypatch):
    monkeypatch.setattr(listings, "MAX_PAGE", 3_000)
    routes = routes_of(Ports(snapshot(*apps(5))))
    assert len(names(await ask(routes))) == 100
    assert len((await ask(routes)).body.parts) > 10


# ------------------------------------------------------------------ made once


async def test_a_listing_is_made_once_and_an_unchanged_one_is_not_sent_again():
    choice = Chosen()
    ports = Ports(snapshot(app("a", "t1", "t2")), choice)
    routes = routes_of(ports)
    first = await ask(routes)
    made = choice.looked
    second = await ask(routes)
    assert (second.body, tag_of(second)) == (first.body, tag_of(first))
    again = await ask(routes, tag_of(first))
    assert (again.status, again.body, tag_of(again)) == (304, None, tag_of(first))
    assert (await ask(routes, f'"other", {tag_of(first)[2:]}')).status == 304, "a strong one too"
    assert (await ask(routes, '"other"')).status == 200
    assert choice.looked == made


async def test_the_age_of_the_registry_alone_makes_no_other_listing():
    ports = Ports(snapshot(app("a", "t1")))
    routes = routes_of(ports)
    ports.about = {"origin": "cloud", "version": "v", "age_s": 1.0, "error": ""}
    first = await ask(routes)
    ports.about = {**ports.about, "age_s": 2.0}
    assert (await ask(routes, tag_of(first))).status == 304
    assert document(await ask(routes))["registry"]["age_s"] == 2.0
    ports.about = {**ports.about, "error": "away"}
    assert document(await ask(routes, tag_of(first)))["registry"]["error"] == "away"


async def test_each_query_has_a_tag_of_its_own():
    routes = routes_of(Ports(snapshot(app("a", "t1"))))
    queries = ({}, {"all": "1"}, {"category": "x"}, {"mode": "voice"}, {"after": ""})
    scoped = {"scope": '{"mentions": []}'}
    tags = [tag_of(await ask(routes, **query)) for query in (*queries, scoped)]
    assert len(set(tags)) == len(tags)


async def test_tools_whose_changes_cannot_be_noticed_are_made_each_time_without_a_tag():
    choice = Chosen(known=False)
    routes = routes_of(Ports(snapshot(app("a", "t1")), choice))
    assert tag_of(await ask(routes)) == ""
    choice.state = HIDDEN
    assert names(await ask(routes)) == []


@pytest.mark.parametrize("noticed", [False, True], ids=["later", "by another client"])
async def test_tools_that_change_while_they_are_listed_are_listed_again(monkeypatch, noticed):
    monkeypatch.setattr(listings, "STEP", listings.LOOK)
    choice = Chosen()
    ports = Ports(snapshot(app("a", "t1", "t2", "t3")), choice)
    made = Listings(ports)
    asked = asyncio.ensure_future(ask(ToolRoutes(ports, made), all="1"))
    while choice.looked < 5:  # the three were counted, and two are written
        await asyncio.sleep(0)
    choice.state = AVAILABLE
    if noticed:
        made.number()
    reply = await asked
    assert {tool["state"] for tool in document(reply)["tools"]} == {AVAILABLE}
    assert document(reply)["counts"] == {OFFERED: 0, AVAILABLE: 3, HIDDEN: 0}


async def test_tools_that_never_stop_changing_are_listed_without_a_tag(monkeypatch):
    monkeypatch.setattr(listings, "STEP", listings.LOOK)
    choice = Chosen()
    ports = Ports(snapshot(app("a", "t1", "t2")), choice)
    changes = iter(range(10**6))
    choice.change = lambda: setattr(
        ports, "now", snapshot(app("a", "t1", "t2"), version=f"v{next(changes)}")
    )
    routes = routes_of(ports)
    reply = await ask(routes)
    assert (names(reply), tag_of(reply)) == (["a:t1", "a:t2"], "")
    assert choice.looked == listings.ATTEMPTS * 4
    choice.change = None
    assert document(await ask(routes))["version"] == ports.now.version


@pytest.mark.parametrize("most", [0, 2_500, 10**6])
async def test_no_more_bytes_are_kept_than_allowed(monkeypatch, most):
    monkeypatch.setattr(listings, "MAX_PAGE", 1_000)
    monkeypatch.setattr(listings, "MAX_KEPT", most)
    ports = Ports(snapshot(*apps(2)))
    made = Listings(ports)
    routes = ToolRoutes(ports, made)
    for query in ({}, {"all": "1"}, {"category": "utility"}):
        assert len(names(await ask(routes, **query))) == 40
    held = sum(len(page.tools) for page in made._pages.values())
    assert held <= most
    assert held == made._kept_bytes
    assert most == 0 or held > 0
    ports.now = snapshot()
    assert names(await ask(routes)) == []
    assert made._kept_bytes == 0


async def test_no_more_counts_and_pages_are_kept_than_allowed():
    ports = Ports(snapshot(app("a", "t1")))
    made = Listings(ports)
    for number in range(3 * listings.MAX_COUNTS):
        await ask(ToolRoutes(ports, made), category=f"c{number}")
    assert max(len(made._counts), len(made._pages)) == listings.MAX_COUNTS


# ------------------------------------------------------------------ never out of date


async def test_no_change_of_the_glasses_or_the_registry_leaves_a_listing_as_it_was():
    found = (app("photo", "take", needs=["CAMERA"]), app("calc", "add"))
    ports = Ports(snapshot(*found))
    routes, seen = routes_of(ports), []
    for now in (
        snapshot(*found),
        snapshot(*found, record=glasses(camera=False)),
        snapshot(*found, record=glasses(camera=True)),
        snapshot(found[1], record=glasses(camera=True)),
        snapshot(found[1], record=glasses(camera=True), version="other"),
    ):
        ports.now = now
        reply = await ask(routes, seen[-1] if seen else "", all="1")
        assert document(reply) == document(await ask(routes_of(ports), all="1"))
        seen.append(tag_of(reply))
    assert len(set(seen)) == 5


CHANGES = {
    "facts": lambda h: h.world.update(facts=Facts(glasses=True)),
    "worn": lambda h: h.world.update(facts=Facts(glasses=True, worn=True)),
    "switched off": lambda h: h.choice.disable("local", "notes:add", origin="cli"),
    "switched on": lambda h: h.choice.enable("local", "notes:add", origin="cli"),
    "denied": lambda h: h.choice.apply(
        SelectionSettings(users={"local": UserRules(denied=("notes:*",))})
    ),
    "disabled in the registry": lambda h: h.registry.take(FEW, notes_add="broken"),
    "fewer tools": lambda h: h.registry.take(FEW[1:]),
    "another limit": lambda h: h.choice.apply(SelectionSettings(limits=SelectionLimits(offered=2))),
    "a turn": lambda h: h.choice.turn("t1"),
}


@pytest.mark.parametrize("gone", ["", *CHANGES])
async def test_after_each_change_of_the_selection_the_listing_is_as_made_anew(tmp_path, gone):
    """`gone`: left out, so that each change also follows another one."""
    async with chosen_tools(tmp_path, FEW) as h:
        ports = Ports(None, h.choice)
        ports.snapshot = h.registry.snapshot
        routes, tag, before = routes_of(ports), "", None
        for change in (change for name, change in CHANGES.items() if name != gone):
            if (done := change(h)) is not None and hasattr(done, "__await__"):
                await done
            for query in ({"all": "1"}, {"mode": "voice"}, {}):
                kept = document(await ask(routes, **query))
                assert kept == document(await ask(routes_of(ports), **query))
            reply = await ask(routes, tag)
            assert reply.status == 200 or (gone and kept == before)
            tag, before = tag_of(reply), kept


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.choice.disable("local", "far:t29", origin="cli"),
        lambda h: h.choice.apply(
            SelectionSettings(
                limits=SelectionLimits(offered=8), users={"local": UserRules(denied=("far:t29",))}
            )
        ),
    ],
    ids=["switched", "configured"],
)
async def test_a_tool_that_no_model_sees_is_listed_as_hidden_once_it_is_off(tmp_path, change):
    async with chosen_tools(tmp_path, MANY, limits=SelectionLimits(offered=8)) as h:
        ports = Ports(None, h.choice)
        ports.snapshot = h.registry.snapshot
        routes = routes_of(ports)
        before, offered = await ask(routes), h.names()
        if (done := change(h)) is not None:
            await done
        assert h.names() == offered, "nothing else says that something changed"
        assert "far:t29" in names(before)
        assert "far:t29" not in names(await ask(routes, tag_of(before)))


async def test_a_tool_that_is_loaded_is_listed_as_offered_at_once(tmp_path):
    async with chosen_tools(tmp_path, MANY, limits=SelectionLimits(offered=8)) as h:
        ports = Ports(None, h.choice)
        ports.snapshot = h.registry.snapshot
        routes = routes_of(ports)
        before = await ask(routes)
        h.choice.load_tools(["far:t29"])
        h.choice.turn("t1")
        after = await ask(routes, tag_of(before))
        states = [
            {tool["name"]: tool["state"] for tool in document(reply)["tools"]}["far:t29"]
            for reply in (before, after)
        ]
        assert states == [AVAILABLE, OFFERED]


# ------------------------------------------------------------------ over the socket


async def test_both_sockets_answer_304_without_a_body_and_the_connection_goes_on(tmp_path):
    ports = Ports(snapshot(*apps(100)))
    async with open_house(tmp_path, registry=ports) as house:
        head = b"GET /v1/tools HTTP/1.1\r\nHost: x\r\n"
        first = await house.exchange(head + b"Connection: close\r\n\r\n")
        tag = first.split(b"ETag: ")[1].split(b"\r\n")[0]
        asked = head + b"If-None-Match: " + tag
        for path in (house.path, house.owners):
            both = await house.exchange(
                asked + b"\r\n\r\n" + asked + b"\r\nConnection: close\r\n\r\n", path=path
            )
            assert both.count(b"HTTP/1.1 304") == 2
            assert both.lower().count(b"etag: " + tag.lower()) == 2
            assert b"{" not in both
        body = first.partition(b"\r\n\r\n")[2]
        assert len(json.loads(body)["tools"]) == 2000
        assert f"Content-Length: {len(body)}".encode() in first


@pytest.mark.parametrize("after", ["x" * 256])
async def test_a_malformed_page_is_refused_by_name(tmp_path, after):
    async with open_house(tmp_path) as house:
        status, error = await house.ask("GET", f"/v1/tools?{urlencode({'after': after})}")
        assert (await house.ask("GET", f"/v1/tools?after={quote('ü:x')}"))[0] == 200
    assert (status, error["error"]["message"].startswith("after: ")) == (400, True)
