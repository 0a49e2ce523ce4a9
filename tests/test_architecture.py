"""The walls of the house, read from the source: who imports whom, who alone imports what, no
circles, nothing too long.

Imports inside functions and under TYPE_CHECKING count like any other: they are coupling a reader
must hold in the head.
"""

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("edge", "firmware_bridge", "tools_cache")
MAX_FUNCTION = 60

GROUND = {
    "edge.ports",
    "edge.events",
    "edge.bus",
    "edge.clock",
    "edge.race",
    "edge.vigil",
    "edge.folders",
    "edge.runtime",
}
"""What every room may import of `edge`, besides `edge.core`."""
ROOMS = {
    "edge.orchestrator",
    "edge.uplink",
    "edge.link_manager",
    "edge.control",
    "edge.store",
    "edge.render",
    "edge.registry_cache",
    "edge.local_tools",
    "edge.gateway",
    "edge.tool_choice",
    "edge.audit",
    "edge.metrics",
    "edge.herald",
    "edge.pairing",
    "edge.calendars",
    "edge.upstream",
    "edge.facades",
}
OF_ROOM = {
    "edge.tool_box": "edge.tool_choice",
    "edge.upstream_desk": "edge.upstream",
    "edge.upstream_answers": "edge.upstream",
    "edge.upstream_shelf": "edge.upstream",
    "edge.upstream_known": "edge.upstream",
    "edge.enrol": "edge.uplink",
    "edge.enrol_http": "edge.uplink",
    "edge.enrol_keys": "edge.uplink",
    "edge.enrol_store": "edge.uplink",
    "edge.gateway_http": "edge.gateway",
    "edge.registry_http": "edge.registry_cache",
    "edge.registry_news": "edge.registry_cache",
    "edge.registry_lock": "edge.registry_cache",
    "edge.link_finder": "edge.link_manager",
    "edge.link_wishes": "edge.link_manager",
    "edge.link_knowledge": "edge.link_manager",
    "edge.alarms": "edge.local_tools",
    "edge.bell": "edge.local_tools",
    "edge.tool_context": "edge.local_tools",
    "edge.tool_loader": "edge.local_tools",
    "edge.tool_results": "edge.local_tools",
    "edge.tool_services": "edge.local_tools",
    "edge.pipeline": "edge.orchestrator",
    "edge.gate": "edge.orchestrator",
    "edge.ticket": "edge.orchestrator",
    "edge.ending": "edge.orchestrator",
    "edge.confirm": "edge.orchestrator",
    "edge.attendance": "edge.orchestrator",
    "edge.bonds": "edge.pairing",
    "edge.pairing_heard": "edge.pairing",
    "edge.questions": "edge.orchestrator",
    "edge.turns": "edge.orchestrator",
    "edge.cloud_desk": "edge.orchestrator",
    "edge.voice_session": "edge.orchestrator",
}
"""Files beside a room's own that belong to it."""
FOR_EVERY_ROOM = "edge.store"
"""What survives a restart stands below the other rooms: each may import it, it imports none."""

