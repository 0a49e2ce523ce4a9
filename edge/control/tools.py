"""Paths of the tools: list them with state and reason, show one in detail, switch one on or off,
count their calls; and of the grants, the tools that are always or never allowed.

The tool selection decides the state of a tool; without one, the registry does.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from edge.control import requests
from edge.control.dependencies import ChoicePort, ControlDependencies
from edge.control.http import Reply, Request, RequestRefused, Written, encode_json
from edge.control.listings import ListingQuery, Listings
from edge.core import call_summary, confirmation, policy
from edge.core.grants import Grant, Granted
from edge.core.tools.selection_rules import HIDDEN, CannotSwitch, Choice
from edge.storage.confirmations import Confirmations
from tools_cache.api.tool import CallOrigin, Json, ToolDefinition

NOT_MODIFIED: Final = 304
_NAME: Final = partial(requests.text, most=255)
_SWITCH: Final[requests.Fields] = {
    "tool": _NAME,
    "enabled": requests.boolean,
    "origin": partial(requests.one_of, choices=(CallOrigin.CLI, CallOrigin.MCP)),
}


class ToolRoutes:
    """`/v1/tools`."""

    def __init__(self, ports: ControlDependencies, listings: Listings) -> None:
        self._ports = ports
        self._listings = listings

    async def show(self, request: Request) -> Reply:
        """List the active tools; with `all` the hidden ones too, with `mode` only those offered to
        callers of that mode; with `after` one page. 304 if the client has this answer already.
        """
        query, after = _query_of(request), _after(request)
        if known := _known_tags(request):
            tag = self._listings.tag(self._listings.number(), query, after, self._about())
            if tag.removeprefix("W/") in known:
                return Reply(NOT_MODIFIED, None, (("ETag", tag),))
        number, pages = await self._listings.read(query, after)
        version, about = self._ports.registry.snapshot().version, self._about()
        tag = self._listings.tag(number, query, after, about)
        more = {} if after is None else {"next": pages[0].next}
        end = encode_json({"counts": pages[0].counts, **more, **about})
        tools = [part for page in pages for part in (b",", page.tools)][1:]
        head = b'{"version":%b,"tools":[' % encode_json(version)
        body = Written((head, *tools, b"]," + end[1:] + b"\n"))
        return Reply(200, body, (("ETag", tag),) if tag else ())

    def _about(self) -> dict[str, Json]:
        """Return what a listing tells of the tools as a whole."""
        document: dict[str, Json] = {}
        if self._ports.choice is not None:
            document["loader"] = dict(self._ports.choice.describe())
        if origin := self._ports.origin():
            document |= {"running": True, "registry": dict(origin)}
        return document

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
        choice = self._listings.choice_of(entry) if entry is not None else Choice(HIDDEN)
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

    def _choice(self) -> ChoicePort:
        if self._ports.choice is None:
            fix = "name them in policy.disabled_tools"
            raise RequestRefused("UNSUPPORTED", "this daemon switches no tools", fix)
        return self._ports.choice


def _query_of(request: Request) -> ListingQuery:
    return ListingQuery(
        requests.flag(request, "all"),
        request.query.get("category", ""),
        requests.mode(request.query, "mode"),
        request.query.get("scope", ""),
        requests.scope_of(request),
    )


def _after(request: Request) -> str | None:
    """Return the name after which the page begins, "" for the first; None: all tools at once."""
    if "after" not in request.query:
        return None
    return requests.optional_text(request.query, "after", most=255)


def _known_tags(request: Request) -> set[str]:
    """Return the ETags of the answers that the client has, without their `W/`."""
    tags = request.headers.get("if-none-match", "").split(",")
    return {tag.strip().removeprefix("W/") for tag in tags if tag.strip()}


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
