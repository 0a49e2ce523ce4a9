"""`glassd status`: one line per layer, and the one thing to do next."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

from edge.commands.shared.console import Screen, duration, plain
from edge.commands.shared.daemon_client import ask

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
)
_GOOD: Final = frozenset({"ok", "up", "ready", "READY", "running", "on", "synced"})
_BAD: Final = frozenset({"failing", "down", "crashed", "failed", "lost", "OFF"})


def run(args: Namespace, screen: Screen) -> int:
    document = ask(args, "GET", "/v1/status")
    if screen.as_json:
        screen.json(document)
        return 0
    screen.line(
        screen.paint(
            plain(f"glassd {document.get('version', '')}  {document.get('edge_id', '')}"), "bold"
        )
    )
    action = document.get("next_action")
    for name in LAYERS:
        _layer(screen, name, document.get(name), said=action)
        if name == "glasses":
            _sides(screen, (document.get(name) or {}).get("sides") or {})
    _services(screen, document.get("services") or [])
    held = (document.get("configuration") or {}).get("needs_restart") or []
    if held:
        screen.line(
            f"{screen.paint('restart', 'yellow'):<9} needed for {plain(', '.join(map(str, held)))}"
        )
    for name, text in (document.get("alarms") or {}).items():
        screen.line(f"{screen.paint('alarm', 'red'):<9} {plain(name)}: {plain(text)}")
    screen.line(f"\nNext: {plain(action)}" if action else "\nAll is well.")
    return 0


def _layer(screen: Screen, name: str, layer: Any, *, said: Any = None) -> None:
    """Print one layer on one line, without the text that is printed as the next action anyway."""
    if not isinstance(layer, dict):
        return
    state = plain(layer.get("state", ""))
    details = ", ".join(
        _detail(key, value)
        for key, value in layer.items()
        if key != "state" and _worth(value) and value != said
    )
    painted = screen.paint(
        f"{state:<14}", "green" if state in _GOOD else "red" if state in _BAD else "yellow"
    )
    screen.line(
        f"{name:<9} {painted} {details}".rstrip() if state else f"{name:<9} {details}".rstrip()
    )


def _sides(screen: Screen, sides: Mapping[str, Any]) -> None:
    """Print one line per side of glasses with two radios; a reason equal to the state is left
    out.
    """
    for name, side in sides.items():
        _layer(screen, f"  {plain(name)}", side, said=side.get("state"))


def _worth(value: Any) -> bool:
    """Return whether a value is worth printing: not empty, not nested, not False."""
    return (
        value is not None
        and value is not False
        and value != ""
        and not isinstance(value, dict | list)
    )


def _detail(key: str, value: Any) -> str:
    label = key.removesuffix("_s").replace("_", " ")
    if value is True:
        return label
    if key.endswith("_s") and isinstance(value, int | float):
        return f"{label} {duration(value)}"
    return f"{label} {plain(value)}"


def _services(screen: Screen, services: list[dict[str, Any]]) -> None:
    ill = [s for s in services if s.get("state") not in {"running", "done"}]
    failing = ", ".join(
        plain(f"{s.get('name')} {s.get('state')} {s.get('error', '')}".rstrip()) for s in ill
    )
    screen.line(
        f"services  {screen.paint(failing, 'red')}" if ill else f"services  {len(services)} running"
    )