ONLY_IN = {
    "bleak": (
        "firmware_bridge/transports/ble.py",
        "firmware_bridge/transports/ble_connection.py",
        "firmware_bridge/transports/pairing.py",
        "firmware_bridge/transports/bumble_radio.py",
        "firmware_bridge/transports/bumble_host.py",
        "firmware_bridge/transports/bluez_cure.py",
    ),
    "bumble": (
        "firmware_bridge/sim/",
        "firmware_bridge/transports/bumble_radio.py",
        "firmware_bridge/transports/bumble_host.py",
        "firmware_bridge/transports/bumble_keys.py",
        "firmware_bridge/transports/bumble_pairing.py",
    ),
    "dbus_fast": (
        "firmware_bridge/transports/bluez_agent.py",
        "firmware_bridge/transports/bluez_watch.py",
        "firmware_bridge/transports/bluez_cure.py",
        "firmware_bridge/transports/bluez_probe.py",
    ),
    "aiomqtt": ("edge/uplink/mqtt.py",),
    "paho": ("edge/uplink/mqtt.py",),
    "sqlite3": (
        "edge/store/db.py",
        "edge/store/foreign_sql.py",
        "edge/store/guard.py",
        "edge/store/inspection.py",
        "edge/store/probe.py",
        "edge/store/rescue.py",
        "edge/store/schema.py",
    ),
    "icalendar": ("edge/calendars/reading.py",),
    "dateutil": ("edge/calendars/reading.py",),
    "jsonschema_rs": ("tools_cache/schema.py",),
    "py_nanotts": ("edge/render/voice_worker.py",),
    "opuslib_next": ("edge/render/voice_worker.py", "firmware_bridge/sim/"),
    "PIL": ("firmware_bridge/sim/", "edge/render/picture_worker.py"),
    "httpx": (
        "edge/registry_cache.py",
        "edge/registry_http.py",
        "edge/gateway_http.py",
        "edge/devcloud/",
        "edge/demo/",
    ),
    "uvloop": (),
    "h11": (
        "edge/control/http.py",
        "edge/enrol_http.py",
        "edge/facades/mcp_daemon.py",
        "edge/facades/mcp_connections.py",
    ),
    "cryptography": ("edge/store/sealed.py", "edge/enrol_keys.py", "edge/devcloud/pki.py"),
    "segno": ("edge/devcloud/codes.py", "edge/render/picture_worker.py"),
    "starlette": ("edge/devcloud/", "edge/facades/mcp_http.py", "edge/facades/mcp_connections.py"),
    "uvicorn": ("edge/devcloud/", "edge/facades/mcp_http.py", "edge/facades/mcp_connections.py"),
    "iotcore": ("edge/devcloud/",),
    "mcp": ("edge/upstream/", "edge/facades/"),
    "mcp_types": ("edge/upstream/", "edge/facades/"),
    "httpx2": ("edge/upstream/http.py", "edge/upstream/oauth.py"),
    "prometheus_client": ("edge/metrics.py",),
    "requests": (),
}
"""Library → the only files (or folders) that may import it."""


@dataclass
class Module:
    """One source file: its dotted name, its tree, and every import in it with the line it
    stands on.
    """

    path: Path
    name: str
    tree: ast.Module
    imports: list[tuple[str, int]] = field(default_factory=list)

    @property
    def where(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


def _parse(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return Module(path, name, tree)


def _imports(module: Module, known: set[str]) -> list[tuple[str, int]]:
    found = []
    for node in ast.walk(module.tree):
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


def _modules() -> dict[str, Module]:
    paths = [p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))]
    modules = {m.name: m for m in map(_parse, paths)}
    for module in modules.values():
        module.imports = _imports(module, set(modules))
    return modules


MODULES = _modules()


def _under(name: str, roots) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in roots)


def _room(name: str) -> str:
    """Which room a module belongs to; empty for ground, rules, roof and door."""
    name = OF_ROOM.get(name, name)
    return next((room for room in ROOMS if _under(name, [room])), "")


def _told(problems) -> None:
    found = sorted(problems)
    assert not found, "\n" + "\n".join(found)


# ------------------------------------------------------------------ walls


def test_there_is_a_house_to_look_at():
    assert len(MODULES) > 30
    assert any(target == "edge.ports" for m in MODULES.values() for target, _ in m.imports)


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
        for m in MODULES.values()
        if _under(m.name, [ground])
        for target, line in m.imports
        if _under(target, forbidden)
    )


@pytest.mark.requirement("M-walls")
def test_a_room_imports_no_other_room_nor_the_settings_nor_the_roof():
    problems = []
    for m in MODULES.values():
        room = _room(m.name)
        if not room:
            continue
        for target, line in m.imports:
            other = _room(target)
            stranger = other and other not in (room, FOR_EVERY_ROOM)
            above = _under(
                target,
                [
                    "edge.settings",
                    "edge.app",
                    "edge.cli",
                    "edge.verbs",
                    "edge.supervisor",
                    "edge.demo",
                    "edge.doctor",
                ],
            )
            if stranger or above:
                problems.append(f"{m.where}:{line} imports {target}")
    _told(problems)


def test_ports_and_rules_know_no_room():
    free = {*GROUND, "edge.core"}
    _told(
        f"{m.where}:{line} imports {target}"
        for m in MODULES.values()
        if _under(m.name, free)
        for target, line in m.imports
        if _under(target, ["edge"]) and not _under(target, free) and target != "edge"
    )


