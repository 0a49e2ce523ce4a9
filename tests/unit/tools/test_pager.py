"""Pagers: messages between two users' devices through the relay of the cloud, without a network."""

import asyncio
import json
import re
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from edge.core import permissions, phrases
from edge.devcloud.agent import Invoked
from edge.devcloud.database import open_shared
from edge.devcloud.pager_relay import PACKAGE, PagerDelivery, PagerRelay
from edge.devcloud.worker.job import Job
from edge.storage.tools.user_stores import PrivateStores
from tests.unit.tools.compiled import shipped
from tests.unit.tools.test_local import WALL, Rig, call
from tools_cache.api.shortening import shortened
from tools_cache.api.tool import CallOrigin, ErrorCode, ToolResponse
from tools_cache.builder import compiler
from tools_cache.everyday.pager import book, inbox, keys, messages, sending
from tools_cache.everyday.pager.settings import Config

TOOLS = ("create", "send", "inbox", "trust", "deactivate", "deliver")


class Cloud:
    """The real relay over a real file; messages go out at once, or when the test says so."""

    def __init__(self, db):
        self.wall = WALL
        self.relay = PagerRelay(db, wall=lambda: self.wall)
        self.delivery = PagerDelivery(self.relay, self.invoke, wall=lambda: self.wall)
        self.desks = {}
        self.delivers = True

    async def take(self, edge, asked):
        tool = self.relay.tools().get(asked.tool)
        if tool is None:
            return ToolResponse.failure(ErrorCode.TOOL_NOT_FOUND, f"Tool {asked.tool} not found")
        answer = await tool(Job(edge, replace(asked, ttl_s=604_800.0), "", False, 0.0))
        if self.delivers:
            await self.deliver()
        return answer

    async def deliver(self):
        for edge in self.desks:
            while (waiting := await self.delivery._oldest(edge)) is not None:
                if not await self.delivery._deliver(waiting):
                    break

    async def invoke(self, edge_id, tool, args, *, ttl_s, user_id):
        asked = call(tool, args, origin=CallOrigin.CLOUD, user_id=user_id, ttl_s=ttl_s)
        desk = self.desks[edge_id]
        desk.taken.append(args)
        return Invoked(True, (), await desk.go(asked))


class Desk(Rig):
    """One device with the shipped tools; `online` is its connection to the cloud."""

    def __init__(self, path, cloud, edge, **config):
        path.mkdir(exist_ok=True)
        self.cloud, self.edge, self.online = cloud, edge, True
        self.stores = PrivateStores(path / "users", key=path / "tools.key")
        self.users, self.outbox, self.taken, self.asked = path / "users", [], [], []
        self.condense = None
        settings = Config(**{"enabled": True, **config}).model_dump()
        super().__init__(
            path,
            shipped(),
            compiler.TOOLS,
            private=self.stores.of,
            call=self.other_tool,
            configs={f"pager:{tool}": settings for tool in TOOLS},
        )
        cloud.desks[edge] = self
        self.number = 0

    async def other_tool(self, asked):
        self.asked.append(asked)
        if not asked.tool.startswith(PACKAGE):
            return await self.condense(asked)
        if not self.online:
            self.outbox.append(asked)
            return ToolResponse(data={"status": "pending", "pendingToolCallId": asked.call_id})
        return await self.cloud.take(self.edge, asked)

    async def back_online(self):
        self.online = True
        waiting, self.outbox = self.outbox, []
        for asked in waiting:
            await self.answered(asked, await self.cloud.take(self.edge, asked))

    async def answered(self, asked, answer):
        """As the daemon does when the answer of a call comes that was pending."""
        definition = self.registry.snapshot().find(asked.through).definition
        await self.local.take_late_answer(definition, asked, answer)

    async def respond(self, tool, args, **more):
        definition = self.registry.snapshot().find(f"pager:{tool}").definition
        filled, problems = self.registry.check_args(definition, args)
        if problems:
            return problems
        self.number += 1
        more = {"call_id": f"{self.edge}-{self.number}", **more}
        return await self.run(f"pager:{tool}", filled, **more)

    async def ask(self, tool, args=None, **more):
        response = await self.respond(tool, args or {}, **more)
        assert response.ok, response
        json.dumps(response.to_json())
        return response.data

    async def fails(self, tool, args=None, **more):
        response = await self.respond(tool, args or {}, **more)
        assert not response.ok
        return response.error

    async def announced(self):
        """What the wearer is told, in order; as the notifier takes it."""
        await self.alarms._load()
        return [alarm.text for alarm in self.alarms._soonest_first()]

    async def create(self, name="Anna"):
        return (await self.ask("create", {"name": name}))["pager"]

    @property
    def book(self):
        return book.PagerBook(self.stores.of("local", "pager").db)

    async def close(self):
        await self.stores.close()
        await self.packages.close()


@pytest.fixture
async def cloud(tmp_path):
    db = await open_shared(tmp_path / "devcloud.db")
    yield Cloud(db)
    await db.close()


@asynccontextmanager
async def desk_at(path, cloud, edge, **config):
    desk = Desk(path, cloud, edge, **config)
    try:
        yield desk
    finally:
        await desk.close()


