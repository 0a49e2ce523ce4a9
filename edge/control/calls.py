"""The paths that act on calls: start one, confirm or deny one, cancel one, submit a result.

Responses to callers contain no confirmation token: a caller cannot confirm its own call.
"""

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from edge.control import requests
from edge.control.dependencies import ControlDependencies
from edge.control.http import Reply, Request, RequestRefused
from edge.control.progress_stream import progressing
from edge.control.results import Answers, unknown
from edge.control.roles import ClientRole, for_the_owner
from edge.control.slots import Slots
from edge.control.sockets import SocketFile
from edge.control.stream import Stream
from edge.core import confirmation, results
from edge.core.call_state import Submission
from edge.core.grants import Grant
from edge.ports import Wait
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import CallOrigin, Delivery, Json, Mode, ToolCall, ToolResponse

GRACE_S: Final = 60.0
"""How long after its own deadline a call's answer (speech included) may still come: the longest
text takes 40 s to say.
"""
LIFE_S: Final = 40.0
"""The default lifetime of a call: 10 s to activate its app, 30 s to run."""
MAX_TTL_S: Final = 86400.0
MAX_REASON: Final = 200
MAX_TOKEN: Final = 255
MAX_SESSION: Final = 64

_CALL_KEYS: Final = (
    "tool",
    "args",
    "mode",
    "wait",
    "ask",
    "confirm",
    "confirmation_token",
    "idempotency_key",
    "ttl_s",
    "turn_id",
    "origin",
    "session",
    "provider_call_id",
    "ordinal",
    "replayed",
    "input",
    "scope",
    "call_id",
    "progress",
)
_ENVELOPE_KEYS: Final = ("ok", "data", "error", "intents", "render", "meta")
_OWN: Final = frozenset({CallOrigin.CLI.value, CallOrigin.MCP.value})
"""Origins of calls that came over the control API: a caller may cancel these, but not calls of the
wearer or of the cloud.
"""
_WEARERS: Final = "wearer"
"""The route of a call whose result is the wearer's own answer."""
_T = TypeVar("_T")
Envelope = dict[str, Any]


