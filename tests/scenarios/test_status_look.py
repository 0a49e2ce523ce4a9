"""Story: a daemon whose radio is nowhere; everybody who asks hears the same, before and after a
scan that failed.
"""

import asyncio
import os
import sys

import pytest

from tests.e2e.broker import free_port
from tests.scenarios.test_servers import http
from tests.scenarios.world import until, world

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]


@pytest.mark.requirement("I11-radio-said")
@pytest.mark.parametrize("connect", ["paired", "any"])
async def test_a_radio_that_is_nowhere_is_named_before_and_after_a_scan(tmp_path, connect):
    radio = f"tcp:127.0.0.1:{free_port()}"
    async with world(tmp_path) as place:
        await place.start_daemon(glasses={"radio": radio, "connect": connect})
        await until(
            lambda: place.daemon.link.status().issue,
            "the link has tried, or has nothing to try for",
        )
        for _ in range(2):
            _, status = await http(place, "GET", "/v1/status")
            adapter = status["adapter"]
            assert (adapter["state"], adapter["issue"]) == ("failing", "no_adapter")
            assert radio in adapter["reason"]
            assert status["next_action"] == adapter["hint"]
            assert adapter["hint"].startswith("start the mock")
            assert adapter["hint"].endswith(f"--radio {radio}")
            said = await scanned(place)
            assert adapter["hint"] in said


@pytest.mark.requirement("I11-folder-said")
async def test_folders_that_are_not_there_are_said_to_everybody_and_heal(tmp_path):
    kb, calendar = tmp_path / "stick" / "kb", tmp_path / "stick" / "cal"
    noon = {"start": "2026-12-01T12:00:00Z", "end": "2026-12-01T13:00:00Z"}
    asked = (("kb:search", {"query": "returns"}, kb), ("calendar:get_availability", noon, calendar))
    async with world(tmp_path) as place:
        await place.start_daemon(kb={"folder": str(kb)}, calendar={"folder": str(calendar)})
        for tool, args, folder in asked:
            error = (await place.call(tool, args)).error
            assert (
                error.code,
                f"{folder} cannot be used: there is no such folder" in error.message,
            ) == ("TOOL_UNAVAILABLE", True)
        _, status = await http(place, "GET", "/v1/status")
        assert status["folders"]["state"] == "failing"
        assert [
            fault.fix.endswith(", then: systemctl reload glassd")
            for fault in place.daemon.looks.seen.folders
        ] == [True, True]
        for folder in (kb, calendar):
            assert f"{folder}: there is no such folder" in status["folders"]["reason"]
            folder.mkdir(parents=True)
        (kb / "returns.md").write_text("Everything may be returned.")
        found, free = [await place.call(tool, args) for tool, args, _ in asked]
        assert (found.data["total"], free.data["busy"]) == (1, [])
        place.daemon.looks._looked = float("-inf")
        _, status = await http(place, "GET", "/v1/status")
        assert "folders" not in status


async def scanned(place):
    """What `glassd scan` says where it fails."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "edge.cli",
        "scan",
        "--seconds",
        "1",
        "--socket",
        str(place.socket),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    async with asyncio.timeout(60):
        _, said = await process.communicate()
    assert process.returncode == 1
    return said.decode()
