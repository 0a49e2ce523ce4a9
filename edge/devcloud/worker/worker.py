"""One worker: journal, registry, runner and executor over one state directory; also as a process of
its own.

Any number of workers may share a state directory and a broker.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from edge.cloud.mqtt.connection import BrokerOptions
from edge.cloud.mqtt.topics import check_word
from edge.devcloud.app_service import SESSION_S, AppService
from edge.devcloud.app_store import AppStore
from edge.devcloud.broker import BrokerFailed, parse_broker
from edge.devcloud.database import open_shared
from edge.devcloud.edges import Edges
from edge.devcloud.enrolment.service import CODE_S, LIFE
from edge.devcloud.http.guard import check_reach
from edge.devcloud.link import CloudLink
from edge.devcloud.pager_relay import PagerRelay
from edge.devcloud.registry import AppRegistry, InstalledApp
from edge.devcloud.uploads import Uploads
from edge.devcloud.worker.activation import CONNECT_S, POLL_S, Launcher
from edge.devcloud.worker.app_processes import AppProcesses
from edge.devcloud.worker.executor import LOOK_S, Executor
from edge.devcloud.worker.journal import Journal
from edge.devcloud.worker.runner import TOOL_TIMEOUT_S, Runner
from edge.devcloud.worker.workers import Workers
from edge.storage.sqlite.database import SqliteDatabase, StoreError
from firmware_bridge.deadlines import timeout

FIRST_CONNECT_S: Final = 15.0
DATABASE: Final = "devcloud.db"


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits and timeouts that tests shorten."""

    connect_s: float = CONNECT_S
    poll_s: float = POLL_S
    tool_timeout_s: float = TOOL_TIMEOUT_S
    look_s: float = LOOK_S
    session_s: float = SESSION_S
    invoke_retry_s: float = 1.0
    certificate_life: timedelta = LIFE
    code_life_s: float = CODE_S


STOCK: Final = WorkerLimits()


@dataclass(frozen=True, slots=True)
class Worker:
    """The parts, connected."""

    name: str
    journal: Journal
    service: AppService
    edges: Edges
    launcher: Launcher
    runner: Runner
    executor: Executor
    relay: PagerRelay
    uploads: Uploads


@asynccontextmanager
async def a_worker(
    apps: Sequence[InstalledApp],
    *,
    state_dir: Path,
    tenant: str,
    pool: str,
    limits: WorkerLimits,
    users: Collection[str] = (),
) -> AsyncIterator[Worker]:
    """Build a worker; on exit its apps are ended and its file is closed. Raises OSError."""
    name = f"devcloud-{secrets.token_hex(8)}"
    with Workers(state_dir, name) as workers:
        db = await _database(state_dir / DATABASE)
        journal = Journal(db, me=name, alive=workers.alive)
        edges = Edges(tenant)
        service = AppService(
            AppRegistry(apps),
            edges,
            AppStore(db),
            standing=users,
            session_s=limits.session_s,
        )
        try:
            await service.refresh()
            async with _http_client() as client:
                launcher = Launcher(
                    client,
                    state_dir=state_dir / "apps",
                    connect_s=limits.connect_s,
                    poll_s=limits.poll_s,
                    processes=AppProcesses(db, workers),
                )
                runner = Runner(
                    service.registry,
                    launcher,
                    client,
                    tool_timeout_s=limits.tool_timeout_s,
                    installed=service.has,
                )
                relay = PagerRelay(db)
                executor = Executor(
                    journal,
                    runner,
                    tenant=tenant,
                    pool=pool,
                    look_s=limits.look_s,
                    refresh=service.refresh,
                    own_tools=relay.tools(),
                )
                try:
                    parts = (journal, service, edges, launcher, runner, executor, relay)
                    yield Worker(name, *parts, Uploads(db))
                finally:
                    await launcher.aclose()
        finally:
            await journal.close()


async def run_worker(
    *,
    broker: str,
    tenant: str = "default",
    pool: str = "tools",
    state_dir: Path,
    announce: Callable[[dict[str, Any]], None],
    apps: Sequence[InstalledApp],
    limits: WorkerLimits = STOCK,
) -> None:
    """Serve calls until cancelled, possibly next to other workers over the same `state_dir`;
    `announce` is called once, when ready.

    Raises OSError or ValueError if it cannot start.
    """
    check_word("tenant", tenant)
    check_word("pool", pool)
    address = parse_broker(broker)
    if address is None:
        problem = f"a worker alone needs HOST:PORT of one that runs already, not {broker}"
        raise ValueError(f"broker: {problem}")
    parts = a_worker(apps, state_dir=state_dir, tenant=tenant, pool=pool, limits=limits)
    async with parts as worker, asyncio.TaskGroup() as tasks:
        options, executor = options_of(address, worker.name), worker.executor
        link = CloudLink(lambda: options, routes=executor.routes(), on_up=(executor.resend,))
        tasks.create_task(executor.run(link), name="executor")
        tasks.create_task(link.run(), name="link")
        await first_connect(link, address)
        announce(
            {
                "event": "devcloud.worker",
                "worker": worker.name,
                "mqtt": f"{address[0]}:{address[1]}",
                "tenant": tenant,
                "pool": pool,
                "pid": os.getpid(),
            }
        )
        await asyncio.Event().wait()


def options_of(address: tuple[str, int], name: str, *, tls: Any = None) -> BrokerOptions:
    """Return a worker's connection options: clean, without a session, so that unreceived calls go
    to other workers.
    """
    host, port = address
    return BrokerOptions(
        host=host, port=port, client_id=name, clean_start=True, session_expiry_s=0, tls=tls
    )


async def first_connect(
    link: CloudLink, address: tuple[str, int], *, within_s: float = FIRST_CONNECT_S
) -> None:
    """Connect once to check the broker. Raises BrokerFailed if none answers."""
    try:
        async with timeout(within_s):
            await link.connected.wait()
    except TimeoutError:
        raise BrokerFailed(f"no MQTT 5 broker answers at {address[0]}:{address[1]}") from None


async def _database(path: Path) -> SqliteDatabase:
    try:
        return await open_shared(path)
    except StoreError as e:
        raise OSError(f"{path}: {e}") from None


@asynccontextmanager
async def _http_client() -> AsyncIterator[Any]:
    import httpx  # noqa: PLC0415 - 150 ms, and only the cloud needs it

    # No proxy from the environment: apps are on this machine.
    async with httpx.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        limits=httpx.Limits(max_connections=100),
        event_hooks={"request": [check_reach]},
    ) as client:
        yield client
