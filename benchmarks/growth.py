"""What grows: the start, the list of tools and a call over 10 to 10,000 tools; memory over 20,000
calls.

Real daemons whose cloud is away; its tools came from disk. The floor of a list is a server that
sends the same bytes. What blocks the daemon's event loop is seen from outside: by how long small
requests over another connection wait meanwhile.
"""

import json
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks import process
from benchmarks.lens import UnixConnection
from benchmarks.table import Lines, Note, Row
from benchmarks.tools import CLOUD, document
from benchmarks.usage import Usage
from tools_cache.registry.registry_store import Generation, RegistryStore

TOOLS = (10, 1_000, 10_000)
LISTS, CALLS, STARTS = 20, 100, 3
CALLERS = 8
EARLY = 5_000
"""Calls after which memory is looked at first: by then the tables are full."""
SMALL = "/v1/session"
_NEXT = re.compile(rb'"next":"([^"]*)"')
CONFIG = f"""\
version = 1
[glasses]
radio = "bluez"
[cloud]
url = "{CLOUD}"
[policy]
rate_limits = {{ "clock:now" = {{ calls = 100000, window = 60 }} }}
[control]
group = ""
"""


def measure(calls: int) -> Lines:
    """Yield what grows with the tools, then what grows with the calls."""
    first: dict[str, float] = {}
    for tools in TOOLS:
        yield from _with_tools(tools, first)
    yield from _memory(calls)


