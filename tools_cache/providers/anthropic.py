"""The Anthropic form of a tool: `input_schema` is the unchanged JSON Schema.

Their strict mode is not offered: its limits per request are not public.
"""

from tools_cache.providers.models import DescribedTool, ProviderForm, root_is_plain


def form(tool: DescribedTool) -> ProviderForm:
    """Raises `Withheld`."""
    root_is_plain(tool.parameters, "Anthropic")
    return ProviderForm(
        {"name": tool.alias, "description": tool.description, "input_schema": dict(tool.parameters)}
    )
