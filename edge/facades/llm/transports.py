"""The one place where a provider is chosen: its name on the command line → its form, both ways."""

from collections.abc import Mapping
from typing import Final

from edge.facades.llm.anthropic import Anthropic
from edge.facades.llm.gemini import Gemini
from edge.facades.llm.openai import OpenAiChat, OpenAiResponses
from edge.facades.llm.words import Transport

TRANSPORTS: Final[Mapping[str, Transport]] = {
    "openai": OpenAiChat(),
    "openai-strict": OpenAiChat("openaiStrict"),
    "openai-responses": OpenAiResponses(),
    "openai-responses-strict": OpenAiResponses("openaiStrict"),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}
