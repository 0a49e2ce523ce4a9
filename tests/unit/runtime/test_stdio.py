"""A process that speaks a protocol over its stdin and stdout."""

import os
import subprocess
import sys

CODE = """
import os, sys
from edge.runtime.stdio import claim_stdio

print("before", end="")
incoming, outgoing = claim_stdio()
print("stray print")
os.system("echo stray program")
stolen = sys.stdin.read()
asked = os.read(incoming, 100)
os.write(outgoing, b"|answer to " + asked + repr(stolen).encode())
"""


def test_stray_prints_and_readers_do_not_touch_the_protocol():
    ran = subprocess.run(
        [sys.executable, "-c", CODE],
        check=True,
        input=b"question ",
        capture_output=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        timeout=60,
    )
    assert ran.stdout == b"before|answer to question ''"
    assert sorted(ran.stderr.splitlines()) == [b"stray print", b"stray program"]
