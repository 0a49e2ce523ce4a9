"""The paths that act on calls: start one, confirm or deny one, cancel one, submit a result.

Responses to callers contain no confirmation token: a caller cannot confirm its own call.
"""

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Final, TypeVar
from uuid import UUID

from edge.control import requests
from edge.control.dependencies import ControlDependencies
from edge.control.http import Reply, Request, RequestRefused, Slots, Stream
from edge.control.results import Answers, ProgressTexts, in_time, unknown, with_progress
from edge.control.sockets import ClientRole, SocketFile, for_the_owner
from edge.core import confirmation, results
from edge.core.call_state import Submission
from edge.core.grants import Grant
from edge.ports import Progress, Wait
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import (
    CAN_ANSWER,
    CallOrigin,
    Delivery,
    Json,
    Mode,
    ToolCall,
    ToolResponse,
)

GRACE_S: Final = 60.0
"""How long after its own deadline a call's answer (speech included) may still come: the longest
text takes 40 s to say.
"""
LIFE_S: Final = 40.0
"""The default lifetime of a call: 10 s to activate its app, 30 s to run."""
MAX_TTL_S: Final = 86400.0
_OWN: Final = frozenset({CallOrigin.CLI.value, CallOrigin.MCP.value})
"""Origins of calls that came over the control API: a caller may cancel these, but not calls of the
wearer or of the cloud.
"""
_WEARERS: Final = "wearer"
"""The route of a call whose result is the wearer's own answer."""
_T = TypeVar("_T")
Envelope = dict[str, Any]


# ------------------------------------------------------------------ the fields of the bodies


def _wait(body: Mapping[str, Json], key: str) -> Wait | None:
    """None: do not wait."""
    wait = body.get(key, Wait.ANSWER.value)
    if wait is False:
        return None
    if wait not in tuple(Wait):
        raise requests.malformed('wait: must be "answer", "delivery" or false')
    return Wait(wait)


def _uuid(body: Mapping[str, Json], key: str) -> str:
    """Read the id that a client chose, so that it can cancel the call before any answer; "" if it
    chose none.
    """
    given = requests.optional_text(body, key, most=36)
    try:
        return str(UUID(given)) if given else ""
    except ValueError:
        fix = "leave it out, or create a new UUIDv7 for each call"
        raise requests.malformed(f"{key}: must be a UUID", fix) from None


def _input(body: Mapping[str, Json], key: str) -> Mapping[str, Json] | None:
    """Read what a tool of another server asked for: `{inputResponses?, requestState?}`, and
    `canAnswer?`, the methods of the questions that the caller takes (absent: all).
    """
    found = body.get(key)
    if found is None:
        return None
    if not isinstance(found, dict) or not found.keys() <= _INPUT_KEYS:
        raise requests.malformed(
            f"{key}: must be an object with inputResponses, requestState and canAnswer",
            "the first two answer error.details of the previous call",
        )
    methods = found.get(CAN_ANSWER)
    if not (
        methods is None
        or (isinstance(methods, list) and all(isinstance(each, str) for each in methods))
    ):
        raise requests.malformed(
            f"{key}: canAnswer must be a list of methods", 'for example ["roots/list"]'
        )
    if not (
        isinstance(found.get("inputResponses"), dict | None)
        and isinstance(found.get("requestState"), str | None)
    ):
        raise requests.malformed(
            f"{key}: inputResponses must be an object, requestState text",
            "copy both from error.details of the previous call",
        )
    return found


def _identifier(body: Mapping[str, Json], key: str) -> str | None:
    return requests.optional_text(body, key, most=255) or None


def _yes_or_no(body: Mapping[str, Json], key: str) -> bool | None:
    """Read true or false; None if it is missing."""
    return None if body.get(key) is None else requests.boolean(body, key)


