"""Questions to the client's user or model before a call can go on: a tool's own, and our request
for confirmation. Pure: `calls.py` sends them; the answers are parsed here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

CONFIRM: Final = "confirm"
CONFIRMED: Final = "io.glassd/confirmationToken"
"""Key in a request's `_meta`. It is refused: the program that asks for a call does not confirm it.
"""
HOW: Final = "Confirm on the glasses, or run glassd confirm in a terminal"
MAX_REQUESTS: Final = 16
_NEEDS: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""Method of a question → the capability that a client needs for it."""
_KINDS: Final = (CONFIRM, "tool")

Requests = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions by key, and the state that comes back with the answers. `call_id` names a call that
    waits for confirmation; "" if the tool itself asks.
    """

    requests: Requests = field(default_factory=dict)
    state: str | None = None
    call_id: str = ""

    def seal(self) -> str:
        """Return the state as one text for a client to bring back; the SDK's boundary signs it."""
        kind = CONFIRM if self.call_id else "tool"
        return json.dumps({"k": kind, "s": self.state, "c": self.call_id}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a client brought back."""

    responses: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None
    call_id: str = ""

    @property
    def input(self) -> dict[str, Any]:
        """The value of `input` in `POST /v1/call`."""
        given: dict[str, Any] = {"inputResponses": dict(self.responses)}
        return given if self.state is None else {**given, "requestState": self.state}

    @property
    def allowed(self) -> bool | None:
        """The user's yes or no; None if the client brought neither."""
        answer = self.responses.get(CONFIRM)
        if not isinstance(answer, Mapping):
            return None
        form = answer.get("content")
        confirmed = isinstance(form, Mapping) and form.get(CONFIRM) is True
        return answer.get("action") == "accept" and confirmed


def asking(envelope: Mapping[str, Any]) -> Asking | None:
    """Return what an envelope asks of its caller; None if it is an answer."""
    error = envelope.get("error")
    if envelope.get("ok") or not isinstance(error, Mapping):
        return None
    request = error.get("confirmation_request")
    if isinstance(request, Mapping) and error.get("code") == "CONFIRMATION_REQUIRED":
        call_id = str((envelope.get("meta") or {}).get("callId") or "")
        lines = request.get("particulars")
        if isinstance(lines, list) and lines:
            return confirmation("\n".join(map(str, lines)), call_id)
        return confirmation(str(request.get("preview") or "this"), call_id)
    details = error.get("details")
    if not isinstance(details, Mapping) or details.keys().isdisjoint(
        ("inputRequests", "requestState")
    ):
        return None
    requests, state = details.get("inputRequests") or {}, details.get("requestState")
    if not isinstance(requests, Mapping) or len(requests) > MAX_REQUESTS:
        return None
    known = all(isinstance(r, Mapping) and r.get("method") in _NEEDS for r in requests.values())
    return Asking(requests, state) if known and isinstance(state, str | None) else None


def confirmation(particulars: str, call_id: str) -> Asking:
    """Ask whether a call may be done. The particulars, a line each, come back as the state, so that
    it can be asked again.
    """
    return Asking({CONFIRM: _form(particulars)}, particulars, call_id)


def _form(particulars: str) -> dict[str, Any]:
    """Return a form with one checkbox."""
    about = {
        "type": "boolean",
        "title": "Yes, do it",
        "description": particulars.partition("\n")[0],
        "default": False,
    }
    schema = {"type": "object", "properties": {CONFIRM: about}, "required": [CONFIRM]}
    # indented: a host that renders Markdown shows every character as it is
    text = particulars.replace("\n", "\n    ")
    return {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": f"Allow this?\n\n    {text}",
            "requestedSchema": schema,
        },
    }


def methods(capabilities: Mapping[str, Any]) -> list[str]:
    """Return the methods of the questions that this client takes."""
    return [method for method, need in _NEEDS.items() if need in capabilities]


def askable(requests: Requests, capabilities: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the requests that this client can answer."""
    return {key: request for key, request in requests.items() if _can(request, capabilities)}


def _can(request: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bool:
    """Return whether a client can be asked this; plain `elicitation` means forms."""
    offered = capabilities.get(_NEEDS[request["method"]])
    if offered is None:
        return False
    if request["method"] != "elicitation/create":
        return True
    mode = (request.get("params") or {}).get("mode") or "form"
    return mode in offered or (mode == "form" and not offered)


def lacking(requests: Requests, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that a client would need, in MCP's form."""
    missing = [r for r in requests.values() if not _can(r, capabilities)]
    return {_NEEDS[request["method"]]: {} for request in missing}


def no_roots(asking: Asking, capabilities: Mapping[str, Any]) -> Answered | None:
    """Return the answer to a server that asks for nothing but the roots of a client without any;
    None for any other question.
    """
    only = asking.requests and all(r["method"] == "roots/list" for r in asking.requests.values())
    if asking.call_id or not only or "roots" in capabilities:
        return None
    return Answered({key: {"roots": []} for key in asking.requests}, asking.state)


def parse_answer(responses: Mapping[str, Any] | None, state: str | None) -> Answered | None:
    """Return what came back; None if nothing did. Raises ValueError for an unknown state."""
    if responses is None and state is None:
        return None
    if state is None:
        return Answered(responses or {})
    found = json.loads(state)
    if not isinstance(found, dict) or found.get("k") not in _KINDS:
        raise ValueError("unknown state")
    return Answered(responses or {}, found.get("s"), str(found.get("c") or ""))
