"""The owner's tools as read from `tools.d`, how each is requested, and which are ready.

A plan names the secrets it needs; only `Ready` has their values.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from edge.core.tools import templates
from edge.core.words.secret_fields import repr_without
from tools_cache.api.tool import Json, ToolDefinition
from tools_cache.frozen import FrozenDict
from tools_cache.registry.models import App, Dropped

UNSUPPORTED: Final = "unsupported on an edge"
"""Start of the reason of a tool that only a cloud can run; the call gets this error code."""
EXECUTION_KEY: Final = "io.glassd/execution"
"""Key of a digest of how the tool is run; a grant is bound to it."""
Secret = Callable[[str], str | None]
"""Returns the secret of this name; None if the owner gave none."""
_EMPTY: Final = FrozenDict()


class RequestPlan(Struct, frozen=True, kw_only=True):
    """How one tool is requested over HTTP. `body` None: the call's arguments. `later`: the address
    only accepts the call, its result is handed in later. `only_cloud`: what it needs that no edge
    has.
    """

    url: str = ""
    method: str = "POST"
    headers: Mapping[str, str] = _EMPTY
    query: Mapping[str, Json] = _EMPTY
    body: Json = None
    later: bool = False
    only_cloud: str = ""

    @property
    def secrets(self) -> frozenset[str]:
        return templates.secrets([self.url, dict(self.headers), dict(self.query), self.body])


class ServerDefinition(Struct, frozen=True, kw_only=True):
    """One MCP server of the owner: a program to run, or an address. `name` is its id and the
    package of its tools.

    `allowed_tools` is an allow-list, `*` for all. `args`, `env`, `headers` and `url` may hold
    `${env.NAME}`; `secret_files` maps names to the files with such secrets. `trusted`: its hints on
    its tools' effects are believed. `prompt` is put before each description, `tool_prompts` replace
    them.
    """

    name: str
    url: str = ""
    transport: str = "http"
    headers: Mapping[str, str] = _EMPTY
    allowed_tools: frozenset[str] = frozenset()
    title: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = _EMPTY
    cwd: str = ""
    ca_file: str = ""
    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    secret_files: Mapping[str, str] = _EMPTY
    enabled: bool = True
    idle_s: float = 1800.0
    timeout_s: float = 30.0
    prompt: str = ""
    tool_prompts: Mapping[str, str] = _EMPTY
    visible: bool | None = None
    confirm: str = "policy"
    trusted: bool = False

    def __repr__(self) -> str:
        return repr_without(self, "client_secret")

    @property
    def secrets(self) -> frozenset[str]:
        return templates.secrets(
            [self.url, dict(self.headers), dict(self.env), list(self.args), self.client_secret]
        )


class Own(Struct, frozen=True, kw_only=True):
    """All that was read. `problems` are for the author; `digest` changes with any file."""

    apps: tuple[App, ...] = ()
    plans: Mapping[str, RequestPlan] = _EMPTY
    servers: tuple[ServerDefinition, ...] = ()
    problems: tuple[Dropped, ...] = ()
    folders: tuple[str, ...] = ()
    digest: str = ""

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool for app in self.apps for tool in app.tools)


class Ready(Struct, frozen=True):
    """The plans with their secrets, never printed; and why other tools cannot be used."""

    plans: Mapping[str, RequestPlan]
    withheld: Mapping[str, str]
    used: frozenset[str] = frozenset()
    """The values of the secrets, to keep them out of the log."""

    def __repr__(self) -> str:
        return repr_without(self, "plans", "used")


def ready(own: Own, secret: Secret) -> Ready:
    """Fill the owner's secrets into the plans; one with a missing or invalid secret is withheld."""
    plans: dict[str, RequestPlan] = {}
    withheld: dict[str, str] = {}
    used: set[str] = set()
    for name, plan in own.plans.items():
        if plan.only_cloud:
            withheld[name] = f"{UNSUPPORTED}: {plan.only_cloud}"
            continue
        values = {key: value for key in sorted(plan.secrets) if (value := secret(key))}
        lacking = sorted(plan.secrets - values.keys())
        reason = _lacking(lacking) if lacking else _unfit(values) or ""
        if not reason:
            made = _with(plan, values)
            reason = address_problem(made.url)
            plans[name] = made
            used.update(values.values())
        if reason:
            withheld[name] = reason
            plans.pop(name, None)
    return Ready(MappingProxyType(plans), MappingProxyType(withheld), frozenset(used))


def ready_server(
    server: ServerDefinition, secret: Secret
) -> tuple[ServerDefinition, frozenset[str]]:
    """Fill the owner's secrets into one server's settings; return also their values. Raises
    ValueError with the reason why it cannot be used.
    """
    values = {key: value for key in sorted(server.secrets) if (value := secret(key))}
    if (
        problem := _lacking(lacking)
        if (lacking := sorted(server.secrets - values.keys()))
        else _unfit(values)
    ):
        raise ValueError(problem)
    headers = {
        name: text.strip() for name, text in templates.with_secrets(server.headers, values).items()
    }
    if server.transport == "sse":
        raise ValueError(
            "its transport sse is not supported, as MCP has removed it: "
            "ask its author for streamable HTTP"
        )
    made = replace(
        server,
        url=templates.with_secrets(server.url, values, encoded=True),
        headers=headers,
        env=templates.with_secrets(server.env, values),
        args=tuple(templates.with_secrets(server.args, values)),
        client_secret=templates.with_secrets(server.client_secret, values),
    )
    if made.url and (problem := address_problem(made.url)):
        raise ValueError(problem.replace("execution.url", "url"))
    return made, frozenset(values.values())


def _with(plan: RequestPlan, values: Mapping[str, str]) -> RequestPlan:
    headers = {
        name: text.strip() for name, text in templates.with_secrets(plan.headers, values).items()
    }  # HTTP allows no space there
    return replace(
        plan,
        url=templates.with_secrets(plan.url, values, encoded=True),
        headers=headers,
        query=templates.with_secrets(plan.query, values),
        body=templates.with_secrets(plan.body, values),
    )


def _lacking(names: list[str]) -> str:
    listed = ", ".join(f"${{env.{name}}}" for name in names)
    return (
        f"{listed} is not set: give systemd a credential of that name, "
        "or list it in [tools] env and set it"
    )


def _unfit(values: Mapping[str, str]) -> str:
    """Return a problem for a value with a line break, which would end a header."""
    for name, value in values.items():
        if not (value.isprintable() and value.isascii()):
            alone = "holds more than one line of plain ASCII: keep the secret alone in it"
            return f"${{env.{name}}} {alone}"
    return ""


def address_problem(url: str) -> str:
    """Return why an address cannot be used, with or without its secrets; "" if it can. The message
    never quotes it.
    """
    start = templates.origin(url)
    scheme, colon, host = start.partition("://")
    if scheme not in {"http", "https"} or not colon or not host:
        return "execution.url: must begin with https:// (or http:// on your own network) and a host"
    if "{" in start or "}" in start:
        return "execution.url: a call's values may not choose the host; put {{input.…}} behind it"
    if "@" in host:
        return "execution.url: must not hold a password; put it into headers, as ${env.NAME}"
    if "#" in url or "\\" in url:
        return "execution.url: holds a # or a backslash, which no server is sent"
    if any(c.isspace() or not c.isprintable() for c in start):
        return "execution.url: holds a character no host has"
    try:
        if urlsplit(start).port != 0:
            return ""
    except ValueError:
        pass
    return "execution.url: the host or its port is none (a port is a number up to 65535)"
