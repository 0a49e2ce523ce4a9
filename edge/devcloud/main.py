"""Runs the reference cloud in one process: broker, registry, worker, agent and mini-apps."""

import asyncio
import contextlib
import importlib
import importlib.util
import ipaddress
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from edge.cloud.mqtt.topics import Topics
from edge.devcloud import options
from edge.devcloud.agent import Agent
from edge.devcloud.app_service import RegistryNotifier
from edge.devcloud.apps import SAMPLES
from edge.devcloud.broker import (
    HOST,
    BrokerFailed,
    EmbeddedBroker,
    find_mosquitto,
    own_port,
    parse_broker,
)
from edge.devcloud.http import guard
from edge.devcloud.http.api import Api
from edge.devcloud.http.auth import Authentication
from edge.devcloud.http.console import Console
from edge.devcloud.http.debug_api import DebugApi
from edge.devcloud.http.legacy_api import LegacyApi
from edge.devcloud.http.uploads_api import UploadsApi
from edge.devcloud.link import CloudLink, NotConnected
from edge.devcloud.pager_relay import PagerDelivery, pager_app
from edge.devcloud.registry import InstalledApp
from edge.devcloud.worker.worker import (
    FIRST_CONNECT_S,
    STOCK,
    Worker,
    WorkerLimits,
    a_worker,
    first_connect,
    options_of,
)
from tools_cache.api.tool import Json

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.routing import Route

    from edge.devcloud.enrolment.secured import Secured

STATUS_CALLS: Final = 100


def sample_apps(modules: Sequence[str] = SAMPLES) -> list[InstalledApp]:
    """Return the sample mini-apps, each started as `python -m MODULE`, and the relay of pagers,
    which runs within the worker.
    """
    apps = [(module, importlib.import_module(module).app) for module in modules]
    command = (sys.executable, "-m")
    samples = [InstalledApp.of_manifest(app.manifest(), (*command, module)) for module, app in apps]
    return [*samples, pager_app()]


