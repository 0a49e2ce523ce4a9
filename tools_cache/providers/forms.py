"""Creates all provider forms of a tool at build time, and reads them from the artifact."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tools_cache.api.tool import Json
from tools_cache.errors import MissingForm
from tools_cache.providers import anthropic, gemini, mcp, openai
from tools_cache.providers.models import DescribedTool, ProviderForm, Withheld

MAKERS: Final[Mapping[str, Callable[[DescribedTool], ProviderForm]]] = {
    "mcp": mcp.form,
    "openai": openai.form,
    "openaiStrict": openai.strict,
    "anthropic": anthropic.form,
    "gemini": gemini.form,
    "geminiNative": gemini.native,
}
PROVIDERS: Final = tuple(MAKERS)


@dataclass(frozen=True, slots=True)
class Forms:
    """One tool's form for each provider, or the reason there is none, and what each form loses."""

    made: Mapping[str, dict[str, Json]]
    withheld: Mapping[str, str]
    losses: Mapping[str, tuple[str, ...]]

    def to_json(self) -> dict[str, Json]:
        """Return it as listed in the artifact, without empty parts."""
        more = {
            "withheld": dict(self.withheld),
            "losses": {p: list(lost) for p, lost in self.losses.items()},
        }
        return {
            "providerSchemas": dict(self.made),
            **{key: value for key, value in more.items() if value},
        }


def forms(tool: DescribedTool) -> Forms:
    """Create every form. One that cannot be created is withheld from that provider only."""
    made, withheld, losses = {}, {}, {}
    for provider, make in MAKERS.items():
        try:
            form = make(tool)
        except Withheld as e:
            withheld[provider] = str(e)
            continue
        made[provider] = form.document
        if form.losses:
            losses[provider] = form.losses
    return Forms(made, withheld, losses)


def find(document: Mapping[str, Json], tool: str) -> Mapping[str, Json] | None:
    """Find a tool's provider forms in a built document, by its name or its alias."""
    described = document.get("tools") or ()
    return next((t for t in described if tool in (t.get("name"), t.get("encodedName"))), None)


def form_of(described: Mapping[str, Json], provider: str) -> Json:
    """Return the form of one provider. Raises `MissingForm` naming tool and provider."""
    found = (described.get("providerSchemas") or {}).get(provider)
    if found is None:
        why = (described.get("withheld") or {}).get(provider)
        raise MissingForm(
            f"Tool {described.get('name')} missing {provider} schema" + (f": {why}" if why else "")
        )
    return found
