"""`glassd mcp`: the tools as an MCP server, over stdio or as streamable HTTP."""

import logging
import os
import random
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, announcer
from edge.commands.shared.extras import load, missing
from edge.commands.shared.run_loop import run_until_signal
from edge.control.client import ControlClient
from edge.runtime.errors import UserError
from edge.runtime.paths import client_sockets, owner_socket

BURST_OF: Final = 5
"""A fifth of the calls per minute may come at once."""
CREDENTIAL: Final = "glassd-mcp-token"
"""Its name among the systemd credentials of the unit."""
MAX_TOKEN: Final = 4096
HANDED: Final = "systemd"


def mcp(args: Namespace, screen: Screen) -> int:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="glassd mcp: %(message)s")
    if args.http is None and (args.token_file or args.allow_host):
        raise UserError(
            "USAGE",
            "--token-file and --allow-host are for --http: over stdio there is only one client",
            "see: glassd mcp --help",
        )
    server = load("edge.mcp.server.server", "mcp")
    return run_until_signal(lambda: _serve(args, screen, server), fast=True)


async def _serve(args: Namespace, screen: Screen, server: Any) -> int:
    async with AsyncExitStack() as stack:
        sockets = (Path(args.socket),) if args.socket else client_sockets(os.environ)
        if args.demo:
            sockets = (await _demo_socket(stack),)
        owners: tuple[Path, ...] = ()
        if args.confirm_in_client:
            owners = tuple(dict.fromkeys(owner_socket(each, os.environ) for each in sockets))
            _check_owner(owners)
        facade = server.Facade(*_facade_parts(args, server, sockets, owners, os.environ))
        if args.http is None:
            await load("edge.mcp.server.stdio", "mcp").serve(facade)
            return 0
        http = load("edge.mcp.server.http", "mcp")
        address = _listen_address(args, http, os.environ)
        await http.serve(facade, address, announcer(screen, "mcp"))
    return 0


def _check_owner(sockets: tuple[Path, ...]) -> None:
    """Raise `UserError` if the daemon would refuse every answer from here. A daemon that does not
    run yet is no error: it is waited for.
    """
    try:
        ControlClient(sockets).request("GET", "/v1/confirm")
    except UserError as e:
        if e.code == "PERMISSION":
            problem = f"--confirm-in-client answers for the owner, but {e.message}"
            fix, code = f"leave it out, or {e.fix}", e.exit_code
            raise UserError(e.code, problem, fix, exit_code=code) from None


async def _demo_socket(stack: AsyncExitStack) -> Path:
    """Start mock glasses and a daemon connected to them; both end with this process. Raise
    `UserError`.
    """
    demo = load("edge.demo.mock_pair", "mcp --demo")
    try:
        return Path(await stack.enter_async_context(demo.pair(os.environ)))
    except demo.StartFailed as e:
        fix = "check whether the demo works alone: glassd demo"
        raise UserError("DEMO_FAILED", str(e), fix) from None
    except ModuleNotFoundError as e:
        raise missing(e, "mcp --demo") from None


def _facade_parts(
    args: Namespace,
    server: Any,
    sockets: tuple[Path, ...],
    owners: tuple[Path, ...],
    env: Mapping[str, str],
) -> tuple[Any, Any]:
    from edge.runtime.clock import Clock  # noqa: PLC0415
    from edge.runtime.ids import new_call_id  # noqa: PLC0415
    from edge.tools import offline_listing  # noqa: PLC0415 - of the verbs that run on only this one reads tools from disk
    from tools_cache.api.tool import RateLimit  # noqa: PLC0415

    clock = Clock.system()
    return server.DaemonClient(sockets), server.Options(
        offline=lambda: offline_listing.read(env, now=time.time()).tools,
        chance=random.random,
        new_id=lambda: new_call_id(clock.wall()),
        rate=RateLimit(max(1, args.rate // BURST_OF), 60.0 / BURST_OF),
        owner=server.DaemonClient(owners) if owners else None,
    )


# ------------------------------------------------------------------ address and token


def _listen_address(args: Namespace, http: Any, env: Mapping[str, str]) -> Any:
    """Read where to listen. Raise `UserError`."""
    token, hosts = _token(args.token_file, env, http.MIN_TOKEN), tuple(args.allow_host)
    if args.http == HANDED:
        if env.get("LISTEN_PID") != str(os.getpid()) or env.get("LISTEN_FDS") != "1":
            fix = "enable glassd-mcp.socket, or name an address: --http 127.0.0.1:8788"
            raise UserError("USAGE", "systemd passed no socket", fix)
        return http.ListenAddress(handed=True, hosts=hosts, token=token)
    host, colon, port = args.http.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 65536):
        fix = "for example --http 127.0.0.1:8788 (port 0: any free port)"
        raise UserError("USAGE", f"--http {args.http}: is not HOST:PORT", fix)
    host = host.strip("[]") or "127.0.0.1"
    return http.ListenAddress(host=host, port=int(port), hosts=hosts, token=token)


def _token(named: str | None, env: Mapping[str, str], least: int) -> str:
    """Read the token from the named file, else from systemd's credential; "" without either."""
    credentials = env.get("CREDENTIALS_DIRECTORY")
    path = Path(named) if named else Path(credentials or "/nonexistent") / CREDENTIAL
    if not named and not path.exists():
        return ""
    try:
        with path.open(encoding="ascii") as file:
            token = file.read(MAX_TOKEN).strip()
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "it is not plain ASCII text"
        problem, fix = f"cannot be read: {why}", "write one line into it: openssl rand -hex 24"
        raise UserError("TOKEN", f"the token in {path} {problem}", fix) from None
    if len(token) < least or not token.isprintable() or " " in token:
        problem = f"the token in {path} must be one word of at least {least} characters"
        raise UserError("TOKEN", problem, "make one: openssl rand -hex 24")
    return token
