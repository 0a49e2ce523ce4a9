"""Questions to the client's user or model before a call can go on: a tool's own, and our "may it?".
Pure.

Refuses to send any: `calls.py` does, as the client's revision wants it. What comes back is
somebody else's words: read here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

CONFIRM: Final = "confirm"
CONFIRMED: Final = "io.glassd/confirmationToken"
"""In a request's `_meta`: a token of a yes. It is refused: the program that asks for a call
does not answer the question about it.
"""
HOW: Final = "Confirm on the glasses, or run glassd confirm in a terminal"
MAX_REQUESTS: Final = 16
_NEEDS: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""What may be asked → the capability of a client that can be asked so."""
_KINDS: Final = (CONFIRM, "tool")

Requests = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Asking:
    """What a call needs to know: requests by key, and the state that comes back with the answers.

    `call_id` names a call that waits for a yes; "" when the tool itself asks.
    """

    requests: Requests = field(default_factory=dict)
    state: str | None = None
    call_id: str = ""

    def sealed(self) -> str:
        """The state as one text, for a client to bring back; the boundary seals it."""
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
        """As `POST /v1/call` takes it beside the arguments."""
        return {"inputResponses": dict(self.responses)} | (
            {"requestState": self.state} if self.state is not None else {}
        )

    @property
    def allowed(self) -> bool | None:
        """The user's yes or no; None when the client did not bring any."""
        said = self.responses.get(CONFIRM)
        if not isinstance(said, Mapping):
            return None
        form = said.get("content")
        return (
            said.get("action") == "accept"
            and isinstance(form, Mapping)
            and form.get(CONFIRM) is True
        )


def asking(envelope: Mapping[str, Any]) -> Asking | None:
    """Read what an envelope asks of its caller; None when it is an answer."""
    error = envelope.get("error")
    if envelope.get("ok") or not isinstance(error, Mapping):
        return None
    if (
        isinstance(request := error.get("confirmation_request"), Mapping)
        and error.get("code") == "CONFIRMATION_REQUIRED"
    ):
        return confirmation(_particulars(request), call_id_of(envelope))
    details = error.get("details")
    if not isinstance(details, Mapping) or not (
        "inputRequests" in details or "requestState" in details
    ):
        return None
    requests, state = details.get("inputRequests") or {}, details.get("requestState")
    if (
        not isinstance(requests, Mapping)
        or len(requests) > MAX_REQUESTS
        or not (state is None or isinstance(state, str))
    ):
        return None
    if not all(isinstance(r, Mapping) and r.get("method") in _NEEDS for r in requests.values()):
        return None
    return Asking(requests, state)


def _particulars(request: Mapping[str, Any]) -> str:
    """All that the wearer is shown of the call, a line each."""
    lines = request.get("particulars")
    return (
        "\n".join(map(str, lines))
        if isinstance(lines, list) and lines
        else str(request.get("preview") or "this")
    )


def confirmation(particulars: str, call_id: str) -> Asking:
    """Our "may it?" about a call that waits for a yes; the particulars come back, so that it
    can be asked again.
    """
    return Asking({CONFIRM: question(particulars)}, particulars, call_id)


def call_id_of(envelope: Mapping[str, Any]) -> str:
    return str((envelope.get("meta") or {}).get("callId") or "")


def question(particulars: str) -> dict[str, Any]:
    """Our own question: a form with one box to tick."""
    about = {
        "type": "boolean",
        "title": "Yes, do it",
        "description": particulars.partition("\n")[0],
        "default": False,
    }
    schema = {"type": "object", "properties": {CONFIRM: about}, "required": [CONFIRM]}
    text = particulars.replace(
        "\n", "\n    "
    )  # indented: where a host takes it for Markdown, it shows every character as it is
    return {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": f"Allow this?\n\n    {text}",
            "requestedSchema": schema,
        },
    }


def askable(requests: Requests, capabilities: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Those of the requests this client said it can answer."""
    return {key: request for key, request in requests.items() if can(request, capabilities)}


def can(request: Mapping[str, Any], capabilities: Mapping[str, Any]) -> bool:
    """Tell whether a client can be asked this; one that says `elicitation` without more means
    forms.
    """
    offered = capabilities.get(_NEEDS[request["method"]])
    if offered is None:
        return False
    if request["method"] != "elicitation/create":
        return True
    mode = (request.get("params") or {}).get("mode") or "form"
    return mode in offered or (mode == "form" and not offered)


def lacking(requests: Requests, capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities a client would need, in MCP's form."""
    return {
        _NEEDS[request["method"]]: {}
        for request in requests.values()
        if not can(request, capabilities)
    }


def answered(responses: Mapping[str, Any] | None, state: str | None) -> Answered | None:
    """Read what came back; None when nothing did. Raises ValueError for a state that is none of
    ours.
    """
    if responses is None and state is None:
        return None
    if state is None:
        return Answered(responses or {})
    found = json.loads(state)
    if not isinstance(found, dict) or found.get("k") not in _KINDS:
        raise ValueError("not our state")
    return Answered(responses or {}, found.get("s"), str(found.get("c") or ""))
