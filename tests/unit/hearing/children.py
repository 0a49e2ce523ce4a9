"""Children for the tests of the recogniser: real processes, some of which behave badly."""

import sys

LOUD = """
from edge.hearing import worker
from edge.hearing.engines import Decoded
from firmware_bridge.messages import Reading

worker.speech_probability = lambda: lambda window: 0.9 if any(window) else 0.0

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


def loud(load: str = "pass", decode: str = "pass") -> list[str]:
    return [sys.executable, "-c", LOUD.format(load=load, decode=decode)]


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
