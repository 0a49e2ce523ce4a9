"""What is reported of each answer: an event for listeners, one audit line, and warnings about slow
tools and turns.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final

from edge.calls.call import Call
from edge.calls.dependencies import CallPorts, CallRules
from edge.core import idempotency, latency
from edge.core.call_summary import hide, secret_names
from edge.runtime.events import CallAnswered, CallCompleted
from tools_cache.api.tool import Json, Mode, ToolResponse

_log: Final = logging.getLogger(__name__)
_audit_log: Final = logging.getLogger("edge.observability.audit")
_INTERIM: Final = ("confirmation", "pending")


class Reports:
    """One per daemon."""

    def __init__(self, ports: CallPorts, rules: CallRules) -> None:
        self._bus = ports.bus
        self._audit = ports.audit or _log_audit
        self._rules = rules
        self._latency = latency.LatencyLedger()
        self._slow_tools: set[str] = set()

    def report(self, call: Call, response: ToolResponse, outcome: str) -> None:
        """Publish and audit one answer. `outcome`: refused, replay, answered, an interim one, or
        completed (the end of a call whose caller has an interim answer).
        """
        request, error = call.request, response.error
        delivery = response.meta.get("delivery")
        if outcome == "completed":
            self._bus.publish(CallCompleted(request.call_id, request.tool, response.ok, delivery))
        else:
            self._bus.publish(
                CallAnswered(
                    request.call_id,
                    str(request.tool)[:255],
                    response.ok,
                    str(response.meta.get("route", "")),
                    delivery,
                    error.code.value if error else "",
                    outcome not in _INTERIM,
                )
            )
        self._write(call, response, outcome)

    def _write(self, call: Call, response: ToolResponse, outcome: str) -> None:
        """One audit line per answer; whether its arguments are written down is up to the log."""
        request, tool, error = call.request, call.tool, response.error
        duration = response.meta.get("duration", 0)
        over_tool, over_turn = self._slow(call, duration)
        secret = secret_names(tool) if tool is not None else ()
        args, key = hide(request.args, secret), call.keys[0] if call.keys else ""
        if secret and key.startswith("hash:"):
            key = ""  # it is made of the arguments, and so is a way to try passwords
        self._audit(
            {
                "toolId": str(request.tool)[:255],
                "version": tool.version if tool else None,
                "registryVersion": response.meta.get("registryVersion"),
                "duration": duration,
                "mode": request.mode.value,
                "turnId": request.turn_id,
                "idempotencyKey": key or request.idempotency_key,
                "callId": request.call_id,
                "userId": request.user_id,
                "origin": request.origin.value,
                "route": response.meta.get("route"),
                "outcome": outcome,
                "ok": response.ok,
                "errorType": error.type.value if error else None,
                "errorCode": error.code.value if error else None,
                "reason": call.reason,
                "argsHash": idempotency.args_digest(args),
                "args": args,
                "category": tool.category if tool else None,
                "delivery": response.meta.get("delivery"),
                "attempts": call.attempts,
                "stages": " ".join(call.stages),
                "overBudget": over_tool,
                "turnOverBudget": over_turn,
                "defaultsApplied": ", ".join(call.defaulted)[:255] or None,
                "confidence": _confidence(call),
            }
        )

    def _slow(self, call: Call, duration_ms: int) -> tuple[bool, bool]:
        """Soft budgets of the tool and of the spoken turn: reported, never enforced."""
        request, limit_ms = call.request, self._rules.limits.turn_latency_ms
        if call.interim is not None:
            return False, False  # it waited for a network, a person or a daemon, not for its tool
        total_ms = 0
        if request.mode is Mode.VOICE and request.turn is not None:
            total_ms = self._latency.spent(request.turn, duration_ms)
        over, name = latency.over_budget(call.tool, duration_ms), str(request.tool)[:255]
        level = logging.DEBUG if name in self._slow_tools else logging.WARNING
        for text in latency.warnings(call.tool, duration_ms, total_ms, limit_ms):
            _log.log(level, "%s", text)
        (self._slow_tools.add if over else self._slow_tools.discard)(name)
        return over, latency.turn_over_budget(duration_ms, total_ms, limit_ms)


def _confidence(call: Call) -> float | None:
    """Return how sure the recogniser was of the words; None of calls without any."""
    heard = call.caller.heard
    return None if heard is None or heard.confidence is None else round(heard.confidence, 2)


def _log_audit(record: Mapping[str, Json]) -> None:
    _audit_log.info("%s", json.dumps(record, separators=(",", ":"), ensure_ascii=True, default=str))
