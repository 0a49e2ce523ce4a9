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

from edge.commands.shared.announce import announcer
from edge.commands.shared.console import CliError, Screen
from edge.commands.shared.extras import load, missing
from edge.commands.shared.run_loop import run_until_told
from edge.control.client import ControlClient, ControlError
from edge.runtime.paths import client_sockets, owner_socket

BURST_OF: Final = 5
"""A fifth of the calls per minute may come at once."""
CREDENTIAL: Final = "glassd-mcp-token"
"""Its name among systemd's credentials of the unit."""
MAX_TOKEN: Final = 4096
HANDED: Final = "systemd"


def run(args: Namespace, screen: Screen) -> int:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="glassd mcp: %(message)s")
    if args.http is None and (args.token_file or args.allow_host):
        raise CliError(
            "USAGE",
            "--token-file and --allow-host are for --http: over stdio there is only one client",
            "see: glassd mcp --help",
            exit_code=2,
        )
    server = load("edge.mcp.server.server", "mcp")
    return run_until_told(lambda: _serve(args, screen, server), fast=True)


async def _serve(args: Namespace, screen: Screen, server: Any) -> int:
    async with AsyncExitStack() as stack:
        sockets = (Path(args.socket),) if args.socket else client_sockets(os.environ)
        if args.demo:
            sockets = (await _borrowed(stack),)
        owners = (
            tuple(dict.fromkeys(owner_socket(socket, os.environ) for socket in sockets))
            if args.confirm_in_client
            else ()
        )
        if owners:
            _check_owner(owners)
        facade = server.Facade(*_ways(args, server, sockets, owners, os.environ))
        if args.http is None:
            await load("edge.mcp.server.stdio", "mcp").serve(facade)
            return 0
        http = load("edge.mcp.server.http", "mcp")
        try:
            await http.serve(facade, _place(args, http, os.environ), announcer(screen, "mcp"))
        except http.CannotServe as e:
            raise CliError(e.code, str(e), e.fix) from None
    return 0


def _check_owner(sockets: tuple[Path, ...]) -> None:
    """Raise `CliError` if the daemon would refuse every answer from here. A daemon that does not
    run yet is no error: it is waited for.
    """
    try:
        ControlClient(sockets).request("GET", "/v1/confirm")
    except ControlError as e:
        if e.code == "PERMISSION":
            message = f"--confirm-in-client answers for the owner, but {e.message}"
            raise CliError(
                e.code, message, f"leave it out, or {e.fix}", exit_code=e.exit_code
            ) from None


async def _borrowed(stack: AsyncExitStack) -> Path:
    """Start mock glasses and a daemon connected to them; both end with this process. Raises
    `CliError`.
    """
    demo = load("edge.demo.mock_pair", "mcp --demo")
    try:
        return Path(await stack.enter_async_context(demo.pair(os.environ)))
    except demo.CastError as e:
        raise CliError(
            "DEMO_FAILED", str(e), "check whether the demo works alone: glassd demo"
        ) from None
    except ModuleNotFoundError as e:
        raise missing(e, "mcp --demo") from None


def _ways(
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
    return server.DaemonClient(sockets), server.Ways(
        cold=lambda: offline_listing.read(env, now=time.time()).tools,
        chance=random.random,
        new_id=lambda: new_call_id(clock.wall()),
        rate=RateLimit(max(1, args.rate // BURST_OF), 60.0 / BURST_OF),
        owner=server.DaemonClient(owners) if owners else None,
    )


# ------------------------------------------------------------------ where, and who may


def _place(args: Namespace, http: Any, env: Mapping[str, str]) -> Any:
    """Read where to listen. Raises `CliError`."""
    token = _token(args.token_file, env, http.MIN_TOKEN)
    if args.http == HANDED:
        if env.get("LISTEN_PID") != str(os.getpid()) or env.get("LISTEN_FDS") != "1":
            raise CliError(
                "USAGE",
                "systemd passed no socket",
                "enable glassd-mcp.socket, or name an address: --http 127.0.0.1:8788",
                exit_code=2,
            )
        return http.ListenAddress(handed=True, hosts=tuple(args.allow_host), token=token)
    host, colon, port = args.http.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 65536):
        raise CliError(
            "USAGE",
            f"--http {args.http}: is not HOST:PORT",
            "for example --http 127.0.0.1:8788 (port 0: any free port)",
            exit_code=2,
        )
    return http.ListenAddress(
        host=host.strip("[]") or "127.0.0.1",
        port=int(port),
        hosts=tuple(args.allow_host),
        token=token,
    )


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
        raise CliError(
            "TOKEN",
            f"the token in {path} cannot be read: {why}",
            "write one line into it: openssl rand -hex 24",
            exit_code=2,
        ) from None
    if len(token) < least or not token.isprintable() or " " in token:
        raise CliError(
            "TOKEN",
            f"the token in {path} must be one word of at least {least} characters",
            "make one: openssl rand -hex 24",
            exit_code=2,
        )
    return token
