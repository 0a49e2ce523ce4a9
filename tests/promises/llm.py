"""Promises about models' own tool formats."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S2-112": Promise(
        "OpenAI's tool calls are read as they come; "
        "arguments that are no JSON are answered VALIDATION, and nothing crashes.",
        "seed S2-112",
    ),
    "S2-113": Promise(
        "Gemini's function calls are read from an answer and from a live session; "
        "one without an id has none, one without arguments has an empty object.",
        "seed S2-113",
    ),
    "S2-114": Promise(
        "A model gets the whole envelope back, errors included, by the id of its call; "
        "pictures as its provider's picture parts.",
        "seed S2-114, C-33",
    ),
    "S2-115": Promise(
        "The same call through any provider's form, or through none, "
        "has the same answer but for its meta.",
        "seed S2-115",
    ),
    "I6-llm-types": Promise(
        "What providers send is read and what they get is written "
        "as their own published types say.",
        "issue 6, LLM transports",
    ),
    "I6-llm-answered": Promise(
        "Every call of a message is answered, also one that cannot be run.",
        "issue 6, LLM transports; facts/providers.md 3-5",
    ),
    "I6-llm-twice": Promise(
        "A turn that is repeated after a fault does nothing twice.", "issue 6, LLM transports; C-06"
    ),
    "I6-llm-tools": Promise(
        "A provider is told of the tools that are offered now, in its form; "
        "one it cannot be told of is named with the reason.",
        "issue 6, LLM transports; facts/providers.md 6",
    ),
    "I13-llm-pictures": Promise(
        "Pictures of an answer reach a model as its provider's picture parts, once, and never as "
        "base64 in the text.",
        "issue 13, Agents get the truth where they read it",
    ),
    "I13-llm-replies": Promise(
        "A provider's error, an empty reply and another provider's reply are errors with the "
        "provider's message, and never an empty answer.",
        "issue 13, Agents get the truth where they read it",
    ),
}

DECLINED: Final[dict[str, str]] = {}
