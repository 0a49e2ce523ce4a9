"""What a model asks for and what it is answered, in no provider's form; and how a provider's form
is read with care.

Refuses to know any provider, and who runs a call.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tools_cache.api.tool import Json

MAX_CALLS: Final = 128
"""Of one message: as many functions as any provider lets a request name (facts/providers.md 2)."""
MAX_NAME: Final = 255
MAX_ID: Final = 255

Envelope = Mapping[str, Json]
"""The whole answer to one call, as docs/control-api.md describes it."""


class BadMessage(ValueError):
    """There is no telling what the model asks for; the words name the field, what is wrong with
    it and the fix.
    """


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call as a model made it. `problem` says why it cannot be run as it is; it is answered all
    the same, because every provider refuses a conversation in which a call has no answer.
    """

    id: str | None
    name: str
    args: Mapping[str, Json] = field(default_factory=dict)
    problem: str = ""


Answered = tuple[ModelCall, Envelope]


class Provider(Protocol):
    """One provider's form, both ways. Stateless."""

    form: str
    """Which of `tools_cache.providers.forms.MAKERS` tells this provider of a tool."""

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        """Read what the model asks for, in its order; () when it asks for nothing. Raises
        `BadMessage`.
        """

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        """Give what is appended to the conversation after `message`: each envelope whole
        (S2-114), by its call's id (C-33).
        """

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        """Give the `tools` of a request."""


# ------------------------------------------------------------------ reading


def an_object(value: Json, what: str) -> dict[str, Any]:
    """Raises `BadMessage`."""
    if not isinstance(value, dict):
        raise BadMessage(
            f"{what}: must be an object, not {kind(value)}; "
            "hand in the provider's answer as it came"
        )
    return value


def a_list(value: Json, what: str) -> list[Any]:
    """None is an empty list: some SDKs write what is not there. Raises `BadMessage`."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadMessage(
            f"{what}: must be a list, not {kind(value)}; hand in the provider's answer as it came"
        )
    return value


def bounded(found: Sequence[ModelCall]) -> tuple[ModelCall, ...]:
    """Raises `BadMessage` for more calls than anybody meant."""
    if len(found) > MAX_CALLS:
        raise BadMessage(
            f"{len(found)} calls in one message; "
            f"at most {MAX_CALLS} are taken, so ask the model for fewer"
        )
    return tuple(found)


def call(of: Mapping[str, Json], args: Json, *, where: str, id_key: str = "id") -> ModelCall:
    """Read one call. What is wrong with its name or arguments becomes its `problem`; a call whose
    id cannot be read cannot be answered either. Raises `BadMessage`.
    """
    found = of.get(id_key)
    if found is not None and not (isinstance(found, str) and 0 < len(found) <= MAX_ID):
        raise BadMessage(
            f"{where}.{id_key}: must be text of 1 to {MAX_ID} "
            "characters; it is what the answer is found by"
        )
    name = of.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        return ModelCall(
            found,
            name[:MAX_NAME] if isinstance(name, str) else "",
            {},
            f"name: must be text of 1 to {MAX_NAME} characters",
        )
    arguments, problem = _arguments(args)
    return ModelCall(found, name, arguments, problem)


def _arguments(args: Json) -> tuple[dict[str, Json], str]:
    """An object, or the JSON text of one; a model that has nothing to say leaves them out or
    sends an empty text.
    """
    if args is None or (isinstance(args, str) and not args.strip()):
        return {}, ""
    if isinstance(args, str):
        try:
            args = json.loads(args, parse_constant=_no_constant)
        except (ValueError, RecursionError) as e:
            return {}, f"arguments: are not JSON ({str(e)[:120]}); send one JSON object"
    if not isinstance(args, dict):
        return {}, f"arguments: must be an object, not {kind(args)}; send one JSON object"
    return args, ""


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def kind(value: Json) -> str:
    """Name a JSON value's kind, for messages."""
    names: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")


def text(envelope: Envelope) -> str:
    """Write an envelope for a place that takes text."""
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
