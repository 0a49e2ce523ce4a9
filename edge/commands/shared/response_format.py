"""Shows the response of a call to a person, and maps it to an exit code."""

from typing import Any, Final

from edge.commands.shared.console import CliError, Screen, duration, for_people, plain

_TIMED_OUT: Final = frozenset(
    {"TIMEOUT", "DEADLINE_EXPIRED", "NOT_ACCEPTED", "APP_ACTIVATION_TIMEOUT"}
)


def tell(envelope: dict[str, Any], screen: Screen) -> int:
    """Show a response and return its exit code."""
    code = exit_code(envelope)
    if screen.as_json:
        screen.json(envelope)
    elif envelope.get("ok"):
        _tell_success(envelope, screen)
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


def _tell_success(envelope: dict[str, Any], screen: Screen) -> None:
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
        screen.line(
            f"its result comes later; show it: glassd calls {plain(data['pendingToolCallId'])}"
        )


def _old(meta: dict[str, Any]) -> list[str]:
    """Return why an answer is not new: stored for some time, or from an earlier call."""
    age = meta.get("ageS")
    stale = (
        [f"as of {duration(age)} ago"] if meta.get("stale") and isinstance(age, int | float) else []
    )
    return stale + (
        ["the answer of an earlier call with the same key"]
        if meta.get("_idempotent_cache_hit")
        else []
    )


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


def _failure(envelope: dict[str, Any]) -> CliError:
    error = envelope.get("error") or {}
    fix = how_to_confirm(token_of(envelope)) if asks(envelope) else error.get("suggestion") or ""
    problems = error.get("details")
    faults = (
        [p for p in problems if isinstance(p, dict) and p.get("problem")]
        if isinstance(problems, list)
        else []
    )
    listed = "".join(
        f"\n  {p.get('path') or 'root'}: {p['problem']}" for p in faults
    )  # details in any other form are in the message already
    return CliError(
        str(error.get("code", "")),
        f"{error.get('message', '')} ({error.get('code', '')}){listed}",
        str(fix),
    )
