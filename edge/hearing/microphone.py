"""The microphone of the glasses: on, off, and where its sound goes."""

import logging
from collections.abc import Callable
from typing import Final

from edge.hearing.obstacles import AWAY
from edge.listening_ports import CannotListen, SpeechPort
from edge.ports import GlassesAway, GlassesPort
from edge.runtime.clock import Clock
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.messages import (
    AudioFormat,
    MicrophoneChunk,
    StartMicrophone,
    StopMicrophone,
)

ANSWER_S: Final = 5.0
_NUMBERS: Final = 60_000
"""Numbers of streams, which have 16 bits: they show which sound belongs to an earlier stream."""
REFUSED: Final = "The microphone of the glasses does not go on."

_log: Final = logging.getLogger(__name__)


class Microphone:
    """One per daemon. While glassd speaks, sound is dropped, so that its own voice is not taken for
    the wearer's; unless the glasses cancel the echo.
    """

    def __init__(self, glasses: GlassesPort, speech: SpeechPort, clock: Clock) -> None:
        self._glasses = glasses
        self._speech = speech
        self._clock = clock
        self._number = 0
        self.is_on = False
        self.feed: Callable[[MicrophoneChunk], None] | None = None
        """Takes the sound; never waits, never raises."""
        self.record: Callable[[MicrophoneChunk], None] | None = None
        """Takes it too, our own speech included."""
        self.sound_at = 0.0
        """When sound came last, or the microphone went on (boot clock)."""
        glasses.listen_to(self._take)

    async def turn_on(self, form: AudioFormat, rate: int = 16000) -> None:
        """Raises `CannotListen`."""
        try:
            try:
                await self._start(form, rate)
            except CommandRefused as e:
                if e.code != "busy":
                    raise
                await self._stop()  # an earlier stream whose end was not acknowledged
                await self._start(form, rate)
        except GlassesAway:
            raise CannotListen(AWAY) from None
        except (CommandRefused, CommandTimeout) as e:
            _log.warning("the microphone of the glasses does not go on: %s", e)
            if isinstance(e, CommandTimeout):
                await self.turn_off(certain=False)
            raise CannotListen(REFUSED) from None

    async def _start(self, form: AudioFormat, rate: int) -> None:
        self._number = self._number % _NUMBERS + 1
        self.sound_at = self._clock.boot()
        command = StartMicrophone(self._number, form, rate)
        await self._glasses.request(command, timeout_s=ANSWER_S)
        self.is_on = True

    async def turn_off(self, *, certain: bool = True) -> None:
        """Fine if it is off already, or the glasses are away. `certain`: it is known to be on."""
        if not self.is_on and certain:
            return
        self.is_on = False
        try:
            await self._stop()
        except GlassesAway:
            pass  # glasses switch it off with the link
        except (CommandRefused, CommandTimeout) as e:
            level = logging.WARNING if certain else logging.DEBUG
            _log.log(level, "the glasses did not say that the microphone is off: %s", e)

    async def _stop(self) -> None:
        command = StopMicrophone(self._number)
        try:
            await self._glasses.request(command, timeout_s=ANSWER_S)
        except CommandTimeout:
            await self._glasses.request(command, timeout_s=ANSWER_S)

    def lost(self) -> None:
        """The link is lost, and the microphone off with it."""
        self.is_on = False

    def _take(self, chunk: MicrophoneChunk) -> None:
        if chunk.stream != self._number or not self.is_on:
            return
        self.sound_at = self._clock.boot()
        if self.record is not None:
            self.record(chunk)
        if self.feed is not None and not (self._speech.speaking and not self.cancels_echo):
            self.feed(chunk)

    @property
    def cancels_echo(self) -> bool:
        """Whether the glasses take their own sound out of what the microphone hears."""
        known = self._glasses.status().capabilities
        return known is not None and known.get("microphone.echo_cancelling") is True
