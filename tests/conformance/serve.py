"""`glassd mcp --http` in fixture mode: the fixtures' tools go by their own names, the suite's
prompts and resources are read.

Everything else is the verb's own. Both differences are parts that the server is handed anyway: how
a tool is named outside, and what there is to read.
"""

import argparse
import asyncio
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edge.commands.shared.console import Screen, announcer
from edge.mcp.server import http
from edge.mcp.server.content import McpContent
from edge.mcp.server.daemon_client import DaemonClient
from edge.mcp.server.prompts import NoPrompt
from edge.mcp.server.resources import NoResource
from edge.mcp.server.server import Facade, Options
from edge.mcp.server.tools import alias_of
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from tests.conformance import fixture_texts
from tests.conformance.stage import FIXTURES
from tools_cache.api.tool import RateLimit


class FixtureContent(McpContent):
    def __init__(self) -> None:
        """There is no daemon to ask."""

    def resources(self) -> list[dict[str, Any]]:
        return fixture_texts.RESOURCES

    def templates(self) -> list[dict[str, Any]]:
        return fixture_texts.TEMPLATES

    async def read(self, uri: str) -> dict[str, Any]:
        found = fixture_texts.read_resource(uri)
        if found is None:
            raise NoResource("Resource not found")
        return found

    def prompts(self) -> list[dict[str, Any]]:
        return fixture_texts.PROMPTS

    async def prompt(
        self, name: str, args: Mapping[str, Any], answers: Mapping[str, Any]
    ) -> dict[str, Any]:
        found = fixture_texts.get_prompt(name, args, answers)
        if found is None:
            raise NoPrompt(f"Unknown prompt: {name}")
        return {"resultType": "input_required", **found} if "inputRequests" in found else found

    async def complete(self, of: Mapping[str, Any], argument: str, typed: str) -> list[str]:
        return fixture_texts.complete(str(of.get("name", "")), argument, typed)


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--http", required=True, metavar="HOST:PORT")
    options.add_argument("--socket", required=True, type=Path)
    chosen = options.parse_args()
    clock = Clock.system()
    ways = Options(
        offline=lambda: (),
        rate=RateLimit(10_000, 60.0),
        chance=random.random,
        new_id=lambda: new_call_id(clock.wall()),
        alias=alias_of({FIXTURES}),
        content=FixtureContent(),
    )
    host, _, port = chosen.http.rpartition(":")
    screen = Screen(sys.stdout, sys.stderr, {}, as_json=True)
    await http.serve(
        Facade(DaemonClient((chosen.socket,)), ways),
        http.ListenAddress(host, int(port)),
        announcer(screen, "mcp"),
    )


if __name__ == "__main__":
    asyncio.run(main())
