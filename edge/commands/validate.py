"""`glassd validate`: a minute of checks of real glasses with their owner, recorded with the
answers.
"""

import base64
import struct
import time
import zlib
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from edge.commands.shared.console import Screen, plain
from edge.commands.shared.daemon import ask, asks, token_of
from edge.commands.shared.form import can_ask
from edge.commands.shared.packet_recorder import (
    PacketRecorder,
    agree,
    check_file,
    ended_by_all_signals,
    save,
)
from edge.commands.shared.terminal import typed
from edge.runtime.errors import UserError
from firmware_bridge.metrics import UnknownFont, metrics_for

READY_S: Final = 45.0
LOOK_S: Final = 0.3
ANSWER_S: Final = 300.0
GESTURE_S: Final = 15.0
SHOWN_S: Final = 60
"""Seconds that a page stays, for the owner to look at."""
CALL_S: Final = 60.0
SPEAK_S: Final = 5.0
"""Seconds for the owner to speak."""
PHOTO_S: Final = 90.0
ASKED: Final = ("tap", "double_tap", "button")
"""Gestures that are asked for; of glasses with none of them, the first that they have."""
SCRIPTS: Final = "Ελληνικά Привет\n日本語 한국어\nعربي עברית हिन्दी"
SIZE: Final = 96
"""Pixels of the picture, in both directions."""
_WORDS: Final = {"y": "yes", "yes": "yes", "n": "no", "no": "no"}
Known = Mapping[str, Any]
"""Capability → value."""


class Check(Struct, frozen=True):
    """One check: what is called, and what the owner is asked; or the gesture that is waited for;
    or, after a yes, the `photo` that is taken; or `speech`, what the microphone hears.
    """

    name: str
    question: str
    tool: str = ""
    args: Mapping[str, Any] = {}
    gesture: str = ""
    photo: bool = False
    speech: bool = False


class _NobodyTypes(Exception):
    """The owner left, or closed the input."""


class _Lost(Exception):
    """The glasses went away, and did not come back."""


def validate(args: Namespace, screen: Screen) -> int:
    path = check_file(args)
    if not can_ask(screen):
        problem = "validate asks a person what the glasses show, and there is no terminal"
        raise UserError("USAGE", problem, "run it in a terminal, without --json", exit_code=2)
    agree(args, screen, "validate")
    recorder = PacketRecorder(args)
    recorder.start()
    screen.note("opening a new connection to the glasses …")
    with ended_by_all_signals():
        try:
            for check in checks(_wait_until_ready(args, recorder)):
                _come_back(args, recorder, screen)
                _carry_out(check, args, recorder, screen)
        except (KeyboardInterrupt, _NobodyTypes, _Lost):
            with suppress(OSError):  # the terminal may be closed
                screen.note("\nended early; the answers until now are written")
        finally:
            recorder.stop()
    return save(recorder, path, screen, sound=args.sound, photos=args.photos)


def _wait_until_ready(args: Namespace, recorder: PacketRecorder) -> Mapping[str, Any]:
    """Return `glasses` of the status once they are connected again. Raise `UserError`."""
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        recorder.collect(LOOK_S)
        glasses: Mapping[str, Any] = ask(args, "GET", "/v1/status").get("glasses") or {}
        if glasses.get("state") == "ready" and recorder.maker.model:
            return glasses
    problem = f"the glasses did not connect within {READY_S:g} s"
    raise UserError("NO_GLASSES", problem, "see: glassd status")


def _come_back(args: Namespace, recorder: PacketRecorder, screen: Screen) -> None:
    """Wait for glasses that are away. Raise `_Lost`."""
    glasses = ask(args, "GET", "/v1/status").get("glasses") or {}
    if glasses.get("state") != "ready":
        screen.note("the glasses are away; waiting for them …")
        try:
            _wait_until_ready(args, recorder)
        except UserError:
            raise _Lost from None


# ------------------------------------------------------------------ the checks


