"""The way of one call: admission, a yes where one is needed, its backend, delivery.

The four do not know each other; each is handed the call. After a restart `resume` brings a call of
the last daemon to its one answer.
"""

import logging
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.calls.admission import Admission
from edge.calls.backends import Backend, Router
from edge.calls.call import Call, Ending, Outcome, Refused
from edge.calls.confirmations import Confirmations
from edge.calls.delivery import CallDelivery
from edge.calls.faults import Attempt
from edge.core import idempotency, results, routing
from edge.core.call_state import RECOVERY, CallState, Left, Recovery
from edge.core.routing import ELSEWHERE, HERE, Route, RouteKind
from edge.storage.pending import PendingCalls
from edge.storage.results import ResultCache
from edge.storage.sqlite.errors import StorageUnavailable
from tools_cache.api.tool import ErrorCode

_AWAY: Final = frozenset(
    {ErrorCode.OFFLINE, ErrorCode.NOT_ACCEPTED, ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR}
)
"""Failures of the way to a tool, not of the tool: its last good result still says something."""
_CLOUD: Final = frozenset({RouteKind.CLOUD, RouteKind.QUEUE})


class Execution(Struct, frozen=True):
    """Carries every call from request to answer."""

    admission: Admission
    confirmations: Confirmations
    router: Router
    backends: Mapping[RouteKind, Backend]
    delivery: CallDelivery
    pending: PendingCalls
    results: ResultCache

    async def run(self, call: Call) -> None:
        """Bring a call to its one answer; whatever goes wrong in here becomes an answer too."""
        with Attempt("call %s failed inside the daemon", call.request.call_id, bug=True) as going:
            await self.delivery.finish(call, await self._run(call))
        if going.error is not None:
            await self.delivery.finish(call, _fault(call, going.error))

    async def resume(self, call: Call) -> None:
        """Take up a call that the last daemon left; nothing unsafe runs twice."""
        call.stages += ["configured", "built"]
        with Attempt("call %s could not be resumed", call.request.call_id, bug=True) as going:
            await self.delivery.finish(call, await self._resume(call))
        if going.error is not None:
            await self.delivery.finish(call, Outcome(results.internal(call.request.tool)))

    async def _run(self, call: Call) -> Ending:
        unseen = call.caller.new_id and not call.keys
        verdict = await self.admission.find(call.request, call.keys, looked_up=unseen)
        call.tool = verdict.tool  # a fault from here on is still one of this tool
        call.registry_version = verdict.registry_version or call.registry_version
        verdict = await self.admission.check(verdict)
        call.request, call.keys = verdict.call, verdict.keys
        call.clamped, call.defaulted = verdict.clamped, verdict.defaulted
        if verdict.end is not None:
            return verdict.end
        call.stages.append("configured")
        if self.router.choose(call).code is None:
            if (end := await self.confirmations.obtain(call)) is not None:
                return end
            # Glasses and network may have come or gone while the wearer was asked. Also without a
            # question: what runs is the definition that needed none, not one from before it.
            self.router.choose(call)
        return await self._serve(call)

    async def _serve(self, call: Call) -> Ending:
        """Run the call by the route it has, on disk first."""
        assert call.tool is not None
        assert call.route is not None
        route = call.route
        call.caller_s = call.request.ttl_s
        life_s = routing.life_s(call.request, call.tool, route)
        call.request = replace(call.request, ttl_s=life_s)
        if call.state is CallState.RECEIVED and (end := await self._admit(call, route)):
            return end
        call.stages.append("built")
        outcome = await self._run_backend(call)
        call.stages += ["executed"] * (route.code is None)
        return outcome

    async def _admit(self, call: Call, route: Route) -> Ending | None:
        if route.code is not None:
            return await call.admit(CallState.ADMITTED)
        return await self.backends[route.kind].admit(call)

    async def _run_backend(self, call: Call) -> Outcome:
        assert call.tool is not None
        assert call.route is not None
        if call.route.code is not None:
            response = results.fallback(call.route.code, call.tool, call.route.reason)
            return await self._or_last_good(call, Outcome(response))
        outcome = await self.backends[call.route.kind].run(call)
        here = call.route.kind not in {*_CLOUD, RouteKind.FALLBACK}
        return outcome if here else await self._or_last_good(call, outcome)

    async def _or_last_good(self, call: Call, outcome: Outcome) -> Outcome:
        """The last good result of a tool that only reads, when its route is away; it says how
        old it is.
        """
        tool, error = call.tool, outcome.response.error
        if error is None or error.code not in _AWAY or outcome.expired:
            return outcome
        if tool is None or tool.cache_ttl_s is None or not tool.read_only:
            return outcome
        kept, args = None, idempotency.digest(dict(call.request.args))
        with Attempt("the last result of %s cannot be read", tool.name, level=logging.DEBUG):
            kept = await self.results.last(call.request.user_id, tool.name, args)
        if kept is None:
            return outcome
        call.route = Route(RouteKind.CACHE, f"the last good result: {call.reason}")
        call.reason = call.route.reason
        response = replace(kept.response, intents=())
        response = response.with_meta(stale=True, ageS=round(kept.age_s))
        return replace(outcome, response=response)

    # ------------------------------------------------------------------ after a restart

    async def _resume(self, call: Call) -> Ending:
        assert call.route is not None
        tool, kind, state = call.tool, call.route.kind, call.state
        rule = RECOVERY[Left(state, kind in ELSEWHERE, call.repeatable)]
        if kind in ELSEWHERE:
            submitted = await self.pending.result(call.request.call_id)
            if submitted is not None:
                return Outcome(submitted)
        began = rule not in (Recovery.RUN, Recovery.ASK)
        if tool is None and kind not in _CLOUD:
            return Outcome(results.interrupted(None, started=began))
        runs_here = rule in (Recovery.RUN, Recovery.AGAIN) and kind in {*HERE, RouteKind.LATER}
        would_run = runs_here or rule is Recovery.ASK
        if would_run and (end := await self.confirmations.changed(call)) is not None:
            return end
        alive = tool is not None and call.request.ttl_s > 0
        match rule:
            case Recovery.ASK if tool is not None:
                end = await self.confirmations.obtain_again(call)
                return end if end is not None else await self._begin(call)
            # A call stored with the route FALLBACK was to be answered without being run, so nobody
            # was asked for a yes: it must not run now either.
            case Recovery.RUN if alive and kind is not RouteKind.FALLBACK:
                # What was bound for the cloud may be in the outbox, so it stays bound for it.
                return await self._begin(call, bound=kind in _CLOUD)
            # Run it once more, unless its tool takes another route by now.
            case Recovery.AGAIN if alive and tool and routing.kind_of(tool) is kind:
                return await self.backends[kind].resume(call, again=True)
            case Recovery.WAIT:
                again = await self._may_go_again(call)
                return await self.backends[kind].resume(call, again=again)
        # What was bound for the cloud may have been sent before its step was on disk.
        sent = rule is Recovery.RUN and kind in _CLOUD
        return Outcome(results.interrupted(tool, started=began or sent))

    async def _begin(self, call: Call, *, bound: bool = False) -> Outcome:
        """Run a call that was accepted and never began, by the route that is there now; `bound`:
        by the one it has.
        """
        assert call.route is not None
        if not bound:
            self.router.choose(call)
        call.caller_s = call.request.ttl_s
        if call.route.code is None and call.route.kind in _CLOUD:
            # `resume` submits it, then waits for it as for any call that was left
            return await self.backends[call.route.kind].resume(call, again=True)
        return await self._run_backend(call)

    async def _may_go_again(self, call: Call) -> bool:
        """Return whether a call that a former daemon handed over is handed over once more. To the
        wearer: yes. To a caller: if doing it twice is harmless and its tool is still the one agreed
        to. To the cloud: no, its workers have it.
        """
        if call.tool is None or call.route is None or not call.tool.asynchronous:
            return False
        if call.route.kind is RouteKind.LATER and call.repeatable:
            return await self.confirmations.changed(call) is None
        return call.route.kind is RouteKind.WEARER


def _fault(call: Call, error: Exception) -> Ending:
    if isinstance(error, StorageUnavailable) and call.state is CallState.RECEIVED:
        return Refused(results.storage_unavailable(error), "store")
    return Outcome(results.internal(call.request.tool))