@pytest.fixture
async def anna(tmp_path, cloud):
    async with desk_at(tmp_path / "anna", cloud, "edge-a") as desk:
        yield desk


@pytest.fixture
async def ben(tmp_path, cloud):
    async with desk_at(tmp_path / "ben", cloud, "edge-b") as desk:
        yield desk


def signed(private_key, **changes):
    """Return the arguments of a delivery, signed after the changes."""
    message = {
        "v": 1,
        "id": "MSG-AAAA0000",
        "from": "PAGER-AAAA",
        "name": "Anna",
        "to": "PAGER-BBBB",
        "text": "hello",
        "original": "",
        "distilled": False,
        "priority": 1,
        "location": None,
        "life_s": 3600,
        "key": keys.public_key(private_key),
        **changes,
    }
    return {"message": message, "signature": keys.sign(private_key, messages.signed_bytes(message))}


async def deliver(desk, args, **more):
    return await desk.respond("deliver", args, origin=CallOrigin.CLOUD, **more)


# ------------------------------------------------------------------ ids, keys, texts


@pytest.mark.requirement("S4-44")
async def test_ids_of_pagers_and_messages_have_their_forms(anna):
    pager = await anna.create()
    assert re.fullmatch("PAGER-[A-Z0-9]{4}", pager)
    sent = await anna.ask("send", {"to": pager, "text": "note to self"})
    assert re.fullmatch("MSG-[A-Z0-9]{8}", sent["id"])
    assert len({messages.message_id("local", pager, str(n)) for n in range(2000)}) == 2000


@pytest.mark.requirement("S4-50")
def test_a_fingerprint_is_the_sha256_of_the_public_key_and_never_changes():
    key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    assert keys.fingerprint(key) == (
        "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd"
    )
    assert keys.shown_fingerprint(key) == "630d cd29 66c4 3366"


@pytest.mark.requirement("S4-49")
def test_one_flipped_bit_of_a_message_its_signature_or_its_key_is_rejected():
    private = keys.new_private_key()
    key, data = keys.public_key(private), b'{"text":"hello"}'
    signature = keys.sign(private, data)
    assert keys.is_signed(key, signature, data)
    for at in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        assert not keys.is_signed(key, signature, bytes(flipped))
    for at in range(0, 512, 7):
        raw = bytearray(keys._bytes(signature))
        raw[at // 8] ^= 1 << at % 8
        assert not keys.is_signed(key, keys._text(bytes(raw)), data)
    for at in range(0, 256, 7):
        raw = bytearray(keys._bytes(key))
        raw[at // 8] ^= 1 << at % 8
        assert not keys.is_signed(keys._text(bytes(raw)), signature, data)
    for broken in ("", "!", "AA==", signature[:-4]):
        assert not keys.is_signed(key, broken, data)
        assert not keys.is_signed(broken, signature, data)


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two…"),
        ("one two, three", 9, "one two…"),
        ("a" * 60, 50, "a" * 49 + "…"),
    ],
)
def test_a_text_is_cut_at_a_word_with_a_sign(text, most, short):
    assert shortened(text, most) == short


@pytest.mark.requirement("S4-43")
def test_a_message_lives_a_day_has_300_characters_and_is_condensed_unless_configured():
    stock = Config()
    assert (stock.enabled, stock.expiry_h, stock.max_chars, stock.distill) == (False, 24, 300, True)
    for wrong in (
        {"expiry_h": 0},
        {"expiry_h": 169},
        {"max_chars": 49},
        {"max_chars": 301},
        {"distill_with": "no name"},
        {"relay": "x"},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Config(**wrong)


# ------------------------------------------------------------------ from one to the other


async def test_a_message_is_shown_with_its_sender_and_is_in_the_inbox_once(anna, ben):
    sender, recipient = await anna.create(), await ben.create("Ben")
    sent = await anna.ask("send", {"to": recipient, "text": "I am\nlate"})
    assert (sent["text"], sent["waits"]) == (f"Sent to {recipient}", False)
    assert await ben.announced() == [f"From Anna ({sender}): I am late"]
    got = await ben.ask("inbox")
    assert [m["id"] for m in got["messages"]] == [sent["id"]]
    assert got["text"] == f"1 page\n- From Anna ({sender}): I am late"
    assert got["messages"][0]["unread"]
    assert (await ben.ask("inbox", {"unread": True}))["text"] == "No unread pages"
    assert not (await ben.ask("inbox"))["messages"][0]["unread"]


async def test_each_example_of_the_documents_is_true(tmp_path, cloud, monkeypatch):
    chosen = iter(["PAGER-AB12", "PAGER-CD34"])
    monkeypatch.setattr(book, "new_pager_id", lambda: next(chosen))

    def within(told, whole):
        if isinstance(told, dict):
            return all(key in whole and within(value, whole[key]) for key, value in told.items())
        return told == whole

    async with desk_at(tmp_path / "a", cloud, "edge-a") as desk:
        for tool in ("inbox", "create", "send", "trust", "deactivate"):
            doc = (compiler.TOOLS / f"pager_{tool}" / "doc.md").read_text(encoding="utf-8")
            found = re.findall(r"^`(\{.*\})` gives `(\{.*\})`$", doc, re.MULTILINE)
            assert found
            for args, result in found:
                data = await desk.ask(tool, json.loads(args))
                assert within(json.loads(result), data), (args, data)


@pytest.mark.requirement("S4-45")
@pytest.mark.parametrize(
    ("priority", "said"),
    [(0, []), (1, ["From Anna ({}): hi"]), (2, ["Urgent: From Anna ({}): hi"])],
)
async def test_priority_0_is_in_the_inbox_alone_and_2_is_urgent(anna, ben, priority, said):
    sender, recipient = await anna.create(), await ben.create("Ben")
    await anna.ask("send", {"to": recipient, "text": "hi", "priority": priority})
    assert await ben.announced() == [line.format(sender) for line in said]
    assert (await ben.ask("inbox"))["messages"][0]["priority"] == priority


@pytest.mark.requirement("S4-45", "S4-51")
@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"priority": 3}, "priority"),
        ({"priority": -1}, "priority"),
        ({"priority": "1"}, "priority"),
        ({"location": {"lat": 90.01, "lon": 0}}, "lat"),
        ({"location": {"lat": 0, "lon": -180.01}}, "lon"),
        ({"location": {"lat": 0}}, "lon"),
        ({"text": "x" * 4001}, "text"),
        ({"from": "PAGER-ab12"}, "from"),
    ],
)
async def test_a_priority_a_place_or_a_text_out_of_range_is_refused_by_its_field(anna, args, field):
    problems = await anna.respond("send", {"to": "PAGER-BBBB", "text": "hi", **args})
    assert isinstance(problems, list)
    assert field in str(problems)


