"""Where the owner's tools are, their secrets, and reading them again in a running daemon.

`tools/user_tools.py` reads the files in a child, because that needs large libraries.
"""

import logging
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from msgspec.structs import replace

from edge.config import folders
from edge.config.model import Settings, read_secret
from edge.config.validators import VARIABLE, BadSettings
from edge.core.tools.user_tools import Own, Secret, ready
from edge.runtime.paths import Env
from edge.runtime.stdio import claim_stdio
from tools_cache import subprocess_call
from tools_cache.api.tool import ToolDefinition
from tools_cache.registry.models import Dropped

if TYPE_CHECKING:  # the child that reads the settings needs neither
    from edge.tools.http_tools import HttpTools
    from edge.tools.registry import ToolRegistry

LIMIT_S: Final = 30.0
NO_MORE_FOLDERS: Final = "--"
_CHILD: Final = "from edge.daemon import user_tools; user_tools.main()"

log = logging.getLogger(__name__)

UseServers = Callable[[Own, Settings, Secret], tuple[Dropped, ...]]
"""`McpServers.use`: the other MCP servers, from the same files."""


class NotRead(Exception):
    """The child gave no answer; nothing changed."""


@dataclass(eq=False, repr=False)
class UserTools:
    """Activates the owner's tools in the registry and the HTTP gateway. SIGHUP calls `reload`."""

    gateway: "HttpTools"
    registry: "ToolRegistry"
    _: KW_ONLY
    settings: Settings
    env: Env
    hide: Callable[[str], None]
    servers: UseServers = lambda _own, _settings, _secret: ()
    forget: Callable[[ToolDefinition], None] = lambda _tool: None
    _used: Own = field(default_factory=Own, init=False)

    def use(self, own: Own) -> None:
        """Use these tools for new calls."""
        secret = secrets(self.settings, self.env, self.hide)
        made = ready(own, secret)
        for value in made.used:
            self.hide(quote(value, safe=""))  # as it stands in an address
        own = replace(own, problems=(*own.problems, *self.servers(own, self.settings, secret)))
        for tool in self._used.tools:
            self.forget(tool)  # its code may be another one now; the next call imports it
        self._used = own
        self.gateway.use(made.plans, made.used)
        self.registry.use_own(own, made.withheld)

    async def reload(self, settings: Settings | None = None) -> Own:
        """Read files and secrets again. Raises `NotRead`; then nothing changed."""
        settings = settings or self.settings
        places = folders.of_user_tools(settings, self.env)
        own = await read_again(places, settings.tools.packages)
        self.settings = settings
        self.use(own)
        return own


def secrets(settings: Settings, env: Env, hide: Callable[[str], None]) -> Secret:
    """Return a function that looks up secrets: a systemd credential, else an environment variable
    that the settings allow. `hide` keeps them out of the log.
    """

    def secret(name: str) -> str | None:
        if not VARIABLE.fullmatch(name):
            return None
        try:
            found = read_secret("", name, env)
        except BadSettings as e:
            log.warning("a credential of an own tool: %s", e)
            found = None
        if found is None and name in settings.tools.env:
            found = env.get(name)
        if found:
            hide(found)
        return found or None

    return secret


async def read_again(
    places: Sequence[Path], packages: Sequence[str] = (), *, limit_s: float = LIMIT_S
) -> Own:
    """Read all files in a child process. Raises `NotRead`."""
    try:
        answer, code = await subprocess_call.ask(
            _CHILD, *map(str, places), NO_MORE_FOLDERS, *packages, limit_s=limit_s
        )
    except TimeoutError:
        raise NotRead(f"no answer in {limit_s:.0f} s") from None
    except OSError as e:
        raise NotRead(f"no child process can be started: {e.strerror}") from None
    if code != 0:
        raise NotRead(f"the child ended with {code}")
    try:
        found: Own = pickle.loads(answer)  # noqa: S301 - of a process that is ours
    except Exception as e:  # noqa: BLE001 - after an upgrade on disk it may speak of what this version does not know
        raise NotRead(
            f"the child is of another version ({type(e).__name__}): restart glassd"
        ) from None
    return found


def main() -> None:
    """Run as the child: folders, "--" and packages as arguments, the result on stdout."""
    from edge.tools import user_tools  # noqa: PLC0415 - pydantic and the validator, only in here

    with os.fdopen(claim_stdio()[1], "wb") as out:
        end = sys.argv.index(NO_MORE_FOLDERS)
        pickle.dump(
            user_tools.read([Path(word) for word in sys.argv[1:end]], sys.argv[end + 1 :]), out
        )