def test_the_rules_import_nothing_else_of_the_daemon():
    """Neither ports nor the clock: time is an argument."""
    _told(
        f"{m.where}:{line} imports {target}"
        for m in MODULES.values()
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
    for m in MODULES.values():
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


def test_the_reference_cloud_stands_outside():
    allowed = ["edge.devcloud", "edge.uplink", "edge.store.db", "edge.core", *GROUND]
    _told(
        f"{m.where}:{line} imports {target}"
        for m in MODULES.values()
        if _under(m.name, ["edge.devcloud"])
        for target, line in m.imports
        if _under(target, ["edge"]) and not _under(target, allowed) and target != "edge"
    )


def test_short_verbs_reach_the_daemon_through_its_socket_only():
    """Of the rooms a verb may import the control client and the facades, which stand above it;
    `run`, which is the daemon, may import more.
    """
    _told(
        f"{m.where}:{line} imports {target}"
        for m in MODULES.values()
        if _under(m.name, ["edge.verbs", "edge.cli"]) and m.name != "edge.verbs.run"
        for target, line in m.imports
        if _room(target)
        and target != "edge.control.client"
        and not _under(target, ["edge.facades"])
    )


def test_tool_handlers_import_neither_ground_nor_daemon():
    _told(
        f"{m.where}:{line} imports {target}"
        for m in MODULES.values()
        if m.path.name == "handler.py"
        for target, line in m.imports
        if _under(target, ["edge", "firmware_bridge", "sqlite3", "asyncio", "socket"])
    )


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_library_has_its_one_place(library):
    places = ONLY_IN[library]
    _told(
        f"{m.where}:{line} imports {library}"
        for m in MODULES.values()
        for target, line in m.imports
        if _under(target, [library])
        and not any(m.where == p or (p.endswith("/") and m.where.startswith(p)) for p in places)
    )


def test_pydantic_stays_at_the_rim():
    """Never in rules, ports or protocols: inside, data is frozen dataclasses."""
    inside = [
        "edge.core",
        *GROUND,
        "firmware_bridge",
        "edge.render",
        "edge.store",
        "edge.link_manager",
        "edge.orchestrator",
    ]
    _told(
        f"{m.where}:{line} imports pydantic"
        for m in MODULES.values()
        if _under(m.name, inside)
        for target, line in m.imports
        if _under(target, ["pydantic"])
    )


# ------------------------------------------------------------------ circles


@pytest.mark.requirement("M-walls")
def test_there_are_no_import_circles():
    """A package's own `__init__` is no part of a circle: importing it happens to everyone below."""
    graph = {
        name: {t for t, _ in m.imports if t in MODULES and t != name} for name, m in MODULES.items()
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
    "edge/uplink/mqtt.py:_adopt": "aiomqtt's own keep-alive, which aiomqtt cancels",
    "firmware_bridge/sim/inproc.py:start": (
        "mock glasses in a test's own process; their `close` ends it"
    ),
    "firmware_bridge/transports/bluez_watch.py:_connect": (
        "the ear for the end of the bus; `close` ends it"
    ),
    "firmware_bridge/transports/side_pair.py:_start": (
        "the two lives of a pair's sides; `close` ends it, and so does their end"
    ),
    "firmware_bridge/transports/bumble_host.py:connect": (
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
        for m in MODULES.values()
        for f in _functions(m.tree)
        for node in ast.walk(f)
        if isinstance(node, ast.Call) and _bare_task(node.func) and not _race(node, f)
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


def _bare_task(called: ast.expr) -> bool:
    if isinstance(called, ast.Name):
        return called.id in TASK_MAKERS
    if not isinstance(called, ast.Attribute) or called.attr not in TASK_MAKERS:
        return False
    owner = ast.unparse(called.value)
    return owner == "asyncio" or "loop" in owner.lower() or called.attr != "create_task"


def _functions(tree: ast.AST):
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


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
        for m in MODULES.values()
        if m.where != TIMEOUTS
        for node in ast.walk(m.tree)
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
        for m in MODULES.values()
        for f in _functions(m.tree)
        if f.end_lineno - f.lineno + 1 > MAX_FUNCTION
    )


def test_every_module_says_what_it_is():
    _told(m.where for m in MODULES.values() if not ast.get_docstring(m.tree))


def test_nothing_is_left_undone():
    """No stubs: neither the error that says so, nor the word for it."""
    words = ("TO" + "DO", "FIX" + "ME", "NotImplemented" + "Error")
    _told(
        f"{m.where}:{number} says {word}"
        for m in MODULES.values()
        for number, line in enumerate(m.path.read_text(encoding="utf-8").splitlines(), 1)
        for word in words
        if word in line
    )


SWALLOWED = {
    "edge/store/db.py": "the store's thread hands every error to whoever opens it",
}
"""File → why a cancellation may end there."""


def test_cancellation_is_never_swallowed():
    """A handler of BaseException or CancelledError raises again; nobody suppresses them."""
    found = {}
    for m in MODULES.values():
        for node in ast.walk(m.tree):
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
