"""What happens in a soak: each act is one thing a wearer, a program or the cloud does, and says how
it went.

An act gives the outcome as a word; one that breaks a promise gives `BROKEN: …`, which the report
shows and the run fails on.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.soak.cast import EDGE_ID
from benchmarks.soak.wires import Wires

SENTENCES = (
    "The tram to the harbour leaves at ten past nine from platform two.",
    "Two people are waiting at the door, and one of them carries a parcel.",
    "Rain is expected in the afternoon; the evening will be dry and mild.",
    "Your meeting was moved to Thursday, in the small room beside the kitchen.",
)
AWAY = frozenset(
    {"OFFLINE", "NOT_ACCEPTED", "NETWORK_ERROR", "TIMEOUT", "INTERRUPTED", "DEADLINE_EXPIRED"}
)
"""Honest failures while the broker is away, or just back."""


def word_of(envelope: dict[str, Any], *, may: frozenset[str] = frozenset()) -> str:
    """Name the outcome of an envelope. `may`: failures this act may meet."""
    if "ok" not in envelope:
        return f"BROKEN: no envelope: {str(envelope)[:200]}"
    error = envelope.get("error")
    if error is None:
        pending = (
            isinstance(envelope.get("data"), dict) and envelope["data"].get("status") == "pending"
        )
        return "pending" if pending else "ok"
    return (
        str(error["code"])
        if error["code"] in may | _BUSY
        else f"BROKEN: {error['code']}: {error['message'][:160]}"
    )


_BUSY = frozenset({"RATE_LIMIT"})
"""An honest refusal of any act: too many at once, on a machine that stood still for a moment."""


def busy(*envelopes: dict[str, Any]) -> bool:
    """Tell whether one of several calls was refused for that, so that the rest proves nothing."""
    return any(e.get("error", {}).get("code") in _BUSY for e in envelopes)


class Acts:
    """Every act by name in `MIX`; `number` makes each one's words its own."""

    def __init__(self, wires: Wires, chance: random.Random) -> None:
        self._wires = wires
        self._chance = chance
        self._number = 0

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def quick(self) -> str:
        """For the preload: the cheapest call that is written to disk."""
        return word_of(await self._wires.call("clock:now", {}, origin="mcp"))

    async def quick_cloud(self) -> str:
        """The same for what is remembered of the cloud's results."""
        return word_of(
            await self._wires.call(
                "com.example.calc:evaluate", {"expression": f"{self._next()} + 1"}, origin="mcp"
            )
        )

    async def local(self) -> str:
        tool, args = self._chance.choice(
            (
                ("clock:now", {"timezone": "Europe/Berlin"}),
                ("notes:search", {"query": "milk"}),
                ("timer:list", {}),
                ("glasses:status", {}),
            )
        )
        return word_of(await self._wires.call(tool, args))

    async def write(self) -> str:
        """A timer begun and called off: writes that leave nothing behind."""
        begun = await self._wires.call(
            "timer:start", {"seconds": 3600, "label": f"soak {self._next()}"}
        )
        if begun.get("ok"):
            await self._wires.call("timer:cancel", {"id": begun["data"]["id"]})
        return word_of(begun)

    async def lens(self) -> str:
        text = f"{self._next()}: {self._chance.choice(SENTENCES)}"
        return word_of(
            await self._wires.call("glasses:show_text", {"text": text}), may=_GLASSES_AWAY
        )

    async def speech(self) -> str:
        envelope = await self._wires.call(
            "glasses:say", {"text": self._chance.choice(SENTENCES)}, wait="delivery"
        )
        return word_of(envelope, may=_GLASSES_AWAY)

    async def cloud(self) -> str:
        n = self._next()
        tool, args = self._chance.choice(
            (
                ("com.example.calc:evaluate", {"expression": f"{n} * (3 + 4)"}),
                ("com.example.calc:convert", {"value": n, "from": "km", "to": "mi"}),
                ("com.example.summarise:wordcount", {"text": f"{n} {' '.join(SENTENCES)}"}),
            )
        )
        return word_of(await self._wires.call(tool, args), may=AWAY)

    async def queued(self) -> str:
        """May wait for the network: answered, or `pending` and answered later."""
        text = f"{self._next()}. {' '.join(SENTENCES)}"
        return word_of(await self._wires.call("com.example.summarise:summarise", {"text": text}))

    async def replay(self) -> str:
        """The same key twice is one effect: the second is given again, and says so."""
        key = f"soak-key-{self._next()}"
        body: dict[str, Any] = {"args": {"seconds": 3600, "label": key}, "idempotency_key": key}
        first = await self._wires.call("timer:start", **body)
        again = await self._wires.call("timer:start", **body)
        if not first.get("ok") or busy(again):
            return word_of(again if busy(again) else first)
        await self._wires.call("timer:cancel", {"id": first["data"]["id"]})
        same = again.get("data") == first["data"] and again["meta"].get("_idempotent_cache_hit")
        return (
            "replayed"
            if same
            else f"BROKEN: a key was used twice: {first['data']} and {again.get('data')}"
        )

    async def confirm(self) -> str:
        """An event that needs a yes: asked, decided by token, mostly no; a token is used once."""
        args = {"title": f"Soak {self._next()}", "start": "2027-05-04T15:00"}
        asked = await self._wires.call("com.example.calendar:create_event", args, ask="return")
        token = (asked.get("error", {}).get("confirmation_request") or {}).get("token")
        if token is None:
            return word_of(asked, may=AWAY)
        allow = self._chance.random() < 0.2
        _, first = await self._wires.post("/v1/confirm", {"token": token, "allow": allow})
        _, again = await self._wires.post("/v1/confirm", {"token": token, "allow": True})
        if again.get("error", {}).get("type") != "CONFIRMATION_EXPIRED":
            return f"BROKEN: a token was used twice: {str(first)[:120]}, {str(again)[:120]}"
        return word_of(first, may=AWAY | {"DENIED"})

    async def forecast(self) -> str:
        """A reading tool with a life: while the cloud is away its last answer is given again,
        and says so.
        """
        envelope = await self._wires.call(
            "com.example.weather:forecast", {"place": self._chance.choice(_PLACES)}
        )
        stale = envelope.get("ok") and envelope["meta"].get("stale")
        return (
            "stale, and said so"
            if stale and "ageS" in envelope["meta"]
            else word_of(envelope, may=AWAY)
        )

    async def lookup(self) -> str:
        """Three retrievals in one spoken turn: the third is beyond the budget, whatever became
        of the others.
        """
        turn = f"soak-look-{self._next()}"
        asked: dict[str, Any] = {"mode": "voice", "turn_id": turn}
        answers = [
            await self._wires.call("com.example.search:kb_search", {"query": q}, **asked)
            for q in ("lens", "battery", "radio")
        ]
        if busy(*answers):
            return "RATE_LIMIT"
        words = [word_of(a, may=AWAY | {"BUDGET_EXCEEDED"}) for a in answers]
        if broken := next((w for w in words[:2] if w.startswith("BROKEN")), None):
            return broken
        return (
            "budget held"
            if words[2] == "BUDGET_EXCEEDED"
            else f"BROKEN: a turn's retrievals gave {words}"
        )

    async def question(self) -> str:
        """Something only the wearer knows: pending at once, then a tap, a result handed in, or
        silence.
        """
        asked = await self._wires.call(
            "glasses:ask", {"question": f"Number {self._next()}: shall we go?", "timeout_s": 4}
        )
        if not asked.get("ok"):
            return word_of(asked, may=_GLASSES_AWAY)
        call_id, how = (
            asked["data"]["pendingToolCallId"],
            self._chance.choice(("tap", "hand in", "silence")),
        )
        if how == "tap":
            await asyncio.sleep(1.0)  # a tap in the first 0.7 s of a question counts for nothing
            await self._wires.mock(do="tap")
        elif how == "hand in":
            status, said = await self._wires.post(
                f"/v1/calls/{call_id}/result", {"data": {"answer": "yes"}}
            )
            return (
                "handed in"
                if status in {200, 409}
                else f"BROKEN: a result was refused: {status} {str(said)[:120]}"
            )
        return f"asked, then {how}"

    async def session(self) -> str:
        """A conversation of its own: its mode stays, and a replay after a reconnect is known."""
        name, turn = (
            f"soak-{self._next() % 50 if self._chance.random() < 0.9 else self._number}",
            f"turn-{self._next()}",
        )
        asked = {"session": name, "turn_id": turn, "ordinal": 0}
        first = await self._wires.call("notes:list", {}, **asked)
        again = await self._wires.call("notes:list", {}, replayed=True, **asked)
        if not first.get("ok") or busy(again):
            return word_of(again if busy(again) else first)
        return (
            "replayed"
            if again.get("meta", {}).get("_idempotent_cache_hit")
            else f"BROKEN: a replay ran again: {str(again)[:160]}"
        )

    async def grant(self) -> str:
        """A grant given, seen and taken back."""
        tool = "com.example.photo:inspect"  # which nobody else here calls
        await self._wires.put("/v1/grants", {"tool": tool, "grant": "never"})
        held = any(g["tool"] == tool for g in (await self._wires.get("/v1/grants"))["grants"])
        await self._wires.delete(f"/v1/grants?tool={tool}")
        return "given and taken" if held else "BROKEN: a grant was not kept"

    async def turn(self) -> str:
        """Four calls in one spoken turn: the fourth is beyond the budget."""
        turn = f"soak-turn-{self._next()}"
        asked: dict[str, Any] = {"mode": "voice", "turn_id": turn}
        answers = [
            await self._wires.call("clock:now", {"timezone": zone}, **asked) for zone in _ZONES
        ]
        if busy(*answers):
            return "RATE_LIMIT"
        codes = [a.get("error", {}).get("code", "ok") for a in answers]
        return (
            "budget held"
            if codes == ["ok", "ok", "ok", "BUDGET_EXCEEDED"]
            else f"BROKEN: a turn gave {codes}"
        )

    async def heard(self) -> str:
        _, said = await self._wires.post(
            "/v1/say", {"text": self._chance.choice(("what time is it", "nobody knows this one"))}
        )
        return word_of(said, may=frozenset({"TOOL_NOT_FOUND"}))

    async def wearer(self) -> str:
        """The wearer speaks or taps; the mock says whether anybody noticed."""
        order = self._chance.choice(
            (
                {"do": "say", "text": "what time is it"},
                {"do": "tap"},
                {"do": "double_tap"},
                {"do": "battery", "value": str(self._chance.randint(20, 99))},
            )
        )
        said = await self._wires.mock(**order)
        if not said.get("ok"):
            return f"BROKEN: the mock refused {order}: {said.get('error')}"
        return "noticed" if said.get("noticed") else "nobody there"

    async def invoke(self) -> str:
        """The cloud calls a tool of the edge."""
        tool = self._chance.choice(("glasses:status", "clock:now"))
        return word_of(
            await self._wires.ask_cloud(
                "/devcloud/invoke", {"edge_id": EDGE_ID, "tool": tool, "ttl_s": 10}
            ),
            may=_INVOKE,
        )

    async def wrong(self) -> str:
        """Refused, each with its own code, and nothing else."""
        tool, args, code = self._chance.choice(
            (
                ("com.example.calc:evaluate", {}, "INVALID_ARGUMENTS"),
                ("clock:now", {"zone": 1}, "INVALID_ARGUMENTS"),
                ("nobody:here", {}, "TOOL_NOT_FOUND"),
                ("no name", {}, "INVALID_TOOL_NAME"),
                (f"made.up:{self._next()}", {}, "TOOL_NOT_FOUND"),
            )
        )
        got = (await self._wires.call(tool, args)).get("error", {}).get("code")
        return (
            "refused"
            if got == code
            else "RATE_LIMIT"
            if got in _BUSY
            else f"BROKEN: {tool} {args} gave {got}, not {code}"
        )

    async def malformed(self) -> str:
        status, _ = await self._wires.post(
            "/v1/call", self._chance.choice((b"{", b"[]", b'{"tool": 1}', b'{"tol": "x"}'))
        )
        return "refused" if status == 400 else f"BROKEN: a malformed request gave {status}"

    async def cancelled(self) -> str:
        """Begun in the background and called off."""
        body = {
            "tool": "com.example.slowpoke:ponder",
            "args": {"seconds": 3, "text": f"{self._next()}"},
            "wait": False,
        }
        status, said = await self._wires.post("/v1/call", body)
        if status != 202:
            return word_of(said, may=AWAY) if "ok" in said else f"BROKEN: {status} {said}"
        status, said = await self._wires.post(
            f"/v1/calls/{said['call_id']}/cancel", {"reason": "the soak changed its mind"}
        )
        return {200: "called off", 409: "was over"}.get(
            status
        ) or f"BROKEN: {status} {str(said)[:160]}"

    async def hangup(self) -> str:
        body = {
            "tool": "com.example.slowpoke:ponder",
            "args": {"seconds": 1, "text": f"{self._next()}"},
        }
        await self._wires.hang_up(body, after_s=0.2)
        return "gone"

    async def look(self) -> str:
        path = self._chance.choice(
            (
                "/v1/status",
                "/v1/tools",
                "/v1/tools?all=1",
                "/v1/calls?limit=50",
                "/v1/lens",
                "/v1/session",
                "/v1/metrics",
            )
        )
        if path == "/v1/metrics":
            return (
                "seen"
                if "# EOF" in await self._wires.text(path)
                else "BROKEN: the metrics have no end"
            )
        return (
            "seen"
            if isinstance(await self._wires.get(path), dict)
            else f"BROKEN: {path} gave no object"
        )

    async def follow(self) -> str:
        await self._wires.follow(3.0)
        return "followed"

    async def reregister(self) -> str:
        """The cloud's registry changes: a tool nobody calls gets another bound."""
        n = self._next()
        schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": n}}}
        tool = {"name": "counter", "description": f"Counts to {n}.", "inputSchema": schema}
        said = await self._wires.ask_cloud(
            "/api/apps/com.example.soak/tools", {"name": "Soak", "tools": [tool]}
        )
        return "changed" if "version" in said else f"BROKEN: {str(said)[:160]}"


