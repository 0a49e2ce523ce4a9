"""Parts the devcloud's unit tests share: a mini-app behind a fake network, below the code under
test.
"""

import asyncio
import contextlib
import json

import httpx

from edge.devcloud.app_service import AppService
from edge.devcloud.app_store import AppStore
from edge.devcloud.database import open_shared
from edge.devcloud.edges import Edges
from edge.devcloud.registry import AppRegistry, InstalledApp
from edge.devcloud.worker.activation import Launcher
from edge.devcloud.worker.runner import Runner
from tools_cache.api.tool import CallOrigin, ToolCall

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "default": 7}},
    "required": ["n"],
    "additionalProperties": False,
}
READ = {
    "name": "read",
    "description": "reads",
    "inputSchema": SCHEMA,
    "idempotent": True,
    "version": "2.1.0",
}
WRITE = {"name": "write", "description": "writes", "inputSchema": SCHEMA}
QUICK = {**READ, "name": "quick", "timeoutS": 0.05}
APP = InstalledApp(
    "com.x.app", "X", (READ, WRITE, QUICK), public_url="http://app", api_key_hash="hashed-key"
)
NOWHERE = InstalledApp("com.x.nowhere", "N", (READ,))


def a_call(
    tool="com.x.app:read", *, ttl_s=5.0, call_id="01890000-0000-7000-8000-000000000001", **args
):
    return ToolCall(
        call_id=call_id, tool=tool, args=args, origin=CallOrigin.CLOUD, user_id="u", ttl_s=ttl_s
    )


class FakeApp(httpx.AsyncBaseTransport):
    """The network with one mini-app on it: `answer(request)` gives a response; requests are
    kept.
    """

    def __init__(self, answer=None):
        self.requests = []
        self.answer = answer or (
            lambda request: httpx.Response(200, json={"success": True, "content": "done"})
        )

    async def handle_async_request(self, request):
        await request.aread()
        self.requests.append(request)
        made = self.answer(request)
        return await made if asyncio.iscoroutine(made) else made

    @property
    def bodies(self):
        return [json.loads(r.content) for r in self.requests]


@contextlib.asynccontextmanager
async def a_runner(tmp_path, app=None, *, apps=(APP, NOWHERE), **limits):
    app = app or FakeApp()
    async with httpx.AsyncClient(transport=app) as http:
        launcher = Launcher(http, state_dir=tmp_path)
        yield Runner(AppRegistry(apps), launcher, http, **limits), app


@contextlib.asynccontextmanager
async def an_app_service(tmp_path, *, apps=(), **more):
    """An app service on a real file; two over one folder act like two processes."""
    db = await open_shared(tmp_path / "office.db")
    try:
        service = AppService(
            AppRegistry(apps),
            Edges("default"),
            AppStore(db),
            standing=["local"],
            **more,
        )
        await service.refresh()
        yield service
    finally:
        await db.close()
