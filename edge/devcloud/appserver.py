"""HTTP server of a mini-app: `POST /tool`, `GET /health`, `GET /manifest`, progress as NDJSON.

One process per app. It answers every caller that has its key and never calls the cloud.
"""

import asyncio
import contextlib
import hashlib
import hmac
import inspect
import json
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from edge.devcloud.sdk import AppTool, CallContext, Progress, failure
from edge.runtime.first_completed import run_unless
from tools_cache.api.tool import Json
from tools_cache.errors import BadDefinition, BadToolName

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

log = logging.getLogger(__name__)

API_KEY_ENV: Final = "GLASSD_APP_API_KEY_HASH"
"""The hash of the key that the cloud sends as `X-App-API-Key`; without it all callers are served.
"""
KEY_ENV: Final = "GLASSD_APP_API_KEY"
"""The key that the console issued."""
MAX_BODY: Final = 1 << 20
"""Bytes of one request: four times the limit over MQTT, for photographs over plain HTTP."""
NDJSON: Final = "application/x-ndjson"


class AppServer:
    """One mini-app. `app = AppServer("com.example.calc", name="Calculator")`, register tools,
    `app.run(port)`.
    """

    def __init__(
        self,
        package_name: str,
        *,
        name: str = "",
        hardware_requirements: Sequence[Mapping[str, Json]] = (),
        api_key_hash: str | None = None,
    ) -> None:
        if ":" in package_name or not package_name:
            problem = 'must be a reverse domain name without ":"'
            raise BadDefinition(f"packageName: {problem}. Got: {package_name!r}")
        self.package_name = package_name
        self.name = name or package_name
        self._hardware = [dict(h) for h in hardware_requirements]
        self._key = _key_hash() if api_key_hash is None else api_key_hash
        self._tools: dict[str, AppTool] = {}

    def register_tool(self, tool: AppTool) -> None:
        """Add a tool. Raises `BadToolName` for a colon (a tool can be constructed without
        `create_tool`) or a duplicate.
        """
        if ":" in tool.name:
            raise BadToolName(f'Tool name cannot contain ":". Got: {tool.name}')
        if tool.name in self._tools:
            raise BadToolName(f"Tool {tool.name} is registered already")
        self._tools[tool.name] = tool

    def get_tool_definitions(self) -> list[dict[str, Json]]:
        """Return the definitions in order of registration."""
        return [tool.definition() for tool in self._tools.values()]

    def manifest(self) -> dict[str, Json]:
        """The app's entry in a registry."""
        return {
            "packageName": self.package_name,
            "name": self.name,
            "hardwareRequirements": [dict(h) for h in self._hardware],
            "tools": self.get_tool_definitions(),
        }

    def asgi(self) -> "Starlette":
        """Return the ASGI application, for your own server."""
        from starlette.applications import Starlette  # noqa: PLC0415 - the cloud imports apps for their manifest only
        from starlette.routing import Route  # noqa: PLC0415

        return Starlette(
            routes=[
                Route("/tool", self._tool, methods=["POST"]),
                Route("/health", self._health, methods=["GET"]),
                Route("/manifest", self._manifest, methods=["GET"]),
            ]
        )

    def run(self, port: int | None = None, *, host: str = "127.0.0.1") -> None:
        """Serve until SIGTERM; the port comes from `$PORT` when not given."""
        import uvicorn  # noqa: PLC0415 - see asgi()

        port = int(os.environ.get("PORT", "0")) if port is None else port
        options: dict[str, Any] = {"log_level": "warning", "timeout_graceful_shutdown": 2}
        uvicorn.run(self.asgi(), host=host, port=port, **options)

    # -------------------------------------------------------------- endpoints

    async def _health(self, _: "Request") -> "Response":
        return _json({"status": "ok", "packageName": self.package_name, "tools": len(self._tools)})

    async def _manifest(self, request: "Request") -> "Response":
        """Return what the developer console takes: the definitions, and this app's address."""
        return _json({**self.manifest(), "publicUrl": str(request.base_url).rstrip("/")})

    async def _tool(self, request: "Request") -> "Response":
        key = request.headers.get("x-app-api-key", "").encode()
        if self._key and not hmac.compare_digest(key, self._key.encode()):
            return _json(failure("AUTH", "Missing or wrong X-App-API-Key header"), status=401)
        try:
            call = await _read_call(request)
        except ValueError as e:
            return _json(failure("INVALID_REQUEST", str(e)), status=400)
        tool = self._tools.get(call["name"])
        if tool is None:
            problem = f"Tool {call['name'][:80]} not found"
            return _json(failure("TOOL_NOT_FOUND", problem), status=404)
        return await _answer(tool, call, request)


