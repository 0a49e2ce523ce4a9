"""Story: two wearers page each other through one cloud, while either is away, or is killed."""

import asyncio
import json
import shutil
import sqlite3
import time
from contextlib import asynccontextmanager, closing

import pytest
from msgspec.structs import replace

from edge.runtime.clock import Clock
from tests.e2e.processes import House
from tests.scenarios.world import until, whole_world, world
from tools_cache.everyday.pager import book

pytestmark = pytest.mark.asyncio(loop_scope="session")
ON = {"tool": {"pager": {"enabled": True}}}


@asynccontextmanager
async def two(folder, cloud, **more):
    for name in ("anna", "ben"):
        (folder / name).mkdir()
    async with (
        whole_world(folder / "anna", cloud=cloud, cable=True, **ON) as anna,
        whole_world(folder / "ben", cloud=cloud, cable=True, **ON) as ben,
    ):
        yield anna, ben


async def created(place, name):
    answer = await place.call("pager:create", {"name": name})
    assert answer.ok, answer
    assert answer.data["registered"] is True
    return answer.data["pager"]


async def send(place, to, text, **more):
    """Send a page; its wearer says yes."""
    place.start_call("pager:send", {"to": to, "text": text, **more})
    await place.answer_question()
    answer = await place.answer()
    assert answer.ok, answer
    return answer.data


async def reported_tools(place):
    """The names of the tools that the edge told the cloud of, once it has."""
    async with asyncio.timeout(20):
        while True:
            told = (await place.cloud_status())["edges"][place.edge_id]["capabilities"]
            if told and "tools" in told:
                return [tool["name"] for tool in told["tools"]]
            await asyncio.sleep(0.05)


async def in_the_inbox(place):
    return (await place.call("pager:inbox")).data["messages"]


class PagerHouse(House):
    """Mock, cloud and a daemon with pagers, as three processes."""

    def _child(self, *words, announces=False):
        if words[0] == "run":
            with (self.folder / "glassd.toml").open("a") as config:
                config.write("[tool.pager]\nenabled = true\n")
        return super()._child(*words, announces=announces)


@asynccontextmanager
async def watched_lens(house):
    """What was on the lens since: a page may be read before the daemon is connected again."""
    reader, writer = await asyncio.open_unix_connection(house.folder / "mock.sock")
    writer.write(b'{"do": "watch"}\n')
    await reader.readline()
    seen = []

    async def watch():
        async for line in reader:
            event = json.loads(line)
            if event.get("event") == "lens":
                seen.append(" ".join(event["lines"]))

    watching = asyncio.ensure_future(watch())
    try:
        yield seen
    finally:
        watching.cancel()
        writer.close()


@pytest.mark.requirement("I15-pager-relay", "S4-48")
async def test_a_page_reaches_the_other_lens_also_after_either_was_away(tmp_path, cloud):
    async with two(tmp_path, cloud) as (anna, ben):
        sender, recipient = await created(anna, "Anna"), await created(ben, "Ben")

        sent = await send(anna, recipient, "Bring the keys")
        await ben.lens_shows("From Anna", sender, "Bring the keys")
        assert [one["id"] for one in await in_the_inbox(ben)] == [sent["id"]]

        await ben.stop_daemon()
        away = await send(anna, recipient, "The gate is open")
        assert away["waits"] is False
        await ben.start_daemon()
        await ben.ready()
        await ben.lens_shows("The gate is open")
        assert [one["id"] for one in await in_the_inbox(ben)] == [away["id"], sent["id"]]

        await anna.cable.pull_out()
        await anna.heard("uplink.down")
        late = await send(anna, recipient, "From the tunnel", priority=2)
        assert late["waits"] is True
        assert anna.daemon.status()["outbox"]["waiting"] == 1
        await anna.cable.plug_in()
        await ben.lens_shows("Urgent: From Anna", "From the tunnel")
        messages = await in_the_inbox(ben)
        assert [one["id"] for one in messages] == [late["id"], away["id"], sent["id"]]
        assert not any(one["conflicted"] for one in messages)


