"""One tool call of an MCP client, end to end: through the daemon, with its progress, its questions
and its cancellation.
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
from tools_cache.api.tool import CAN_ANSWER, RateLimit

log: Final = logging.getLogger(__name__)

LIFE_S: Final = 40.0
"""A call's time to live if the client names none, as everywhere."""
MAX_LIFE_S: Final = 3600.0
SLACK_S: Final = 70.0
"""The daemon gives up 60 s after a call's own end; its answer should come first."""
POLL_S: Final = 50.0
DECIDED_S: Final = 900.0
"""How long to wait for a result after another decision: a question's life and a call's."""
CANCEL_S: Final = 10.0
END_S: Final = 3.0
"""How long the end of this process waits until cancellations are sent."""
ROUNDS: Final = 8
"""Questions within one call of an older client, which cannot bring a state back."""
ASK_S: Final = 300.0
PROGRESS: Final = RateLimit(20, 1.0)
"""Reports of one call's progress; more are left out."""
MAX_CALLS: Final = 24
"""At once; the daemon has 64 connections for all clients."""
MAX_FOLLOWED: Final = 8
"""Calls at once whose progress is followed; the daemon has 16 streams for all clients. Others run
without progress.
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
class CallRequest:
    """A client's call: the tool, its arguments, and the answer to an earlier question."""

    tool: KnownTool
    args: Mapping[str, Any]
    meta: Mapping[str, Any]
    back: Answered | None = None


