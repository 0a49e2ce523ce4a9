"""Checks of the other MCP servers: how each is started, which tools are allowed, and its state in
the daemon.

No server is started or asked here: a second instance could change something.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from edge.config.model import McpServerConfig
from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, do, fail, ok, quoted, run, skip, warn

LIBRARY = "mcp"


class ServerChecks(CheckGroup):
    """Whether the other MCP servers can be used."""

    async def servers(self) -> Finding:
        settings = self._settings
        on = [server for server in settings.mcp.servers if server.enabled]
        if not on:
            return skip("there are none")
        if not self._machine.has(LIBRARY):
            python = quoted(self._machine.interpreter)
            return fail(
                "the library that speaks with them is not installed",
                run(f"{python} -m pip install --upgrade {quoted('glassd[mcp]')}"),
            )
        wrong = [finding for server in on for finding in self._wrong(server)]
        return wrong[0] if wrong else ok(", ".join(server.id for server in on))

    def _wrong(self, server: McpServerConfig) -> Iterator[Finding]:
        """Yield what keeps a server, or its tools, from being used."""
        if server.command and not self._is_there(server.command):
            yield fail(
                f"{server.id}: there is no program {server.command}",
                do(
                    f"install {server.command}, or write its whole path as "
                    "command, then: systemctl reload glassd"
                ),
            )
        for name, path in server.secret_files.items():
            if not os.access(path, os.R_OK):
                yield fail(
                    f"{server.id}: its secret {name} cannot be read from {path}",
                    do(
                        f"put the secret into {path} and let the daemon's user read "
                        "it, then: systemctl reload glassd"
                    ),
                )
        if not server.allowed_tools:
            yield warn(
                f"{server.id}: allowed_tools is empty, so nothing of it comes in",
                do(
                    f"name what you use of {server.id} in its allowed_tools (it offers them: "
                    "glassd servers), then: systemctl reload glassd"
                ),
            )
        away = self._examined.layer("servers").get("away") or {}
        if why := away.get(server.id):
            yield warn(
                f"{server.id} is away: {why}",
                do(f"see to it ({why}), then: glassd servers refresh {server.id}"),
            )

    def _is_there(self, command: str) -> bool:
        found = Path(command)
        if found.is_absolute():
            return self._machine.path(command).exists() or found.exists()
        return self._machine.which(command) is not None
