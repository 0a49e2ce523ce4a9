"""Story: no network anywhere. Each everyday tool answers from what this machine has, or says in one
plain sentence what it cannot reach; nothing is kept back, and nothing is done twice.
"""

import socket

import pytest

from edge.ports import Wait
from tests.scenarios.everyday.readable import UNREADABLE
from tests.scenarios.world import world
from tools_cache.api.tool import ErrorType

pytestmark = pytest.mark.asyncio(loop_scope="session")

OFFERED_MAX = 48
"""The default of `[tools] offered_max`."""
HERE = {
    "clock": ("clock:now", {}),
    "contacts": ("contacts:find", {"query": "Anna"}),
    "context": ("context:recent", {}),
    "continuum": ("continuum:search", {"query": "Anna"}),
    "domaindoc": ("domaindoc:create", {"title": "Garden", "text": "# Beds\nPeas"}),
    "pager": ("pager:inbox", {}),
    "punchclock": ("punchclock:start", {"project": "Alpha"}),
    "registry": ("registry:search", {"query": "timer"}),
    "reminder": ("reminder:add", {"text": "tomorrow at nine to call Anna"}),
}
"""Package → a call that needs no network."""
AWAY = {
    "email": ("email:unread", {}),
    "maps": ("maps:find", {"place": "Bergen"}),
    "weather": ("weather:now", {"place": "Bergen"}),
    "web": ("web:search", {"query": "glasses"}),
}
"""Package → a call that needs one."""


def closed_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def settings(password):
    """All packages switched on, their services at an address where nothing answers."""
    port = closed_port()
    url = f"http://127.0.0.1:{port}"
    on = {name: {"enabled": True} for name in ("domaindoc", "pager", "punchclock")}
    mail = {
        "password_file": str(password),
        "username": "eva",
        "address": "eva@example.com",
        "imap_port": port,
        "smtp_port": port,
    }
    return {
        **on,
        "email": {"imap_host": "127.0.0.1", "smtp_host": "127.0.0.1", **mail},
        "kasa": {"enabled": True, "hosts": ["127.0.0.1"]},
        "maps": {"search_url": url, "route_url": url},
        "weather": {"url": url, "geocoding_url": url},
        "web": {"enabled": True, "search_url": url},
    }


@pytest.mark.requirement("S4-59", "I15-offline", "I15-found")
async def test_without_a_network_each_everyday_tool_answers_or_says_so(tmp_path):
    password = tmp_path / "password"
    password.write_text("secret")
    more = {"tool": settings(password), "history": {"enabled": True}}
    async with world(tmp_path, "mock:full", **more) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        offered = [entry.definition.name for entry in place.daemon.choice.offered("local")]
        assert 30 < len(offered) <= OFFERED_MAX  # all configured, the list stays small
        for tool, args in HERE.values():
            answer = await place.call(tool, args)
            assert answer.ok, (tool, answer)
            lens = "\n".join(place.lens())
            assert lens, tool
            assert not UNREADABLE.search(lens), (tool, lens)
        for tool, args in AWAY.values():
            answer = await place.call(tool, args, wait=Wait.ANSWER)
            assert not answer.ok, tool
            error = answer.error
            assert error.type is ErrorType.TRANSIENT, (tool, error)
            assert "\n" not in error.message, (tool, error.message)
            assert not error.partial_side_effects, tool
        lights = await place.call("kasa:state", wait=Wait.ANSWER)
        assert lights.data["text"] == "127.0.0.1 does not answer"
