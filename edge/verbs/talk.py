"""A verb's way to the daemon: the control client, its errors told as the command line tells them.

Refuses to know any path.
"""

import os
from argparse import Namespace
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from edge.control.client import ControlClient, ControlError
from edge.paths import client_sockets
from edge.verbs.screen import CliError


def client(args: Namespace) -> ControlClient:
    """Make the client of the daemon named by `--socket`, `$GLASSD_SOCKET`, or found where it usually is."""
    return ControlClient((Path(args.socket),) if args.socket else client_sockets(os.environ))


def ask(args: Namespace, method: str, path: str, body: Any = None, *, timeout_s: float = 30.0) -> Any:
    """Ask once and give the JSON answer. Raises `CliError`."""
    try:
        return client(args).request(method, path, body, timeout_s=timeout_s)[1]
    except ControlError as e:
        raise told(e) from None


def fetch(args: Namespace, path: str) -> str:
    """Get a document that is text. Raises `CliError`."""
    try:
        return client(args).text(path)
    except ControlError as e:
        raise told(e) from None


def follow(args: Namespace, after: str | None = None) -> Iterator[tuple[str, str, str]]:
    """Follow events: (id, name, JSON text). Raises `CliError`."""
    try:
        yield from client(args).events(after)
    except ControlError as e:
        raise told(e) from None


def stream(args: Namespace, method: str, path: str, body: Any = None, *, quiet_s: float = 60.0) -> Generator[Any, None, None]:
    """Read an answer that goes on: the JSON of each event. Closing the iterator hangs up. Raises `CliError`."""
    try:
        yield from client(args).stream(method, path, body, quiet_s=quiet_s)
    except ControlError as e:
        raise told(e) from None


def told(e: ControlError) -> CliError:
    return CliError(e.code, e.message, e.fix, exit_code=e.exit_code)