def _with_tools(tools: int, first: dict[str, float]) -> Lines:
    """`first`: what the first number of tools took."""
    body, starts, used = document(max(1, tools // 20), min(tools, 20)), [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        RegistryStore(folder / "state" / "registry").save(Generation(body, CLOUD))
        with process.daemon(folder, CONFIG):  # what is kept from one start to the next is made
            pass
        for start in range(1, STARTS + 1):
            with process.daemon(folder, CONFIG) as (pid, ready, _):
                starts.append(ready)
                used.append(process.cpu_s(pid) * 1e3)
                if start < STARTS:
                    continue
                yield _row(tools, first, "time to READY", statistics.median(starts))
                yield _row(tools, first, "  CPU until READY", statistics.median(used))
                yield from _grown(tools, first, folder, pid)


def _row(tools: int, first: dict[str, float], what: str, value: float, unit: str = "ms") -> Row:
    base = first.setdefault(what, value)
    return Row(f"{what}, {tools} tools", value, unit, f"{TOOLS[0]} tools", base)


def _grown(tools: int, first: dict[str, float], folder: Path, pid: int) -> Lines:
    row = partial(_row, tools, first)
    time.sleep(2)  # start-up work is over
    yield row("idle RSS", process.rss_mib(pid), "MiB")
    wire = UnixConnection(folder / "glassd" / "control.sock")
    yield row("local read", statistics.median(_taken(lambda: _call(wire), CALLS)))
    with process.floor(0, folder) as bare:
        yield from _lists(folder, Usage(pid, folder / "state"), bare, f"{tools} tools")


def _lists(folder: Path, usage: Usage, bare: Path, which: str) -> Lines:
    control = folder / "glassd" / "control.sock"
    wire, floor = UnixConnection(control), UnixConnection(bare)
    path = "/v1/tools?all=1"
    tag, body = _get(wire, path)
    _ask(floor, "PUT", "/body", body)
    with usage.of(LISTS):
        listed = statistics.median(_taken(lambda: _get(wire, path), LISTS))
    same = statistics.median(_taken(lambda: _get(floor, "/body"), LISTS))
    what = f"GET {path}, {which}"
    yield Row(what, listed, "ms", "a server that sends the same", same)
    yield Row(f"  {what}, its size", len(body) / 1e6, "MB")
    yield from list(usage.rows(what))[:1]  # nothing is written
    if tag:
        again = statistics.median(_taken(lambda: _get(wire, path, tag), LISTS))
        yield Row(f"  {what}, unchanged (304)", again, "ms", "the whole", listed)
    else:
        yield Note(f"{what}: no ETag, so it is sent again where nothing has changed")
    idle = longest_wait(control, lambda: time.sleep(0.05))
    busy = longest_wait(control, lambda: _get(wire, path))
    yield Row(f"  {what}, longest wait of others", busy, "ms", "without it", idle)
    paged = statistics.median(_taken(lambda: _pages(wire, path), LISTS))
    yield Row(f"  {what}, page by page", paged, "ms", "a server that sends the same", same)
    busy = longest_wait(control, lambda: _pages(wire, path))
    yield Row(f"  {what}, page by page, longest wait of others", busy, "ms", "without it", idle)


def _pages(wire: UnixConnection, path: str) -> None:
    """Read all pages; a daemon without pages sends all tools as the first. They are not parsed:
    that would make other threads of this process wait.
    """
    more = ""
    while True:
        _, page = _get(wire, f"{path}&after={quote(more)}")
        found = _NEXT.search(page, max(0, page.rfind(b'"counts"')))
        if not found or not found[1]:
            return
        more = found[1].decode()


def longest_wait(control: Path, meanwhile: Callable[[], object], *, times: int = LISTS) -> float:
    """Return the longest ms that a small request took meanwhile, the median of many times: a bound
    on the longest step of the event loop. One alone may have waited for another process.
    """
    waits: list[float] = []
    over, wire = threading.Event(), UnixConnection(control)
    _get(wire, SMALL)

    def ask() -> None:
        while not over.is_set():
            waits.extend(_taken(lambda: _get(wire, SMALL), 1))

    asking, longest = threading.Thread(target=ask), []
    asking.start()
    for _ in range(times):
        from_here = len(waits)
        meanwhile()
        done = len(waits)
        while len(waits) == done:  # the one that began meanwhile counts
            time.sleep(0.001)
        longest.append(max(waits[from_here:]))
    over.set()
    asking.join()
    return statistics.median(longest)


# ------------------------------------------------------------------ memory


def _memory(calls: int) -> Lines:
    with tempfile.TemporaryDirectory() as name, process.daemon(Path(name), CONFIG) as (pid, _, _):
        control = Path(name) / "glassd" / "control.sock"
        time.sleep(2)  # start-up work is over
        before, usage = process.rss_mib(pid), Usage(pid, Path(name) / "state")
        early = min(EARLY, calls // 2)
        _calls(control, early)
        after_some = process.rss_mib(pid)
        began = time.perf_counter()
        with usage.of(calls - early):
            _calls(control, calls - early)
        per_s = (calls - early) / (time.perf_counter() - began)
        after = process.rss_mib(pid)
    yield Row(f"RSS after {early} local calls", after_some, "MiB", "before", before)
    yield Row(f"RSS after {calls} local calls", after, "MiB", f"after {early}", after_some)
    yield Row(f"local reads, {CALLERS} callers", per_s, "/s")
    yield from usage.rows(f"local reads, {CALLERS} callers")


def _calls(control: Path, calls: int) -> None:
    failed: list[BaseException] = []

    def caller(number: int) -> None:
        wire = UnixConnection(control)
        try:
            for _ in range(number, calls, CALLERS):
                _call(wire)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    threads = [threading.Thread(target=caller, args=(n,)) for n in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


# ------------------------------------------------------------------ one request


def _call(wire: UnixConnection) -> None:
    body = json.dumps({"tool": "clock:now", "args": {}, "wait": "answer"})
    _, answer = _ask(wire, "POST", "/v1/call", body.encode())
    assert json.loads(answer)["ok"], answer


def _get(wire: UnixConnection, path: str, tag: str = "") -> tuple[str, bytes]:
    return _ask(wire, "GET", path, tag=tag)


def _ask(
    wire: UnixConnection, method: str, path: str, body: bytes = b"", *, tag: str = ""
) -> tuple[str, bytes]:
    """Return the ETag of the answer, and its body. With a tag the answer must be that nothing
    changed.
    """
    headers = {"Content-Type": "application/json"} | ({"If-None-Match": tag} if tag else {})
    wire.request(method, path, body or None, headers)
    reply = wire.getresponse()
    answer = reply.read()
    assert reply.status == (304 if tag else 200), (method, path, reply.status, answer[:300])
    return reply.headers.get("ETag", ""), answer


def _taken(one: Callable[[], Any], times: int) -> list[float]:
    """Return the ms of each."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        one()
        taken.append((time.perf_counter() - began) * 1e3)
    return taken
