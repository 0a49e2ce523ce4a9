"""`glassd status`: one line per layer, and the one thing to do next. `glassd metrics`: counters and
latencies per tool.
"""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon import ask, client
from edge.runtime.durations import duration

LAYERS: Final = (
    "adapter",
    "link",
    "glasses",
    "uplink",
    "registry",
    "folders",
    "servers",
    "outbox",
    "calls",
    "audio",
    "microphone",
    "wearer",
)
_GOOD: Final = frozenset({"ok", "up", "ready", "READY", "running", "on", "synced"})
_BAD: Final = frozenset({"failing", "down", "crashed", "failed", "lost", "OFF"})


def status(args: Namespace, screen: Screen) -> int:
    document = ask(args, "GET", "/v1/status")
    if screen.as_json:
        return screen.result(document)
    title = plain(f"glassd {document.get('version', '')}  {document.get('edge_id', '')}")
    screen.line(screen.paint(title, "bold"))
    action = document.get("next_action")
    for name in LAYERS:
        _layer(screen, name, document.get(name), omit=action)
        if name == "glasses":
            _sides(screen, (document.get(name) or {}).get("sides") or {})
        if name == "microphone":
            _layer(screen, "  last", (document.get(name) or {}).get("last"))
        if name == "audio":
            _servers_of_the_voice(screen, (document.get(name) or {}).get("engines") or [])
    _services(screen, document.get("services") or [])
    held = (document.get("configuration") or {}).get("needs_restart") or []
    if held:
        keys = plain(", ".join(map(str, held)))
        screen.line(f"{screen.paint('restart', 'yellow'):<9} needed for {keys}")
    for name, text in (document.get("alarms") or {}).items():
        screen.line(f"{screen.paint('alarm', 'red'):<9} {plain(name)}: {plain(text)}")
    screen.line(f"\nNext: {plain(action)}" if action else "\nAll is well.")
    return 0


def metrics(args: Namespace, screen: Screen) -> int:
    text = client(args).text("/v1/metrics")
    return screen.result({"format": "openmetrics", "text": text}, *text.splitlines())


# ------------------------------------------------------------------ the lines of the status


def _layer(screen: Screen, name: str, layer: Any, *, omit: Any = None) -> None:
    """Print one layer on one line, without the text that is printed as the next action anyway."""
    if not isinstance(layer, dict):
        return
    state = plain(layer.get("state", ""))
    details = ", ".join(
        _detail(key, value)
        for key, value in layer.items()
        if key != "state" and _worth(value) and value != omit
    )
    colour = "green" if state in _GOOD else "red" if state in _BAD else "yellow"
    painted = f"{screen.paint(f'{state:<14}', colour)} " if state else ""
    screen.line(f"{name:<9} {painted}{details}".rstrip())


def _sides(screen: Screen, sides: Mapping[str, Any]) -> None:
    """Print one line per side of glasses with two radios; a reason equal to the state is left
    out.
    """
    for name, side in sides.items():
        _layer(screen, f"  {plain(name)}", side, omit=side.get("state"))


def _servers_of_the_voice(screen: Screen, engines: list[dict[str, Any]]) -> None:
    """Print why a configured server does not speak; what else is not installed is no fault."""
    for engine in engines:
        if "://" in str(engine.get("name")) and engine.get("reason"):
            screen.line(
                f"  {plain(engine['name'])}: {screen.paint(plain(engine['reason']), 'red')}"
            )


def _worth(value: Any) -> bool:
    """Return whether a value is worth printing: not empty, not nested, not False."""
    return not (value is None or value is False or value == "" or isinstance(value, dict | list))


def _detail(key: str, value: Any) -> str:
    label = key.removesuffix("_s").replace("_", " ")
    if value is True:
        return label
    if key.endswith("_s") and isinstance(value, int | float):
        return f"{label} {duration(value)}"
    return f"{label} {plain(value)}"


def _services(screen: Screen, services: list[dict[str, Any]]) -> None:
    failing = ", ".join(
        plain(f"{service.get('name')} {service.get('state')} {service.get('error', '')}".rstrip())
        for service in services
        if service.get("state") not in {"running", "done"}
    )
    summary = screen.paint(failing, "red") if failing else f"{len(services)} running"
    screen.line(f"services  {summary}")
