"""The program of the glasses (glassd_app.lua with the part of its hardware, or monocle_app.py.txt):
its text as it is uploaded, and its version.
"""

import zlib
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from firmware_bridge.codecs.frame.prompts import LuaPrompt

FILE: Final = LuaPrompt.file
START: Final = LuaPrompt.start
BUILD_BYTES: Final = 8
_BUILD: Final = "@BUILD@"
_HARDWARE: Final = "@HARDWARE@"


class Program(NamedTuple):
    """`build` is computed from the text: another text has another one."""

    text: str
    build: str


@cache
def program(hardware: str = "frame") -> Program:
    """Read the program, without the comments and the indentation that people need. `hardware`: the
    key of a `FrameHardware`.
    """
    if hardware == "monocle":
        lines = _source("monocle_app.py.txt").splitlines()
    else:
        source = _source(FILE).replace(_HARDWARE, _source(f"hardware_{hardware}.lua"))
        lines = [line.strip() for line in source.splitlines()]
    text = "\n".join(line for line in lines if line and not line.startswith(("--", "#"))) + "\n"
    build = f"{zlib.crc32(text.encode()):08x}"
    return Program(text.replace(_BUILD, build), build)


def _source(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
