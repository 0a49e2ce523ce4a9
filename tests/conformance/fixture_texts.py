"""The resources, prompts and completions that the conformance suite reads; plain data, as
`edge/mcp` gives its own.

It knows no protocol's types: what is here is the JSON that goes out.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from tests.conformance.fixture_tools import PNG, form

RESOURCES: Final[list[dict[str, Any]]] = [
    {
        "uri": "test://static-text",
        "name": "Static text",
        "description": "A text that never changes.",
        "mimeType": "text/plain",
    },
    {
        "uri": "test://static-binary",
        "name": "Static picture",
        "description": "A picture that never changes.",
        "mimeType": "image/png",
    },
    {
        "uri": "test://watched-resource",
        "name": "Watched",
        "description": "A resource to subscribe to.",
        "mimeType": "text/plain",
    },
]
TEMPLATES: Final[list[dict[str, Any]]] = [
    {
        "uriTemplate": "test://template/{id}/data",
        "name": "Template",
        "description": "Data by its id.",
        "mimeType": "application/json",
    },
]
_STATIC: Final[Mapping[str, dict[str, str]]] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched."},
}
_TEMPLATE: Final = re.compile(r"test://template/([^/]+)/data")


def read_resource(uri: str) -> dict[str, Any] | None:
    """One content of a resource; None when it is none of these."""
    if uri in _STATIC:
        return {"uri": uri, **_STATIC[uri]}
    found = _TEMPLATE.fullmatch(uri)
    if found is None:
        return None
    data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
    return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}


def _argument(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"The {name}", "required": True}


PROMPTS: Final[list[dict[str, Any]]] = [
    {"name": "test_simple_prompt", "description": "A prompt without arguments."},
    {
        "name": "test_prompt_with_arguments",
        "description": "A prompt with arguments.",
        "arguments": [_argument("arg1"), _argument("arg2")],
    },
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "A prompt with a resource.",
        "arguments": [_argument("resourceUri")],
    },
    {"name": "test_prompt_with_image", "description": "A prompt with a picture."},
    {"name": "test_input_required_result_prompt", "description": "A prompt that asks first."},
]
CONTEXT: Final = {
    "user_context": form(
        "What context should the prompt use?", {"context": {"type": "string"}}, "context"
    )
}


def _said(*contents: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content} for content in contents]}


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def get_prompt(
    name: str, args: Mapping[str, str], answers: Mapping[str, Any]
) -> dict[str, Any] | None:
    """A prompt's messages, or `{"inputRequests": …}`; None when it is none of these."""
    if name == "test_simple_prompt":
        return _said(_text("This is a simple prompt for testing."))
    if name == "test_prompt_with_arguments":
        return _said(
            _text(f"Prompt with arguments: arg1='{args.get('arg1')}', arg2='{args.get('arg2')}'")
        )
    if name == "test_prompt_with_embedded_resource":
        resource = {
            "uri": args.get("resourceUri", ""),
            "mimeType": "text/plain",
            "text": "Embedded resource content for testing.",
        }
        return _said(
            {"type": "resource", "resource": resource},
            _text("Please process the embedded resource above."),
        )
    if name == "test_prompt_with_image":
        return _said(
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            _text("Please analyze the image above."),
        )
    if name == "test_input_required_result_prompt":
        found = answers.get("user_context")
        return (
            _said(_text(f"In this context: {json.dumps(found)}"))
            if isinstance(found, Mapping)
            else {"inputRequests": CONTEXT}
        )
    return None


def complete(reference: str, argument: str, typed: str) -> list[str]:
    """Values of a prompt's argument that begin as what was typed."""
    known = (
        ("paris", "park", "party", "test one", "test two")
        if (reference, argument) == ("test_prompt_with_arguments", "arg1")
        else ()
    )
    return [value for value in known if value.startswith(typed)]