@pytest.mark.requirement("S4-51")
async def test_a_place_comes_with_the_message(anna, ben):
    await anna.create()
    recipient = await ben.create("Ben")
    pin = {"lat": 52.52, "lon": -13.405}
    sent = await anna.ask("send", {"to": recipient, "text": "here", "location": pin})
    got = await ben.ask("inbox", {"message": sent["id"]})
    assert got["messages"][0]["location"] == pin
    assert got["text"].endswith("52.52000, -13.40500")


async def test_characters_that_turn_text_around_or_are_not_seen_are_not_shown(anna, ben):
    private = keys.new_private_key()
    recipient = await ben.create("Ben")
    bad = "pay \u202e001\u202c\x07 to\u200b me\nnow"
    args = signed(private, to=recipient, name="An\u202ena", text=bad, original=bad)
    assert (await deliver(ben, args)).ok
    shown = (await ben.announced())[0]
    assert shown.isprintable()
    assert shown == "From An na (PAGER-AAAA): pay 001 to me now"
    told = (await ben.ask("inbox", {"message": "MSG-AAAA0000"}))["messages"][0]
    assert told["original"] == "pay 001 to me\nnow"
    assert told["name"] == "An na"


async def test_a_name_that_the_wearer_gave_finds_a_sender_and_one_it_gave_itself_does_not(
    anna, ben
):
    sender, recipient = await anna.create(), await ben.create("Ben")
    await anna.ask("send", {"to": recipient, "text": "hi"})
    assert "'Anna' is neither" in (await ben.fails("send", {"to": "Anna", "text": "x"})).message
    await ben.ask("trust", {"pager": sender, "accept": True, "name": "My  sister"})
    assert (await ben.ask("send", {"to": "my sister", "text": "x"}))["to"] == sender
    spoken = await ben.ask("send", {"text": "My sister I am late"})
    assert (spoken["to"], spoken["sent"]) == (sender, "I am late")
    for said in ("to My sister: come", f"an {sender} come", "a my sister come"):
        assert (await ben.ask("send", {"text": said}))["sent"] == "come"
    assert spoken["text"] == "Sent to My sister"
    await anna.ask("send", {"to": recipient, "text": "and by"})
    assert (await ben.announced())[-1] == "From My sister: and by"
    unread = (await ben.ask("inbox", {"unread": True}))["text"]
    assert unread.startswith("2 unread pages\n- From My sister: and by\n- From Anna (")
    assert (await ben.ask("inbox", {"unread": True}))["text"] == "No unread pages"
    error = await ben.fails("send", {"text": "Mother I am late"})
    assert error.for_wearer == "I do not know whom to page."


async def test_two_senders_of_one_name_are_told_apart_by_id(anna, ben):
    own = [await anna.create(), await anna.create("Anna two")]
    recipient = await ben.create("Ben")
    for pager in own:
        await anna.ask("send", {"from": pager, "to": recipient, "text": "hi"})
        await ben.ask("trust", {"pager": pager, "accept": True, "name": "Anna"})
    error = await ben.fails("send", {"to": "anna", "text": "x"})
    assert all(pager in error.message for pager in own)


# ------------------------------------------------------------------ long texts


LONG = "word " * 100 + "end"


@pytest.mark.requirement("S4-47")
async def test_a_long_text_is_condensed_and_its_original_can_be_read(tmp_path, cloud, ben):
    recipient = await ben.create("Ben")
    async with desk_at(tmp_path / "a", cloud, "edge-c", distill_with="my:condense") as desk:
        await desk.create()

        async def condense(asked):
            assert asked.args == {"text": LONG, "max_chars": 300}
            return ToolResponse(data={"text": "many words"})

        desk.condense = condense
        sent = await desk.ask("send", {"to": recipient, "text": LONG})
    assert (sent["sent"], sent["ai_distilled"], sent["shortened"]) == ("many words", True, True)
    told = (await ben.ask("inbox", {"message": sent["id"]}))["messages"][0]
    assert (told["message"], told["ai_distilled"], told["original"]) == ("many words", True, LONG)


