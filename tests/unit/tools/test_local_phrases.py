"""The built-in tools in German, Spanish, French and Italian, as recognisers write these."""

from functools import cache

import pytest

from edge.core.phrases import match
from tests.unit.tools.compiled import shipped as compiled
from tools_cache.api.tool import Source, ToolDefinition
from tools_cache.registry.manifest import load


@cache
def tools() -> tuple[ToolDefinition, ...]:
    registry = load(compiled().encode(), source=Source.LOCAL, trusted=True)
    return tuple(tool for app in registry.apps for tool in app.tools)


@pytest.mark.parametrize(
    ("language", "sentence", "tool", "args"),
    [
        ("de", "Stelle einen Timer auf 10 Minuten.", "timer:start", {"seconds": 600}),
        ("de-AT", "Timer für 2 Stunden!", "timer:start", {"seconds": 7200}),
        ("de", "Wecke mich in 90 Sekunden.", "timer:start", {"seconds": 90}),
        ("de", "Welche Timer laufen?", "timer:list", {}),
        ("de", "Lösche den Timer.", "timer:cancel", {}),
        ("es", "Pon un temporizador de 5 minutos.", "timer:start", {"seconds": 300}),
        ("es", "Cancela el temporizador 2.", "timer:cancel", {"id": 2}),
        ("fr", "Mets un minuteur de 3 minutes.", "timer:start", {"seconds": 180}),
        ("fr", "Réveille-moi dans 1 heure.", "timer:start", {"seconds": 3600}),
        ("it", "Imposta un timer di 15 minuti.", "timer:start", {"seconds": 900}),
        ("it", "I miei timer", "timer:list", {}),
        ("it", "Che ore sono?", "clock:now", {}),
        (
            "de",
            "Erinnere mich morgen um neun daran, Anna anzurufen.",
            "reminder:add",
            {"text": "morgen um neun daran, Anna anzurufen"},
        ),
        ("de", "Welche Erinnerungen habe ich?", "reminder:list", {}),
        ("en", "What are my reminders for tomorrow?", "reminder:list", {"range": "tomorrow"}),
        ("en", "Which reminders are overdue?", "reminder:list", {"range": "overdue"}),
        (
            "en",
            "Remind me in 2 days to call Anna.",
            "reminder:add",
            {"text": "in 2 days to call Anna"},
        ),
        ("en", "Remind me in 20 minutes to eat", "timer:start", {"seconds": 1200, "label": "eat"}),
    ],
)
def test_a_sentence_calls_the_tool_with_its_arguments(language, sentence, tool, args) -> None:
    found = match(sentence, tools(), language)
    assert found is not None
    assert (found.tool.name, found.args) == (tool, args)


def test_days_are_not_the_seconds_of_a_timer() -> None:
    assert match("set a timer for 2 days", tools()) is None
    assert match("wake me in three weeks", tools()) is None


def test_english_stays_where_another_language_is_spoken() -> None:
    found = match("set a timer for 10 minutes", tools(), "de-DE")
    assert found is not None
    assert found.args == {"seconds": 600}
