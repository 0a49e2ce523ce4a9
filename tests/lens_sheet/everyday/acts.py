"""What happens in a situation with everyday tools."""

import asyncio
from collections.abc import Mapping
from typing import Any

from firmware_bridge.messages import Gesture
from tests.lens_sheet.acts import Act, asked, no_internet
from tests.lens_sheet.stage import Stage
from tests.scenarios.world import until
from tools_cache.api.tool import CallOrigin
from tools_cache.everyday.pager import keys, messages

_AGENT = CallOrigin.MCP


def said(words: str, *, yes: bool = False) -> Act:
    """The wearer says it, also to glasses that recognise no words; `yes`: and taps when asked."""

    async def act(stage: Stage) -> None:
        saying = asyncio.create_task(stage.world.daemon._hear(words))
        if yes:
            await stage.answers()
        await saying
        await until(lambda: _lens_says(stage), "an answer")
        await stage.turn_pages()

    return act


def then(*acts: Act) -> Act:
    """Play one act after the other in the same situation."""

    async def act(stage: Stage) -> None:
        for each in acts:
            await each(stage)

    return act


def silently(tool: str, **args: object) -> Act:
    """A call that puts something there, and shows nothing."""

    async def act(stage: Stage) -> None:
        answer = await stage.world.call(tool, args, origin=_AGENT, present=False)
        assert answer.ok, answer

    return act


def after(seconds: float, act: Act) -> Act:
    """Play it when this time has gone by."""

    async def later(stage: Stage) -> None:
        stage.services.wall.later(seconds)
        await act(stage)

    return later


def away(*acts: Act) -> Act:
    """Play them without a network."""

    async def act(stage: Stage) -> None:
        async with stage.services.away():
            await then(*acts)(stage)

    return act


def of_page(tool: str, path: str, **args: object) -> Act:
    """Call a tool with the address of a web page."""

    async def act(stage: Stage) -> None:
        await stage.call(tool, url=stage.services.page + path, **args)
        await stage.turn_pages()

    return act


def asked_of_page(tool: str, path: str, **args: object) -> Act:
    async def act(stage: Stage) -> None:
        await asked(Gesture.TAP, tool, url=stage.services.page + path, **args)(stage)

    return act


def due_soon(text: str, *, late_s: float = 0, **more: object) -> Act:
    """A reminder comes due, and is announced."""

    async def act(stage: Stage) -> None:
        wall = stage.services.wall
        when = wall.iso(2 + late_s)
        args = {"text": text, "when": when, **more}
        answer = await stage.world.call("reminder:add", args, origin=_AGENT, present=False)
        assert answer.ok, answer
        if late_s:  # a clock that jumped is noticed at the next look, or when there is a new one
            wall.later(2 * late_s)
            await silently("reminder:add", text="renew the passport", when=wall.iso(90_000))(stage)
        await until(lambda: stage.film.takes[-1].lit, "the reminder")
        await stage.turn_pages()

    return act


async def reply_to_newest(stage: Stage) -> None:
    listed = await stage.world.call("email:unread", origin=_AGENT, present=False)
    first = listed.data["messages"][0]
    args = {"id": first["id"], "to": [first["from"]["address"]], "subject": "Re: Lunch on Tuesday?"}
    await asked(Gesture.TAP, "email:reply", **args, text="At noon, gladly.\nMaria")(stage)


# ------------------------------------------------------------------ pages


class Pages:
    """Two pagers of one wearer, each of which knows the other's id, and a stranger's."""

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.stranger = keys.new_private_key()

    def create(self, name: str) -> Act:
        async def act(stage: Stage) -> None:
            answer = await stage.call("pager:create", name=name)
            self.ids[name] = answer.data["pager"]
            await stage.turn_pages()

        return act

    def send(self, to: str, text: str, **more: object) -> Act:
        """Send a page from the other pager; it comes back from the cloud and is announced."""

        async def act(stage: Stage) -> None:
            mine = next(one for name, one in self.ids.items() if name != to)
            args = {"to": self.ids.get(to, to), "from": mine, "text": text, **more}
            asking = stage.begin("pager:send", **args)
            await stage.answers()
            await asking
            await stage.rest(1.5)
            if more.get("priority") != 0:
                await until(lambda: _has_page(stage), "the announced page")
            await stage.turn_pages()

        return act

    def send_offline(self, to: str, text: str) -> Act:
        async def act(stage: Stage) -> None:
            async with no_internet(stage):
                asking = stage.begin("pager:send", to=self.ids[to], text=text)
                await stage.answers()
                await asking
                await stage.rest(1.5)
            await until(lambda: _has_page(stage), "the announced page")
            await stage.rest(1.5)

        return act

    def forge(self, sender: str, to: str, text: str) -> Act:
        """A page with the id of a known pager and another key, as its relay would deliver it."""

        async def act(stage: Stage) -> None:
            message = {
                "v": messages.VERSION,
                "id": messages.message_id(text),
                "from": self.ids[sender],
                "name": sender,
                "to": self.ids[to],
                "text": text,
                "original": "",
                "distilled": False,
                "priority": 1,
                "location": None,
                "life_s": 86_400,
                "key": keys.public_key(self.stranger),
            }
            signature = keys.sign(self.stranger, messages.signed_bytes(message))
            await _deliver(stage, {"message": message, "signature": signature})
            await until(lambda: _has_page(stage), "the announced page")
            await stage.turn_pages()

        return act

    def trust(self, sender: str, **args: object) -> Act:
        async def act(stage: Stage) -> None:
            given = dict(args)
            if given.pop("compared", False):
                given["fingerprint"] = keys.shown_fingerprint(keys.public_key(self.stranger))
            await asked(Gesture.TAP, "pager:trust", pager=self.ids[sender], **given)(stage)

        return act

    def switch_off(self, name: str) -> Act:
        async def act(stage: Stage) -> None:
            await asked(Gesture.TAP, "pager:deactivate", pager=self.ids[name])(stage)

        return act


def _has_page(stage: Stage) -> bool:
    """Return whether a page was announced in this situation."""
    begins = ("From ", "Urgent: From ", "The key of ")
    return any(frame.words.startswith(begins) for frame in stage.film.takes[-1].frames)


def _lens_says(stage: Stage) -> bool:
    """Return whether an answer is on the lens, and no sign of work or question."""
    frames = stage.film.takes[-1].frames
    if not frames or not frames[-1].lit:
        return False
    words = frames[-1].words.rstrip()  # none of a page that is a picture as a whole
    return not words.endswith("orking…") and "double tap: no" not in words


async def _deliver(stage: Stage, args: Mapping[str, Any]) -> None:
    body = {"edge_id": stage.world.edge_id, "tool": "pager:deliver", "args": args}
    answer = await stage.world.ask_cloud("POST", "/devcloud/invoke", body)
    assert answer["ok"], answer
