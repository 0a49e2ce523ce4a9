"""Check of the voice: which engines speak, and whether the configured server answers.

Nothing is spoken.
"""

from typing import Final

from edge.display.voice.engines import Engine, survey
from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, do, edit, ok, quoted, run, skip, warn
from edge.doctor.subprocesses import in_thread

LIBRARY: Final = "py_nanotts"
ENGINE_S: Final = 1.2
_FEW: Final = 10
"""Languages that are listed; more are counted."""


class VoiceChecks(CheckGroup):
    """Whether texts can be spoken."""

    async def voice(self) -> Finding:
        audio, built_in = self._settings.audio, self._machine.has(LIBRARY)
        if audio.speech == "off":
            return skip("speech is switched off (audio.speech)")
        found = await in_thread(
            lambda: survey(audio.server, has_built_in=built_in, limit_s=ENGINE_S)
        )
        silent = {engine.name: engine.reason for engine in found if not engine.languages}
        if audio.server in silent:
            return warn(
                f"the server {audio.server} does not speak: {silent[audio.server]}",
                do(
                    f"start the server at {audio.server}, or correct [audio] server in "
                    f"{self._examined.source}, then: systemctl reload glassd"
                ),
            )
        if len(silent) == len(found):
            python = quoted(self._machine.interpreter)
            return skip(
                "no voice is installed; glasses with a speaker need one",
                run(f"{python} -m pip install --upgrade {quoted('glassd[voice]')}"),
            )
        if not audio.volume:
            return warn(
                "the volume is 0: nothing is spoken",
                edit(self._examined.source, "[audio] volume = 80"),
            )
        return ok("; ".join(_describe(engine) for engine in found if engine.languages))


def _describe(engine: Engine) -> str:
    many = len(engine.languages) > _FEW
    known = f"{len(engine.languages)} languages" if many else ", ".join(engine.languages)
    return f"{engine.name}: {known}"
