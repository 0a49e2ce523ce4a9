"""A worker beside others over one file: what it takes over from one that died, and leaves to
one that lives.
"""

import asyncio
import contextlib

import pytest

from edge.cloud.mqtt.wire import MessageKind
from edge.devcloud.worker.executor import LOOK_S, Executor
from edge.devcloud.worker.job import Job
from edge.storage.sqlite.database import StoreError
from tests.unit.devcloud.parts import FakeApp, a_call, a_runner
from tests.unit.devcloud.test_executor import EDGE, FakeLink, Worker, kinds, response_of
from tests.unit.devcloud.test_workers import desks
from tools_cache.api.tool import ErrorCode, ToolResponse

pytestmark = pytest.mark.requirement("I5-cloud-workers")


def a_job(tool="com.x.app:read"):
    return Job("e1", a_call(tool, n=1), EDGE.result, False, 1_000_040.0)


@contextlib.asynccontextmanager
async def beside(tmp_path, *, prepare, refresh=None, look_s=0.01):
    """A worker, and the journal of another one that `prepare` does something with before this
    one starts to look.
    """
    async with desks(tmp_path) as (other, mine), a_runner(tmp_path, FakeApp()) as (runner, app):
        await prepare(other.journal)
        link = FakeLink()
        executor = Executor(
            mine.journal,
            runner,
            tenant="default",
            pool="tools",
            look_s=look_s,
            wall=lambda: 1_000_000.0,
            **({"refresh": refresh} if refresh else {}),
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(executor.run(link))
            async with asyncio.timeout(40):
                await executor._began.wait()
            yield Worker(executor, link, mine.journal, app, tasks), other
            running.cancel()


def sent_with(tool):
    async def prepare(journal):
        await journal.take(a_job(tool))
        await journal.sending(a_job(tool))

    return prepare


def test_dead_workers_are_looked_for_every_second():
    assert LOOK_S == 1.0


async def test_a_dead_workers_call_is_repeated_if_that_is_harmless(tmp_path):
    async with beside(tmp_path, prepare=sent_with("com.x.app:read")) as (w, other):
        other.die()
        said = await w.link.next(2)
        assert (kinds(said), response_of(said[1]).data) == (
            [MessageKind.ACCEPTED, MessageKind.RESULT],
            "done",
        )
        assert len(w.app.requests) == 1


async def test_what_a_dead_worker_may_have_written_is_not_written_again(tmp_path):
    async with beside(tmp_path, prepare=sent_with("com.x.app:write")) as (w, other):
        other.die()
        error = response_of((await w.link.next())[0]).error
        assert (error.code, error.partial_side_effects) == (ErrorCode.INTERRUPTED, True)
        assert (w.app.requests, w.link.said.empty()) == ([], True)


async def test_a_dead_workers_unpublished_answer_is_published(tmp_path):
    async def prepare(journal):
        await journal.take(a_job())
        await journal.finish(a_job(), ToolResponse(data="before"))

    async with beside(tmp_path, prepare=prepare) as (w, other):
        other.die()
        said = await w.link.next()
        assert (kinds(said), response_of(said[0]).data, w.app.requests) == (
            [MessageKind.RESULT],
            "before",
            [],
        )


async def test_a_duplicate_of_another_workers_call_is_only_accepted(tmp_path):
    async with beside(tmp_path, prepare=sent_with("com.x.app:read")) as (w, other):
        await w.call()
        assert kinds(await w.link.next()) == [MessageKind.ACCEPTED]
        await other.journal.finish(a_job(), ToolResponse(data="theirs"))
        await w.call()
        said = await w.link.next()
        assert (kinds(said), response_of(said[0]).data, w.app.requests) == (
            [MessageKind.RESULT],
            "theirs",
            [],
        )


async def test_a_duplicate_takes_over_the_call_of_a_dead_worker(tmp_path):
    async with beside(tmp_path, prepare=sent_with("com.x.app:read"), look_s=1e6) as (w, other):
        other.die()
        await w.call()
        said = await w.link.next(2)
        assert kinds(said) == [MessageKind.ACCEPTED, MessageKind.RESULT]
        assert len(w.app.requests) == 1


async def test_a_tool_submitted_to_another_process_is_known_here(tmp_path):
    order = []

    async def refresh():
        order.append("refreshed")

    async def nothing(_):
        return None

    async with beside(tmp_path, prepare=nothing, refresh=refresh) as (w, _):
        w.executor._runner._registry.find = lambda name, find=w.executor._runner._registry.find: (
            order.append("asked") or find(name)
        )
        await w.call()
        await w.link.next(2)
        assert order[0] == "refreshed"


async def test_older_unpublished_answers_are_published_on_the_first_connect(tmp_path):
    async def prepare(journal):
        await journal.take(a_job())
        await journal.finish(a_job(), ToolResponse(data="before"))

    async with beside(tmp_path, prepare=prepare, look_s=1e6) as (w, other):
        other.die()
        w.executor._began.clear()
        telling = asyncio.create_task(w.executor.resend())
        await w.journal.left(by_the_dead=True)
        assert not (await asyncio.wait({telling}, timeout=0.2))[0], "not before it has looked"
        w.executor._began.set()
        assert response_of((await w.link.next())[0]).data == "before"
        await telling


class Stumbling:
    """A journal whose named method fails so many times; the disk below is fine otherwise."""

    def __init__(self, journal, method, times):
        self._journal, self._method, self.left_to_fail = journal, method, times

    def __getattr__(self, name):
        found = getattr(self._journal, name)
        if name != self._method:
            return found

        async def fails(*args, **more):
            if self.left_to_fail > 0:
                self.left_to_fail -= 1
                raise StoreError("database is locked")
            return await found(*args, **more)

        return fails


async def test_a_store_that_is_locked_at_the_start_is_asked_again(tmp_path):
    async with desks(tmp_path) as (other, mine), a_runner(tmp_path, FakeApp()) as (runner, _):
        await sent_with("com.x.app:read")(other.journal)
        other.die()
        journal, link = Stumbling(mine.journal, "left", 2), FakeLink()
        executor = Executor(
            journal, runner, tenant="default", pool="tools", look_s=0.01, wall=lambda: 1_000_000.0
        )
        running = asyncio.create_task(executor.run(link))
        assert kinds(await link.next(2)) == [MessageKind.ACCEPTED, MessageKind.RESULT]
        assert journal.left_to_fail == 0
        running.cancel()
        await asyncio.wait({running})


async def test_a_locked_store_does_not_end_a_worker_that_takes_over(
    tmp_path,
):
    async with beside(tmp_path, prepare=sent_with("com.x.app:write")) as (w, other):
        w.executor._journal = Stumbling(w.journal, "finish", 1)
        other.die()
        async with asyncio.timeout(20):
            while w.executor._journal.left_to_fail:
                await asyncio.sleep(0.01)
        await w.call("com.x.app:write")  # its edge asks again, and is told the truth
        assert response_of((await w.link.next())[0]).error.code is ErrorCode.INTERRUPTED


async def test_a_store_that_is_locked_does_not_end_the_connection_that_resends(tmp_path):
    async def nothing(_):
        return None

    async with beside(tmp_path, prepare=nothing) as (w, _):
        w.executor._journal = Stumbling(w.journal, "left", 1)
        await w.executor.resend()
        assert w.executor._journal.left_to_fail == 0
