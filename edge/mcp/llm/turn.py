"""One turn of a model: the tools it is told of, and its calls run one after another through the
daemon's whole pipeline.

Refuses to know providers' forms and how the daemon is reached. Whoever repeats a turn after a fault
gets the first answers again and does nothing twice, where the provider gave its calls ids, or
`turn_id` was the same (C-06).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from edge.mcp.llm.models import Answered, Envelope, ModelCall, Provider
from tools_cache import names
from tools_cache.api.tool import ErrorCode, Json, ToolResponse
from tools_cache.providers.forms import MAKERS
from tools_cache.providers.models import DescribedTool, Withheld
from tools_cache.providers.openai import without_nulls

MARGIN_S: Final = 70.0
"""The daemon ends a call at its own deadline plus 60 s; ours lies behind that, so that its word
is the one heard.
"""


class BadModelRequest(Exception):
    """The daemon cannot read a request; what the model asked for made it so, and the model can
    mend it.
    """


class Ask(Protocol):
    """The daemon's control API."""

    def __call__(
        self, method: str, path: str, body: Json = None, *, timeout_s: float = 30.0
    ) -> Json:
        """Raises `BadModelRequest`; every other fault is the caller's own and passes through."""


class ModelTurn:
    """`fields` go with every call as they are (session, turn_id, mode)."""

    def __init__(
        self, transport: Provider, ask: Ask, *, ttl_s: float, fields: Mapping[str, str]
    ) -> None:
        self._transport = transport
        self._ask = ask
        self._ttl_s = ttl_s
        self._fields = {key: value for key, value in fields.items() if value}

    def tools(self) -> tuple[list[Json], dict[str, str]]:
        """Give the `tools` of a request, of what is offered now; and which of them this
        provider cannot be told of, and why.
        """
        told: list[Json] = []
        withheld: dict[str, str] = {}
        for entry in self._listed(everything=False):
            if entry.get("state") == "offered":
                try:
                    told.append(MAKERS[self._transport.form](_told(entry)).document)
                except Withheld as e:
                    withheld[entry["name"]] = str(e)
        return self._transport.tools(told), withheld

    def answer(self, message: Json) -> list[dict[str, Json]]:
        """Run what a model asks for; give what is appended to the conversation. Raises
        `BadMessage`.
        """
        calls = self._transport.calls(message)
        answered: list[Answered] = []
        if calls:
            known = self._known(calls)
            answered = [(call, self._one(call, number, known)) for number, call in enumerate(calls)]
        return self._transport.answer(message, answered)

    def _one(
        self, call: ModelCall, ordinal: int, known: Mapping[str, Mapping[str, Any]]
    ) -> Envelope:
        if call.problem:
            return _refused(call, ErrorCode.INVALID_ARGUMENTS, call.problem)
        entry = known.get(call.name)
        if entry is None:
            return _refused(call, ErrorCode.TOOL_NOT_FOUND, f"there is no tool {call.name[:80]}")
        args = (
            without_nulls(entry["inputSchema"], call.args)
            if self._transport.form == "openaiStrict"
            else call.args
        )
        body = {
            "tool": entry["name"],
            "args": args,
            "ttl_s": self._ttl_s,
            "ordinal": ordinal,
            **self._fields,
        }
        if call.id is not None:
            body["provider_call_id"] = call.id
        try:
            envelope: Envelope = self._ask(
                "POST", "/v1/call", body, timeout_s=self._ttl_s + MARGIN_S
            )
        except BadModelRequest as e:
            return _refused(call, ErrorCode.INVALID_REQUEST, str(e))
        return envelope

    def _known(self, calls: Sequence[ModelCall]) -> dict[str, Mapping[str, Any]]:
        """Find tools by alias and by name. Those that are hidden are looked at only when somebody
        asks for one of them: the daemon then says why it is hidden.
        """
        known = _by_any_name(self._listed(everything=False))
        return (
            known
            if all(call.problem or call.name in known for call in calls)
            else _by_any_name(self._listed(everything=True))
        )

    def _listed(self, *, everything: bool) -> list[dict[str, Any]]:
        document: Any = self._ask("GET", f"/v1/tools?all={int(everything)}")
        listed: list[dict[str, Any]] = document["tools"]
        return listed


def _by_any_name(listed: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    entries = {entry["name"]: entry for entry in listed}
    return {alias: entries[name] for alias, name in names.aliases(entries).items()} | entries


def _told(entry: Mapping[str, Any]) -> DescribedTool:
    return DescribedTool(
        name=entry["name"],
        description=entry["description"],
        parameters=entry["inputSchema"],
        writes=entry["sideEffects"] == "writes",
        confirmed=entry["requiresConfirmation"] != "never",
    )


def _refused(call: ModelCall, code: ErrorCode, message: str) -> Envelope:
    return ToolResponse.failure(code, message).with_meta(tool=call.name).to_json()
