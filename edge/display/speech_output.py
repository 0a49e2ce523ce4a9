"""Speaks at most one item at a time, can silence it, and reports its end once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from edge.core.results import LayoutKind
from edge.display.presentation import Presentation
from edge.display.speech import CannotSpeak, SpeechPlayer, Spoken
from edge.display.tts import TextToSpeech
from edge.ports import GlassesAway, GlassesPort
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.errors import BridgeError
from tools_cache.api.tool import Delivery

SUPERSEDED: Final = "something newer"
QUESTION: Final = "a question"


@dataclass(frozen=True, slots=True)
class SpeechOver:
    """How a speech ended: what was played (None: nothing), why not, and who stopped it."""

    act: Presentation
    spoken: Spoken | None
    reason: str
    stopped_by: str
    away: bool = False

    @property
    def unsaid(self) -> bool:
        """Whether it was stopped before the glasses opened a stream: it may be spoken later."""
        return self.spoken is None and self.act.report.state is not Delivery.SENT and not self.away

    @property
    def whole(self) -> bool:
        """True when all of it was played, to the end."""
        spoken = self.spoken
        return (
            spoken is not None
            and spoken.samples != 0
            and not (spoken.skipped or spoken.stopped or self.stopped_by)
        )

    def remark(self) -> str:
        """What there is to say about a speech that was heard."""
        remarks = [f"stopped by {self.stopped_by}"] if self.stopped_by else []
        if self.spoken is not None and self.spoken.skipped:
            total = self.spoken.sentences + self.spoken.skipped
            remarks.append(f"{self.spoken.skipped} of {total} sentences have no sound")
        return "; ".join(remarks)


class SpeechOutput:
    """`tasks` is the stage's group; `over` takes the end of each speech."""

    def __init__(
        self, glasses: GlassesPort, voice: TextToSpeech, over: Callable[[SpeechOver], None]
    ) -> None:
        self._voice = voice
        self._speaker = SpeechPlayer(glasses, voice)
        self._over = over
        self._stop = asyncio.Event()
        self._silent = asyncio.Event()
        self._silent.set()
        self._stopped_by = ""
        self.speaking: Presentation | None = None
        self.tasks: asyncio.TaskGroup | None = None

    def why_not(self, capabilities: Capabilities) -> str:
        """Empty when words can be spoken on these glasses, else the first thing that is missing."""
        return self._speaker.why_not(capabilities)

    def begin(self, act: Presentation, capabilities: Capabilities, why: list[str]) -> bool:
        """Begin to speak; True when the end comes through `over`, else `why` grew by the reason."""
        if not capabilities.has(Hardware.SPEAKER):
            why.append("these glasses have no speaker")
            return False
        reason = self._speaker.why_not(capabilities)
        if (reason and not act.rendering.pcm) or self.tasks is None:
            why.append(reason)
            return False
        if not act.lit and act.rendering.layout is not None:
            act.downgrade = (
                "image→speech"
                if act.rendering.layout is LayoutKind.BITMAP_VIEW
                else "display→speech"
            )
        self._stop, self._stopped_by = asyncio.Event(), ""
        self.speaking, act.speech = act, "begun"
        self._silent.clear()
        self.tasks.create_task(self._speak(act, capabilities, self._stop), name="stage.speak")
        return True

    def quiet(self, who: str) -> None:
        """Stop what is being said; the first who asked is the one who stopped it."""
        self._stopped_by = self._stopped_by or who
        self._stop.set()

    async def hush(self, who: str) -> None:
        """Stop what is being said; wait until the glasses are silent (bounded by deadlines)."""
        if self.speaking is not None:
            self.quiet(who)
            await self._silent.wait()

    async def close(self) -> None:
        """End the voice's child process."""
        self.tasks = None
        await self._voice.close()

    async def _speak(
        self, act: Presentation, capabilities: Capabilities, stop: asyncio.Event
    ) -> None:
        spoken, reason, away, wanted = None, "", False, act.rendering

        def started() -> None:
            if not act.lit:
                act.say(Delivery.SENT)

        try:
            if wanted.pcm:
                spoken = await self._speaker.play(
                    wanted.pcm, capabilities, stop=stop, started=started
                )
            else:
                words = wanted.speech or wanted.words
                spoken = await self._speaker.speak(words, capabilities, stop=stop, started=started)
        except CannotSpeak as e:
            reason = str(e)
        except GlassesAway:
            reason, away = "glasses away", True
        except BridgeError as e:
            reason = str(e)
        finally:
            self.speaking = None
            self._silent.set()
        self._over(SpeechOver(act, spoken, reason, self._stopped_by, away))