class CallRoutes:
    """Handlers of the paths that act on calls; each raises `RequestRefused` for an invalid
    request.
    """

    def __init__(
        self,
        ports: ControlDependencies,
        answers: Answers,
        *,
        begins: int,
        role: ClientRole,
        owners: SocketFile,
    ) -> None:
        self._ports = ports
        self._owners = owners
        self._role = role
        self._answers = answers
        self._begins = Slots(
            begins, "too many calls are being started at once", "try again in a moment"
        )

    async def call(self, request: Request) -> Reply | Stream:
        body = requests.json_object(request, _CALL_KEYS)
        told = requests.boolean(body, "progress", default=False)
        wait = _wait(body)
        ask = requests.one_of(body, "ask", ("block", "return"))
        token = requests.same_text(body, "confirm", "confirmation_token", most=MAX_TOKEN)
        if token and wait is None:
            raise requests.malformed(
                "wait: must not be false together with confirm",
                "leave out wait: the answer says whether the token was accepted",
            )
        if told and (token or wait is None):
            raise requests.malformed(
                "progress: cannot be combined with confirm or with wait false",
                "follow GET /v1/events instead",
            )
        if token:
            self._decides("a confirmation")
        call = await self._tool_call(body)
        limit_s = call.ttl_s + GRACE_S
        if token:
            return await self._envelope(
                self._ports.calls.confirm(token, allow=True, call=call), limit_s
            )
        if wait is None:
            begun = await self._begun(call)
            return (
                Reply(202, {"call_id": call.call_id, "state": "admitted"})
                if begun is None
                else Reply(200, self._shown(begun))
            )
        if ask == "return" and self._may_ask(call.tool):
            return await self._asked_or_answered(call, limit_s)
        if told:
            return Stream(
                progressing(partial(self._ports.calls.call, call, wait=wait), limit_s, self._shown)
            )
        return await self._envelope(self._ports.calls.call(call, wait=wait), limit_s)

    async def _begun(self, call: ToolCall) -> ToolResponse | None:
        """Return None once the call is stored, or the response it got at once."""
        with self._begins.one():
            return await within(self._ports.calls.begin(call), call.ttl_s + GRACE_S)

    def _may_ask(self, tool: str) -> bool:
        """Is this one of the few that cost a second look? All others keep to one question, one
        answer.
        """
        entry = self._ports.registry.snapshot().find(tool)
        return entry is not None and entry.definition.requires_confirmation != "never"

    async def _asked_or_answered(self, call: ToolCall, limit_s: float) -> Reply:
        """CONFIRMATION_REQUIRED while the wearer is asked; otherwise the answer, as if it had
        not needed a yes.
        """
        begun = await self._begun(call)
        if begun is not None:
            return Reply(200, self._shown(begun))
        story = await self._answers.wait(call.call_id, limit_s, pending=True)
        if story is None:
            raise _late()
        if story.get("response"):
            return Reply(200, story["response"])
        pending = results.pending(call).with_meta(
            tool=call.tool, callId=call.call_id, delivery=Delivery.QUEUED.value
        )
        return Reply(200, pending.to_json())

    async def _envelope(self, answer: Awaitable[ToolResponse], limit_s: float) -> Reply:
        return Reply(200, self._shown(await within(answer, limit_s)))

    def _shown(self, response: ToolResponse) -> Envelope:
        """The envelope for this client: the token of a question is only for who may answer it."""
        return (
            response if self._role is ClientRole.OWNER else confirmation.without_token(response)
        ).to_json()

    def _decides(self, what: str) -> None:
        """Raise `RequestRefused` for a client that may not decide for the wearer."""
        if self._role is not ClientRole.OWNER:
            raise for_the_owner(what, self._owners)

    # -------------------------------------------------------------- reading a call

    async def _tool_call(self, body: Mapping[str, Json]) -> ToolCall:
        args = requests.arguments(body)
        session = requests.text(body, "session", most=MAX_SESSION, default="")
        fields: dict[str, Any] = {
            "tool": requests.text(body, "tool", most=255),
            "args": args,
            "session": session,
            "ttl_s": requests.seconds(body, "ttl_s", default=LIFE_S, most=MAX_TTL_S),
            "origin": CallOrigin(requests.one_of(body, "origin", (CallOrigin.CLI, CallOrigin.MCP))),
            "turn_id": requests.text(body, "turn_id", most=64, default=""),
            "idempotency_key": requests.text(body, "idempotency_key", most=255, default="") or None,
            "provider_call_id": requests.text(body, "provider_call_id", most=255, default="")
            or None,
            "ordinal": requests.count(body, "ordinal"),
            "replayed": requests.boolean(body, "replayed", default=False),
            "input": _input(body),
        }
        fields["scope"] = requests.scope_given(body.get("scope"))
        wanted = Mode(requests.one_of(body, "mode", tuple(Mode))) if "mode" in body else None
        mode = await self._mode(
            session, wanted
        )  # last: a request that cannot be read makes no session
        return ToolCall(
            call_id=_named(body) or self._ports.new_id(),
            user_id=self._ports.user_id,
            mode=mode,
            **fields,
        )

    async def _mode(self, session: str, wanted: Mode | None) -> Mode:
        """Check the mode: a session keeps the mode it was created with, and only a call without a
        session chooses its own. Raises `RequestRefused`.
        """
        if not session or self._ports.sessions is None:
            return wanted or Mode.TEXT
        found, _ = await self._ports.sessions.open(
            self._ports.user_id, session, (wanted or Mode.TEXT).value
        )
        if wanted is not None and wanted.value != found:
            message = (
                f"mode: the session {session} is a {found} session, and a session keeps its mode"
            )
            raise RequestRefused(
                409,
                "CONFLICT",
                message,
                f"leave mode out, or send {found}, or start another session",
            )
        return Mode(found)

    # -------------------------------------------------------------- deciding, calling off, handing
    # in

    async def questions(self, _request: Request) -> Reply:
        """Return the calls that wait for confirmation, oldest first, with all their arguments."""
        return Reply(
            200, {"questions": [dict(question) for question in self._ports.calls.questions()]}
        )

    async def confirm(self, request: Request) -> Reply:
        """Confirm or deny a waiting call, named by its id or its token; the reply is the response
        of that call.
        """
        body = requests.json_object(
            request, ("token", "confirmation_token", "call_id", "allow", "grant")
        )
        token = requests.same_text(body, "token", "confirmation_token", most=MAX_TOKEN)
        call_id = requests.text(body, "call_id", most=64, default="")
        if bool(token) is bool(call_id):
            raise requests.malformed(
                "token: must be text, or there must be call_id instead",
                "list the calls that wait for confirmation: glassd confirm",
            )
        allow = requests.boolean(body, "allow")
        grant = Grant(requests.one_of(body, "grant", tuple(Grant)))
        if grant is (Grant.NEVER if allow else Grant.ALWAYS):
            raise requests.malformed(
                f"grant: {grant} needs allow {str(not allow).lower()}",
                "send once, or change allow",
            )
        if call_id:
            return await self._envelope(
                self._ports.calls.decide(call_id, allow=allow, grant=grant), LIFE_S + GRACE_S
            )
        return await self._envelope(
            self._ports.calls.confirm(token, allow=allow, grant=grant), LIFE_S + GRACE_S
        )

    async def cancel(self, request: Request, call_id: str) -> Reply:
        body = requests.json_object(request, ("reason",), empty=True)
        reason = (
            requests.text(body, "reason", most=MAX_REASON, default="")
            or "cancelled over the control API"
        )
        if (
            self._role is not ClientRole.OWNER
            and (story := await self._ports.store.get(call_id)) is not None
        ):
            origin = (story.get("request") or {}).get("origin", CallOrigin.CLI)
            if origin not in _OWN:
                self._decides(f"the call {call_id}, which came from {origin},")
        if not await self._ports.calls.cancel(call_id, reason):
            raise await self._over(call_id, "there is nothing left to cancel")
        return Reply(200, {"call_id": call_id, "cancelled": True})

    async def result(self, request: Request, call_id: str) -> Reply:
        """Accept the result of a pending call, as a complete response or as its data or error."""
        body = requests.json_object(request, (*_ENVELOPE_KEYS, "session"))
        session = requests.text(body, "session", most=MAX_SESSION, default="")
        response = _response({key: value for key, value in body.items() if key != "session"})
        if (
            self._role is not ClientRole.OWNER
            and ((await self._ports.store.get(call_id)) or {}).get("route") == _WEARERS
        ):
            self._decides("the wearer's answer")
        outcome = await self._ports.calls.submit(
            call_id, response, user_id=self._ports.user_id, session=session
        )
        if outcome is Submission.UNKNOWN:
            fix = (
                "see which wait for a result: glassd calls --pending (a call "
                "of a session wants that session named)"
            )
            raise RequestRefused(
                404, "NOT_FOUND", f"no call {call_id} of yours waits for a result", fix
            )
        if outcome is Submission.OVER:
            raise await self._over(call_id, "its first answer stands")
        return Reply(200, {"call_id": call_id, "submission": outcome.value})

    async def _over(self, call_id: str, problem: str) -> RequestRefused:
        """Return the refusal for a call that cannot be changed any more; 404 if it is unknown."""
        story = await self._ports.store.get(call_id)
        if story is None:
            return unknown(call_id)
        return RequestRefused(
            409,
            "CONFLICT",
            f"the call {call_id} is {story.get('state')}: {problem}",
            f"show it: glassd calls {call_id}",
        )


