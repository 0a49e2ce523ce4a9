"""Microphone and speaker of a Mentra Live: switching them, and the LC3 packets of both."""

from collections import deque
from typing import Final

from firmware_bridge.codecs.mentra_live.layers import encode
from firmware_bridge.codecs.mentra_live.outbox import Outbox
from firmware_bridge.codecs.mentra_live.sound import (
    MicrophoneStream,
    SpeakerStream,
    frames_per_packet,
)
from firmware_bridge.codecs.mentra_live.wire import SPEAKER
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    EndAudio,
    MicrophoneChunk,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
)
from firmware_bridge.packets import ChannelPacket

AGAIN_S: Final = 2.0
TRIES: Final = 5
"""The order to switch the microphone gets lost (#2072): it is sent five times, or until it shows.
"""
BEAT_S: Final = 1800.0
"""Seconds after which a microphone is switched on again (M26)."""
_RATE: Final = 16000


class LiveAudio:
    """State of both. `missing`: the hardware has no sound over Bluetooth LE."""

    def __init__(self, outbox: Outbox) -> None:
        self.missing = False
        self._outbox = outbox
        self._out: deque[bytes] = deque()
        self._microphone: MicrophoneStream | None = None
        self._order_at: float | None = None
        """When the microphone is switched again; of a closed one, not before then."""
        self._tries = 0
        self._speaker: SpeakerStream | None = None
        self._opening = b""
        """The order that opens the speaker: no sound is sent before it."""

    # -------------------------------------------------------------- microphone

    def switch_microphone(self, command: StartMicrophone | StopMicrophone, now: float) -> None:
        """Switch it. The chip says nothing about it. Raises `CommandRefused`."""
        stream = self._microphone
        if isinstance(command, StopMicrophone):
            if stream is None or stream.number != command.stream:
                raise CommandRefused("no_stream", f"microphone {command.stream} is not open")
            self._microphone = None
        else:
            self._check_hardware()
            if command.format is not AudioFormat.LC3:
                raise CommandRefused("unsupported", f"{command.format}; the microphone speaks lc3")
            if stream is not None:
                raise CommandRefused("busy", f"microphone stream {stream.number} is open")
            self._microphone = MicrophoneStream(command.stream)
        self._tries = 0
        self._order(now)

    def _check_hardware(self) -> None:
        if self.missing:
            detail = "this Mentra Live has no sound over Bluetooth LE"
            raise CommandRefused("unsupported", detail)

    def _order(self, now: float) -> None:
        on = self._microphone is not None
        self._outbox.put_chip("enable_custom_audio_tx", encode({"enable": on}))
        self._tries += 1
        self._order_at = now + (AGAIN_S if not on or self._tries < TRIES else BEAT_S)

    def receive(self, packet: bytes, now: float) -> list[MicrophoneChunk]:
        """Return the sound of a packet; switch off a microphone that was not asked for. Raises
        `RemoteViolation`.
        """
        stream = self._microphone
        if stream is None:
            if self._order_at is None or now >= self._order_at:
                self._order(now)
            return []
        if not stream.heard:
            self._order_at = now + BEAT_S
        return stream.receive(packet)

    # -------------------------------------------------------------- speaker

    def open_speaker(self, command: StartAudio, max_packet: int) -> None:
        """Open a stream of samples, which go over the air as LC3. Raises `CommandRefused`."""
        self._check_hardware()
        if command.format is not AudioFormat.PCM16 or command.rate != _RATE:
            raise CommandRefused("unsupported", f"{command.format} at {command.rate} Hz")
        if self._speaker is not None:
            raise CommandRefused("busy", f"stream {self._speaker.number} is open")
        if not frames_per_packet(max_packet):
            raise CommandRefused("unsupported", f"packets of {max_packet} bytes hold no sound")
        self._speaker = SpeakerStream(command.stream)
        order = encode({"enable": True})
        self._opening = self._outbox.put_chip("enable_custom_audio_rx", order)

    def speak(self, chunk: AudioChunk, now: float, max_packet: int) -> None:
        """Send samples of the open stream; those of another are dropped."""
        if self._speaker is not None and self._speaker.number == chunk.stream:
            per_packet = max(1, frames_per_packet(max_packet))
            self._send(self._speaker.feed(b"".join(chunk.frames), now, per_packet))

    def end(self, number: int, command: EndAudio, now: float, max_packet: int) -> int:
        """End the stream: at once, or after its last sample. Return the command that is done now,
        else 0. Raises `CommandRefused`.
        """
        stream = self._speaker
        if stream is None or stream.number != command.stream:
            raise CommandRefused("no_stream", f"stream {command.stream} is not open")
        if command.flush:
            self._out.clear()
            self._close_speaker()
            return number
        self._send(stream.flush(now, max(1, frames_per_packet(max_packet))))
        stream.ending = number
        return 0

    def _send(self, packets: list[bytes]) -> None:
        self._out += [ChannelPacket(packet, SPEAKER) for packet in packets]

    def _close_speaker(self) -> None:
        self._speaker = None
        self._outbox.put_chip("enable_custom_audio_rx", encode({"enable": False}))

    def emit(self) -> list[bytes]:
        """Return the sound that waits, once the speaker was opened."""
        if self._out and self._outbox.is_waiting(self._opening):
            return []
        packets, self._out = list(self._out), deque()
        return packets

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return sum(map(len, self._out))

    # -------------------------------------------------------------- time

    def due(self) -> float | None:
        """Return when `handle_timer` must be called, or None."""
        due = [self._order_at] if self._microphone is not None else []
        if self._speaker is not None and self._speaker.ending is not None:
            due.append(self._speaker.played_at)
        return min((moment for moment in due if moment is not None), default=None)

    def handle_timer(self, now: float) -> int:
        """Switch again what is due; return the `EndAudio` whose last sample was played, else 0. The
        glasses do not say what they played, so nothing is claimed.
        """
        if self._microphone is not None and self._order_at is not None and self._order_at <= now:
            self._order(now)
        stream = self._speaker
        if stream is None or stream.ending is None or stream.played_at > now:
            return 0
        self._close_speaker()
        return stream.ending
