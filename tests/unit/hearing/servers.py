"""Wyoming servers of speech recognition for tests."""

from contextlib import AbstractContextManager
from pathlib import Path

from tests.wyoming_process import wyoming_process


def server(how: str, path: Path | None = None) -> AbstractContextManager[str]:
    """Run a server that answers this way, and return its address."""
    socket = [str(path)] if path else []
    return wyoming_process("tests.unit.hearing.engines.wyoming_server", how, *socket)
