"""A model's tool calls and their answers, independent of providers, and helpers that parse messages
of providers.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from tools_cache.api.tool import Json

MAX_CALLS: Final = 128
"""In one message: as many functions as the most generous provider accepts in a request."""
MAX_NAME: Final = 255
MAX_ID: Final = 255
_AS_IT_CAME: Final = "hand in the provider's answer as it came"

Envelope = Mapping[str, Json]
"""The whole answer to one call, as docs/control-api.md describes it."""


class BadMessage(ValueError):
    """A message cannot be parsed; the text names the field, the problem and the fix."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call by a model. `problem` says why it cannot be run; it is answered all the same,
    because every provider refuses a conversation in which a call has no answer.
    """

    id: str | None
    name: str
    args: Mapping[str, Json] = field(default_factory=dict)
    problem: str = ""


Answered = tuple[ModelCall, Envelope]


class Provider(Protocol):
    """One provider's message format. Stateless."""

    form: str
    """The key of its tool format in `tools_cache.providers.forms.MAKERS`."""

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        """Return the model's calls, in its order. Raises `BadMessage`."""

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        """Return what is appended to the conversation after `message`: each whole envelope with the
        id of its call.
        """

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        """Return the `tools` of a request."""


# ------------------------------------------------------------------ parsing


def an_object(value: Json, what: str) -> dict[str, Any]:
    """Return a value that must be an object. Raises `BadMessage`."""
    if isinstance(value, dict):
        return value
    raise BadMessage(f"{what}: must be an object, not {_kind(value)}; {_AS_IT_CAME}")


def a_list(value: Json, what: str) -> list[Any]:
    """Return a value that must be a list; None is an empty one. Raises `BadMessage`."""
    if value is None or isinstance(value, list):
        return value or []
    raise BadMessage(f"{what}: must be a list, not {_kind(value)}; {_AS_IT_CAME}")


def limit(found: Sequence[ModelCall]) -> tuple[ModelCall, ...]:
    """Return the calls. Raises `BadMessage` if there are too many."""
    if len(found) > MAX_CALLS:
        problem = f"{len(found)} calls in one message; at most {MAX_CALLS} are taken"
        raise BadMessage(f"{problem}, so ask the model for fewer")
    return tuple(found)


def call_id(of: Mapping[str, Json], *, where: str, key: str = "id") -> str:
    """Return the id of a call that must have one. Raises `BadMessage`."""
    if found := of.get(key):
        return _valid_id(found, f"{where}.{key}")
    raise BadMessage(
        f"{where}.{key}: missing; the answer is found by it, so hand in the message as it came"
    )


def call(id_: Json, name: Json, args: Json, *, where: str) -> ModelCall:
    """Return one call. A wrong name or wrong arguments become its `problem`; a call with a wrong id
    cannot be answered. Raises `BadMessage`.
    """
    id_ = None if id_ is None else _valid_id(id_, f"{where}.id")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        problem = f"name: must be text of 1 to {MAX_NAME} characters"
        return ModelCall(id_, name[:MAX_NAME] if isinstance(name, str) else "", {}, problem)
    return ModelCall(id_, name, *_arguments(args))


def _valid_id(found: Json, where: str) -> str:
    if isinstance(found, str) and 0 < len(found) <= MAX_ID:
        return found
    problem = f"{where}: must be text of 1 to {MAX_ID} characters"
    raise BadMessage(f"{problem}; it is what the answer is found by")


def _arguments(args: Json) -> tuple[dict[str, Json], str]:
    """Parse an object, or the JSON text of one; models without arguments send none or ""."""
    if args is None or (isinstance(args, str) and not args.strip()):
        return {}, ""
    if isinstance(args, str):
        try:
            args = json.loads(args, parse_constant=_no_constant)
        except (ValueError, RecursionError) as e:
            return {}, f"arguments: are not JSON ({str(e)[:120]}); send one JSON object"
    if not isinstance(args, dict):
        return {}, f"arguments: must be an object, not {_kind(args)}; send one JSON object"
    return args, ""


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _kind(value: Json) -> str:
    """Return a JSON value's type, for messages."""
    names: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "true or false",
        type(None): "null",
    }
    return names.get(type(value), "a number")


def text(envelope: Envelope) -> str:
    """Return an envelope as text."""
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
