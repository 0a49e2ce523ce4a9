"""A provider's name on the command line → its message format."""

from collections.abc import Mapping
from typing import Final

from edge.mcp.llm.anthropic import Anthropic
from edge.mcp.llm.gemini import Gemini
from edge.mcp.llm.models import Provider
from edge.mcp.llm.openai import OpenAiChat, OpenAiResponses

TRANSPORTS: Final[Mapping[str, Provider]] = {
    "openai": OpenAiChat(),
    "openai-strict": OpenAiChat("openaiStrict"),
    "openai-responses": OpenAiResponses(),
    "openai-responses-strict": OpenAiResponses("openaiStrict"),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}