async def run_devcloud(
    *,
    http: str = f"{HOST}:0",
    broker: str | None = "embedded",
    tenant: str = "default",
    pool: str = "tools",
    state_dir: Path,
    announce: Callable[[dict[str, Any]], None],
    apps: Sequence[InstalledApp] | None = None,
    users: Collection[str] = ("local",),
    token: str = "",
    limits: WorkerLimits = STOCK,
    tls: str | None = None,
    legacy: bool = False,
) -> None:
    """Serve until cancelled, and end all child processes; `announce` is called once, when
    everything answers.

    `tls` is the name of this machine for edges: with it everything is TLS, with an own authority
    and enrolment codes. `legacy` also serves the removed endpoints. Raises OSError or ValueError if
    it cannot start (port in use, unknown broker, unusable state directory).
    """
    options.check(http=http, broker=broker, tenant=tenant, pool=pool)
    state_dir.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - before serving
    installed = sample_apps() if apps is None else list(apps)
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(_listen(http))
        secured = _secure(tls, listener, state_dir / "tls", tenant, limits) if tls else None
        parts = a_worker(
            installed, state_dir=state_dir, tenant=tenant, pool=pool, limits=limits, users=users
        )
        worker = await stack.enter_async_context(parts)
        address, own_broker = await _broker(
            broker or "embedded", state_dir / "broker", stack, secured
        )
        place = _Place(listener, address, own_broker, secured, tenant, pool)
        try:
            await _Cloud(worker, place, limits).run(announce, token=token, legacy=legacy)
        except BaseExceptionGroup as group:
            if len(group.exceptions) == 1 and isinstance(group.exceptions[0], BrokerFailed):
                raise group.exceptions[0] from None  # an expected fault, shown without a traceback
            raise


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a cloud is reached. `broker` is None for an external one, `secured` without TLS."""

    listener: socket.socket
    address: tuple[str, int]
    broker: EmbeddedBroker | None
    secured: "Secured | None"
    tenant: str
    pool: str

    @property
    def url(self) -> str:
        return _url_of(self.listener, self.secured.name if self.secured else "")

    @property
    def kind(self) -> str:
        return self.broker.kind if self.broker else "external"


class _Cloud:
    """The parts, connected."""

    def __init__(self, worker: Worker, place: _Place, limits: WorkerLimits) -> None:
        self._worker, self._place, self._limits = worker, place, limits
        self._registry, self._executor = worker.service.registry, worker.executor
        self._agent = Agent(
            tenant=place.tenant, worker=worker.name, first_retry_s=limits.invoke_retry_s
        )
        topic = Topics.for_cloud(place.tenant).registry(place.pool)
        url = f"{place.url}/api/registry"
        self._notifier = RegistryNotifier(worker.service, topic=topic, url=url)
        tls = place.secured.worker_context() if place.secured else None
        of_broker = options_of(place.address, worker.name, tls=tls)
        self._link = CloudLink(
            lambda: of_broker,
            routes=(*self._executor.routes(), *self._agent.routes(), *worker.edges.routes()),
            on_up=(self._notifier.publish, self._executor.resend),
        )
        self._agent.link = self._notifier.link = self._link
        look_s = limits.look_s
        self._pages = PagerDelivery(worker.relay, self._agent.invoke, look_s=look_s)

    async def run(
        self, announce: Callable[[dict[str, Any]], None], *, token: str, legacy: bool
    ) -> None:
        worker, secured = self._worker, self._place.secured
        knows = secured.enrolment.knows_token if secured else None
        auth = Authentication(worker.service, token=token, knows=knows)
        api = Api(auth, worker.runner)
        debug_api = DebugApi(
            self._agent,
            self._place.broker,
            status=self.status,
            stop_app=worker.launcher.stop,
            submit=self._executor.deferred.submit,
            pending=worker.journal.pending,
        )
        old = LegacyApi(auth, worker.runner).routes() if legacy else []
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._executor.run(self._link), name="executor")
            tasks.create_task(self._link.run(), name="link")
            tasks.create_task(self._notifier.renew(), name="notifier")
            tasks.create_task(self._pages.run(), name="pages")
            routes = [
                *api.routes(),
                *UploadsApi(auth, worker.uploads).routes(),
                *old,
                *Console(auth, changed=self._changed).routes(),
                *debug_api.routes(),
                *self._enrolling(),
            ]
            async with _serving(_application(routes), self._place.listener, tasks, secured):
                await first_connect(self._link, self._place.address, within_s=FIRST_CONNECT_S)
                announce(self._announcement())
                await asyncio.Event().wait()

    def _enrolling(self) -> "list[Route]":
        p, s, b = self._place, self._place.secured, self._place.broker
        if s is None or b is None:
            return []
        from edge.devcloud.http.enrolment_api import EnrolApi, EnrolmentPlace  # noqa: PLC0415 - for TLS only

        place = EnrolmentPlace(s.name, b.port, b.port_v4, p.tenant, p.pool, p.url, s.authority.pem)
        return EnrolApi(s.enrolment, place, code=self._code, joined=self._admit_new).routes()

    def _code(self, life_s: float, edge_id: str = "") -> str:
        place = self._place
        assert place.secured is not None
        enrol_port = place.listener.getsockname()[1]
        return place.secured.code(
            life_s, edge_id, broker_port=place.address[1], enrol_port=enrol_port
        )

    async def _admit_new(self) -> None:
        """Make the broker accept a new edge: it reads its files before the next connection."""
        assert self._place.secured is not None
        assert self._place.broker is not None
        self._place.secured.write_access()
        self._place.broker.reread()

    async def _changed(self) -> None:
        with contextlib.suppress(NotConnected):  # repeated on the next connect
            await self._notifier.publish()

    def _announcement(self) -> dict[str, Any]:
        place, (host, port) = self._place, self._place.address
        of_tls: dict[str, Any] = {}
        if place.secured is not None:
            host = place.secured.name
            ca_file = str(place.secured.authority.file)
            of_tls = {"code": self._code(self._limits.code_life_s), "ca_file": ca_file}
        return {
            "event": "devcloud.ready",
            "http": place.url,
            "mqtt": f"{host}:{port}",
            "mqtt_host": host,
            "mqtt_port": port,
            "mqtt_v4_port": place.broker.port_v4 if place.broker else None,
            "broker": place.kind,
            "tenant": place.tenant,
            "pool": place.pool,
            "registry": f"{place.url}/api/registry",
            "version": self._registry.version,
            "pid": os.getpid(),
            **of_tls,
        }

    async def status(self) -> Mapping[str, Json]:
        """`GET /devcloud/status`."""
        (host, port), broker = self._place.address, self._place.broker
        return {
            "broker": {
                "kind": self._place.kind,
                "address": f"{host}:{port}",
                "running": broker.running if broker else None,
                "pid": broker.pid if broker else None,
            },
            "link": {"up": self._link.up, "connects": self._link.connects},
            "registry": {"version": self._registry.version, "sha256": self._registry.sha256},
            "worker": self._worker.name,
            "apps": self._worker.launcher.status(),
            "calls": {
                "seen": self._executor.seen,
                "running": self._executor.running,
                "asked": dict(self._worker.runner.asked),
                **await self._worker.journal.totals(),
                "recent": await self._worker.journal.recent(STATUS_CALLS),
            },
            "edges": self._worker.edges.to_json(),
            "sessions": self._worker.service.sessions(),
        }


# ------------------------------------------------------------------ pieces


def _secure(
    name: str, listener: socket.socket, folder: Path, tenant: str, limits: WorkerLimits
) -> "Secured":
    """Return what TLS needs. Raises ValueError if only this machine can reach the listener."""
    if importlib.util.find_spec("cryptography") is None:
        raise ModuleNotFoundError("cryptography is not installed", name="cryptography")
    from edge.devcloud.enrolment.secured import LOOPBACK, Secured  # noqa: PLC0415 - for TLS only

    host, port = listener.getsockname()[:2]
    if name not in LOOPBACK and ipaddress.ip_address(host).is_loopback:
        problem = f"only this machine reaches {host}, and edges are to reach {name}"
        raise ValueError(f"http: {problem}: --http 0.0.0.0:{port}")
    find_mosquitto()  # reported before anything is created
    return Secured(name, folder=folder, tenant=tenant, life=limits.certificate_life)


async def _broker(
    text: str, folder: Path, stack: AsyncExitStack, secured: "Secured | None" = None
) -> tuple[tuple[str, int], EmbeddedBroker | None]:
    """Return the external broker, or our own, ended with the stack. Raises BrokerFailed,
    ValueError.
    """
    address = parse_broker(text)
    if address is not None and secured is not None:
        raise ValueError(f"broker: with --tls it is our own Mosquitto, which {text} is not")
    if address is not None:
        return address, None
    kind, port = own_port(text)
    kind = "mosquitto" if secured else kind
    broker = EmbeddedBroker(kind, port=port, folder=folder, secured=secured)
    stack.push_async_callback(broker.aclose)
    await broker.start()
    return (broker.host, broker.port), broker


@contextlib.contextmanager
def _listen(address: str) -> Any:
    """Open the HTTP socket first: a port in use is reported before anything is started."""
    host, port = options.split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        yield listener


def _url_of(listener: socket.socket, secured: str = "") -> str:
    host, port = listener.getsockname()[:2]
    name = secured or {"0.0.0.0": HOST, "::": "::1"}.get(host, host)  # noqa: S104 - the wildcard is no address to connect to
    scheme = "https" if secured else "http"
    return f"{scheme}://[{name}]:{port}" if ":" in name else f"{scheme}://{name}:{port}"


def _application(routes: "list[Route]") -> "Starlette":
    from starlette.applications import Starlette  # noqa: PLC0415 - as httpx

    return Starlette(routes=routes)


@asynccontextmanager
async def _serving(
    app: "Starlette", listener: socket.socket, tasks: asyncio.TaskGroup, secured: "Secured | None"
) -> AsyncIterator[None]:
    """Serve inside; on exit, give running requests a moment to end."""
    import uvicorn  # noqa: PLC0415 - as httpx

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Any:
            """Do nothing: the command handles signals."""
            yield

    names = [socket.gethostname().lower(), *([secured.name.lower()] if secured else [])]
    more = guard.tls_options(secured) if secured else {"http": guard.connection()}
    config = uvicorn.Config(
        guard.guarded(app, names),
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        **more,
    )
    server = Server(config)
    task = tasks.create_task(server.serve(sockets=[listener]), name="http")
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait({task})
