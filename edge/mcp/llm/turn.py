"""One turn of a model: the tools that it is offered, and its calls, run one after another by the
daemon. A turn that is repeated after a fault gets the first answers again and does nothing twice,
if the provider gave its calls ids, or with the same `turn_id`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from edge.mcp.llm.models import Answered, Envelope, ModelCall, Provider
from edge.runtime.control_api import list_tools
from tools_cache import names
from tools_cache.api.tool import ErrorCode, Json, ToolResponse
from tools_cache.providers.forms import MAKERS
from tools_cache.providers.models import DescribedTool, Withheld
from tools_cache.providers.openai import without_nulls

MARGIN_S: Final = 70.0
"""The daemon ends a call at its own deadline plus 60 s; its answer should come first."""


class BadModelRequest(Exception):
    """The daemon refused a request because of the model's call; the model can correct it."""


class SendRequest(Protocol):
    """Sends a request to the daemon's control API."""

    def __call__(
        self, method: str, path: str, body: Json = None, *, timeout_s: float = 30.0
    ) -> Json:
        """Return the answer. Raises `BadModelRequest`, and other errors, which pass through."""


class ModelTurn:
    """`fields` are added to every call (session, turn_id, mode)."""

    def __init__(
        self, provider: Provider, ask: SendRequest, *, ttl_s: float, fields: Mapping[str, str]
    ) -> None:
        self._provider = provider
        self._ask = ask
        self._ttl_s = ttl_s
        self._fields = {key: value for key, value in fields.items() if value}

    def tools(self) -> tuple[list[Json], dict[str, str]]:
        """Return the `tools` of a request, of those that are offered now; and which of them this
        provider does not support, and why.
        """
        forms: list[Json] = []
        withheld: dict[str, str] = {}
        for entry in self._list(everything=False):
            if entry.get("state") == "offered":
                try:
                    forms.append(MAKERS[self._provider.form](_describe(entry)).document)
                except Withheld as e:
                    withheld[entry["name"]] = str(e)
        return self._provider.tools(forms), withheld

    def answer(self, message: Json) -> list[dict[str, Json]]:
        """Run a model's calls; return what is appended to the conversation. Raises `BadMessage`."""
        calls = self._provider.calls(message)
        answered: list[Answered] = []
        if calls:
            known = self._find(calls)
            answered = [(call, self._run(call, number, known)) for number, call in enumerate(calls)]
        return self._provider.answer(message, answered)

    def _run(
        self, call: ModelCall, ordinal: int, known: Mapping[str, Mapping[str, Any]]
    ) -> Envelope:
        if call.problem:
            return _refused(call, ErrorCode.INVALID_ARGUMENTS, call.problem)
        entry = known.get(call.name)
        if entry is None:
            return _refused(call, ErrorCode.TOOL_NOT_FOUND, f"there is no tool {call.name[:80]}")
        args = call.args
        if self._provider.form == "openaiStrict":
            args = without_nulls(entry["inputSchema"], args)
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

    def _find(self, calls: Sequence[ModelCall]) -> dict[str, Mapping[str, Any]]:
        """Return the tools by alias and by name; hidden ones too if a call needs one: the daemon
        then says why it is hidden.
        """
        known = _by_any_name(self._list(everything=False))
        if all(call.problem or call.name in known for call in calls):
            return known
        return _by_any_name(self._list(everything=True))

    def _list(self, *, everything: bool) -> list[dict[str, Any]]:
        document = list_tools(partial(self._ask, "GET"), {"all": str(int(everything))})
        listed: list[dict[str, Any]] = document["tools"]
        return listed


def _by_any_name(listed: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    entries = {entry["name"]: entry for entry in listed}
    return {alias: entries[name] for alias, name in names.aliases(entries).items()} | entries


def _describe(entry: Mapping[str, Any]) -> DescribedTool:
    return DescribedTool(
        name=entry["name"],
        description=entry["description"],
        parameters=entry["inputSchema"],
    )


def _refused(call: ModelCall, code: ErrorCode, message: str) -> Envelope:
    return ToolResponse.failure(code, message).with_meta(tool=call.name).to_json()
