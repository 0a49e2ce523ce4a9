"""Check of the microphone: whether words can be recognised, and a configured server answers.

Nothing is recorded and no model is loaded.
"""

from typing import Final

from edge.config.model import MicrophoneConfig
from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, Fix, do, edit, ok, quoted, run, skip, warn
from edge.doctor.subprocesses import in_thread
from edge.hearing.engines import EngineMissing
from edge.hearing.engines.choice import describe, extra_of, why_not
from firmware_bridge import lc3
from firmware_bridge.catalog import supported

SERVER_S: Final = 1.2


class MicrophoneChecks(CheckGroup):
    """Whether the wearer's words can be recognised."""

    async def microphone(self) -> Finding:
        m, language = self._settings.microphone, self._settings.spoken_language
        if not m.allow:
            return skip("the microphone is switched off (microphone.allow)")
        if m.recogniser == "off":
            return skip("the recogniser is off (microphone.recogniser)")
        if missing := why_not(m.recogniser, language):
            return skip(missing, self._install(m) if "not installed" in missing else None)
        if self._send_lc3() and (codec := lc3.why_not()):
            return warn(codec, do(f"as root: apt-get install {lc3.PACKAGES}"))
        try:
            return ok(await in_thread(lambda: describe(m.recogniser, m.model, language, SERVER_S)))
        except EngineMissing as e:
            return warn(str(e), self._fix(m))

    def _send_lc3(self) -> bool:
        """Whether the glasses of the configuration, or those that the daemon knows, send LC3."""
        known = self._examined.layer("glasses").get("capabilities") or {}
        codecs = str((known.get("microphone.codecs") or {}).get("value", ""))
        configured = [each for each in supported() if each.key == self._settings.glasses.model]
        named = [str(each.capabilities.get("microphone.codecs", "")) for each in configured]
        return "lc3" in (codecs, *named)

    def _install(self, m: MicrophoneConfig) -> Fix:
        package = quoted(f"glassd[{extra_of(m.recogniser)}]")
        return run(f"{quoted(self._machine.interpreter)} -m pip install --upgrade {package}")

    def _fix(self, m: MicrophoneConfig) -> Fix:
        if m.recogniser == "sherpa":
            return edit(self._examined.source, "[microphone] model = <the folder of a model>")
        return do(
            f"start the server at {m.recogniser}, or correct [microphone] recogniser in "
            f"{self._examined.source}, then: systemctl reload glassd"
        )
