"""Speaks with `espeak-ng`, where it is installed: more than a hundred languages.

A program of its own for each sentence (it is under the GPL): started by the child process of the
voice only, which may wait.
"""

import os
import re
import shutil
import subprocess
from typing import Final

from edge.display.voice import sound

PROGRAM: Final = "espeak-ng"
MAX_SOUND: Final = 16 * 1024 * 1024
_HEADER: Final = 44
_NAMES: Final = {"zh": "cmn", "en-GB": "en-gb", "en-US": "en-us"}
"""Languages that espeak-ng calls otherwise; the two of English are its accents."""
_ENGLISH: Final = "(en)"
"""In its phonemes: here it changes to English, for a foreign word or to name a letter."""
_LATIN: Final = re.compile(r"[A-Za-z]+")
_COMMANDS: Final = re.compile(r"\[\[|\]\]")
"""Between these it reads phonemes."""
_NO_FOLDERS: Final = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"), os.devnull)
"""Its sound library makes folders of its own even if nothing is played."""


class EspeakFault(Exception):
    """It has no voice for the text, or would spell it; the text says why."""


def installed() -> str:
    """Return the path of the program, "" where there is none."""
    return shutil.which(PROGRAM) or ""


def languages(limit_s: float) -> frozenset[str]:
    """Return the names of its voices (`de`, `cmn`); none where it is absent or broken."""
    try:
        listed = _run(["--voices"], "", limit_s).decode(errors="replace").splitlines()
    except EspeakFault:
        return frozenset()
    rows = (line.split() for line in listed[1:])
    return frozenset(row[1] for row in rows if len(row) > 1)


def voice_for(language: str, known: frozenset[str]) -> str:
    """Return the voice for a language (`de`, `zh`, `en-GB`), "" if it has none."""
    for name in (_NAMES.get(language, language.lower()), language.partition("-")[0]):
        if name in known:
            return name
    return ""


def speak(text: str, voice: str, limit_s: float) -> bytes:
    """Return speech as mono PCM of 16 bits at `sound.RATE`. Raises `EspeakFault`.

    A text that it would spell ("Chinese letter, Chinese letter") is refused: it does sound, but
    nobody understands it.
    """
    words = _COMMANDS.sub(" ", text)
    phonemes = _run(["-v", voice, "-q", "-x"], words, limit_s).decode(errors="replace")
    foreign = 0 if voice.startswith("en") else len(_LATIN.findall(words))
    if phonemes.count(_ENGLISH) > foreign:
        raise EspeakFault(f"cannot read this in {voice}")
    wav = _run(["-v", voice, "--stdout"], words, limit_s)
    rate = int.from_bytes(wav[24:28], "little")
    if wav[:4] != b"RIFF" or not 8000 <= rate <= 48000:
        raise EspeakFault("it made no sound")
    return sound.resampled(sound.from_bytes(wav[_HEADER:]), rate).tobytes()


def _run(options: list[str], text: str, limit_s: float) -> bytes:
    """Run it with UTF-8 on stdin, never on the command line. Raises `EspeakFault`."""
    path = installed()
    if not path:
        raise EspeakFault("it is not installed")
    command = [path, "-b", "1", *options, *(["--stdin"] if text else [])]
    try:
        done = subprocess.run(
            command,
            input=text.encode(),
            capture_output=True,
            timeout=limit_s,
            check=False,
            env=os.environ | _NO_FOLDERS,
        )
    except subprocess.TimeoutExpired:
        raise EspeakFault("it took too long") from None
    except OSError as e:
        raise EspeakFault(f"it cannot be started: {e}") from None
    if done.returncode or len(done.stdout) > MAX_SOUND:
        detail = done.stderr.decode(errors="replace").strip()[:200]
        raise EspeakFault(f"it failed: {detail or done.returncode}")
    return done.stdout