class Calls:
    """Runs calls; abandoned ones are cancelled in the task group that `tasks` returns.

    With `owner`, a client with the owner's rights, a confirmation by the client's user counts.
    Without it only the wearer's and the owner's do: the program that asks for a call does not
    confirm it.
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
        self._cancelling: set[asyncio.Task[None]] = set()
        self._followed = 0
        self._running = 0

    async def run(self, request: CallRequest, caller: McpCaller) -> dict[str, Any]:
        """Return a CallToolResult or an InputRequiredResult. Raises `LacksCapability`."""
        if self._running >= MAX_CALLS:
            busy, fix = f"{MAX_CALLS} calls run already", "Wait for one of them"
            return self._result(results.too_often(busy, fix), request, caller)
        self._running += 1
        try:
            return await self._call_and_ask(request, caller)
        finally:
            self._running -= 1

    async def _call_and_ask(self, request: CallRequest, caller: McpCaller) -> dict[str, Any]:
        """Call the tool; ask an older client what the tool asks, and call it again."""
        for _ in range(ROUNDS):
            outcome = await self._once(request, caller)
            asking = outcome if isinstance(outcome, Asking) else elicitation.asking(outcome)
            waits_for_owner = asking is not None and asking.call_id and self._owner is None
            if asking is None or (waits_for_owner and isinstance(outcome, Mapping)):
                return self._result(outcome, request, caller)
            if (roots := elicitation.no_roots(asking, caller.capabilities)) is not None:
                request = replace(request, back=roots)
                continue
            requests = elicitation.askable(asking.requests, caller.capabilities)
            able = bool(requests or not asking.requests) and (caller.modern or caller.reachable)
            if able and caller.modern:
                return _input_required(requests, asking)
            if not able and not asking.call_id and caller.modern:
                raise LacksCapability(elicitation.lacking(asking.requests, caller.capabilities))
            if not able and isinstance(outcome, Mapping):
                envelope = outcome if asking.call_id else _unaskable(asking, caller)
                return self._result(envelope, request, caller)
            back = await self._ask(requests, asking, caller)
            if isinstance(back, Mapping):
                return self._result(back, request, caller)
            request = replace(request, back=back)
        problem, fix = "The tool asks again and again", "Use another tool"
        return self._result(
            results.refused("UNSUPPORTED", "PERMANENT", problem, fix), request, caller
        )

    def _result(self, envelope: Any, request: CallRequest, caller: McpCaller) -> dict[str, Any]:
        shaped = request.tool.shaped if caller.modern else request.tool.as_object
        ours = request.tool.ours
        return results.result(envelope, shaped=shaped, ours=ours, modern=caller.modern)

    # -------------------------------------------------------------- one round

    async def _once(self, request: CallRequest, caller: McpCaller) -> Mapping[str, Any] | Asking:
        """Call it once; return the envelope, or our own question if it must be asked again."""
        call_id = (request.back.call_id if request.back else "") or self._new_id()
        try:
            if request.back is not None and request.back.call_id:
                return await self._confirm(request.back)
            return await self._call(request, call_id, caller)
        except UserError as e:
            return _unknown(e, request, call_id) if e.may_have_run else refusal_of(e)
        except asyncio.CancelledError:
            self._cancel_later(call_id)
            raise

    async def _call(
        self, request: CallRequest, call_id: str, caller: McpCaller
    ) -> Mapping[str, Any]:
        body = self._body(request) | {"call_id": call_id, "ask": "return"}
        given = request.back.input if request.back is not None else {}
        if (methods := _answerable(caller)) or given:  # else the daemon and the wearer answer
            body["input"] = {**given, CAN_ANSWER: methods}
        if not caller.listens or self._followed >= MAX_FOLLOWED:
            return await self._answer(body, caller)
        self._followed += 1
        try:
            return await self._answer(body | {"progress": True}, caller)
        except UserError as e:
            if e.code != "BUSY":
                raise
        finally:
            self._followed -= 1
        # no stream was free, so it was not begun; it goes without progress
        return await self._answer(body, caller)

    async def _answer(self, body: Mapping[str, Any], caller: McpCaller) -> Mapping[str, Any]:
        """Send the call, report its progress, return the envelope. Raises `UserError`."""
        step, limits = 0, RateLimits()
        stream = self._daemon.stream("POST", "/v1/call", body, timeout_s=body["ttl_s"] + SLACK_S)
        async with aclosing(stream) as parts:
            async for part in parts:
                match part:
                    case {"event": "progress", "text": text}:
                        if limits.take("", "", PROGRESS, asyncio.get_running_loop().time()):
                            continue
                        step += 1
                        await caller.report(step, str(text))
                    case {"event": "answer", "envelope": dict(envelope)}:
                        return envelope
                    case {"event": "late"}:
                        problem, fix = "gave no answer in time", "see its state: glassd calls"
                        raise UserError("TIMEOUT", f"glassd {problem}", fix, may_have_run=True)
                    case {"ok": _}:
                        return dict(part)
        problem, fix = "ended the call without an answer", "see whether it runs: glassd status"
        raise UserError("NOT_RUNNING", f"glassd {problem}", fix, may_have_run=True)

    def _body(self, request: CallRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "tool": request.tool.name,
            "args": dict(request.args),
            "origin": "mcp",
            "ttl_s": LIFE_S,
        }
        for theirs, ours in _PASSED_ON.items():
            if isinstance(value := request.meta.get(META + theirs), str) and value:
                body[ours] = value
        if isinstance(present := request.meta.get(META + "present"), bool):
            body["present"] = present
        life = request.meta.get(META + "ttlS")
        if isinstance(life, int | float) and not isinstance(life, bool) and 0 < life <= MAX_LIFE_S:
            body["ttl_s"] = life
        return body

    async def _confirm(self, back: Answered) -> Mapping[str, Any] | Asking:
        """Send the user's yes or no to the daemon; the first of it, a tap and a timeout counts."""
        if self._owner is None:
            problem = "This server takes no yes from its client"
            return results.refused("DENIED", "PERMANENT", problem, elicitation.HOW)
        if back.allowed is None:
            return elicitation.confirmation(back.state or "this", back.call_id)
        body = {"call_id": back.call_id, "allow": back.allowed}
        envelope = await self._owner.ask("POST", "/v1/confirm", body, timeout_s=LIFE_S + SLACK_S)
        if back.allowed and (envelope.get("error") or {}).get("code") == "USED":
            # the wearer was quicker, or this is a repetition
            return await self._wait_elsewhere(back.call_id, DECIDED_S) or envelope
        return dict(envelope)

    async def wait_for(self, call_id: str, wait_s: float) -> Mapping[str, Any] | None:
        """Wait for a call's final answer; None if it has none yet. Raises `UserError`."""
        left = wait_s
        while left > 0:
            poll = min(left, POLL_S)
            path = f"/v1/calls/{quote(call_id, safe='')}?wait={poll:g}"
            call = await self._daemon.ask("GET", path, timeout_s=poll + SLACK_S)
            if call is not None and call.get("response"):
                return dict(call["response"])
            left -= poll
        return None

    # ------------------------------------------------- asking an older client during the call

    async def _ask(
        self, requests: elicitation.Requests, asking: Asking, caller: McpCaller
    ) -> Answered | Mapping[str, Any]:
        """Ask one after the other; return the answers, or the call's answer if the wearer decided
        on the glasses meanwhile.
        """
        if not asking.call_id:
            return Answered(await _responses(requests, caller), asking.state)
        theirs = asyncio.ensure_future(_responses(requests, caller))
        wearers = asyncio.ensure_future(self._wait_elsewhere(asking.call_id, ASK_S))
        try:
            await asyncio.wait({theirs, wearers}, return_when=asyncio.FIRST_COMPLETED)
            if wearers.done() and (answer := wearers.result()) is not None:
                return answer
            return Answered(await theirs, asking.state, asking.call_id)
        except asyncio.CancelledError:
            self._cancel_later(asking.call_id)
            raise
        finally:
            theirs.cancel()
            wearers.cancel()

    async def _wait_elsewhere(self, call_id: str, wait_s: float) -> Mapping[str, Any] | None:
        """Wait for the answer of a call that is decided elsewhere; None if there is none."""
        try:
            return await self.wait_for(call_id, wait_s)
        except UserError:
            return None

    def _cancel_later(self, call_id: str) -> None:
        task = self._tasks().create_task(self._cancel(call_id), name="mcp.cancel")
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def finish(self) -> None:
        """Wait until cancellations are sent, before the group ends its tasks."""
        if self._cancelling:
            await asyncio.wait(self._cancelling, timeout=END_S)

    async def _cancel(self, call_id: str) -> None:
        """Cancel an abandoned call at the daemon; it may have its answer already."""
        path = f"/v1/calls/{quote(call_id, safe='')}/cancel"
        reason = {"reason": "called off by the MCP client"}
        try:
            await self._daemon.ask("POST", path, reason, timeout_s=CANCEL_S)
        except UserError as e:
            log.debug("call %s was not cancelled: %s", call_id, e.message)