@pytest.mark.requirement("S4-47")
@pytest.mark.parametrize(
    "answer",
    [
        ToolResponse.failure(ErrorCode.OFFLINE, "offline"),
        ToolResponse(data={"status": "pending", "text": "x"}),
        ToolResponse(data={"text": "x" * 301}),
        ToolResponse(data={"text": " \u200b "}),
        ToolResponse(data=5),
    ],
)
async def test_a_text_that_no_model_condensed_is_cut_with_a_sign(tmp_path, cloud, answer):
    async with desk_at(tmp_path / "a", cloud, "edge-c", distill_with="my:condense") as desk:
        own = await desk.create()

        async def condense(_):
            return answer

        desk.condense = condense
        sent = await desk.ask("send", {"to": own, "text": LONG})
    assert (sent["ai_distilled"], sent["shortened"]) == (False, True)
    assert sent["sent"] == " ".join(["word"] * 60) + "…"


async def test_a_model_that_does_not_answer_is_not_waited_for(tmp_path, cloud, monkeypatch):
    monkeypatch.setattr(sending, "CONDENSE_S", 0.01)
    async with desk_at(tmp_path / "a", cloud, "edge-c", distill_with="my:condense") as desk:
        own = await desk.create()
        desk.condense = lambda _: asyncio.Event().wait()
        assert (await desk.ask("send", {"to": own, "text": LONG}))["ai_distilled"] is False


async def test_without_distillation_no_tool_is_asked(tmp_path, cloud):
    options = {"distill": False, "distill_with": "my:condense", "max_chars": 50}
    async with desk_at(tmp_path / "a", cloud, "edge-c", **options) as desk:
        own = await desk.create()
        sent = await desk.ask("send", {"to": own, "text": "x" * 60})
        assert sent["sent"] == "x" * 49 + "…"
        assert {asked.tool.partition(":")[0] for asked in desk.asked} == {PACKAGE}


# ------------------------------------------------------------------ once


async def test_a_repeated_call_is_the_same_message_and_is_delivered_once(anna, ben):
    await anna.create()
    recipient = await ben.create("Ben")
    args = {"to": recipient, "text": "once"}
    first = await anna.ask("send", args, call_id="c7")
    assert (await anna.ask("send", args, call_id="c7"))["id"] == first["id"]
    keyed = [await anna.ask("send", args, call_id=f"k{n}", idempotency_key="key") for n in range(2)]
    assert keyed[0]["id"] == keyed[1]["id"] != first["id"]
    assert (await ben.ask("inbox"))["total"] == 2
    error = await anna.fails("send", {**args, "text": "other"}, call_id="c7")
    assert error.code is ErrorCode.CONFLICT


async def test_a_message_made_offline_waits_and_arrives_once(anna, ben):
    await anna.create()
    recipient = await ben.create("Ben")
    anna.online = False
    sent = await anna.ask("send", {"to": recipient, "text": "from the tunnel"})
    assert sent["waits"]
    assert sent["text"].endswith("It goes out when we are online.")
    assert (await ben.ask("inbox"))["total"] == 0
    await anna.back_online()
    assert [m["id"] for m in (await ben.ask("inbox"))["messages"]] == [sent["id"]]


async def test_a_pager_made_offline_is_reached_once_the_cloud_knows_it(anna, ben):
    await anna.create()
    ben.online = False
    made = await ben.ask("create", {"name": "Ben"})
    assert made["registered"] is False
    args = {"to": made["pager"], "text": "hi"}
    assert "there is no pager" in (await anna.fails("send", args)).message
    await ben.back_online()
    assert (await anna.ask("send", args))["waits"] is False
    assert (await ben.ask("inbox"))["total"] == 1


async def test_a_delivery_that_comes_again_is_answered_as_before_and_announced_once(ben):
    recipient, private = await ben.create("Ben"), keys.new_private_key()
    args = signed(private, to=recipient)
    answers = [await deliver(ben, args) for _ in range(3)]
    assert [a.data for a in answers] == [{"id": "MSG-AAAA0000", "conflicted": False}] * 3
    assert len(await ben.announced()) == 1
    assert (await ben.ask("inbox"))["total"] == 1
    at_once = signed(private, to=recipient, id="MSG-AAAA1111")
    await asyncio.gather(*(deliver(ben, at_once) for _ in range(4)))
    assert len(await ben.announced()) == 2
    assert (await ben.ask("inbox"))["total"] == 2


async def test_an_interrupted_delivery_is_announced_when_it_comes_again(ben, monkeypatch):
    recipient = await ben.create("Ben")
    args = signed(keys.new_private_key(), to=recipient)

    class Killed(BaseException):
        pass

    async def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(ben.alarms, "set", killed)
        with pytest.raises(Killed):
            await deliver(ben, args)
    assert await ben.announced() == []
    assert (await deliver(ben, args)).ok
    assert len(await ben.announced()) == 1
    assert (await ben.ask("inbox"))["total"] == 1


