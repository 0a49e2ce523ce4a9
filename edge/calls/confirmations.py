"""Confirmations: a call that needs a yes waits here, is asked about where the wearer is, and is
decided exactly once.

Refuses to run anything. Tools never see a token (S2-98); the disk holds only its hash, and using it
up is one transaction with the call's step (C-14), so that of a tap, a token and a time-out only the
first counts.
"""

import asyncio
import copy
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from edge.calls.admission import CallRefused
from edge.calls.call import Decided, PendingCall, Unasked
from edge.core import call_summary, confirmation, policy
from edge.core.grants import Asked, Consumed, Consumption, Grant, Granted
from edge.ports import AskPort, NobodyToAsk, Question, RegistryPort
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import ConfirmationAsked, ConfirmationDecided
from edge.runtime.first_completed import Tasks
from edge.storage.confirmations import Confirmations
from firmware_bridge.messages import Answer
from tools_cache.api.tool import ErrorCode, Json, ToolCall, ToolDefinition, ToolError

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Open:
    """A question that is not decided yet. `tool` is what the wearer is asked about."""

    ticket: PendingCall
    tool: ToolDefinition
    task: asyncio.Task[None]
    end_at: float


class ConfirmationFlow:
    """One per daemon."""

    def __init__(
        self,
        *,
        store: Confirmations,
        ask: AskPort,
        bus: Bus,
        clock: Clock,
        registry: RegistryPort,
        new_token: Callable[[], str],
        tasks: Tasks,
    ) -> None:
        self._store = store
        self._ask = ask
        self._bus = bus
        self._clock = clock
        self._registry = registry
        self._new_token = new_token
        self._asking: dict[str, _Open] = {}
        self._tasks = tasks

    async def standing(self, call: ToolCall, tool: ToolDefinition) -> Grant | None:
        """What is decided without asking; None: ask. A “never” holds for any tool, whatever its
        author says of it later.

        Judged by the tool as it is now, because that is what runs: a turn may have begun with an
        older definition.
        """
        granted = await self._store.granted(call.user_id, tool.name)
        return confirmation.standing(self._as_it_is_now(tool), granted)

    def freeze(self, ticket: PendingCall, tool: ToolDefinition) -> ToolDefinition:
        """Make the call what is asked about and, after a yes, run: the tool as it is now, and a
        copy of the arguments that no other code holds. Raises `CallRefused` for arguments too long
        to be shown.
        """
        tool = ticket.tool = self._as_it_is_now(tool)
        ticket.call = replace(
            ticket.call,
            args=copy.deepcopy(dict(ticket.call.args)),
            input=copy.deepcopy(ticket.call.input),
        )
        if error := confirmation.too_long(tool, ticket.call):
            raise CallRefused(error, "too long to be shown")
        return tool

    def _as_it_is_now(self, tool: ToolDefinition) -> ToolDefinition:
        now = self._registry.snapshot().find(tool.name)
        return now.definition if now is not None else tool

    async def changed(self, ticket: PendingCall) -> ToolError | None:
        """Why this call must not run: its tool is not what the question was about, or needs a
        yes now and nobody was asked.
        """
        call = ticket.call
        asked_about = await self._store.subject(call.call_id)
        now = self._registry.snapshot().find(call.tool)
        if not asked_about:
            return None if now is None else await self._unasked(call, now.definition)
        if now is not None and confirmation.subject(now.definition, call) == asked_about:
            return None
        return confirmation.changed(call.tool)

    async def _unasked(self, call: ToolCall, tool: ToolDefinition) -> ToolError | None:
        standing = await self.standing(call, tool)
        if standing is Grant.NEVER:
            return confirmation.never_allowed(tool)
        return None if standing is Grant.ALWAYS else confirmation.needed_now(call.tool)

    async def open(self, ticket: PendingCall, tool: ToolDefinition, life_s: float) -> ToolError:
        """Ask about an admitted call; gives CONFIRMATION_REQUIRED with its token. The answer
        comes as a `Decided` word.
        """
        call, token = ticket.call, self._new_token()
        await self._store.ask(
            Asked(
                call.call_id,
                confirmation.token_hash(token),
                call.tool,
                confirmation.subject(tool, call),
                call.user_id,
                call.session,
                life_s,
            )
        )
        self.ask_wearer(ticket, tool, life_s)
        return confirmation.required(
            call, tool, token=token, left_s=life_s, wall=self._clock.wall()
        )

    async def left_s(self, call_id: str) -> float | None:
        """Seconds an open question still has; None when it is not open any more. For a new
        daemon.
        """
        return next(
            (asked.left_s for asked in await self._store.open() if asked.call_id == call_id), None
        )

    def ask_wearer(self, ticket: PendingCall, tool: ToolDefinition, left_s: float) -> None:
        """Put the question on the glasses, without waiting for it."""
        lines = call_summary.lines(tool, ticket.call.args, ticket.call.input)
        self._bus.publish(
            ConfirmationAsked(
                ticket.call.call_id,
                tool.name,
                policy.preview(tool, ticket.call.args),
                round(left_s, 1),
                lines,
            )
        )
        task = self._tasks.create_task(
            self._wearer(ticket, tool, lines, left_s), name=f"ask.{ticket.call.call_id}"
        )
        self._asking[ticket.call.call_id] = _Open(ticket, tool, task, self._clock.boot() + left_s)

    def questions(self) -> list[Mapping[str, Json]]:
        """The calls that wait for a yes, oldest first, with everything that would run."""
        now = self._clock.boot()
        return [
            {
                "call_id": asked.ticket.call.call_id,
                "tool": asked.tool.name,
                "origin": call_summary.origin(asked.tool),
                "asked_by": asked.ticket.call.origin.value,
                "preview": policy.preview(asked.tool, asked.ticket.call.args),
                "args": dict(asked.ticket.call.args),
                "particulars": list(
                    call_summary.lines(asked.tool, asked.ticket.call.args, asked.ticket.call.input)
                ),
                "left_s": round(max(0.0, asked.end_at - now), 1),
            }
            for asked in self._asking.values()
        ]

    # -------------------------------------------------------------- decisions

    async def by_token(
        self,
        token: str,
        *,
        allow: bool,
        grant: Grant,
        user_id: str,
        tool: str | None = None,
        args_hash: str | None = None,
        session: str | None = None,
    ) -> Consumed:
        """Use a token up. When TAKEN the call is decided on disk; hand `decided` on when
        whoever waits is ready.
        """
        used = await self._store.consume(
            confirmation.token_hash(token),
            allow=allow,
            tool=tool,
            args_hash=args_hash,
            user_id=user_id,
            session=session,
        )
        await self._remember(used, user_id, grant)
        return used

    async def by_call(self, call_id: str, *, allow: bool, grant: Grant, user_id: str) -> Consumed:
        """The same for a call that is named by its id, as the owner does at a terminal."""
        used = await self._store.consume_call(call_id, allow=allow)
        await self._remember(used, user_id, grant)
        return used

    def decided(self, ticket: PendingCall, *, allow: bool, by: str) -> None:
        """Tell the waiting call, which may not have asked yet; the question leaves the lens."""
        self.unask(ticket.call.call_id)
        if ticket.tool is None:
            return
        self._told(ticket, "allowed" if allow else "denied", by)
        ticket.put(Decided(by, None if allow else confirmation.denied(ticket.tool, by)))

    async def close(self, ticket: PendingCall, outcome: str) -> bool:
        """End an open question without a yes (`cancelled`, `expired`); False when it was
        decided just now.
        """
        used = await self._store.consume_call(ticket.call.call_id, allow=False)
        if used.outcome is Consumption.USED:
            return False
        self.unask(ticket.call.call_id)
        self._told(ticket, outcome, "nobody" if outcome == "expired" else "the caller")
        return True

    async def refused(self, call_id: str) -> bool:
        """Tell whether a question that is not open any more was answered with a no; for a new
        daemon.
        """
        return (await self._store.consume_call(call_id, allow=False)).outcome is Consumption.USED

    def unask(self, call_id: str) -> None:
        """Take a question off the lens."""
        asked = self._asking.pop(call_id, None)
        if asked is not None:
            asked.task.cancel()

    async def _remember(self, used: Consumed, user_id: str, grant: Grant) -> None:
        asked = self._asking.get(used.call_id)
        if used.outcome is not Consumption.TAKEN or grant is Grant.ONCE or asked is None:
            return
        granted = Granted(
            grant, confirmation.definition_digest(asked.tool), call_summary.origin(asked.tool)
        )
        try:
            await self._store.grant(user_id, asked.tool.name, granted)
        except Exception as e:  # noqa: BLE001 - the question is decided: its call must hear of it, whatever else is lost
            _log.warning("the grant %s is not on disk: %s", grant.value, e)

    async def _wearer(
        self, ticket: PendingCall, tool: ToolDefinition, lines: tuple[str, ...], left_s: float
    ) -> None:
        call_id = ticket.call.call_id
        try:
            answer = await self._ask.ask(
                Question(f"{call_id}/confirm", "\n".join(lines), left_s, exact=True)
            )
        except NobodyToAsk as e:
            ticket.put(Unasked(str(e)))
            return
        except Exception:  # noqa: BLE001 - a fault of the glasses' side leaves the token, and the time-out
            _log.exception("the wearer could not be asked about %s", call_id)
            ticket.put(Unasked("the glasses could not ask"))
            return
        if answer is Answer.TIMEOUT:
            return  # the life of the question ends it
        allow = answer is Answer.ALLOW
        try:
            used = await self._store.consume_call(call_id, allow=allow)
        except Exception as e:  # noqa: BLE001 - nothing runs on a yes that is not on disk; a no needs none
            _log.warning("the wearer's answer about %s is not on disk: %s", call_id, e)
            lost = ToolError.of(
                ErrorCode.INTERRUPTED,
                "Your yes could not be kept, so nothing was done",
                suggestion="Try again",
            )
            ticket.put(
                Decided("the wearer", lost if allow else confirmation.denied(tool, "The wearer"))
            )
            return
        if used.outcome is not Consumption.TAKEN:
            return  # a token was quicker
        self._asking.pop(call_id, None)
        self._told(ticket, "allowed" if allow else "denied", "the wearer")
        ticket.put(
            Decided("the wearer", None if allow else confirmation.denied(tool, "The wearer"))
        )

    def _told(self, ticket: PendingCall, outcome: str, by: str) -> None:
        self._bus.publish(ConfirmationDecided(ticket.call.call_id, ticket.call.tool, outcome, by))
