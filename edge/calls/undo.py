"""Taking a call back: its result offers a tap, which runs the tool that its author named, once.

In memory only: after a restart nothing is offered any more.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.calls.call import Call, Caller
from edge.core import confirmation
from edge.core.results import TapOffer
from edge.core.tools import templates
from edge.ports import RegistryPort
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from tools_cache.api.tool import CallOrigin, Json, ToolCall, ToolDefinition, ToolResponse

OFFER: Final = TapOffer("tap to undo")
MAX_OFFERS: Final = 16
"""Results on offer at once: the one on the lens, those that wait for it, and some before them."""
_LIFE_S: Final = 20.0


class _Undo(Struct, frozen=True):
    """A call that takes another one back, and the digest of the tool that was offered."""

    tool: str
    args: dict[str, Json]
    user_id: str
    agreed_to: str


class Undos:
    """One per daemon."""

    def __init__(self, registry: RegistryPort, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._offered: dict[str, _Undo] = {}

    def offer(self, call: Call, response: ToolResponse) -> TapOffer | None:
        """Return what the result offers; None if it cannot be taken back."""
        tool, request = call.tool, call.request
        if tool is None or tool.wearer.undo is None or not response.ok:
            return None
        named, template = self._tool_of(tool), dict(tool.wearer.undo.args)
        scope = {"input": dict(request.args), "data": response.data}
        if named is None or templates.unfilled(template, scope):
            return None
        self._offered[request.call_id] = _Undo(
            named.name,
            templates.filled(template, scope) or {},
            request.user_id,
            confirmation.definition_digest(named),
        )
        while len(self._offered) > MAX_OFFERS:
            self._offered.pop(next(iter(self._offered)))
        return OFFER

    def take(self, call_id: str) -> tuple[ToolCall, Caller] | None:
        """Return the call that takes this one back; None the second time, or if none was offered.

        It has exactly the arguments that were offered. The tap is the yes to it, as long as its
        tool is what was offered.
        """
        undo = self._offered.pop(call_id, None)
        if undo is None:
            return None
        request = ToolCall(
            call_id=new_call_id(self._clock.wall()),
            tool=undo.tool,
            args=undo.args,
            origin=CallOrigin.GLASSES,
            user_id=undo.user_id,
            ttl_s=_LIFE_S,
            idempotency_key=f"undo:{call_id}",
        )
        return request, Caller(undoes=call_id, agreed_to=undo.agreed_to)

    def _tool_of(self, tool: ToolDefinition) -> ToolDefinition | None:
        """Return the tool that takes a call of `tool` back: active, of its package and source."""
        assert tool.wearer.undo is not None
        entry = self._registry.snapshot().find(tool.wearer.undo.tool)
        if entry is None or entry.hidden:
            return None
        found = entry.definition
        places = {(t.name.partition(":")[0], t.source, t.own) for t in (tool, found)}
        return found if len(places) == 1 and found.name != tool.name else None


def explained(call: Call, response: ToolResponse) -> ToolResponse:
    """Return the answer of a call for the wearer: where it was to undo another and failed, it says
    that the other stands.
    """
    error = response.error
    if not call.caller.undoes or error is None:
        return response
    from edge.core.words.failure_sentences import sentence  # noqa: PLC0415 - at the first failure

    said = sentence(replace(error, partial_side_effects=False), call.wearer_name)
    stands = "Perhaps not undone." if error.partial_side_effects else "Not undone."
    words = f"{stands} {said}"
    return replace(response, error=replace(error, for_wearer=words, partial_side_effects=False))
