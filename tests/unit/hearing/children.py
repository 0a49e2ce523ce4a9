"""Children for the tests of the recogniser: real processes, some of which behave badly."""

import sys

LOUD = """
from edge.hearing import worker
from edge.hearing.engines import Decoded
from firmware_bridge.messages import Reading

worker.speech_probability = lambda: lambda window: 0.9 if any(window) else 0.0
worker.STALLED_S = {stalled_s}
worker._NICENESS = {niceness}

class Engine:
    def load(self):
        {load}

    def decode(self, samples, grammar, *, final):
        {decode}
        loud = int((abs(samples) > 0.01).sum())
        words = " ".join(grammar.expected.sentences)
        readings = (Reading("one", -1.5), Reading("two", -7.25)) if final else ()
        return Decoded(f"{{loud / 16000:.1f}} s of [{{words}}]", 0.5, readings)

worker.serve(Engine)
"""
"""The real child; speech is any sound that is no silence, and its words say how long it was."""


AS_FAST_AS_OTHERS = ("-I", "-c", "from edge.hearing import worker as w; w._NICENESS = 0; w.main()")
"""The real child, as arguments of Python. One that gives way to all other tests takes too long."""


def loud(
    load: str = "pass", decode: str = "pass", *, stalled_s: float = 30.0, niceness: int | str = 0
) -> list[str]:
    """`stalled_s`: a busy machine may bring no sound for seconds; that alone ends no sentence."""
    code = LOUD.format(load=load, decode=decode, stalled_s=stalled_s, niceness=niceness)
    return [sys.executable, "-c", code]


def program(code: str) -> list[str]:
    """`say(body)` writes a message, `hear()` reads one."""
    return [
        sys.executable,
        "-c",
        "import os, sys, time\n"
        "def say(body): os.write(1, len(body).to_bytes(4, 'big') + body)\n"
        "def hear():\n"
        "    size = int.from_bytes(sys.stdin.buffer.read(4), 'big')\n"
        "    return sys.stdin.buffer.read(size)\n" + code,
    ]