def checks(glasses: Mapping[str, Any]) -> Iterator[Check]:
    """Yield the checks of what these glasses have."""
    report = glasses.get("capabilities") or {}
    known = {key: each.get("value") for key, each in report.items()}
    if known.get("display") is True:
        yield from _of_the_lens(known)
    gestures = [word for word in str(known.get("gestures") or "").split(",") if word]
    wanted = [word for word in ASKED if word in gestures] or gestures[:1]
    for word in wanted:
        name = word.replace("_", " ")
        yield Check("taps", f"Now: {name}, within {GESTURE_S:g} s.", gesture=word)
    yield Check("battery", "Is that what the glasses, or their app, say?")
    if known.get("speaker") is True:
        text = "One, two, three."
        question = f"Did you hear: {text}"
        yield Check("sound", question, "glasses:say", {"text": text})
    if known.get("microphone") is True:
        yield Check("sound", f"Now speak, for {SPEAK_S:g} s: one, two, three …", speech=True)
    if known.get("camera") is True:
        yield Check("photo", "May the glasses take a photo now?", photo=True)


def _of_the_lens(known: Known) -> Iterator[Check]:
    show = "glasses:show_text"
    text = "glassd 1 2 3"
    question = f"Does the lens show: {text}"
    yield Check("text", question, show, {"text": text, "duration_s": SHOWN_S})
    if wide := wide_lines(known):
        question = (
            "Does the lens show two full lines, i and W, each with one ] at its end, not broken?"
        )
        yield Check("widths", question, show, {"text": wide, "duration_s": SHOWN_S})
    question = (
        "Which of these can you read: Greek, Russian, Japanese, Korean, Arabic, Hebrew, Hindi?"
    )
    yield Check("scripts", question, show, {"text": SCRIPTS, "duration_s": SHOWN_S})
    if known.get("display.bitmap") is True:
        args = {"image": picture(), "alt": "a square", "duration_s": SHOWN_S}
        question = "Does the lens show a square with a line from its top left to its bottom right?"
        yield Check("picture", question, "glasses:show_image", args)


def wide_lines(known: Known) -> str:
    """Return a line of the narrowest and one of the widest letter, each as wide as the lens by our
    table of widths; "" where there is none.
    """
    try:
        width = metrics_for(str(known.get("display.font")), str(known.get("display.glyphs") or ""))
    except UnknownFont:
        return ""
    room = float(known.get("display.text_width") or known.get("display.width") or 0)
    lines = []
    for letter in "iW":
        line = letter
        while width.width(f"{line}{letter}]") <= room:
            line += letter
        lines.append(f"{line}]")
    return "\n".join(lines)


def picture() -> str:
    """Return a square and its diagonal as a PNG in base64."""
    edge = {0, 1, SIZE - 2, SIZE - 1}
    rows = b"".join(
        b"\0" + bytes(255 if x in edge or y in edge or abs(x - y) < 2 else 0 for x in range(SIZE))
        for y in range(SIZE)
    )
    head = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
    return base64.b64encode(data).decode()


def _batteries(glasses: Mapping[str, Any]) -> str:
    sides = glasses.get("sides") or {}
    levels = [f"{side} {each['battery']} %" for side, each in sides.items() if each.get("battery")]
    single = glasses.get("battery")
    return ", ".join(levels) or (f"{single} %" if isinstance(single, int) else "")


# ------------------------------------------------------------------ with the owner


def _carry_out(check: Check, args: Namespace, recorder: PacketRecorder, screen: Screen) -> None:
    question = check.question
    if check.name == "battery":
        levels = _batteries(ask(args, "GET", "/v1/status").get("glasses") or {})
        if not levels:  # they have not said it, or have none
            return
        question = f"glassd reads a battery of {levels}. {question}"
    answer: dict[str, Any] = {"check": check.name, "asked": question}
    if check.gesture:
        screen.note(check.question)
        answer["said"] = "seen" if _wait_for(check.gesture, recorder) else "not seen"
        screen.note(f"  {answer['said']}")
    elif check.speech:
        answer |= _hear(check, args, recorder, screen)
        screen.note(f"  {answer['said']}")
    elif check.photo:
        answer["said"] = _ask_owner(question, screen)
        if answer["said"] == "yes":
            answer["call"] = _photograph(args)
            screen.note(f"  {_describe_photo(answer['call'])}")
    else:
        if check.tool:
            answer["call"] = _call(check, args)
            recorder.collect(LOOK_S)
        answer["said"] = _ask_owner(question, screen)
    recorder.collect(0)
    recorder.maker.answer(answer)


