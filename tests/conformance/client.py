"""The suite's client under test: our class for one upstream server, which lists, calls and signs in
as the daemon's child does.

`python -m tests.conformance.client URL`, as the suite starts it. It knows no scenario by name:
it calls every tool there is, with arguments that its schema allows or that the suite asks for, and
answers whatever is asked back.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

from edge.mcp.client.models import McpServer, Outcome
from edge.mcp.client.server import McpServerClient, serving

CIMD = "https://conformance-test.local/client-metadata.json"
REDIRECT = "http://localhost:3000/callback"
CALL_S = 20.0
WHOLE_S = 50.0
ROUNDS = 4
"""How often one call may ask back before it is given up."""


def configured(url: str, context: Mapping[str, Any], revision: str) -> McpServer:
    return McpServer(
        id="conformance",
        url=url,
        client_id=context.get("client_id", ""),
        client_secret=context.get("client_secret", ""),
        client_metadata_url=CIMD,
        redirect_uri=REDIRECT,
        era="" if revision >= "2026" else "legacy",
    )


async def main(url: str) -> int:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    config = configured(url, context, os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"])
    async with (
        asyncio.timeout(WHOLE_S),
        serving(config, browser=signed_in) as server,
    ):
        problem = await server.connected(CALL_S)
        if problem is not None:
            print(problem, file=sys.stderr)
            return 1
        wanted = context.get("toolCalls") or [
            {"name": t.name, "arguments": example(t.input_schema)} for t in server.news.tools or ()
        ]
        outcomes = [await called(server, one["name"], one["arguments"]) for one in wanted]
    for outcome in outcomes:
        print(outcome)
    return int(any(outcome.fault is not None for outcome in outcomes))


async def called(server: McpServerClient, tool: str, args: Mapping[str, Any]) -> Outcome:
    """Call until there is a result, answering what is asked back."""
    outcome = await server.call(tool, args, timeout_s=CALL_S)
    for _ in range(ROUNDS):
        if outcome.input_requests is None:
            break
        answers: dict[str, Any] = {
            "inputResponses": {key: answered(one) for key, one in outcome.input_requests.items()}
        }
        if outcome.request_state is not None:
            answers["requestState"] = outcome.request_state
        outcome = await server.call(tool, args, timeout_s=CALL_S, input=answers)
    return outcome


async def signed_in(address: str) -> tuple[str, str, str | None]:
    """Be the person: open the address, agree, and give what the browser was sent back with."""
    async with httpx2.AsyncClient(follow_redirects=False, trust_env=False) as browser:
        sent_to = (await browser.get(address)).headers["location"]
    back = {key: values[0] for key, values in parse_qs(urlsplit(sent_to).query).items()}
    return back.get("code", ""), back.get("state", ""), back.get("iss")


def answered(request: Mapping[str, Any]) -> dict[str, Any]:
    """A person who agrees to everything."""
    if request["method"] == "elicitation/create":
        return {
            "action": "accept",
            "content": example(request["params"].get("requestedSchema") or {}),
        }
    if request["method"] == "roots/list":
        return {"roots": []}
    return {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "none"}


def example(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Values for every property: its default, else the least of its type."""
    least = {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties") or {}
    return {
        name: one.get("default", least.get(one.get("type"), "x"))
        for name, one in properties.items()
        if "$ref" not in one
    }


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[-1])))
