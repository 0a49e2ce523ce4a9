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
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from edge.cloud.mqtt.topics import Topics, check_word
from edge.devcloud.agent import Agent
from edge.devcloud.apps import SAMPLES
from edge.devcloud.broker import (
    HOST,
    BrokerFailed,
    EmbeddedBroker,
    find_mosquitto,
    own_port,
    parse_broker,
)
from edge.devcloud.enrolment.secured import LOOPBACK, Secured
from edge.devcloud.http import guard, https
from edge.devcloud.http.api import Api
from edge.devcloud.http.auth import Authentication
from edge.devcloud.http.console import Console
from edge.devcloud.http.debug_api import DebugApi
from edge.devcloud.http.enrolment_api import EnrolApi, EnrolmentPlace
from edge.devcloud.http.legacy_api import LegacyApi
from edge.devcloud.link import CloudLink, NotConnected
from edge.devcloud.registry import InstalledApp
from edge.devcloud.registry_notifier import RegistryNotifier
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

STATUS_CALLS: Final = 100


def sample_apps(modules: Sequence[str] = SAMPLES) -> list[InstalledApp]:
    """Return the sample mini-apps, each started as `python -m MODULE`."""
    return [
        InstalledApp.of_manifest(
            importlib.import_module(module).app.manifest(), (sys.executable, "-m", module)
        )
        for module in modules
    ]


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
    """Serve until cancelled; `announce` is called once, when everything answers. All started child
    processes are ended.

    `tls` is the name edges use for this machine: with it everything is TLS, with an authority and
    codes of our own. `legacy` also serves the removed endpoints. Raises OSError or ValueError if it
    cannot start (port in use, unknown broker, unusable state directory).
    """
    check_word("tenant", tenant)
    check_word("pool", pool)
    parse_broker(broker or "embedded")  # a mistyped option is reported before any port is used
    state_dir.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - before serving
    installed = sample_apps() if apps is None else list(apps)
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(_listen(http))
        _check_reach(tls or "", listener)
        secured = (
            _secured(tls, state_dir / "tls", tenant=tenant, life=limits.certificate_life)
            if tls
            else None
        )
        worker = await stack.enter_async_context(
            a_worker(
                installed, state_dir=state_dir, tenant=tenant, pool=pool, limits=limits, users=users
            )
        )
        address, own_broker = await _broker(
            broker or "embedded", state_dir / "broker", stack, secured
        )
        cloud = _Cloud(
            worker,
            broker=own_broker,
            address=address,
            listener=listener,
            tenant=tenant,
            pool=pool,
            limits=limits,
            secured=secured,
            legacy=legacy,
        )
        try:
            await cloud.run(announce, token=token)
        except BaseExceptionGroup as group:
            if len(group.exceptions) == 1 and isinstance(group.exceptions[0], BrokerFailed):
                raise group.exceptions[0] from None  # an expected fault, shown without a traceback
            raise


