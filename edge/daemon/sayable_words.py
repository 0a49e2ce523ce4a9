"""What may be said to the microphone now: the tools' phrases, the answers to a question."""

from collections.abc import Callable, Sequence

from edge.core.hearing import expected_of_tools as expected
from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.purposes import Audience
from edge.core.tools.snapshot import Snapshot


class SayableWords:
    """What may be said now; that of the tools is kept until they change."""

    def __init__(self, snapshot: Callable[[], Snapshot], language: Callable[[], str]) -> None:
        self._snapshot = snapshot
        self._language = language
        self._of: tuple[Snapshot, str] | None = None
        self._commands = ExpectedWords()

    def __call__(self, audience: Audience, choices: Sequence[str]) -> ExpectedWords:
        if audience is Audience.BYSTANDERS:
            return ExpectedWords()
        if audience is Audience.QUESTION:
            return expected.of_question(choices)
        snapshot, language = self._snapshot(), self._language()
        if self._of is None or self._of[0] is not snapshot or self._of[1] != language:
            tools = expected.of_tools(snapshot.entries(), language)
            self._commands = expected.join(tools, expected.of_correction())
            self._of = snapshot, language
        return self._commands
