"""Requests from a verb to the daemon: picks the control socket, and raises errors as `CliError`."""

import os
from argparse import Namespace
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Literal

from edge.commands.shared.console import CliError
from edge.control.client import ControlClient, ControlError
from edge.runtime.paths import client_sockets, owner_socket

As = Literal["caller", "owner", "either"]
"""Which socket is used: `control.sock`, `owner.sock`, or the owner's if it may be opened."""


def client(args: Namespace, who: As = "caller") -> ControlClient:
    """Make the client of the daemon named by `--socket`, `$GLASSD_SOCKET`, or found where it
    usually is.
    """
    sockets = (Path(args.socket),) if args.socket else client_sockets(os.environ)
    if who == "caller":
        return ControlClient(sockets)
    owners = tuple(owner_socket(socket, os.environ) for socket in sockets)
    if who == "owner":
        return ControlClient(tuple(dict.fromkeys(owners)))
    return ControlClient(
        tuple(place for both in zip(owners, sockets, strict=True) for place in both)
    )


def ask(
    args: Namespace,
    method: str,
    path: str,
    body: Any = None,
    *,
    timeout_s: float = 30.0,
    who: As = "caller",
) -> Any:
    """Send one request and return the JSON answer. Raises `CliError`."""
    try:
        return client(args, who).request(method, path, body, timeout_s=timeout_s)[1]
    except ControlError as e:
        raise told(e) from None


def fetch(args: Namespace, path: str) -> str:
    """Return the text of a document that is not JSON. Raises `CliError`."""
    try:
        return client(args).text(path)
    except ControlError as e:
        raise told(e) from None


def follow(args: Namespace, after: str | None = None) -> Iterator[tuple[str, str, str]]:
    """Yield events as (id, name, JSON text). Raises `CliError`."""
    try:
        yield from client(args).events(after)
    except ControlError as e:
        raise told(e) from None


def stream(
    args: Namespace,
    method: str,
    path: str,
    body: Any = None,
    *,
    quiet_s: float = 60.0,
    who: As = "caller",
) -> Generator[Any, None, None]:
    """Yield the JSON of each event of a streamed answer. Closing the iterator ends the connection.
    Raises `CliError`.
    """
    try:
        yield from client(args, who).stream(method, path, body, quiet_s=quiet_s)
    except ControlError as e:
        raise told(e) from None


def told(e: ControlError) -> CliError:
    return CliError(e.code, e.message, e.fix, exit_code=e.exit_code)