def _key_hash() -> str:
    """Return the hash that callers must send; "" if all callers are served."""
    key = os.environ.get(KEY_ENV, "")
    return hashlib.sha256(key.encode()).hexdigest() if key else os.environ.get(API_KEY_ENV, "")


async def _read_call(request: "Request") -> dict[str, Any]:
    from starlette.requests import ClientDisconnect  # noqa: PLC0415 - see AppServer.asgi()

    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY:
                raise ValueError(f"body: larger than {MAX_BODY} bytes")
    except ClientDisconnect:
        raise ValueError("body: the caller hung up before its end") from None
    try:
        call = json.loads(bytes(body))
    except ValueError:
        raise ValueError("body: not JSON") from None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise ValueError("name: must be the local name of a tool")
    if not isinstance(call.setdefault("arguments", {}), dict):
        raise ValueError("arguments: must be an object")
    return call


async def _answer(tool: AppTool, call: Mapping[str, Any], request: "Request") -> "Response":
    if inspect.isasyncgenfunction(tool.handler):
        from starlette.responses import StreamingResponse  # noqa: PLC0415 - see asgi()

        return StreamingResponse(_stream(tool, call), media_type=NDJSON)
    done = await run_unless(_run(tool, call), _hung_up(request))
    if done is None:
        log.info("caller disconnected; %s is cancelled", tool.name)
        return _json(failure("CANCELLED", "The caller hung up"), status=499)
    try:
        return _json(done.value)
    except (TypeError, ValueError, RecursionError) as e:  # the result is not JSON
        return _json(failure("EXECUTION_ERROR", str(e) or type(e).__name__), status=500)


async def _run(tool: AppTool, call: Mapping[str, Any]) -> Json:
    context = CallContext.from_json(call.get("context"))
    try:
        if inspect.iscoroutinefunction(tool.handler):
            return await tool.handler(call["arguments"], context)
        return await asyncio.to_thread(tool.handler, call["arguments"], context)
    except Exception as e:  # noqa: BLE001 - a handler may fail in any way; its caller gets words
        log.warning("handler of %s failed: %s", tool.name, e)
        return failure("HANDLER_ERROR", str(e) or "Unknown error")


async def _stream(tool: AppTool, call: Mapping[str, Any]) -> AsyncIterator[bytes]:
    """Yield progress lines, then the result line. A plain value is held until the next one shows
    that it was progress.
    """
    result = failure("HANDLER_ERROR", "the handler ended without a result")
    held: list[Json] = []
    try:
        produced: Any = tool.handler(call["arguments"], CallContext.from_json(call.get("context")))
        async with contextlib.aclosing(produced) as values:
            async for value in values:
                if held:
                    yield _line({"progress": _as_text(held.pop())})
                if isinstance(value, Progress):
                    yield _line({"progress": value.text})
                else:
                    held.append(value)
        result = held.pop() if held else result
    except Exception as e:  # noqa: BLE001 - a handler may fail in any way; its caller gets words
        log.warning("handler of %s failed: %s", tool.name, e)
        result = failure("HANDLER_ERROR", str(e) or "Unknown error")
    try:
        yield _line({"result": result})
    except (TypeError, ValueError, RecursionError) as e:
        yield _line({"result": failure("EXECUTION_ERROR", str(e) or type(e).__name__)})


async def _hung_up(request: "Request") -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _json(value: Json, *, status: int = 200) -> "Response":
    from starlette.responses import Response  # noqa: PLC0415 - see asgi()

    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return Response(text, status_code=status, media_type="application/json")