_PLACES = tuple(f"Town {n}" for n in range(40))
_ZONES = ("Europe/Berlin", "Asia/Tokyo", "America/New_York", "Africa/Cairo")
_GLASSES_AWAY = frozenset(
    {
        "OFFLINE",
        "TOOL_UNAVAILABLE",
        "TIMEOUT",
        "HARDWARE_MISSING",
        "NETWORK_ERROR",
        "INTERRUPTED",
        "SESSION_INACTIVE",
    }
)
_INVOKE = AWAY | {"TOOL_UNAVAILABLE"}

Act = Callable[[Acts], Awaitable[str]]
MIX: dict[str, tuple[Act, int]] = {
    "local": (Acts.local, 16),
    "write": (Acts.write, 5),
    "lens": (Acts.lens, 12),
    "speech": (Acts.speech, 1),
    "cloud": (Acts.cloud, 14),
    "queued": (Acts.queued, 5),
    "replay": (Acts.replay, 4),
    "turn": (Acts.turn, 2),
    "confirm": (Acts.confirm, 2),
    "forecast": (Acts.forecast, 4),
    "lookup": (Acts.lookup, 1),
    "question": (Acts.question, 1),
    "session": (Acts.session, 3),
    "grant": (Acts.grant, 1),
    "heard": (Acts.heard, 3),
    "wearer": (Acts.wearer, 4),
    "invoke": (Acts.invoke, 6),
    "wrong": (Acts.wrong, 5),
    "malformed": (Acts.malformed, 2),
    "cancelled": (Acts.cancelled, 3),
    "hangup": (Acts.hangup, 1),
    "look": (Acts.look, 5),
    "follow": (Acts.follow, 1),
}
"""What is done, and how often in a hundred."""
