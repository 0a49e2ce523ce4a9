"""What a daemon has when it lets the first client in. Real rooms; nothing is served over a
radio or a broker.
"""

import socket
from contextlib import AsyncExitStack

import pytest

from edge.calls.voice_session import NOTE
from edge.config.load import formed
from edge.daemon.app import Daemon
from edge.tools.registry import ToolRegistry


@pytest.mark.requirement("S2-33")
async def test_nothing_is_served_before_all_tools_are_loaded(tmp_path, monkeypatch):
    door, bell = tmp_path / "control.sock", tmp_path / "notify"
    seen, load = [], ToolRegistry.load

    def watched(registry, shelf=None):
        seen.append((door.exists(), len(registry.snapshot().entries())))
        load(registry, shelf)

    monkeypatch.setattr(ToolRegistry, "load", watched)
    settings = formed(
        {
            "edge": {"state_dir": str(tmp_path / "state")},
            "control": {"socket": str(door), "group": ""},
            "glasses": {"radio": "inproc"},
        }
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as systemd:
        systemd.bind(str(bell))
        async with AsyncExitStack() as stack:
            daemon = Daemon(settings, {"NOTIFY_SOCKET": str(bell)})
            await daemon.open(stack)
            assert seen == [(False, 0)], "loaded once, before there is a door"
            assert door.exists()
            assert {"clock:now", "notes:add"} <= {
                e.definition.name for e in daemon.registry.snapshot().entries()
            }
            with pytest.raises(BlockingIOError):
                systemd.recv(1024)


@pytest.mark.requirement("I12-suppressed-first")
async def test_suppressed_transcripts_are_suppressed_before_any_service_starts(tmp_path):
    settings = formed(
        {
            "edge": {"state_dir": str(tmp_path / "state")},
            "control": {"socket": str(tmp_path / "control.sock"), "group": ""},
            "glasses": {"radio": "inproc"},
        }
    )
    async with AsyncExitStack() as stack:
        daemon = Daemon(settings, {})
        await daemon.open(stack)
        assert not daemon.link._suppressed()
        await daemon.notes.put(NOTE, {"suppress_transcript": True})
    async with AsyncExitStack() as stack:
        daemon = Daemon(settings, {})
        await daemon.open(stack)
        assert daemon.link._suppressed()