async def test_a_kill_between_the_alarm_and_its_mark_announces_nothing_twice(ben, monkeypatch):
    recipient = await ben.create("Ben")
    args = signed(keys.new_private_key(), to=recipient)

    class Killed(BaseException):
        pass

    async def killed(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(inbox.Inbox, "set_announced", killed)
        with pytest.raises(Killed):
            await deliver(ben, args)
    assert len(await ben.announced()) == 1
    fired = ben.alarms.fired()
    shown = await anext(fired)  # after the restart it is shown before the relay delivers again
    await ben.alarms._forget(shown)
    assert (await deliver(ben, args)).ok
    assert await ben.announced() == []
    await fired.aclose()


async def test_two_senders_may_use_one_message_id(ben):
    recipient = await ben.create("Ben")
    for pager in ("PAGER-AAAA", "PAGER-CCCC"):
        args = signed(keys.new_private_key(), **{"to": recipient, "from": pager})
        assert (await deliver(ben, args)).ok
    assert (await ben.ask("inbox"))["total"] == 2


# ------------------------------------------------------------------ what was not delivered


NOBODY = "Your page to PAGER-ZZZZ was not delivered: nobody has this pager."


async def send_offline(desk, to, text="hi", **more):
    desk.online = False
    return await desk.ask("send", {"to": to, "text": text}, **more)


async def listed(desk):
    return [
        (one["to"], one["state"], one["reason"])
        for one in (await desk.ask("inbox", {"sent": True}))["messages"]
    ]


@pytest.mark.requirement("I15-pager-told")
async def test_the_wearer_is_told_once_that_a_page_which_waited_was_refused(anna):
    await anna.create()
    await send_offline(anna, "PAGER-ZZZZ")
    assert await listed(anna) == [("PAGER-ZZZZ", "waits", "")]
    (asked,) = anna.outbox
    await anna.back_online()
    assert await anna.announced() == [NOBODY]
    answer = await anna.cloud.take(anna.edge, asked)
    await anna.answered(asked, answer)  # the same answer again, after a kill
    assert await anna.announced() == [NOBODY]
    assert await listed(anna) == [("PAGER-ZZZZ", "failed", "nobody has this pager")]
    got = await anna.ask("inbox", {"sent": True})
    assert got["text"] == "1 page sent\n- To PAGER-ZZZZ: hi (not delivered: nobody has this pager)"


@pytest.mark.requirement("I15-pager-told")
async def test_a_kill_while_the_wearer_is_told_tells_nothing_twice(anna, monkeypatch):
    await anna.create()
    await send_offline(anna, "PAGER-ZZZZ")

    class Killed(BaseException):
        pass

    async def killed(*_):
        raise Killed

    (asked,) = anna.outbox
    with monkeypatch.context() as patched:
        patched.setattr("tools_cache.everyday.pager.sent.SentMessages.set_fate", killed)
        with pytest.raises(Killed):
            await anna.back_online()
    await anna.answered(asked, await anna.cloud.take(anna.edge, asked))
    assert await anna.announced() == [NOBODY]
    assert await listed(anna) == [("PAGER-ZZZZ", "failed", "nobody has this pager")]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.CONFLICT, "was not delivered: your own pager belongs to another device."),
        (ErrorCode.RATE_LIMIT, "was not delivered: too many pages wait there."),
        (ErrorCode.CANCELLED, "was not delivered: it was cancelled."),
        (ErrorCode.TOOL_NOT_FOUND, "was not delivered: the cloud did not take it."),
        (
            ErrorCode.DEADLINE_EXPIRED,
            "may not have arrived: its time was over before an answer came.",
        ),
    ],
)
async def test_each_late_refusal_has_its_sentence(anna, code, told):
    await anna.create()
    await send_offline(anna, "PAGER-BBBB")
    await anna.answered(anna.outbox[0], ToolResponse.failure(code, "no"))
    assert await anna.announced() == [f"Your page to PAGER-BBBB {told}"]


async def test_a_page_that_waited_and_went_out_is_listed_as_sent_and_announces_nothing(anna, ben):
    await anna.create()
    recipient = await ben.create("Ben")
    await send_offline(anna, recipient)
    await anna.back_online()
    assert await anna.announced() == []
    assert await listed(anna) == [(recipient, "taken", "")]
    assert "(sent)" in (await anna.ask("inbox", {"sent": True}))["text"]


@pytest.mark.requirement("I15-pager-told")
async def test_the_sender_is_told_that_the_recipient_did_not_accept_a_page(anna, ben, cloud):
    sender, recipient = await anna.create(), await ben.create("Ben")
    await anna.ask("send", {"to": recipient, "text": "one"})
    await ben.ask("send", {"to": sender, "text": "hello"})
    await anna.ask("trust", {"pager": recipient, "accept": True, "name": "Ben"})
    await ben.ask("trust", {"pager": sender, "accept": False})
    before = await anna.announced()
    await anna.ask("send", {"to": recipient, "text": "two"})
    await cloud.deliver()
    told = "Your page to Ben was not delivered: it was not accepted there."
    assert await anna.announced() == [*before, told]
    assert [state for _, state, _ in await listed(anna)] == ["failed", "taken"]
    (report,) = [args for args in anna.taken if "undelivered" in args]
    assert (await anna.respond("deliver", report, origin=CallOrigin.CLOUD)).ok
    assert await anna.announced() == [*before, told]


