"""Paths of the tools: list them with state and reason, show one in detail, switch one on or off,
count their calls.

The tool selection decides the state of a tool; without one, the registry does.
"""

import asyncio
from collections import Counter
from typing import Final

from edge.control import requests
from edge.control.dependencies import ChoicePort, ControlDependencies
from edge.control.http import Reply, Request, RequestRefused
from edge.core import policy
from edge.core.tools.selection_rules import AVAILABLE, HIDDEN, OFFERED, CannotSwitch, Choice
from edge.core.tools.snapshot import Entry
from tools_cache.api.tool import CallOrigin, Json, Mode, Source, ToolDefinition
from tools_cache.registry import tool_docs

BREATH: Final = 500
"""Tools between two looks at everybody else: ten thousand take a third of a second on a PC."""
_STATUS: Final = {"NOT_FOUND": 404, "CONFLICT": 409}


class ToolRoutes:
    """`/v1/tools`."""

    def __init__(self, ports: ControlDependencies) -> None:
        self._ports = ports

    async def show(self, request: Request) -> Reply:
        """List the active tools; with `all` the hidden ones too, with `mode` only those offered to
        callers of that mode.
        """
        everything, category = requests.flag(request, "all"), request.query.get("category", "")
        mode = (
            Mode(requests.one_of(request.query, "mode", tuple(Mode)))
            if "mode" in request.query
            else None
        )
        seen = requests.scope_of(request)
        snapshot = self._ports.registry.snapshot()
        counts, shown = Counter[str](), []
        for number, entry in enumerate(snapshot.entries(), 1):
            if number % BREATH == 0:
                await asyncio.sleep(0)
            if category in {"", entry.definition.category} and (
                seen is None or seen(entry.definition)
            ):
                stands = self._stands(entry, mode)
                counts[stands.state] += 1
                if everything or stands.state != HIDDEN:
                    shown.append(listed(entry, stands))
        told: dict[str, Json] = {
            "version": snapshot.version,
            "tools": shown,
            "counts": {s: counts[s] for s in (OFFERED, AVAILABLE, HIDDEN)},
        }
        if self._ports.choice is not None:
            told["loader"] = dict(self._ports.choice.describe())
        if known := self._ports.status().get("registry"):
            error = (known.get("cloud") or {}).get("error", "")
            age = {
                "origin": known.get("origin"),
                "version": snapshot.version,
                "age_s": known.get("age_s"),
                "error": error,
            }
            told |= {"running": True, "registry": age}
        return Reply(200, told)

    async def one(self, request: Request) -> Reply:
        """Everything known of one tool, its documentation included."""
        name = requests.text(request.query, "tool", most=255)
        told = await self._choice().described(name, self._ports.user_id)
        if told is None:
            raise requests.no_tool(name, self._ports.registry)
        return Reply(200, dict(told))

    async def switch(self, request: Request) -> Reply:
        """Switch one tool on (with all it depends on) or off; what else a person should know
        comes as warnings.
        """
        body = requests.json_object(request, ("tool", "enabled", "origin"))
        tool, on = requests.text(body, "tool", most=255), requests.boolean(body, "enabled")
        origin = requests.one_of(body, "origin", (CallOrigin.CLI, CallOrigin.MCP))
        act = self._choice().enable if on else self._choice().disable
        try:
            done = await act(self._ports.user_id, tool, origin=origin)
        except CannotSwitch as e:
            raise RequestRefused(_STATUS[e.code], e.code, str(e), e.fix) from None
        entry = self._ports.registry.snapshot().find(tool)
        stands = self._stands(entry) if entry is not None else Choice(HIDDEN)
        return Reply(
            200,
            {
                "tool": tool,
                "enabled": on,
                "changed": list(done.changed),
                "warnings": list(done.warnings),
                "state": stands.state,
                "reason": stands.reason,
            },
        )

    async def usage(self, _request: Request) -> Reply:
        """How often this user called which tool."""
        used = await self._choice().usage(self._ports.user_id)
        return Reply(
            200,
            {
                "user": self._ports.user_id,
                "tools": [
                    {"tool": u.tool, "calls": u.calls, "failed": u.failed, "last_wall": u.last_wall}
                    for u in used
                ],
            },
        )

    def _stands(self, entry: Entry, mode: Mode | None = None) -> Choice:
        if self._ports.choice is not None:
            return self._ports.choice.choice(entry, self._ports.user_id, mode)
        return unchosen(entry, mode)

    def _choice(self) -> ChoicePort:
        if self._ports.choice is None:
            raise RequestRefused(
                501,
                "UNSUPPORTED",
                "this daemon switches no tools",
                "name them in policy.disabled_tools",
            )
        return self._ports.choice


def unchosen(entry: Entry, mode: Mode | None = None) -> Choice:
    """Give how a tool stands where nobody chooses: as the registry says, for this way of
    talking.
    """
    hidden = entry.hidden or policy.not_offered(entry.definition, mode)
    return Choice(HIDDEN, hidden) if hidden else Choice(OFFERED)


def listed(entry: Entry, stands: Choice) -> dict[str, Json]:
    d = entry.definition
    return {
        "name": d.name,
        "description": d.description,
        "summary": tool_docs.summary(d),
        "category": d.category,
        "source": d.source.value,
        "app": entry.app_name,
        "version": d.version,
        "inputSchema": dict(d.input_schema),
        "sideEffects": d.side_effects.value,
        "requiresConfirmation": d.requires_confirmation,
        "allowedModes": sorted(d.allowed_modes),
        "queueable": d.queueable,
        "idempotent": d.idempotent,
        "latencyBudgetMs": d.latency_budget_ms,
        "activationPhrases": list(d.activation_phrases),
        "dependsOn": list(d.depends_on),
        "state": stands.state,
        "reason": stands.reason,
        "enabled": stands.on,
        "hidden": stands.reason if stands.state == HIDDEN else "",
        "missing": list(entry.missing),
        "without": list(entry.without),
        "warnings": list(entry.warnings),
        "stale": entry.stale,
        **{key: d.raw[key] for key in _VERBATIM if key in d.raw},
        **_of_another_server(d),
    }


_VERBATIM: Final = ("title", "outputSchema", "annotations", "icons", "_meta")
"""What of a definition is passed on as its author wrote it."""


def _of_another_server(tool: ToolDefinition) -> dict[str, Json]:
    """The seed's id beside the provenance, for who still knows it by that; nobody is called by
    it.
    """
    if tool.source is not Source.UPSTREAM:
        return {}
    from edge.core.tools import legacy_ids, scope  # noqa: PLC0415 - a daemon without such servers never loads them

    found = scope.origin(tool)
    return {} if found is None else {"compatId": legacy_ids.tool_id(found.server, found.tool)}
