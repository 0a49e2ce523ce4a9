"""`glassd mcp` as a process: nothing but messages on stdout, a clean end, and honest words when
it cannot start.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from tests.unit.control.house import DEADLINE_S, open_house
from tests.unit.mcp.server.mcp_house import NEWER, SHOWN

pytestmark = pytest.mark.enable_socket
ROOT = Path(__file__).parents[4]
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
META = {
    "io.modelcontextprotocol/protocolVersion": NEWER,
    "io.modelcontextprotocol/clientCapabilities": {},
}
PRELUDE = "import sys; from edge.cli import main; sys.exit(main(sys.argv[1:]))"


async def started(*words, code=PRELUDE, **env):
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        "-c",
        code,
        "mcp",
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONPATH": str(ROOT), **env},
        limit=8 * 1024 * 1024,
    )


async def asked(child, *messages):
    """Write messages, one a line, and read one answer."""
    for message in messages:
        child.stdin.write(
            (message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n"
        )
    async with asyncio.timeout(DEADLINE_S):
        return json.loads(await child.stdout.readline())


async def ended(child):
    """(exit code, the rest of stdout, stderr)."""
    async with asyncio.timeout(DEADLINE_S):
        out, err = await child.stdout.read(), (await child.stderr.read()).decode()
        return await child.wait(), out, err


@pytest.mark.requirement("MCP-stdio")
async def test_stdout_carries_messages_only_and_the_end_of_stdin_is_the_end(tmp_path):
    noisy = PRELUDE.replace(
        "from edge.cli",
        "import edge.mcp.server.results as r; w = r.text; "
        "r.text = lambda d: print('NOISE') or w(d); from edge.cli",
    )
    async with open_house(tmp_path) as house:
        child = await started("--socket", str(house.path), code=noisy)
        hello = await asked(child, HELLO)
        call = {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "notes__add", "arguments": {}},
        }
        called = await asked(child, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call)
        child.stdin.close()
        code, rest, err = await ended(child)
    assert hello["result"]["protocolVersion"] == "2025-11-25"
    assert called["result"]["structuredContent"] == {
        "id": 1,
        "text": "milk",
        **SHOWN,
    }
    assert (code, rest) == (0, b"")
    assert "NOISE" in err
    assert "Traceback" not in err


@pytest.mark.requirement("MCP-bounds")
@pytest.mark.requirement("MCP-stdio")
async def test_a_long_message_is_refused_and_sigterm_ends_cleanly(tmp_path):
    async with open_house(tmp_path) as house:
        child = await started("--socket", str(house.path))
        listing = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": META}}
        long = {**listing, "id": 6, "params": {"_meta": META, "x": "y" * (4 * 1024 * 1024)}}
        refused, listed = await asked(child, long, listing), await asked(child)
        child.send_signal(signal.SIGTERM)
        code, _, err = await ended(child)
        child.stdin.close()
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert "more than 4194304 bytes" in refused["error"]["message"]
    assert [tool["name"] for tool in listed["result"]["tools"]] == [
        "notes__add",
        "get_pending_result",
    ]
    assert code == 0
    assert "more than 4194304 bytes" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        ("not json", None, -32700),
        ("[" * 100_000, None, -32700),
        ("[]", None, -32600),
        ('{"jsonrpc": "2.0", "id": "a", "method": 5}', "a", -32600),
        ('{"id": 3, "method": "ping"}', 3, -32600),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, -32600),
        ('{"jsonrpc": "2.0", "id": 4, "result": 5}', None, -32600),
    ],
)
def test_what_is_no_message_is_answered_to_the_id_it_has(line, number, code):
    from edge.mcp.server.stdio import _refusal

    refused = json.loads(_refusal(line))
    assert (refused["id"], refused["error"]["code"]) == (number, code)


async def test_without_the_extra_it_says_what_to_install():
    child = await started(code="import sys; sys.modules['mcp'] = None; " + PRELUDE)
    code, out, err = await ended(child)
    assert (code, out) == (1, b"")
    assert "-m pip install -e '.[mcp]'" in err
    assert "Traceback" not in err


def said(capsys, *words):
    from edge.cli import main

    code = main(["mcp", *words])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--token-file", "x"], "--token-file and --allow-host are for --http"),
        (["--http", "nowhere"], "is not HOST:PORT"),
        (["--http", "127.0.0.1:99999"], "is not HOST:PORT"),
        (["--http", "systemd"], "systemd passed no socket"),
        (["--rate", "0"], "1 to 100000"),
        (
            ["--http", "127.0.0.1:0", "--token-file", "/nonexistent/token"],
            "cannot be read: No such file",
        ),
    ],
)
def test_invalid_options_are_reported_before_serving(capsys, words, problem):
    code, err = said(capsys, *words)
    assert code == 2
    assert problem in err


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"short", "at least 16"),
        (b"two words of a token", "at least 16"),
        ("schlüssel-schlüssel".encode(), "plain ASCII text"),
    ],
)
@pytest.mark.requirement("MCP-token")
def test_a_token_that_protects_nothing_is_refused(capsys, tmp_path, content, problem):
    (tmp_path / "mcp-token").write_bytes(content)
    code, err = said(capsys, "--http", "127.0.0.1:0", "--token-file", str(tmp_path / "mcp-token"))
    assert code == 2
    assert problem in err
    assert content.decode() not in err


@pytest.mark.requirement("MCP-token")
def test_the_token_of_the_unit_is_its_credential(tmp_path):
    from edge.commands.mcp import _token

    (tmp_path / "glassd-mcp-token").write_text("0123456789abcdef\n")
    assert _token(None, {"CREDENTIALS_DIRECTORY": str(tmp_path)}, 16) == "0123456789abcdef"
    assert _token(None, {"CREDENTIALS_DIRECTORY": str(tmp_path / "none")}, 16) == ""
    assert _token(None, {}, 16) == ""


@pytest.mark.requirement("MCP-token")
def test_beyond_this_machine_it_is_not_served_without_a_token(capsys):
    code, err = said(capsys, "--http", "0.0.0.0:0")
    assert code == 1
    assert "there is no token" in err
    assert "--token-file" in err
