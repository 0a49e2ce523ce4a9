"""The mini-app of docs/devcloud.md, run as it is printed there."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import httpx
import pytest

from tests.e2e.broker import free_port
from tests.e2e.test_devcloud import a_cloud

pytestmark = pytest.mark.enable_socket
DOCS = Path(__file__).parents[2] / "docs" / "devcloud.md"


def printed(language):
    """The first block of a language."""
    return re.search(rf"```{language}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)[1]


@contextlib.asynccontextmanager
async def a_process(*words, folder, **env):
    """One process with all it started: whatever runs in its background ends with it."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *words, cwd=folder, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(DOCS.parents[1]), "no_proxy": "*", **env})  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def in_a_shell(script, folder):
    """The lines as they are printed; then the app in the background is ended."""
    async with a_process("bash", "-c", script + "kill $!\n", folder=folder) as process, asyncio.timeout(45):
        said, _ = await process.communicate()
        return said.decode()


async def by_hand(cloud, port, folder):
    """What those lines do, on a machine without curl."""
    async with (
        a_process(sys.executable, "greeter.py", folder=folder, PORT=port),
        httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(retries=9), trust_env=False, timeout=30) as http,
    ):
        manifest = await http.get(f"http://127.0.0.1:{port}/manifest")
        handed_in = await http.post(f"{cloud}/api/apps/com.example.greeter/tools", json=manifest.json())
        body = {"name": "com.example.greeter:greet", "arguments": {"name": "Ada"}}
        called = await http.post(f"{cloud}/api/tools/execute", json=body, headers={"X-User-Id": "local"})
        return handed_in.text + called.text


@pytest.mark.requirement("I5-cloud-sdk")
@pytest.mark.parametrize("as_printed", [True, False])
async def test_the_ten_line_mini_app_of_the_guide_runs_as_it_is_printed(tmp_path, as_printed):
    code, shell = printed("python"), printed("sh")
    assert len(code.splitlines()) == 10
    (tmp_path / "greeter.py").write_text(code)
    async with a_cloud(tmp_path, apps=[]) as cloud:
        port = str(free_port())
        if as_printed and shutil.which("curl"):
            ports = {"8787": cloud.facts["http"].rpartition(":")[2], "8001": port}  # at once: one may stand within another
            said = await in_a_shell(re.sub("8787|8001", lambda found: ports[found[0]], shell), tmp_path)
        else:
            said = await by_hand(cloud.facts["http"], port, tmp_path)
        handed_in, called = (json.loads(answer) for answer in said.replace("}{", "}\n{").splitlines())
        assert (handed_in["packageName"], handed_in["tools"]) == ("com.example.greeter", ["greet"])
        assert called == {"success": True, "content": {"greeted": "Ada"}}