async def test_the_sender_is_told_of_a_page_that_expired_at_the_relay(anna, ben, cloud):
    await anna.create()
    recipient = await ben.create("Ben")
    cloud.delivers = False
    await anna.ask("send", {"to": recipient, "text": "hi"})
    cloud.wall = WALL + 86_401
    await cloud.delivery._edges()
    await cloud.deliver()
    told = f"Your page to {recipient} may not have arrived: its time was over before an answer came"
    assert await anna.announced() == [f"{told}."]
    assert ben.taken == []
    assert [state for _, state, _ in await listed(anna)] == ["unconfirmed"]


@pytest.mark.parametrize(
    "report",
    [
        {"id": "MSG-AAAA9999", "to": "PAGER-ZZZZ", "reason": "refused"},
        {"id": "", "to": "PAGER-BBBB", "reason": "refused"},
    ],
)
async def test_a_report_of_a_page_that_was_not_sent_from_here_is_denied(anna, report):
    await anna.create()
    sent = await send_offline(anna, "PAGER-ZZZZ")
    args = {"undelivered": {**report, "id": report["id"] or sent["id"]}}
    answer = await anna.respond("deliver", args, origin=CallOrigin.CLOUD)
    assert answer.error.code is ErrorCode.DENIED
    assert (await anna.fails("deliver", args)).code is ErrorCode.DENIED
    assert await anna.announced() == []


@pytest.mark.parametrize("field", ["message", "signature"])
async def test_a_delivery_without_a_message_and_a_report_is_refused_by_its_field(ben, field):
    args = signed(keys.new_private_key(), to=await ben.create("Ben"))
    del args[field]
    error = (await deliver(ben, args)).error
    assert (error.code, f"/{field} is missing" in error.message) == (
        ErrorCode.INVALID_ARGUMENTS,
        True,
    )


async def test_an_answer_that_comes_while_the_call_goes_on_is_its_answer(anna, monkeypatch):
    await anna.create()
    anna.online = False
    other_tool = anna.other_tool

    async def refused_meanwhile(asked):
        pending = await other_tool(asked)
        await anna.answered(asked, ToolResponse.failure(ErrorCode.INVALID_ARGUMENTS, "no"))
        return pending

    services = anna.local._services
    monkeypatch.setattr(anna.local, "_services", replace(services, call=refused_meanwhile))
    error = await anna.fails("send", {"to": "PAGER-ZZZZ", "text": "hi"})
    assert error.for_wearer == NOBODY


async def test_a_report_that_comes_before_the_relays_answer_stays(anna, ben):
    own = await anna.create()
    recipient = await ben.create("Ben")
    await ben.ask("deactivate", {"pager": recipient})
    anna.cloud.desks = {"edge-b": ben, "edge-a": anna}  # so that the report comes at once
    assert (await anna.ask("send", {"from": own, "to": recipient, "text": "hi"}))["waits"] is False
    assert await listed(anna) == [(recipient, "failed", "it was not accepted there")]


async def test_a_late_answer_of_another_tools_call_is_nobodys(anna):
    anna.online = False
    await anna.ask("create", {"name": "Anna"})
    await anna.answered(anna.outbox[0], ToolResponse.failure(ErrorCode.CONFLICT, "no"))
    assert await anna.announced() == []


# ------------------------------------------------------------------ expiry


@pytest.mark.requirement("S4-46")
async def test_a_message_is_removed_when_its_time_is_over_and_does_not_come_again(ben):
    recipient, private = await ben.create("Ben"), keys.new_private_key()
    args = {**signed(private, to=recipient), "age_s": 600.0}
    assert (await deliver(ben, args)).ok
    ben.wall = WALL + 2999
    assert (await ben.ask("inbox"))["total"] == 1
    ben.wall = WALL + 3001
    assert (await ben.ask("inbox"))["total"] == 0
    rows = await ben.stores.of("local", "pager").db.fetch("SELECT id FROM inbox")
    assert rows == []
    again = await deliver(ben, args)
    assert (again.error.code, "came before" in again.error.message) == (ErrorCode.DENIED, True)


@pytest.mark.requirement("S4-46")
async def test_a_message_that_is_too_old_when_it_comes_is_refused(ben):
    recipient = await ben.create("Ben")
    args = {**signed(keys.new_private_key(), to=recipient), "age_s": 3600.0}
    assert "time of this message is over" in (await deliver(ben, args)).error.message


async def test_only_the_newest_ids_stay_known(ben, monkeypatch):
    monkeypatch.setattr(inbox, "KNOWN_IDS", 3)
    recipient, private = await ben.create("Ben"), keys.new_private_key()
    for n in range(5):
        assert (await deliver(ben, signed(private, to=recipient, id=f"MSG-AAAA000{n}"))).ok
    rows = await ben.stores.of("local", "pager").db.fetch("SELECT token FROM seen ORDER BY id")
    assert [row["token"][-1] for row in rows] == ["2", "3", "4"]


