"""One tool call of an MCP client, end to end: through the daemon, with its progress, its questions,
and its calling off.

What can be reported to this client and asked of it is an `McpCaller`.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from edge.core.rate_limit import RateLimits
from edge.mcp.server import elicitation, results
from edge.mcp.server.client import McpCaller
from edge.mcp.server.daemon_client import DaemonClient
from edge.mcp.server.elicitation import Answered, Asking
from edge.mcp.server.tools import META, KnownTool
from edge.runtime.errors import UserError
from tools_cache.api.tool import RateLimit

log: Final = logging.getLogger(__name__)

LIFE_S: Final = 40.0
"""A call's life when the client names none, as everywhere."""
MAX_LIFE_S: Final = 3600.0
SLACK_S: Final = 70.0
"""The daemon gives up 60 s after a call's own end; its word is the one to hear."""
POLL_S: Final = 50.0
STORY_S: Final = 900.0
"""The longest a result is waited for that somebody else decided: a question's life and a call's."""
OFF_S: Final = 10.0
END_S: Final = 3.0
"""How long our own end waits for the daemon to hear what is called off."""
ROUNDS: Final = 8
"""Questions one after the other within one call of an older client, which cannot bring a state
back.
"""
ASK_S: Final = 300.0
WORDS: Final = RateLimit(20, 1.0)
"""What a client is told of one call's progress; of more, what comes too soon is left out."""
RUNNING: Final = 24
"""Calls at once; the daemon has 64 connections for everybody."""
TELLING: Final = 8
"""Calls at once whose progress is followed; the daemon has 16 streams for everybody. Others run
without.
"""
_PASSED_ON: Final = {
    "idempotencyKey": "idempotency_key",
    "turn": "turn_id",
    "session": "session",
    "mode": "mode",
}
"""Our keys in a request's `_meta` → those of `POST /v1/call`."""


class LacksCapability(Exception):
    """The tool asks what this client did not say it can answer; `required` is in MCP's form."""

    def __init__(self, required: Mapping[str, Any]) -> None:
        super().__init__("the client lacks a capability: " + ", ".join(required))
        self.required = dict(required)


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """What a client asked for: which tool, with what, and what it brought back from a question."""

    tool: KnownTool
    args: Mapping[str, Any]
    meta: Mapping[str, Any]
    back: Answered | None = None


