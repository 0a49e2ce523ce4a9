"""What may be said to the microphone now: the tools' phrases, names, answers to a question."""

from collections.abc import Callable, Sequence

from edge.core.hearing import expected_of_tools as expected
from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.names import KnownNames
from edge.core.hearing.purposes import Audience
from edge.core.tools.snapshot import Snapshot


class SayableWords:
    """What may be said now; that of the tools is kept until they, or the names, change."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        language: Callable[[], str],
        names: Callable[[], KnownNames],
    ) -> None:
        self._snapshot = snapshot
        self._language = language
        self._names = names
        self._of: tuple[Snapshot, str, KnownNames] | None = None
        self._commands = ExpectedWords()

    def __call__(self, audience: Audience, choices: Sequence[str]) -> ExpectedWords:
        if audience is Audience.BYSTANDERS:
            return ExpectedWords()
        if audience is Audience.QUESTION:
            return expected.of_question(choices)
        snapshot, language, names = self._snapshot(), self._language(), self._names()
        if not self._is_of(snapshot, language, names):
            tools = expected.of_tools(snapshot.entries(), language, names)
            self._commands = expected.join(tools, expected.of_correction())
            self._of = snapshot, language, names
        return self._commands

    def _is_of(self, snapshot: Snapshot, language: str, names: KnownNames) -> bool:
        if self._of is None:
            return False
        before, spoken, known = self._of
        return before is snapshot and spoken == language and known is names
