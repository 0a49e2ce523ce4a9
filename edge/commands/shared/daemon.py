"""Requests to the daemon, and how the answer of a call is shown."""

import os
import re
from argparse import Namespace
from pathlib import Path
from typing import Any, Final, Literal

from edge.commands.shared.console import Screen, for_people, plain
from edge.control.client import ControlClient
from edge.runtime.durations import duration
from edge.runtime.errors import UserError
from edge.runtime.paths import client_sockets, owner_socket

Who = Literal["caller", "owner", "either"]
"""Which socket is used: `control.sock`, `owner.sock`, or the owner's if it may be opened."""


def client(args: Namespace, who: Who = "caller") -> ControlClient:
    """Return the client of the daemon named by `--socket` or `$GLASSD_SOCKET`, else found in the
    usual places.
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
    who: Who = "caller",
) -> Any:
    """Send one request and return the JSON of its answer. Raise `UserError`."""
    return client(args, who).request(method, path, body, timeout_s=timeout_s)[1]


# ------------------------------------------------------------------ the answer of a call

_MISSING: Final = re.compile(r'"(\w+)" is a required property')
_TIMED_OUT: Final = frozenset(
    {"TIMEOUT", "DEADLINE_EXPIRED", "NOT_ACCEPTED", "APP_ACTIVATION_TIMEOUT"}
)


def tell(envelope: dict[str, Any], screen: Screen) -> int:
    """Show a response and return its exit code."""
    code = exit_code(envelope)
    if screen.as_json:
        screen.json(envelope)
    elif envelope.get("ok"):
        _show_success(envelope, screen)
    else:
        screen.error(_failure(envelope))
    return code


def exit_code(envelope: dict[str, Any]) -> int:
    """Map a response to an exit code: done, failed, no such tool, timed out."""
    if envelope.get("ok"):
        return 0
    error = envelope.get("error") or {}
    if error.get("code") in _TIMED_OUT:
        return 5
    return 4 if error.get("type") == "NOT_FOUND" else 1


def _show_success(envelope: dict[str, Any], screen: Screen) -> None:
    data = envelope.get("data")
    if data is not None:
        screen.line(for_people(data))
    meta = envelope.get("meta") or {}
    facts = [f"route {meta['route']}"] if meta.get("route") else []
    facts += [f"{meta['duration']} ms"] if "duration" in meta else []
    facts.append(f"delivery {delivered(meta.get('delivery', 'none'))}")
    facts += _old(meta)
    screen.line(screen.paint(plain(" · ".join(facts)), "dim"))
    if isinstance(data, dict) and data.get("status") == "pending" and data.get("pendingToolCallId"):
        call_id = plain(data["pendingToolCallId"])
        screen.line(f"its result comes later; show it: glassd calls {call_id}")


def _old(meta: dict[str, Any]) -> list[str]:
    """Return why an answer is not new: stored for some time, or from an earlier call."""
    why, age = [], meta.get("ageS")
    if meta.get("stale") and isinstance(age, int | float):
        why.append(f"as of {duration(age)} ago")
    if meta.get("_idempotent_cache_hit"):
        why.append("the answer of an earlier call with the same key")
    return why


def delivered(delivery: Any) -> str:
    """Return the delivery of a result as text: its state, and why it got no further."""
    if not isinstance(delivery, dict):
        return str(delivery)
    more = [str(delivery[key]) for key in ("reason", "downgrade") if delivery.get(key)]
    return str(delivery.get("state", "")) + (f" ({', '.join(more)})" if more else "")


def asks(envelope: dict[str, Any]) -> bool:
    """Return whether a response says that its call waits for confirmation."""
    return (envelope.get("error") or {}).get("code") == "CONFIRMATION_REQUIRED"


def token_of(envelope: dict[str, Any]) -> str:
    """Return the token of a response that asks for confirmation; "" if it does not, or if only
    the owner may see the token.
    """
    request = (envelope.get("error") or {}).get("confirmation_request") or {}
    return str(request.get("token") or "") if asks(envelope) else ""


def how_to_confirm(token: str) -> str:
    return (
        "confirm on the glasses (tap or press: yes, "
        f"double tap or long press: no), or: glassd confirm {token}"
    ).rstrip()


def _failure(envelope: dict[str, Any]) -> UserError:
    error = envelope.get("error") or {}
    fix = how_to_confirm(token_of(envelope)) if asks(envelope) else error.get("suggestion") or ""
    details, code = error.get("details"), str(error.get("code", ""))
    message = str(error.get("message", ""))
    faults = [
        _fault(fault)
        for fault in (details if isinstance(details, list) else ())
        if isinstance(fault, dict) and fault.get("problem")
    ]  # details in any other form are in the message already
    tool = str((envelope.get("meta") or {}).get("tool") or "")
    if faults and tool and message.startswith("Invalid parameters: "):
        message, fix = f"{tool}: {faults.pop(0)}", fix or f"glassd tools show {tool}"
    listed = "".join(f"\n  {fault}" for fault in faults)
    return UserError(code, f"{message} ({code}){listed}", str(fix))


def _fault(fault: dict[str, Any]) -> str:
    """Return what is wrong with one argument."""
    path, problem = str(fault.get("path") or "root"), str(fault["problem"])
    if missing := _MISSING.fullmatch(problem):
        return f"{'' if path == 'root' else path} {missing[1]} is missing".strip()
    return f"{path}: {problem}"