class Calls:
    """Runs calls; `tasks` is the group in which one that nobody waits for any more is called off.

    With `owner`, which reaches the daemon as its owner, a yes of the client's user counts; without,
    only the wearer's and the owner's own: the program that asks for a call does not answer the
    question about it.
    """

    def __init__(
        self,
        daemon: DaemonClient,
        *,
        new_id: Callable[[], str],
        tasks: Callable[[], asyncio.TaskGroup],
        owner: DaemonClient | None = None,
    ) -> None:
        self._daemon = daemon
        self._owner = owner
        self._new_id = new_id
        self._tasks = tasks
        self._given_up: set[asyncio.Task[None]] = set()
        self._telling = 0
        self._running = 0

    async def run(self, asked: QuestionAsked, caller: McpCaller) -> dict[str, Any]:
        """Give a CallToolResult or an InputRequiredResult, as a dict. Raises `LacksCapability`."""
        if self._running >= RUNNING:
            busy = results.refused(
                "RATE_LIMIT",
                "RATE_LIMIT",
                f"{RUNNING} calls run already",
                "Wait for one of them",
                retryable=True,
            )
            return self._result(busy, asked, caller)
        self._running += 1
        try:
            return await self._rounds(asked, caller)
        finally:
            self._running -= 1

    async def _rounds(self, asked: QuestionAsked, caller: McpCaller) -> dict[str, Any]:
        for _ in range(ROUNDS):
            outcome = await self._once(asked, caller)
            asking = outcome if isinstance(outcome, Asking) else elicitation.asking(outcome)
            if asking is None or (
                asking.call_id and self._owner is None and isinstance(outcome, Mapping)
            ):
                return self._result(outcome, asked, caller)
            requests = elicitation.askable(asking.requests, caller.capabilities)
            able = bool(requests or not asking.requests) and (caller.modern or caller.reachable)
            if able and caller.modern:
                return _input_required(requests, asking)
            if not able and not asking.call_id and caller.modern:
                raise LacksCapability(elicitation.lacking(asking.requests, caller.capabilities))
            if not able and isinstance(outcome, Mapping):
                return self._result(
                    outcome if asking.call_id else _unaskable(asking, caller), asked, caller
                )
            back = await self._asked_now(requests, asking, caller)
            if isinstance(back, Mapping):
                return self._result(back, asked, caller)
            asked = replace(asked, back=back)
        return self._result(
            results.refused(
                "UNSUPPORTED", "PERMANENT", "The tool asks again and again", "Use another tool"
            ),
            asked,
            caller,
        )

    def _result(self, envelope: Any, asked: QuestionAsked, caller: McpCaller) -> dict[str, Any]:
        shaped = asked.tool.shaped if caller.modern else asked.tool.as_object
        return results.result(envelope, shaped=shaped, modern=caller.modern)

    # -------------------------------------------------------------- one round

    async def _once(self, asked: QuestionAsked, caller: McpCaller) -> Mapping[str, Any] | Asking:
        """Ask the daemon once: the envelope, or a question of ours that has to be put again."""
        call_id = (asked.back.call_id if asked.back else "") or self._new_id()
        try:
            if asked.back is not None and asked.back.call_id:
                return await self._decided(asked.back)
            return await self._called(asked, call_id, caller)
        except UserError as e:
            if e.may_have_run:
                return _unknown(e, asked, call_id)
            return results.refused(
                *code_of(e),
                e.message,
                e.fix[:1].upper() + e.fix[1:],
                retryable=e.code in {"NOT_RUNNING", "BUSY", "STORAGE_UNAVAILABLE", "DISK_FULL"},
            )
        except asyncio.CancelledError:
            self._give_up(call_id)
            raise

    async def _called(
        self, asked: QuestionAsked, call_id: str, caller: McpCaller
    ) -> Mapping[str, Any]:
        body = self._body(asked) | {"call_id": call_id, "ask": "return"}
        if asked.back is not None:
            body["input"] = asked.back.input
        elif "roots" in caller.capabilities:
            body[
                "input"
            ] = {}  # it has roots of its own to tell; for who has none the daemon says so
        if not caller.listens or self._telling >= TELLING:
            return await self._answered(body, caller)
        self._telling += 1
        try:
            return await self._answered(body | {"progress": True}, caller)
        except UserError as e:
            if e.code != "BUSY":
                raise
        finally:
            self._telling -= 1
        return await self._answered(
            body, caller
        )  # no stream was free, so it was not begun; it goes without its progress

    async def _answered(self, body: Mapping[str, Any], caller: McpCaller) -> Mapping[str, Any]:
        """Hand the call over and tell of its progress, if any is told; the envelope. Raises
        `UserError`.
        """
        step, often = 0, RateLimits()
        async with aclosing(
            self._daemon.told("POST", "/v1/call", body, timeout_s=body["ttl_s"] + SLACK_S)
        ) as words:
            async for word in words:
                match word:
                    case {"event": "progress", "text": text}:
                        if often.take("", "", WORDS, asyncio.get_running_loop().time()):
                            continue
                        step += 1
                        await caller.tell(step, str(text))
                    case {"event": "answer", "envelope": dict(envelope)}:
                        return envelope
                    case {"event": "late"}:
                        raise UserError(
                            "TIMEOUT",
                            "glassd gave no answer in time",
                            "see what became of it: glassd calls",
                            may_have_run=True,
                        )
                    case {"ok": _}:
                        return dict(word)
        raise UserError(
            "NOT_RUNNING",
            "glassd ended the call without an answer",
            "see whether it runs: glassd status",
            may_have_run=True,
        )

    def _body(self, asked: QuestionAsked) -> dict[str, Any]:
        body: dict[str, Any] = {
            "tool": asked.tool.name,
            "args": dict(asked.args),
            "origin": "mcp",
            "ttl_s": LIFE_S,
        }
        for theirs, ours in _PASSED_ON.items():
            if isinstance(value := asked.meta.get(META + theirs), str) and value:
                body[ours] = value
        life = asked.meta.get(META + "ttlS")
        if isinstance(life, int | float) and not isinstance(life, bool) and 0 < life <= MAX_LIFE_S:
            body["ttl_s"] = life
        return body

    async def _decided(self, back: Answered) -> Mapping[str, Any] | Asking:
        """Take the user's yes or no to the daemon; of it, a tap and a time-out only the first
        counts.
        """
        if self._owner is None:
            return results.refused(
                "DENIED", "PERMANENT", "This server takes no yes from its client", elicitation.HOW
            )
        if back.allowed is None:
            return elicitation.confirmation(back.state or "this", back.call_id)
        body = {"call_id": back.call_id, "allow": back.allowed}
        envelope = await self._owner.ask("POST", "/v1/confirm", body, timeout_s=LIFE_S + SLACK_S)
        if (
            back.allowed and (envelope.get("error") or {}).get("code") == "USED"
        ):  # the wearer was quicker, or this is a repetition
            return await self._told_elsewhere(back.call_id, STORY_S) or envelope
        return dict(envelope)

    async def story(self, call_id: str, wait_s: float) -> Mapping[str, Any] | None:
        """Wait for a call's final answer; None when it has none yet. Raises `UserError`."""
        left = wait_s
        while left > 0:
            poll = min(left, POLL_S)
            story = await self._daemon.ask(
                "GET",
                f"/v1/calls/{quote(call_id, safe='')}?wait={poll:g}",
                timeout_s=poll + SLACK_S,
            )
            if story is not None and story.get("response"):
                return dict(story["response"])
            left -= poll
        return None

    # -------------------------------------------------------------- asking an older client on the
    # way

    async def _asked_now(
        self, requests: elicitation.Requests, asking: Asking, caller: McpCaller
    ) -> Answered | Mapping[str, Any]:
        """Ask one after the other; what came back, or the call's answer when the wearer gave
        theirs on the glasses meanwhile.
        """
        if not asking.call_id:
            return Answered(await _responses(requests, caller), asking.state)
        theirs = asyncio.ensure_future(_responses(requests, caller))
        wearers = asyncio.ensure_future(self._told_elsewhere(asking.call_id, ASK_S))
        try:
            await asyncio.wait({theirs, wearers}, return_when=asyncio.FIRST_COMPLETED)
            if wearers.done() and (answer := wearers.result()) is not None:
                return answer
            return Answered(await theirs, asking.state, asking.call_id)
        except asyncio.CancelledError:
            self._give_up(asking.call_id)
            raise
        finally:
            theirs.cancel()
            wearers.cancel()

    async def _told_elsewhere(self, call_id: str, wait_s: float) -> Mapping[str, Any] | None:
        """Wait for the answer of a call that somebody else may decide; None when none comes, or
        the call is not known.
        """
        try:
            return await self.story(call_id, wait_s)
        except UserError:
            return None

    def _give_up(self, call_id: str) -> None:
        task = self._tasks().create_task(self._call_off(call_id), name="mcp.cancel")
        self._given_up.add(task)
        task.add_done_callback(self._given_up.discard)

    async def ended(self) -> None:
        """Let the daemon hear what was called off, before the group ends its tasks."""
        if self._given_up:
            await asyncio.wait(self._given_up, timeout=END_S)

    async def _call_off(self, call_id: str) -> None:
        """Have the daemon end a call nobody waits for; it may have its answer already."""
        path = f"/v1/calls/{quote(call_id, safe='')}/cancel"
        try:
            await self._daemon.ask(
                "POST", path, {"reason": "called off by the MCP client"}, timeout_s=OFF_S
            )
        except UserError as e:
            log.debug("the call %s was not called off: %s", call_id, e.message)


