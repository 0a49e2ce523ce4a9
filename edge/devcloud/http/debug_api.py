"""Developer endpoints, `/devcloud/…`: status, broker switch, calls to an edge, pending calls.

Edges do not use them.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from edge.cloud.mqtt.topics import BadTopicWord, check_word
from edge.devcloud.agent import TTL_S, Agent
from edge.devcloud.broker import BrokerFailed, EmbeddedBroker
from edge.devcloud.http.auth import Refusal, answer, read_json
from edge.devcloud.worker.deferred import Submitted
from edge.storage.sqlite.database import StoreError
from tools_cache.api.tool import Json

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

MAX_BODY = 300 * 1024
"""Bytes: one MQTT body and what stands around it."""
MAX_TTL_S = 600.0
MAX_LISTED = 100


class DebugApi:
    """`routes()` for a Starlette application. `broker` is None if it is an external one."""

    def __init__(
        self,
        agent: Agent,
        broker: EmbeddedBroker | None,
        *,
        status: Callable[[], Awaitable[Mapping[str, Json]]],
        stop_app: Callable[[str], Awaitable[bool]],
        submit: Callable[[str, str, Json], Awaitable[Submitted]],
        pending: Callable[[int], Awaitable[list[dict[str, Json]]]],
    ) -> None:
        self._agent = agent
        self._broker = broker
        self._status = status
        self._stop_app = stop_app
        self._submit = submit
        self._pending = pending

    def routes(self) -> "list[Route]":
        from starlette.routing import Route  # noqa: PLC0415 - heavy, and only the server needs it

        return [
            Route("/devcloud/status", self._get_status, methods=["GET"]),
            Route("/devcloud/broker", _with_body(self._switch_broker), methods=["POST"]),
            Route("/devcloud/invoke", _with_body(self._invoke), methods=["POST"]),
            Route("/devcloud/calls", self._get_pending, methods=["GET"]),
            Route("/devcloud/calls/{id}/result", self._take_result, methods=["POST"]),
            Route("/devcloud/apps/{package}/stop", self._stop, methods=["POST"]),
        ]

    async def _get_status(self, _: "Request") -> "Response":
        return answer(dict(await self._status()))

    async def _switch_broker(self, body: Mapping[str, Any]) -> "Response":
        """`{"running": bool, "kill"?: bool}`: stop the broker, or restart it on the same port."""
        wanted = body.get("running")
        if not isinstance(wanted, bool):
            raise _invalid("running", "must be true or false")
        if self._broker is None:
            raise Refusal.of(409, "UNSUPPORTED", "this broker is not ours to switch")
        end = self._broker.kill if body.get("kill") else self._broker.stop
        try:
            await (self._broker.start if wanted else end)()
        except BrokerFailed as e:
            raise Refusal.of(503, "TOOL_UNAVAILABLE", str(e)) from None
        return answer({"running": self._broker.running, "port": self._broker.port})

    async def _invoke(self, body: Mapping[str, Any]) -> "Response":
        """`{edge_id, tool, args?, ttl_s?, present?, trace?}` → the envelope; with `trace` more
        details.
        """
        edge_id, tool, args = body.get("edge_id"), body.get("tool"), body.get("args", {})
        ttl_s, trace = body.get("ttl_s", TTL_S), body.get("trace", False)
        try:
            check_word("edge_id", edge_id if isinstance(edge_id, str) else "")
        except BadTopicWord as e:
            raise _invalid("edge_id", str(e)) from None
        if not isinstance(tool, str) or not tool:
            raise _invalid("tool", "must be packageName:toolName")
        if not isinstance(args, dict):
            raise _invalid("args", "must be an object")
        number = isinstance(ttl_s, int | float) and not isinstance(ttl_s, bool)
        if not (number and 0 < ttl_s <= MAX_TTL_S):
            raise _invalid("ttl_s", f"must be seconds, up to {MAX_TTL_S:g}")
        if not isinstance(present := body.get("present"), bool | None):
            raise _invalid("present", "must be true or false")
        result = await self._agent.invoke(str(edge_id), tool, args, ttl_s=ttl_s, present=present)
        envelope = result.response.to_json()
        if trace is not True:
            return answer(envelope)
        progress = list(result.progress)
        return answer({"accepted": result.accepted, "progress": progress, "response": envelope})

    async def _stop(self, request: "Request") -> "Response":
        return answer({"stopped": await self._stop_app(request.path_params["package"])})

    async def _get_pending(self, _: "Request") -> "Response":
        """Return calls that wait for their result, oldest first: `{pending: [{id, edge, tool, args,
        ageS, leftS}]}`.
        """
        return answer({"pending": await self._pending(MAX_LISTED)})

    async def _take_result(self, request: "Request") -> "Response":
        """`{edge, result}`: the envelope of a pending call, or its data; the first one counts."""
        call_id = request.path_params["id"]
        return await _with_body(lambda body: self._submit_result(call_id, body))(request)

    async def _submit_result(self, call_id: str, body: Mapping[str, Any]) -> "Response":
        edge_id = body.get("edge")
        if not isinstance(edge_id, str) or not edge_id:
            raise _invalid("edge", "must be the id of the edge that called")
        if "result" not in body:
            raise _invalid("result", "is missing; send the envelope, or just the data")
        try:
            submitted = await self._submit(edge_id, call_id, body["result"])
        except ValueError as e:
            raise _invalid("result", str(e)) from None
        except StoreError as e:
            raise Refusal.of(503, "TOOL_UNAVAILABLE", str(e)) from None
        if submitted is Submitted.UNKNOWN:
            raise Refusal.of(404, "NOT_FOUND", "This edge has no such call")
        if submitted is Submitted.OVER:
            raise Refusal.of(409, "CONFLICT", "This call does not wait for a result (any more)")
        return answer({"submitted": True})


def _with_body(
    endpoint: Callable[[Mapping[str, Any]], Awaitable["Response"]],
) -> Callable[["Request"], Awaitable["Response"]]:
    """Pass an endpoint its bounded JSON object, and turn its refusals into responses."""

    async def served(request: "Request") -> "Response":
        try:
            body = await read_json(request, MAX_BODY, lambda why: _invalid("body", why))
            if not isinstance(body, dict):
                raise _invalid("body", "must be an object")
            return await endpoint(body)
        except Refusal as e:
            return answer(e.body, status=e.status)

    return served


def _invalid(field: str, problem: str) -> Refusal:
    return Refusal.of(400, "INVALID_REQUEST", f"{field}: {problem}", field=field)
