"""Listing thousands of tools lets other tasks run in between."""

import asyncio
from types import SimpleNamespace

import pytest

from edge.control.http import Request
from edge.control.tools import BREATH, ToolRoutes
from edge.core.tools.registry import Union
from tests.unit.tools.test_snapshot import app


@pytest.mark.requirement("I5-10000")
async def test_a_list_of_thousands_does_not_block_others():
    snapshot = Union.of(
        (), [app(f"com.a{n}", *(f"t{m}" for m in range(20))) for n in range(200)]
    ).snapshot("v", None, stale=False)
    ports = SimpleNamespace(
        registry=SimpleNamespace(snapshot=lambda: snapshot), choice=None, status=dict
    )
    others = 0

    async def somebody_else():
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(somebody_else())
    reply = await ToolRoutes(ports).show(Request("GET", "/v1/tools", {}, {}, b""))
    beside.cancel()
    assert len(reply.body["tools"]) == 4000
    assert reply.body["counts"]["offered"] == 4000
    assert others >= 4000 // BREATH