@pytest.mark.requirement("S4-48")
async def test_a_pager_that_was_made_anew_is_not_taken_for_the_old_one(
    tmp_path, cloud, monkeypatch
):
    async with two(tmp_path, cloud) as (anna, ben):
        sender, recipient = await created(anna, "Anna"), await created(ben, "Ben")
        await send(anna, recipient, "It is me")
        await ben.lens_shows("It is me")

        await anna.stop_daemon()
        shutil.rmtree(anna.folder / "state")
        monkeypatch.setattr(book, "new_pager_id", lambda: sender)
        await anna.start_daemon()
        await anna.ready()
        assert await created(anna, "Anna") == sender
        await send(anna, recipient, "It is me again")
        await ben.lens_shows(f"The key of {sender} has changed", "somebody else")
        newest, oldest = await in_the_inbox(ben)
        assert (newest["conflicted"], oldest["conflicted"]) == (True, False)
        trust = {"pager": sender, "accept": True, "fingerprint": newest["fingerprint"]}
        ben.start_call("pager:trust", trust)
        await ben.answer_question()
        assert (await ben.answer()).data["state"] == "trusted"
        await send(anna, recipient, "Thank you")
        await ben.lens_shows("Thank you")
        assert (await in_the_inbox(ben))[0]["conflicted"] is False


async def sent_pages(place):
    """What the wearer reads of the pages sent: (message, state)."""
    found = (await place.call("pager:inbox", {"sent": True})).data["messages"]
    return [(one["message"], one["state"]) for one in found]


def a_day_later(cloud_folder):
    """Let a day pass for what waits at the relay."""
    with closing(sqlite3.connect(cloud_folder / "devcloud.db")) as db, db:
        day = "UPDATE pages SET sent_wall = sent_wall - 86400, ends_wall = ends_wall - 86400"
        assert db.execute(f"{day} WHERE state = 'waits'").rowcount == 1


@pytest.mark.requirement("I15-pager-told")
async def test_the_sender_is_told_of_a_page_that_waited_over_a_restart_and_was_refused(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud, cable=True, **ON) as anna:
        await created(anna, "Anna")
        await anna.cable.pull_out()
        await anna.heard("uplink.down")
        assert (await send(anna, "PAGER-0000", "Is anybody there?"))["waits"] is True
        assert await sent_pages(anna) == [("Is anybody there?", "waits")]
        await anna.stop_daemon()
        await anna.cable.plug_in()
        await anna.start_daemon()
        await anna.ready()
        await anna.lens_shows("Your page to PAGER-0000 was not", "nobody has this pager.")
        assert await sent_pages(anna) == [("Is anybody there?", "failed")]


@pytest.mark.requirement("I15-pager-told", "S4-48", "S4-52")
async def test_the_sender_is_told_of_a_page_that_its_recipient_did_not_accept(tmp_path, cloud):
    async with two(tmp_path, cloud) as (anna, ben):
        sender, recipient = await created(anna, "Anna"), await created(ben, "Ben")
        await send(anna, recipient, "First")
        await ben.lens_shows("First")
        ben.start_call("pager:trust", {"pager": sender, "accept": False})
        await ben.answer_question()
        assert (await ben.answer()).data["state"] == "revoked"
        await send(anna, recipient, "Second")
        await anna.lens_shows(f"Your page to {recipient} was not", "it was not accepted there.")

        other = await created(ben, "Old")
        ben.start_call("pager:deactivate", {"pager": other})
        await ben.answer_question()
        assert (await ben.answer()).ok
        await send(anna, other, "Third")
        await anna.lens_shows(f"Your page to {other} was not", "it was not accepted there.")
        assert await sent_pages(anna) == [
            ("Third", "failed"),
            ("Second", "failed"),
            ("First", "taken"),
        ]
        assert [one["message"] for one in await in_the_inbox(ben)] == ["First"]