async def test_a_full_inbox_drops_what_was_read_and_else_takes_nothing_now(ben, monkeypatch):
    monkeypatch.setattr(inbox, "MAX_MESSAGES", 2)
    recipient, private = await ben.create("Ben"), keys.new_private_key()
    for n in range(2):
        assert (await deliver(ben, signed(private, to=recipient, id=f"MSG-AAAA000{n}"))).ok
    third = signed(private, to=recipient, id="MSG-AAAA0002")
    refused = (await deliver(ben, third)).error
    assert (refused.code, refused.retryable) == (ErrorCode.RATE_LIMIT, True)
    await ben.ask("inbox", {"message": "MSG-AAAA0001"})
    assert (await deliver(ben, third)).ok
    left = [m["id"] for m in (await ben.ask("inbox"))["messages"]]
    assert left == ["MSG-AAAA0002", "MSG-AAAA0000"]


async def test_a_message_without_room_among_the_alarms_is_in_the_inbox(ben, monkeypatch):
    monkeypatch.setattr("edge.tools.announcements.alarms.MAX_ALARMS", 0)
    recipient = await ben.create("Ben")
    assert (await deliver(ben, signed(keys.new_private_key(), to=recipient))).ok
    assert await ben.announced() == []
    assert (await ben.ask("inbox"))["total"] == 1


# ------------------------------------------------------------------ whom to trust


@pytest.mark.requirement("S4-48")
async def test_a_changed_key_is_flagged_first_until_the_wearer_accepts_its_fingerprint(ben):
    recipient = await ben.create("Ben")
    first, second = keys.new_private_key(), keys.new_private_key()
    await deliver(ben, signed(first, to=recipient))
    other = signed(second, to=recipient, id="MSG-AAAA0001", name="Bad")
    assert (await deliver(ben, other)).data["conflicted"] is True
    said = (await ben.announced())[1]
    assert said == (
        "The key of PAGER-AAAA has changed: it may be somebody else. From Anna (PAGER-AAAA): hello"
    )
    told = (await ben.ask("inbox"))["messages"][0]
    shown = keys.shown_fingerprint(keys.public_key(second))
    assert (told["conflicted"], told["fingerprint"]) == (True, shown)
    refused = await ben.fails("trust", {"pager": "PAGER-AAAA", "accept": True})
    assert (refused.code, shown in refused.suggestion) == (ErrorCode.CONFLICT, True)
    old = keys.shown_fingerprint(keys.public_key(first))
    wrong = {"pager": "PAGER-AAAA", "accept": True, "fingerprint": old}
    assert "/fingerprint" in (await ben.fails("trust", wrong)).message
    await ben.ask("trust", {**wrong, "fingerprint": shown})
    fine = await deliver(ben, signed(second, to=recipient, id="MSG-AAAA0002"))
    assert fine.data["conflicted"] is False
    back = await deliver(ben, signed(first, to=recipient, id="MSG-AAAA0003"))
    assert back.data["conflicted"] is True


@pytest.mark.requirement("S4-48")
async def test_a_revoked_sender_is_refused_until_its_fingerprint_is_accepted(ben):
    recipient, private = await ben.create("Ben"), keys.new_private_key()
    await deliver(ben, signed(private, to=recipient))
    await ben.ask("trust", {"pager": "PAGER-AAAA", "accept": False})
    again = signed(private, to=recipient, id="MSG-AAAA0001")
    assert (await deliver(ben, again)).error.code is ErrorCode.DENIED
    assert (await ben.ask("inbox"))["total"] == 1
    shown = keys.shown_fingerprint(keys.public_key(private))
    await ben.ask("trust", {"pager": "PAGER-AAAA", "accept": True, "fingerprint": shown})
    assert (await deliver(ben, again)).ok


async def test_a_sender_that_sent_nothing_cannot_be_trusted(ben):
    error = await ben.fails("trust", {"pager": "PAGER-ZZZZ", "accept": True})
    assert "has sent nothing here" in error.message


@pytest.mark.requirement("S4-49")
@pytest.mark.parametrize(
    "changes",
    [
        {"text": "hellp"},
        {"priority": 2},
        {"id": "MSG-AAAA0009"},
        {"from": "PAGER-AAAB"},
        {"location": {"lat": 0, "lon": 0}},
        {"life_s": 3601},
        {"original": "x"},
        {"name": "Anne"},
    ],
)
async def test_a_message_that_was_changed_on_its_way_is_denied(ben, changes):
    recipient = await ben.create("Ben")
    args = signed(keys.new_private_key(), to=recipient)
    args["message"] |= changes
    assert "was changed" in (await deliver(ben, args)).error.message
    assert (await ben.ask("inbox"))["total"] == 0


@pytest.mark.parametrize("origin", [o for o in CallOrigin if o is not CallOrigin.CLOUD])
async def test_nobody_on_the_device_delivers_a_message(ben, origin):
    recipient = await ben.create("Ben")
    args = signed(keys.new_private_key(), to=recipient)
    assert (await ben.fails("deliver", args, origin=origin)).code is ErrorCode.DENIED


# ------------------------------------------------------------------ own pagers