async def _responses(requests: elicitation.Requests, caller: McpCaller) -> dict[str, Any]:
    """Ask in order; what a client does not answer counts as not wanted."""
    responses: dict[str, Any] = {}
    for key, request in requests.items():
        try:
            responses[key] = dict(await caller.ask(request, ASK_S))
        except caller.unanswered as e:
            log.debug("the client did not answer %s: %s", request["method"], e)
            responses[key] = {"action": "cancel"}
    return responses


def _input_required(requests: elicitation.Requests, asking: Asking) -> dict[str, Any]:
    told: dict[str, Any] = {"resultType": "input_required"}
    if asking.call_id or asking.state is not None or not requests:
        told["requestState"] = asking.sealed()
    return told | (
        {"inputRequests": {key: dict(request) for key, request in requests.items()}}
        if requests
        else {}
    )


def _unaskable(asking: Asking, caller: McpCaller) -> dict[str, Any]:
    needs = (
        ", ".join(elicitation.lacking(asking.requests, caller.capabilities))
        or "a stream on which it can be asked"
    )
    return results.refused(
        "UNSUPPORTED",
        "PERMANENT",
        f"The tool asks back, and this client lacks: {needs}",
        "Use a client that has it",
    )


def _unknown(e: UserError, asked: QuestionAsked, call_id: str) -> dict[str, Any]:
    """An envelope for a call of which only the daemon knows whether it was carried out: whoever
    repeats it might do it twice.
    """
    twice = not (asked.tool.repeatable or asked.meta.get(META + "idempotencyKey"))
    code = "TIMEOUT" if e.code == "TIMEOUT" else "INTERRUPTED"
    advice = f"Ask {results.GET_PENDING} with id {call_id} what became of it"
    told = results.refused(
        code,
        "TRANSIENT",
        f"{e.message}; whether the call was carried out is not known",
        advice,
        retryable=not twice,
    )
    return {
        **told,
        "error": {**told["error"], "partialSideEffects": twice},
        "meta": {"callId": call_id},
    }


def code_of(e: UserError) -> tuple[str, str]:
    """Code and type of an envelope for what the control API, or its absence, says."""
    match e.code:
        case "TIMEOUT":
            return "TIMEOUT", "TRANSIENT"
        case "INVALID_REQUEST":
            return "INVALID_REQUEST", "VALIDATION"
        case "CONFLICT" | "INTERNAL":
            return e.code, e.code
        case "BUSY":
            return "RATE_LIMIT", "RATE_LIMIT"
        case "PERMISSION":
            return "DENIED", "PERMANENT"
        case "STORAGE_UNAVAILABLE" | "DISK_FULL":
            return "STORAGE_UNAVAILABLE", "TRANSIENT"
    return "NETWORK_ERROR", "TRANSIENT"