def _answerable(caller: McpCaller) -> list[str]:
    """Return the methods of the questions that this client can be asked."""
    return elicitation.methods(caller.capabilities) if caller.modern or caller.reachable else []


async def _responses(requests: elicitation.Requests, caller: McpCaller) -> dict[str, Any]:
    """Ask in order; a question that the client does not answer counts as cancelled."""
    responses: dict[str, Any] = {}
    for key, request in requests.items():
        try:
            responses[key] = dict(await caller.ask(request, ASK_S))
        except caller.unanswered as e:
            log.debug("the client did not answer %s: %s", request["method"], e)
            responses[key] = {"action": "cancel"}
    return responses


def _input_required(requests: elicitation.Requests, asking: Asking) -> dict[str, Any]:
    result: dict[str, Any] = {"resultType": "input_required"}
    if asking.call_id or asking.state is not None or not requests:
        result["requestState"] = asking.seal()
    if requests:
        result["inputRequests"] = {key: dict(request) for key, request in requests.items()}
    return result


def _unaskable(asking: Asking, caller: McpCaller) -> dict[str, Any]:
    lacking = ", ".join(elicitation.lacking(asking.requests, caller.capabilities))
    needs = lacking or "a stream on which it can be asked"
    problem = f"The tool asks back, and this client lacks: {needs}"
    return results.refused("UNSUPPORTED", "PERMANENT", problem, "Use a client that has it")


def _unknown(e: UserError, request: CallRequest, call_id: str) -> dict[str, Any]:
    """Return an envelope for a call that may have been done; a repetition may do it twice."""
    twice = not (request.tool.repeatable or request.meta.get(META + "idempotencyKey"))
    envelope = results.refused(
        "TIMEOUT" if e.code == "TIMEOUT" else "INTERRUPTED",
        "TRANSIENT",
        f"{e.message}; whether the call was carried out is not known",
        f"Ask {results.GET_PENDING} with id {call_id} what became of it"
        + ("" if twice else "; if it knows no such call, call again"),
        retryable=not twice,
    )
    envelope["error"]["partialSideEffects"] = twice
    return {**envelope, "meta": {"callId": call_id}}


_ENVELOPE: Final = {
    "TIMEOUT": ("TIMEOUT", "TRANSIENT"),
    "INVALID_REQUEST": ("INVALID_REQUEST", "VALIDATION"),
    "CONFLICT": ("CONFLICT", "CONFLICT"),
    "INTERNAL": ("INTERNAL", "INTERNAL"),
    "BUSY": ("RATE_LIMIT", "RATE_LIMIT"),
    "PERMISSION": ("DENIED", "PERMANENT"),
    "STORAGE_UNAVAILABLE": ("STORAGE_UNAVAILABLE", "TRANSIENT"),
    "DISK_FULL": ("STORAGE_UNAVAILABLE", "TRANSIENT"),
}
"""Code of the control API → code and type of an envelope."""
_RETRYABLE: Final = frozenset({"NOT_RUNNING", "BUSY", "STORAGE_UNAVAILABLE", "DISK_FULL"})


def refusal_of(e: UserError, *, looked_up: bool = False) -> dict[str, Any]:
    """Return an envelope for a request that the daemon refused or did not get. `looked_up`: it only
    asked for a call's result.
    """
    code, kind = _ENVELOPE.get(e.code, ("NETWORK_ERROR", "TRANSIENT"))
    retryable = e.code in _RETRYABLE
    if looked_up:
        code, kind = ("TOOL_NOT_FOUND", "NOT_FOUND") if e.code == "NOT_FOUND" else (code, kind)
        retryable = kind in {"TRANSIENT", "RATE_LIMIT"}
    fix = e.fix[:1].upper() + e.fix[1:]
    return results.refused(code, kind, e.message, fix, retryable=retryable)