@pytest.mark.requirement("I15-pager-told", "S4-46")
async def test_pages_whose_time_is_over_are_gone_and_their_sender_knows(tmp_path, monkeypatch):
    async with world(tmp_path) as place:
        cloud = await place.start_cloud()
        async with two(tmp_path, cloud) as (anna, ben):
            await created(anna, "Anna")
            recipient = await created(ben, "Ben")
            await send(anna, recipient, "Read me today")
            await ben.lens_shows("Read me today")
            assert len(await in_the_inbox(ben)) == 1

            await ben.stop_daemon()
            await send(anna, recipient, "Too late")
            a_day_later(tmp_path / "cloud")
            await anna.lens_shows(f"Your page to {recipient} may not", "its time was over")
            later = replace(Clock.system(), wall=lambda: time.time() + 86_400)
            monkeypatch.setattr(Clock, "system", lambda: later)
            await ben.start_daemon()
            await ben.ready()
            await send(anna, recipient, "In time")
            await ben.lens_shows("In time")
            left = [one["message"] for one in await in_the_inbox(ben)]
            assert "Read me today" not in left
            assert left[0] == "In time"
            states = [state for _, state in await sent_pages(anna)]
            assert states == ["taken", "unconfirmed", "taken"]


@pytest.mark.requirement("S4-43", "S4-45", "S4-47", "S4-51")
async def test_priorities_long_texts_and_places_reach_the_other_side(tmp_path, cloud):
    async with two(tmp_path, cloud) as (anna, ben):
        await created(anna, "Anna")
        recipient = await created(ben, "Ben")
        await send(anna, recipient, "For later", priority=0)
        pin = {"lat": 52.52, "lon": 13.4}
        await send(anna, recipient, "Come at once", priority=2, location=pin)
        await ben.lens_shows("Urgent: From Anna", "Come at once")
        text = "word " * 80 + "end"
        sent = await send(anna, recipient, text)
        assert (len(sent["sent"]) <= 300, sent["shortened"]) == (True, True)
        await ben.lens_shows("From Anna", "word")
        listed = await in_the_inbox(ben)
        assert [one["priority"] for one in listed] == [1, 2, 0]
        assert listed[0]["message"].endswith("word…")
        one = (await ben.call("pager:inbox", {"message": sent["id"]})).data["messages"][0]
        assert one["original"] == text
        assert listed[1]["location"] == pin
        assert not any("For later" in json.dumps(shown) for shown in ben.shown)


async def test_only_programs_call_the_relay_and_the_delivery(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud, **ON) as place:
        offered = {one.definition.name for one in place.daemon.choice.offered("local")}
        assert "pager:send" in offered
        for tool in ("pager:deliver", "com.glassd.pager:relay", "com.glassd.pager:register"):
            assert tool not in offered
        register = {"pager": "PAGER-AAAA"}
        direct = await place.call("com.glassd.pager:register", register)
        invoked = await place.call(
            "registry:invoke", {"tool": "com.glassd.pager:register", "args": register}
        )
        assert (direct.error.code, invoked.error.code) == ("DENIED", "DENIED")
        tools = await reported_tools(place)
        assert [name for name in tools if name.startswith("pager:")] == ["pager:deliver"]


@pytest.mark.requirement("I15-pager-relay")
async def test_a_page_that_comes_while_the_daemon_is_killed_is_shown_and_stored_once(tmp_path):
    (tmp_path / "house").mkdir()
    (tmp_path / "anna").mkdir()
    house = PagerHouse(tmp_path / "house")
    try:
        await asyncio.to_thread(house.start)

        def asked(*words):
            return json.loads(house.glassd("call", *words, "--json").stdout)

        recipient = (await asyncio.to_thread(asked, "pager:create", "name=Ben"))["data"]["pager"]
        async with (
            whole_world(tmp_path / "anna", cloud=house.cloud.announcement, **ON) as anna,
            watched_lens(house) as seen,
        ):
            await created(anna, "Anna")
            sent = []
            for number, moment_s in enumerate((0.0, 0.03, 0.1)):
                text = f"Mind step {number}"
                sent.append((await send(anna, recipient, text))["id"])
                await asyncio.sleep(moment_s)  # how far the delivery is when the kill comes
                house.daemon.kill9()
                await asyncio.to_thread(house.start_what_was_killed)
                await until(
                    lambda text=text: any(text in page for page in seen), f"{text} is shown"
                )

            def inbox():
                return [m["id"] for m in asked("pager:inbox")["data"]["messages"]]

            assert await asyncio.to_thread(inbox) == sent[::-1]
    finally:
        await asyncio.to_thread(house.close)