class _Cloud:
    """The parts, connected."""

    def __init__(
        self,
        worker: Worker,
        *,
        broker: EmbeddedBroker | None,
        address: tuple[str, int],
        listener: socket.socket,
        tenant: str,
        pool: str,
        limits: WorkerLimits,
        secured: Secured | None,
        legacy: bool,
    ) -> None:
        self._worker = worker
        self._secured, self._limits, self._legacy = secured, limits, legacy
        self._url = _url_of(listener, secured.name if secured else "")
        self._registry, self._executor = worker.office.registry, worker.executor
        self._broker, self._address, self._listener = broker, address, listener
        self._tenant, self._pool = tenant, pool
        self._agent = Agent(tenant=tenant, worker=worker.name, first_retry_s=limits.invoke_retry_s)
        self._notice = RegistryNotifier(
            worker.office,
            topic=Topics.for_cloud(tenant).registry(pool),
            url=f"{self._url}/api/registry",
        )
        options = options_of(
            address, worker.name, tls=secured.worker_context() if secured else None
        )
        self._link = CloudLink(
            lambda: options,
            routes=(*self._executor.routes(), *self._agent.routes(), *worker.edges.routes()),
            on_up=(self._notice.publish, self._executor.resend),
        )
        self._agent.link = self._notice.link = self._link

    async def run(self, announce: Callable[[dict[str, Any]], None], *, token: str) -> None:
        worker = self._worker
        door = Authentication(
            worker.office,
            token=token,
            knows=self._secured.desk.knows_token if self._secured else None,
        )
        api = Api(door, worker.runner)
        bench = DebugApi(
            self._agent,
            self._broker,
            status=self.status,
            stop_app=worker.launcher.stop,
            submit=self._executor.deferred.submit,
            pending=worker.journal.pending,
        )
        old = LegacyApi(door, worker.runner).routes() if self._legacy else []
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._executor.run(self._link), name="executor")
            tasks.create_task(self._link.run(), name="link")
            tasks.create_task(self._notice.renew(), name="notice")
            routes = [
                *api.routes(),
                *old,
                *Console(door, changed=self._changed).routes(),
                *bench.routes(),
                *self._enrolling(),
            ]
            async with _serving(_application(routes), self._listener, tasks, self._secured):
                await first_connect(self._link, self._address, within_s=FIRST_CONNECT_S)
                announce(self._announcement())
                await asyncio.Event().wait()

    def _enrolling(self) -> "list[Route]":
        if self._secured is None or self._broker is None:
            return []
        s, b = self._secured, self._broker
        place = EnrolmentPlace(
            s.name, b.port, b.port_v4, self._tenant, self._pool, self._url, s.authority.pem
        )
        return EnrolApi(s.desk, place, code=self._code, joined=self._joined).routes()

    def _code(self, life_s: float, edge_id: str = "") -> str:
        assert self._secured is not None
        return self._secured.code(
            life_s,
            edge_id,
            broker_port=self._address[1],
            enrol_port=self._listener.getsockname()[1],
        )

    async def _joined(self) -> None:
        """Make the broker accept a new edge: it reads its files before the next connection."""
        assert self._secured is not None
        assert self._broker is not None
        self._secured.write_access()
        self._broker.reread()

    async def _changed(self) -> None:
        with contextlib.suppress(NotConnected):  # repeated on the next connect
            await self._notice.publish()

    def _announcement(self) -> dict[str, Any]:
        host, port = self._address
        if self._secured is not None:
            host = self._secured.name
        return {
            "event": "devcloud.ready",
            "http": self._url,
            "mqtt": f"{host}:{port}",
            "mqtt_host": host,
            "mqtt_port": port,
            "mqtt_v4_port": self._broker.port_v4 if self._broker else None,
            "broker": self._broker.kind if self._broker else "external",
            "tenant": self._tenant,
            "pool": self._pool,
            "registry": f"{self._url}/api/registry",
            "version": self._registry.version,
            "pid": os.getpid(),
            **(
                {
                    "code": self._code(self._limits.code_life_s),
                    "ca_file": str(self._secured.authority.file),
                }
                if self._secured
                else {}
            ),
        }

    async def status(self) -> Mapping[str, Json]:
        """`GET /devcloud/status`."""
        host, port = self._address
        return {
            "broker": {
                "kind": self._broker.kind if self._broker else "external",
                "address": f"{host}:{port}",
                "running": self._broker.running if self._broker else None,
                "pid": self._broker.pid if self._broker else None,
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
            "sessions": self._worker.office.people.sessions(),
        }


# ------------------------------------------------------------------ pieces


def _secured(name: str, folder: Path, *, tenant: str, life: timedelta) -> Secured:
    if importlib.util.find_spec("cryptography") is None:
        raise ModuleNotFoundError("cryptography is not installed", name="cryptography")
    find_mosquitto()  # reported before anything is created
    return Secured(name, folder=folder, tenant=tenant, life=life)


def _check_reach(name: str, listener: socket.socket) -> None:
    """Check that edges on the network can reach the HTTP address. Raises ValueError."""
    host, port = listener.getsockname()[:2]
    if name and name not in LOOPBACK and ipaddress.ip_address(host).is_loopback:
        raise ValueError(
            f"http: only this machine reaches {host}, "
            f"and edges are to reach {name}: --http 0.0.0.0:{port}"
        )


async def _broker(
    said: str, folder: Path, stack: AsyncExitStack, secured: Secured | None = None
) -> tuple[tuple[str, int], EmbeddedBroker | None]:
    """Return the external broker, or our own, ended with the stack. Raises BrokerFailed,
    ValueError.
    """
    address = parse_broker(said)
    if address is not None and secured is not None:
        raise ValueError(f"broker: with --tls it is our own Mosquitto, which {said} is not")
    if address is not None:
        return address, None
    kind, port = own_port(said)
    broker = EmbeddedBroker(
        "mosquitto" if secured else kind, port=port, folder=folder, secured=secured
    )
    stack.push_async_callback(broker.aclose)
    await broker.start()
    return (broker.host, broker.port), broker


@contextlib.contextmanager
def _listen(address: str) -> Any:
    """Open the HTTP socket first: a port in use is reported before anything is started."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"http: {address!r} is not HOST:PORT")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host.strip("[]"), int(port)), family=family) as listener:
        yield listener


def _url_of(listener: socket.socket, secured: str = "") -> str:
    host, port = listener.getsockname()[:2]
    if secured:
        return f"https://[{secured}]:{port}" if ":" in secured else f"https://{secured}:{port}"
    shown = {"0.0.0.0": HOST, "::": "::1"}.get(host, host)  # noqa: S104 - the wildcard is no address to connect to
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def _application(routes: "list[Route]") -> "Starlette":
    from starlette.applications import Starlette  # noqa: PLC0415 - as httpx

    return Starlette(routes=routes)


@asynccontextmanager
async def _serving(
    app: "Starlette", listener: socket.socket, tasks: asyncio.TaskGroup, secured: Secured | None
) -> AsyncIterator[None]:
    """Serve inside; on exit, give running requests a moment to end."""
    import uvicorn  # noqa: PLC0415 - as httpx

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Any:
            """Signals are handled by the command, not by this library."""
            yield

    names = [socket.gethostname().lower(), *([secured.name.lower()] if secured else [])]
    options = https.options(secured) if secured else {"http": guard.connection()}
    config = uvicorn.Config(
        guard.guarded(app, names),
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        **options,
    )
    server = Server(config)
    task = tasks.create_task(server.serve(sockets=[listener]), name="http")
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait({task})
