"""Paths of the wearer's grants, the tools always or never allowed: list, add and revoke them."""

from collections.abc import Mapping

from edge.control import requests
from edge.control.dependencies import ControlDependencies
from edge.control.http import Reply, Request, RequestRefused
from edge.core import call_summary, confirmation, policy
from edge.core.grants import Grant, Granted
from edge.storage.confirmations import Confirmations
from tools_cache.api.tool import Json, ToolDefinition


class GrantRoutes:
    """`/v1/grants`."""

    def __init__(self, ports: ControlDependencies) -> None:
        self._ports = ports

    async def show(self, _request: Request) -> Reply:
        """Return all grants, each with what it is bound to, and why it has ended, if it has."""
        grants = await self._kept().grants(self._ports.user_id)
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
        body = requests.json_object(request, ("tool", "grant"))
        tool = requests.text(body, "tool", most=255)
        if body.get("grant") not in (Grant.ALWAYS, Grant.NEVER):
            raise requests.malformed(
                "grant: must be one of always, never",
                f"to be asked every time again: DELETE /v1/grants?tool={tool[:80]}",
            )
        definition = self._worth(tool, Grant(body["grant"]))
        granted = Granted(
            Grant(body["grant"]),
            confirmation.definition_digest(definition),
            call_summary.origin(definition),
        )
        await self._kept().grant(self._ports.user_id, tool, granted)
        return Reply(200, {"tool": tool, "grant": body["grant"]})

    async def revoke(self, request: Request) -> Reply:
        tool = requests.text(request.query, "tool", most=255)
        if (await self._kept().granted(self._ports.user_id, tool)).grant is Grant.ONCE:
            raise RequestRefused(
                404,
                "NOT_FOUND",
                f"there is no grant for {tool[:80]}",
                "list all grants: glassd grants",
            )
        await self._kept().grant(self._ports.user_id, tool, Granted())
        return Reply(200, {"tool": tool, "revoked": True})

    def _worth(self, tool: str, grant: Grant) -> ToolDefinition:
        """Raise `RequestRefused` for an unknown tool, and for an “always” on a tool that never
        asks: such a grant would have no effect.
        """
        found = self._ports.registry.snapshot().find(tool)
        if found is None:
            raise requests.no_tool(tool, self._ports.registry)
        if grant is Grant.ALWAYS and not policy.needs_confirmation(found.definition):
            fix = f"to deny it: glassd grants --never {tool[:80]}"
            raise RequestRefused(
                409,
                "CONFLICT",
                f"{tool[:80]} runs without confirmation: there is nothing to allow",
                fix,
            )
        return found.definition

    def _kept(self) -> Confirmations:
        if self._ports.confirmations is None:
            raise RequestRefused(
                501, "UNSUPPORTED", "this daemon keeps no grants", "it asks every time"
            )
        return self._ports.confirmations
