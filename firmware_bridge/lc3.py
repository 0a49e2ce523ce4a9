"""LC3 sound, as an Even G1's microphone sends it: frames of 10 ms at 16 kHz, mono.

Uses the system's liblc3, because no Python package of it has wheels for all our machines. Importing
this module needs no library; making a `Decoder` or an `Encoder` does.
"""

import ctypes
from typing import Final

RATE: Final = 16000
FRAME_SAMPLES: Final = 160
FRAME_BYTES: Final = 2 * FRAME_SAMPLES
"""Bytes of one decoded frame: 16-bit signed samples in the machine's byte order."""
MIN_CODED: Final = 20
MAX_CODED: Final = 400
"""Bytes of one coded frame: 16 to 320 kbit/s, the range that LC3 defines."""
PACKAGES: Final = "liblc3-0 (Debian 12) or liblc3-1 (Debian 13)"
_NAMES: Final = ("liblc3.so.1", "liblc3.so.0", "liblc3.so")
"""The functions used here are the same in liblc3 1.0 (`.so.0`) and 1.1 (`.so.1`)."""
_FRAME_US: Final = 10_000
_SIGNED_16: Final = 0
_CONCEALED: Final = 1


class Lc3Missing(Exception):
    """The library liblc3 is not on this machine; the text says what to install."""


def why_not() -> str:
    """Return why this machine can neither read nor write LC3, and what would help; "" if it can."""
    try:
        _load()
    except Lc3Missing as missing:
        return str(missing)
    return ""


class Decoder:
    """Coded frames of one stream → samples. Frames depend on those before: one decoder a stream."""

    def __init__(self, frame_bytes: int) -> None:
        """Raises `Lc3Missing`, and ValueError for a frame size that LC3 does not have."""
        self._library = _load()
        self._size = _check_size(frame_bytes)
        self._memory = ctypes.create_string_buffer(self._library.lc3_decoder_size(_FRAME_US, RATE))
        self._state = self._library.lc3_setup_decoder(_FRAME_US, RATE, 0, self._memory)
        self._samples = ctypes.create_string_buffer(FRAME_BYTES)
        self.concealed = 0
        """Frames that were lost or damaged, and filled with what the frames before them suggest."""

    def decode(self, frame: bytes | None) -> bytes:
        """Return the 320 bytes of one frame; None is a lost frame, whose sound is estimated.

        Raises ValueError for a frame of another size.
        """
        if frame is not None and len(frame) != self._size:
            raise ValueError(f"an LC3 frame of {len(frame)} bytes; {self._size} are expected")
        outcome = self._library.lc3_decode(
            self._state, frame, self._size, _SIGNED_16, self._samples, 1
        )
        self.concealed += outcome == _CONCEALED
        return self._samples.raw


class Encoder:
    """Samples of one stream → coded frames."""

    def __init__(self, frame_bytes: int) -> None:
        """Raises `Lc3Missing`, and ValueError for a frame size that LC3 does not have."""
        self._library = _load()
        self._size = _check_size(frame_bytes)
        self._memory = ctypes.create_string_buffer(self._library.lc3_encoder_size(_FRAME_US, RATE))
        self._state = self._library.lc3_setup_encoder(_FRAME_US, RATE, 0, self._memory)
        self._frame = ctypes.create_string_buffer(self._size)

    def encode(self, pcm: bytes) -> bytes:
        """Return the coded frame of 160 samples. Raises ValueError for another number of them."""
        if len(pcm) != FRAME_BYTES:
            raise ValueError(f"{len(pcm)} bytes of samples; {FRAME_BYTES} make one frame")
        self._library.lc3_encode(self._state, _SIGNED_16, pcm, 1, self._size, self._frame)
        return self._frame.raw


def _check_size(frame_bytes: int) -> int:
    if not MIN_CODED <= frame_bytes <= MAX_CODED:
        raise ValueError(
            f"LC3 frames of {frame_bytes} bytes; {MIN_CODED} to {MAX_CODED} are possible"
        )
    return frame_bytes


def _load() -> ctypes.CDLL:
    """Return the library with the types of its functions. Raises `Lc3Missing`."""
    for name in _NAMES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return _declare_types(library)
    raise Lc3Missing(f"the sound codec LC3 is not installed: apt-get install {PACKAGES}")


def _declare_types(library: ctypes.CDLL) -> ctypes.CDLL:
    number, pointer = ctypes.c_int, ctypes.c_void_p
    for size in (library.lc3_encoder_size, library.lc3_decoder_size):
        size.argtypes, size.restype = [number, number], ctypes.c_uint
    for setup in (library.lc3_setup_encoder, library.lc3_setup_decoder):
        setup.argtypes, setup.restype = [number, number, number, pointer], pointer
    library.lc3_encode.argtypes = [pointer, number, pointer, number, number, pointer]
    library.lc3_decode.argtypes = [pointer, pointer, number, number, pointer, number]
    return library