_NO: Final = partial(requests.boolean, default=False)
_TOKEN: Final = partial(requests.optional_text, most=255)
_SHORT: Final = partial(requests.optional_text, most=64)
_TOOL_CALL: Final[requests.Fields] = {
    "tool": partial(requests.text, most=255),
    "args": requests.arguments,
    "mode": requests.mode,
    "session": _SHORT,
    "ttl_s": partial(requests.seconds, default=LIFE_S, most=MAX_TTL_S),
    "origin": partial(requests.one_of, choices=(CallOrigin.CLI, CallOrigin.MCP)),
    "turn_id": _SHORT,
    "idempotency_key": _identifier,
    "provider_call_id": _identifier,
    "ordinal": requests.count,
    "replayed": _NO,
    "input": _input,
    "scope": requests.scope_given,
    "present": _yes_or_no,
}
"""The fields of a `ToolCall`."""
_CALL: Final[requests.Fields] = {
    **_TOOL_CALL,
    "wait": _wait,
    "ask": partial(requests.one_of, choices=("block", "return")),
    "confirm": _TOKEN,
    "confirmation_token": _TOKEN,
    "call_id": _uuid,
    "progress": _NO,
}
_CONFIRM: Final[requests.Fields] = {
    "token": _TOKEN,
    "confirmation_token": _TOKEN,
    "call_id": _SHORT,
    "allow": requests.boolean,
    "grant": partial(requests.one_of, choices=tuple(Grant)),
}
_CANCEL: Final[requests.Fields] = {"reason": partial(requests.optional_text, most=200)}
_INPUT_KEYS: Final = frozenset({"inputResponses", "requestState", CAN_ANSWER})
_RESPONSE_KEYS: Final = ("ok", "data", "error", "intents", "render", "meta")


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
        busy = ("too many calls are being started at once", "try again in a moment")
        self._begins = Slots(begins, *busy)

    async def call(self, request: Request) -> Reply | Stream:
        body = requests.read(request, _CALL)
        wait, progress = body["wait"], body["progress"]
        token = requests.same("confirm", "confirmation_token", body)
        if token and wait is None:
            raise requests.malformed(
                "wait: must not be false together with confirm",
                "leave out wait: the answer says whether the token was accepted",
            )
        if progress and (token or wait is None):
            raise requests.malformed(
                "progress: cannot be combined with confirm or with wait false",
                "follow GET /v1/events instead",
            )
        if token:
            self._check_owner("a confirmation")
        call = await self._tool_call(body)
        limit_s = call.ttl_s + GRACE_S
        if token:
            confirmed = self._ports.calls.confirm(token, allow=True, call=call)
            return await self._reply(confirmed, limit_s)
        if wait is None:
            if (response := await self._begin(call)) is not None:
                return Reply(200, self._envelope(response))
            return Reply(202, {"call_id": call.call_id, "state": "admitted"})
        if body["ask"] == "return" and self._may_ask(call.tool):
            return await self._question_or_answer(call, limit_s, progress=progress)
        if progress:
            texts = ProgressTexts()
            return Stream(with_progress(texts, partial(self._run, call, wait, texts, limit_s)))
        new_id = not body["call_id"]
        answer = self._ports.calls.call(call, wait=wait, live=True, new_id=new_id)
        return await self._reply(answer, limit_s)

    async def _begin(self, call: ToolCall, progress: Progress | None = None) -> ToolResponse | None:
        """Return None once the call is stored, or the response it got at once."""
        with self._begins.one():
            begun = self._ports.calls.begin(call, progress=progress)
            return await within(begun, call.ttl_s + GRACE_S)

    async def _run(
        self, call: ToolCall, wait: Wait, texts: ProgressTexts, limit_s: float
    ) -> Envelope | None:
        running = self._ports.calls.call(call, progress=texts.put, wait=wait, live=True)
        response = await in_time(running, limit_s)
        return None if response is None else self._envelope(response)

    def _may_ask(self, tool: str) -> bool:
        """Return whether the wearer may be asked before this tool runs."""
        entry = self._ports.registry.snapshot().find(tool)
        return entry is not None and entry.definition.requires_confirmation != "never"

    async def _question_or_answer(
        self, call: ToolCall, limit_s: float, *, progress: bool
    ) -> Reply | Stream:
        """Reply CONFIRMATION_REQUIRED while the wearer is asked, otherwise with the answer, and
        with the progress before it.
        """
        texts = ProgressTexts() if progress else None
        if (response := await self._begin(call, texts.put if texts else None)) is not None:
            return Reply(200, self._envelope(response))
        if texts is not None:
            return Stream(with_progress(texts, partial(self._answer, call, limit_s)))
        if (answer := await self._answer(call, limit_s)) is None:
            raise _late()
        return Reply(200, answer)

    async def _answer(self, call: ToolCall, limit_s: float) -> Envelope | None:
        """Wait for the answer of a call that was begun."""
        record = await self._answers.wait(call.call_id, limit_s, pending=True)
        if record is None or record.get("response"):
            return None if record is None else dict(record["response"])
        pending = results.pending(call).with_meta(
            tool=call.tool, callId=call.call_id, delivery=Delivery.QUEUED.value
        )
        return pending.to_json()

    async def _reply(self, answer: Awaitable[ToolResponse], limit_s: float) -> Reply:
        return Reply(200, self._envelope(await within(answer, limit_s)))

    def _envelope(self, response: ToolResponse) -> Envelope:
        """Return the response for this client: only the owner sees a question's token."""
        owner = self._role is ClientRole.OWNER
        return (response if owner else confirmation.without_token(response)).to_json()

    def _check_owner(self, what: str) -> None:
        """Raise `RequestRefused` for a client that may not decide for the wearer."""
        if self._role is not ClientRole.OWNER:
            raise for_the_owner(what, self._owners)

    async def _tool_call(self, body: Mapping[str, Any]) -> ToolCall:
        mode = await self._mode(body["session"], body["mode"])
        fields = {key: body[key] for key in _TOOL_CALL} | {"mode": mode}
        call_id = body["call_id"] or self._ports.new_id()
        return ToolCall(call_id=call_id, user_id=self._ports.user_id, **fields)

    async def _mode(self, session: str, wanted: Mode | None) -> Mode:
        """Return the mode of the call: its session's, or its own without a session. Raise
        `RequestRefused` if it names another mode than its session has.
        """
        if not session or self._ports.sessions is None:
            return wanted or Mode.TEXT
        found, _ = await self._ports.sessions.open(
            self._ports.user_id, session, (wanted or Mode.TEXT).value
        )
        if wanted is not None and wanted.value != found:
            raise RequestRefused(
                "CONFLICT",
                f"mode: the session {session} is a {found} session, and a session keeps its mode",
                f"leave mode out, or send {found}, or start another session",
            )
        return Mode(found)

    # -------------------------------------------------------------- confirm, cancel, result

    async def questions(self, _request: Request) -> Reply:
        """Return the calls that wait for confirmation, oldest first, with all their arguments."""
        return Reply(200, {"questions": [dict(each) for each in self._ports.calls.questions()]})

    async def confirm(self, request: Request) -> Reply:
        """Confirm or deny a waiting call, named by its id or its token; the reply is the response
        of that call.
        """
        body = requests.read(request, _CONFIRM)
        token, call_id = requests.same("token", "confirmation_token", body), body["call_id"]
        if bool(token) is bool(call_id):
            raise requests.malformed(
                "token: must be text, or there must be call_id instead",
                "list the calls that wait for confirmation: glassd confirm",
            )
        allow, grant = body["allow"], body["grant"]
        if grant is (Grant.NEVER if allow else Grant.ALWAYS):
            raise requests.malformed(
                f"grant: {grant} needs allow {str(not allow).lower()}",
                "send once, or change allow",
            )
        calls = self._ports.calls
        decided = (
            calls.decide(call_id, allow=allow, grant=grant)
            if call_id
            else calls.confirm(token, allow=allow, grant=grant)
        )
        return await self._reply(decided, LIFE_S + GRACE_S)

    async def cancel(self, request: Request, call_id: str) -> Reply:
        body = requests.read(request, _CANCEL, empty=True)
        if self._role is not ClientRole.OWNER:
            record = await self._ports.store.get(call_id) or {}
            origin = (record.get("request") or {}).get("origin", CallOrigin.CLI)
            if origin not in _OWN:
                self._check_owner(f"the call {call_id}, which came from {origin},")
        reason = body["reason"] or "cancelled over the control API"
        if not await self._ports.calls.cancel(call_id, reason):
            raise await self._over(call_id, "there is nothing left to cancel")
        return Reply(200, {"call_id": call_id, "cancelled": True})

    async def result(self, request: Request, call_id: str) -> Reply:
        """Accept the result of a pending call, as a complete response or as its data or error."""
        body = requests.json_object(request, (*_RESPONSE_KEYS, "session"))
        session = _SHORT(body, "session")
        response = _response({key: value for key, value in body.items() if key != "session"})
        if self._role is not ClientRole.OWNER:
            record = await self._ports.store.get(call_id) or {}
            if record.get("route") == _WEARERS:
                self._check_owner("the wearer's answer")
        outcome = await self._ports.calls.submit(
            call_id, response, user_id=self._ports.user_id, session=session
        )
        if outcome is Submission.UNKNOWN:
            raise RequestRefused(
                "NOT_FOUND",
                f"no call {call_id} of yours waits for a result",
                "see which wait for a result: glassd calls --pending (a call "
                "of a session wants that session named)",
            )
        if outcome is Submission.OVER:
            raise await self._over(call_id, "its first answer stands")
        return Reply(200, {"call_id": call_id, "submission": outcome.value})

    async def _over(self, call_id: str, problem: str) -> RequestRefused:
        """Return the refusal for a call that cannot be changed any more; 404 if it is unknown."""
        record = await self._ports.store.get(call_id)
        if record is None:
            return unknown(call_id)
        message = f"the call {call_id} is {record.get('state')}: {problem}"
        return RequestRefused("CONFLICT", message, f"show it: glassd calls {call_id}")


def _response(body: Mapping[str, Json]) -> ToolResponse:
    """Read a response; without `ok`, it succeeded if it has data and failed if it has an error."""
    example = 'for example {"data": {"answer": "yes"}}'
    if "ok" not in body:
        if ("data" in body) is ("error" in body):
            raise requests.malformed("data: exactly one of data and error is needed", example)
        body = {"ok": "data" in body, **body}
    try:
        return ToolResponse.from_json(dict(body))
    except ValueError as e:
        more = '{"error": {"type": "PERMANENT", "message": "sold out"}}'
        raise requests.malformed(str(e), f"{example}, or {more}") from None


async def within(answer: Awaitable[_T], limit_s: float) -> _T:
    """Wait for an answer. Raise `RequestRefused` (504) if it is late; the call goes on."""
    try:
        async with timeout(limit_s):
            return await answer
    except TimeoutError:
        raise _late() from None


def _late() -> RequestRefused:
    fix = "look for the call: glassd calls"
    return RequestRefused("TIMEOUT", "there was no answer in time", fix)
