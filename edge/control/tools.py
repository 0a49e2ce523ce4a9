"""Paths of the tools: list them with state and reason, show one in detail, switch one on or off,
count their calls; and of the grants, the tools that are always or never allowed.

The tool selection decides the state of a tool; without one, the registry does.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

from edge.control import requests
from edge.control.dependencies import ChoicePort, ControlDependencies
from edge.control.http import Reply, Request, RequestRefused
from edge.core import call_summary, confirmation, policy
from edge.core.grants import Grant, Granted
from edge.core.tools.selection_rules import AVAILABLE, HIDDEN, OFFERED, CannotSwitch, Choice
from edge.core.tools.snapshot import Entry
from edge.storage.confirmations import Confirmations
from tools_cache.api.tool import CallOrigin, Json, Mode, Source, ToolDefinition
from tools_cache.registry import tool_docs

BREATH: Final = 500
"""Tools that are listed before other tasks get a turn; 10,000 take 0.3 s on a PC."""
_NAME: Final = partial(requests.text, most=255)
_SWITCH: Final[requests.Fields] = {
    "tool": _NAME,
    "enabled": requests.boolean,
    "origin": partial(requests.one_of, choices=(CallOrigin.CLI, CallOrigin.MCP)),
}


class ToolRoutes:
    """`/v1/tools`."""

    def __init__(self, ports: ControlDependencies) -> None:
        self._ports = ports

    async def show(self, request: Request) -> Reply:
        """List the active tools; with `all` the hidden ones too, with `mode` only those offered to
        callers of that mode.
        """
        everything, category = requests.flag(request, "all"), request.query.get("category", "")
        mode = requests.mode(request.query, "mode")
        in_scope = requests.scope_of(request)
        snapshot = self._ports.registry.snapshot()
        counts, shown = Counter[str](), []
        for number, entry in enumerate(snapshot.entries(), 1):
            if number % BREATH == 0:
                await asyncio.sleep(0)
            if category in {"", entry.definition.category} and (
                in_scope is None or in_scope(entry.definition)
            ):
                choice = self._choice_of(entry, mode)
                counts[choice.state] += 1
                if everything or choice.state != HIDDEN:
                    shown.append(listed(entry, choice))
        document: dict[str, Json] = {
            "version": snapshot.version,
            "tools": shown,
            "counts": {s: counts[s] for s in (OFFERED, AVAILABLE, HIDDEN)},
        }
        if self._ports.choice is not None:
            document["loader"] = dict(self._ports.choice.describe())
        if known := self._ports.status().get("registry"):
            document["running"] = True
            document["registry"] = {
                "origin": known.get("origin"),
                "version": snapshot.version,
                "age_s": known.get("age_s"),
                "error": (known.get("cloud") or {}).get("error", ""),
            }
        return Reply(200, document)

    async def one(self, request: Request) -> Reply:
        """Return everything known of one tool, its documentation included."""
        name = _NAME(request.query, "tool")
        described = await self._choice().described(name, self._ports.user_id)
        if described is None:
            raise requests.no_tool(name, self._ports.registry)
        return Reply(200, dict(described))

    async def switch(self, request: Request) -> Reply:
        """Switch one tool on (with all it depends on) or off; what else a person should know
        comes as warnings.
        """
        body = requests.read(request, _SWITCH)
        tool, on = body["tool"], body["enabled"]
        act = self._choice().enable if on else self._choice().disable
        try:
            done = await act(self._ports.user_id, tool, origin=body["origin"])
        except CannotSwitch as e:
            raise RequestRefused(e.code, str(e), e.fix) from None
        entry = self._ports.registry.snapshot().find(tool)
        choice = self._choice_of(entry) if entry is not None else Choice(HIDDEN)
        return Reply(
            200,
            {
                "tool": tool,
                "enabled": on,
                "changed": list(done.changed),
                "warnings": list(done.warnings),
                "state": choice.state,
                "reason": choice.reason,
            },
        )

    async def usage(self, _request: Request) -> Reply:
        """Return how often this user called which tool."""
        user = self._ports.user_id
        tools = [
            {"tool": u.tool, "calls": u.calls, "failed": u.failed, "last_wall": u.last_wall}
            for u in await self._choice().usage(user)
        ]
        return Reply(200, {"user": user, "tools": tools})

    def _choice_of(self, entry: Entry, mode: Mode | None = None) -> Choice:
        if self._ports.choice is not None:
            return self._ports.choice.choice(entry, self._ports.user_id, mode)
        return unchosen(entry, mode)

    def _choice(self) -> ChoicePort:
        if self._ports.choice is None:
            fix = "name them in policy.disabled_tools"
            raise RequestRefused("UNSUPPORTED", "this daemon switches no tools", fix)
        return self._ports.choice


def unchosen(entry: Entry, mode: Mode | None = None) -> Choice:
    """Return the state of a tool without a tool selection, for a caller of this mode."""
    hidden = entry.hidden or policy.not_offered(entry.definition, mode)
    return Choice(HIDDEN, hidden) if hidden else Choice(OFFERED)


def listed(entry: Entry, choice: Choice) -> dict[str, Json]:
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
        "state": choice.state,
        "reason": choice.reason,
        "enabled": choice.on,
        "hidden": choice.reason if choice.state == HIDDEN else "",
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
    """Return the id that older clouds have for a tool of another server; no call uses it."""
    if tool.source is not Source.UPSTREAM:
        return {}
    from edge.core.tools import legacy_ids, scope  # noqa: PLC0415 - a daemon without such servers never loads them

    found = scope.origin(tool)
    return {} if found is None else {"compatId": legacy_ids.tool_id(found.server, found.tool)}


# ------------------------------------------------------------------ grants


def _lasting(body: Mapping[str, Json], key: str) -> Grant:
    if body.get(key) not in (Grant.ALWAYS, Grant.NEVER):
        raise requests.malformed(
            f"{key}: must be one of always, never",
            f"to be asked every time again: DELETE /v1/grants?tool={_NAME(body, 'tool')[:80]}",
        )
    return Grant(body[key])


class GrantRoutes:
    """`/v1/grants`."""

    def __init__(self, ports: ControlDependencies) -> None:
        self._ports = ports

    async def show(self, _request: Request) -> Reply:
        """Return all grants, each with what it is bound to, and why it has ended, if it has."""
        grants = await self._stored().grants(self._ports.user_id)
        return Reply(200, {"grants": [{**grant, "ended": self._ended(grant)} for grant in grants]})

    def _ended(self, row: Mapping[str, Json]) -> str:
        """Return why a grant has ended, or "". A “never” does not end. An “always” whose tool is
        away applies again when the same tool is back.
        """
        found = self._ports.registry.snapshot().find(row["tool"])
        if row["grant"] != Grant.ALWAYS:
            return ""
        granted = Granted(Grant.ALWAYS, row["definition"], row["origin"])
        return confirmation.ended(found.definition, granted) if found is not None else ""

    async def give(self, request: Request) -> Reply:
        body = requests.read(request, {"tool": _NAME, "grant": _lasting})
        tool, grant = body["tool"], body["grant"]
        definition = self._definition(tool, grant)
        digest, origin = confirmation.definition_digest(definition), call_summary.origin(definition)
        await self._stored().grant(self._ports.user_id, tool, Granted(grant, digest, origin))
        return Reply(200, {"tool": tool, "grant": grant})

    async def revoke(self, request: Request) -> Reply:
        tool, user, stored = _NAME(request.query, "tool"), self._ports.user_id, self._stored()
        if (await stored.granted(user, tool)).grant is Grant.ONCE:
            problem = f"there is no grant for {tool[:80]}"
            raise RequestRefused("NOT_FOUND", problem, "list all grants: glassd grants")
        await stored.grant(user, tool, Granted())
        return Reply(200, {"tool": tool, "revoked": True})

    def _definition(self, tool: str, grant: Grant) -> ToolDefinition:
        """Return the definition of a tool. Raise `RequestRefused` if it is unknown, and for an
        “always” on a tool that never asks: such a grant would have no effect.
        """
        found = self._ports.registry.snapshot().find(tool)
        if found is None:
            raise requests.no_tool(tool, self._ports.registry)
        if grant is Grant.ALWAYS and not policy.needs_confirmation(found.definition):
            raise RequestRefused(
                "CONFLICT",
                f"{tool[:80]} runs without confirmation: there is nothing to allow",
                f"to deny it: glassd grants --never {tool[:80]}",
            )
        return found.definition

    def _stored(self) -> Confirmations:
        if self._ports.confirmations is None:
            raise RequestRefused("UNSUPPORTED", "this daemon keeps no grants", "it asks every time")
        return self._ports.confirmations