def _call(check: Check, args: Namespace) -> Mapping[str, Any]:
    """Call the tool, and return what is known of its delivery."""
    body = {"tool": check.tool, "args": dict(check.args), "wait": "delivery"}
    envelope = _request(args, "/v1/call", body, CALL_S)
    delivery = (envelope.get("meta") or {}).get("delivery", "")
    return {**_outcome(envelope), "delivery": delivery}


def _request(
    args: Namespace, path: str, body: Mapping[str, Any], timeout_s: float
) -> dict[str, Any]:
    """Return the response; that of a daemon which did not answer has its reason as its code."""
    try:
        return dict(ask(args, "POST", path, dict(body), timeout_s=timeout_s, who="owner"))
    except UserError as error:
        return {"ok": False, "error": {"code": error.code}}


def _outcome(envelope: Mapping[str, Any]) -> dict[str, Any]:
    code = (envelope.get("error") or {}).get("code", "")
    return {"ok": bool(envelope.get("ok")), "code": code}


def _hear(
    check: Check, args: Namespace, recorder: PacketRecorder, screen: Screen
) -> Mapping[str, Any]:
    """Open the microphone, as a voice session does, and return what came of it."""
    call = {"tool": "voice:start", "args": {}, "present": False}
    started = _request(args, "/v1/call", call, CALL_S)
    listening = (started.get("data") or {}).get("listening") if started.get("ok") else None
    if listening != "on":
        why = listening or _outcome(started)["code"] or "this machine recognises no speech"
        return {"said": f"not tried: {why}"}
    before = recorder.maker.count("MicrophoneChunk")
    screen.note(check.question)
    recorder.collect(SPEAK_S)
    heard = recorder.maker.count("MicrophoneChunk") - before
    _request(args, "/v1/call", {"tool": "voice:end", "args": {}, "mode": "voice"}, CALL_S)
    return {"said": f"{heard} packets of sound" if heard else "no sound"}


def _photograph(args: Namespace) -> Mapping[str, Any]:
    """Take a photo, to which the owner said yes, and return what is known of it."""
    body = {"tool": "glasses:take_photo", "args": {}, "present": False, "ask": "return"}
    envelope = _request(args, "/v1/call", body, PHOTO_S)
    if asks(envelope):
        agreed = {"token": token_of(envelope), "allow": True, "grant": "once"}
        envelope = _request(args, "/v1/confirm", agreed, PHOTO_S)
    data = envelope.get("data") or {}
    return {**_outcome(envelope), "bytes": data.get("bytes"), "turned": data.get("turned")}


def _describe_photo(call: Mapping[str, Any]) -> str:
    if not call["ok"]:
        return f"no photo: {call['code']}"
    return f"{call['bytes']} bytes, to be turned by {call['turned']}°"


def _ask_owner(question: str, screen: Screen) -> str:
    """Return yes, no, or what was typed instead; "" if the owner passes. Raise `_NobodyTypes`."""
    screen.prompt(f"{plain(question)}\n  yes, no, or what you see (Enter alone: next): ")
    try:
        line = typed(ANSWER_S)
    except TimeoutError:
        line = None
    if line is None:
        raise _NobodyTypes
    return _WORDS.get(line.lower(), line)


def _wait_for(gesture: str, recorder: PacketRecorder) -> bool:
    """Return whether the glasses report this gesture in time."""
    heard = recorder.maker.count("Gestured", gesture=gesture)
    end = time.monotonic() + GESTURE_S
    while time.monotonic() < end and not recorder.ended:
        recorder.collect(LOOK_S)
        if recorder.maker.count("Gestured", gesture=gesture) > heard:
            return True
    return False