@pytest.mark.requirement("S4-52")
async def test_a_deactivated_pager_sends_and_takes_nothing_any_more(anna, ben):
    sender, recipient = await anna.create(), await ben.create("Ben")
    await ben.ask("deactivate", {"pager": recipient})
    await anna.ask("send", {"to": recipient, "text": "hi"})
    assert (await ben.ask("inbox"))["total"] == 0
    assert len(ben.taken) == 1
    await anna.ask("deactivate", {"pager": sender})
    for args in ({}, {"from": sender}):
        error = await anna.fails("send", {"to": recipient, "text": "hi", **args})
        assert error.code in (ErrorCode.DENIED, ErrorCode.CONFLICT)
    assert (
        "no pager PAGER-ZZZZ" in (await anna.fails("deactivate", {"pager": "PAGER-ZZZZ"})).message
    )


async def test_a_user_has_ten_active_pagers_at_most(anna):
    made = [await anna.create(f"P{n}") for n in range(10)]
    assert (await anna.fails("create", {"name": "one more"})).code is ErrorCode.CONFLICT
    await anna.ask("deactivate", {"pager": made[0]})
    await anna.create("one more")


async def test_an_id_that_somebody_else_has_is_not_kept(anna, ben, monkeypatch):
    taken = await anna.create()
    chosen = iter([taken, taken, "PAGER-FREE"])
    monkeypatch.setattr(book, "new_pager_id", lambda: next(chosen))
    assert await ben.create("Ben") == "PAGER-FREE"
    assert [own.id for own in await ben.book.pagers()] == ["PAGER-FREE"]


async def test_a_name_of_characters_that_are_not_seen_is_refused(anna):
    assert "/name" in (await anna.fails("create", {"name": "\u200b"})).message
    await anna.create()
    assert "/text" in (await anna.fails("send", {"to": "PAGER-BBBB", "text": "\u202e"})).message


async def test_a_cloud_without_a_relay_says_so_and_the_pager_is_kept(tmp_path, cloud):
    relay = "com.glassd.pager.other:relay"
    async with desk_at(tmp_path / "a", cloud, "edge-c", relay=relay) as desk:
        made = await desk.ask("create", {"name": "Anna"})
        assert made["registered"] is False
        error = await desk.fails("send", {"to": "PAGER-BBBB", "text": "hi"})
        assert error.code is ErrorCode.TOOL_NOT_FOUND


async def test_no_word_of_a_message_and_no_key_is_on_disk_in_plain_text(ben):
    recipient, private = await ben.create("Benjamin"), keys.new_private_key()
    await deliver(ben, signed(private, to=recipient, text="secret words", priority=0))
    await ben.ask("send", {"to": recipient, "text": "other words", "priority": 0})
    (own,) = await ben.book.pagers()
    await ben.stores.close()
    stored = b"".join(file.read_bytes() for file in ben.users.rglob("*") if file.is_file())
    assert stored
    for word in ("secret", "other words", "Benjamin", "Anna", own.private_key):
        assert word.encode() not in stored


async def test_a_users_messages_are_not_anothers(anna, ben):
    await anna.create()
    await anna.ask("send", {"to": await ben.create("Ben"), "text": "hi"})
    assert (await ben.ask("inbox", user_id="other"))["total"] == 0


@pytest.mark.parametrize(
    ("language", "sentence", "tool", "args"),
    [
        ("en", "send a page to Anna I am at gate 2", "send", {"text": "Anna I am at gate 2"}),
        ("en", "send a page to Anna I am late", "send", {"text": "Anna I am late"}),
        ("en", "read my pages", "inbox", {}),
        ("en", "read my unread pages", "inbox", {"unread": True}),
        ("en", "show my sent pages", "inbox", {"sent": True}),
        ("en", "create a pager called Anna", "create", {"name": "Anna"}),
        ("de", "lies meine Pager Nachrichten", "inbox", {}),
        ("de", "schicke einen Pager an Anna bis gleich", "send", {"text": "an Anna bis gleich"}),
        ("es", "manda un aviso a Ana", "send", {"text": "a Ana"}),
        ("fr", "lis mes bips", "inbox", {}),
        ("it", "leggi i miei avvisi", "inbox", {}),
    ],
)
async def test_it_is_said_in_five_languages(ben, language, sentence, tool, args):
    tools = [entry.definition for entry in ben.registry.snapshot().entries()]
    found = phrases.match(sentence, tools, language, leading=True)
    assert (found.tool.name, found.args) == (f"pager:{tool}", args)


@pytest.mark.requirement("I15-pager-door")
async def test_a_delivery_alone_is_open_to_the_cloud_and_only_programs_call_it(ben):
    tools = {tool: ben.registry.snapshot().find(f"pager:{tool}").definition for tool in TOOLS}
    opened = [tool for tool, found in tools.items() if permissions.opened(found, permissions.STOCK)]
    assert opened == ["deliver"]
    assert [tool for tool, found in tools.items() if found.for_programs] == ["deliver"]
    for asked, may in (
        (call("pager:deliver", origin=CallOrigin.CLOUD), True),
        (call("pager:deliver", origin=CallOrigin.MCP, depth=1, through="my:tool"), True),
        (call("pager:deliver", origin=CallOrigin.MCP, depth=1, through="registry:invoke"), False),
        (call("pager:deliver", origin=CallOrigin.MCP), False),
        (call("pager:deliver", origin=CallOrigin.CLI), False),
    ):
        refused = permissions.refusal(asked, tools["deliver"], permissions.STOCK)
        assert (refused is None) is may
