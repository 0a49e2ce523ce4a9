"""`glassd hear`: sound for the microphone of simulated glasses, from a file or spoken."""

import base64
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from edge.commands.shared.console import Screen, os_problem, plain
from edge.commands.shared.simulator import Simulator, SimulatorSilent, simulator_beside
from edge.runtime.errors import UserError

ANSWER_S: Final = 30.0
"""A long file is converted before the answer."""
MAX_SENT: Final = 3 * 1000 * 1000
"""Bytes of sound in one request. The simulator reads a larger file itself."""


def hear(args: Namespace, screen: Screen) -> int:
    if bool(args.file) == bool(args.say):
        problem = "name one: a WAV file, or --say TEXT"
        raise UserError("USAGE", problem, "see: glassd hear --help")
    simulator = simulator_beside(args)
    if simulator is None:
        problem = "no simulated glasses beside the daemon"
        fix = "start them with: glassd sim MODEL --control PATH, and give --control PATH here too"
        raise UserError("NO_SIMULATOR", problem, fix)
    request = _spoken_request(args.say, args.language) if args.say else _file(args.file)
    answer = _ask(simulator, {"do": "hear", **request})
    played = f"playing {answer.get('seconds', 0):.1f} s of sound"
    waits = "" if answer.get("noticed") else "; the microphone is off, and the sound waits 10 s"
    return screen.result(answer, played + waits)


def _spoken_request(text: str, language: str) -> dict[str, Any]:
    from edge.demo.speech import NoSpeech, speak  # noqa: PLC0415 - a voice is only for --say

    try:
        pcm = speak(text, language)
    except NoSpeech as e:
        raise UserError("NO_VOICE", plain(str(e)), e.fix or "try another text") from None
    return {"name": text, "data": base64.b64encode(pcm).decode()}


def _file(name: str) -> dict[str, Any]:
    try:
        if name != "-":
            path = Path(name)
            if path.is_file() and path.stat().st_size > MAX_SENT:
                return {"path": str(path.resolve())}
            data = path.read_bytes()
        else:
            data = sys.stdin.buffer.read(MAX_SENT + 1)
    except OSError as e:
        raise UserError("USAGE", os_problem(e), "name a WAV file") from None
    if not data.startswith(b"RIFF"):
        raise UserError("USAGE", f"{name} is no WAV file", "convert it to WAV first")
    if len(data) > MAX_SENT:
        raise UserError("USAGE", f"more than {MAX_SENT} bytes", "save it to a file and name that")
    return {"name": name, "data": base64.b64encode(data).decode()}


def _ask(simulator: Simulator, request: dict[str, Any]) -> dict[str, Any]:
    try:
        answer = simulator.ask(request, within_s=ANSWER_S)
    except SimulatorSilent as e:
        problem = f"the simulator at {plain(simulator.where)} does not answer: {e}"
        raise UserError("NO_SIMULATOR", problem, "is it running?") from None
    if not answer.get("ok"):
        raise UserError("USAGE", plain(str(answer.get("error"))), "see: glassd hear --help")
    return answer