def _input(body: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """What a tool of another server asked for, brought with the same call: `{inputResponses?,
    requestState?}`.
    """
    found = body.get("input")
    if found is not None and (
        not isinstance(found, dict) or not found.keys() <= {"inputResponses", "requestState"}
    ):
        raise requests.malformed(
            "input: must be an object with inputResponses and requestState",
            "they answer error.details of the previous call",
        )
    if found is not None and not (
        isinstance(found.get("inputResponses"), dict | None)
        and isinstance(found.get("requestState"), str | None)
    ):
        raise requests.malformed(
            "input: inputResponses must be an object, requestState text",
            "copy both from error.details of the previous call",
        )
    return found


def _named(body: Mapping[str, Json]) -> str:
    """Read the id that a client chose, so that it can cancel the call before any answer; "" if it
    chose none.
    """
    told = requests.text(body, "call_id", most=36, default="")
    try:
        return str(UUID(told)) if told else ""
    except ValueError:
        raise requests.malformed(
            "call_id: must be a UUID", "leave it out, or create a new UUIDv7 for each call"
        ) from None


def _wait(body: Mapping[str, Json]) -> Wait | None:
    """None: do not wait."""
    wait = body.get("wait", Wait.ANSWER.value)
    if wait is False:
        return None
    if wait not in tuple(Wait):
        raise requests.malformed('wait: must be "answer", "delivery" or false')
    return Wait(wait)


def _response(body: Mapping[str, Json]) -> ToolResponse:
    """Read a response; without `ok`, its data or its error tells success from failure."""
    if "ok" not in body:
        if ("data" in body) is ("error" in body):
            raise requests.malformed(
                "data: exactly one of data and error is needed",
                'for example {"data": {"answer": "yes"}}',
            )
        body = {"ok": "data" in body, **body}
    try:
        return ToolResponse.from_json(dict(body))
    except ValueError as e:
        raise requests.malformed(
            str(e),
            'for example {"data": {"answer": "yes"}}, or {"error": '
            '{"type": "PERMANENT", "message": "sold out"}}',
        ) from None


async def within(answer: Awaitable[_T], limit_s: float) -> _T:
    """Wait for an answer. Raises `RequestRefused` (504) if it does not come in time; the call
    goes on.
    """
    try:
        async with timeout(limit_s):
            return await answer
    except TimeoutError:
        raise _late() from None


def _late() -> RequestRefused:
    return RequestRefused(
        504, "TIMEOUT", "there was no answer in time", "look for the call: glassd calls"
    )
