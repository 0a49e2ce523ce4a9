"""The judge of lens and ear: an HCI recording → what was drawn and what was heard, link by link.

Reads with `tests/e2e/independent_decoder.py`, which shares nothing with glassd but the words of
PROFILE.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.tap import HEAD, OPENED, TO_CONTROLLER, TO_HOST
from tests.e2e.independent_decoder import Air, read_air

EVENT = 4
DISCONNECTED, LE_META, CONNECTED, CONNECTED_ENHANCED = 0x05, 0x3E, 0x01, 0x0A
WORDS = "/word"
"""Scenes of words beside a call ("Working…"): they change at will and are no result."""
QUESTION = "/confirm"
"""Scenes of a question about a call: shown over what is read, until the question is over."""


@dataclass
class Link:
    """One connection to the glasses: from its making to its loss."""

    began: float
    to_controller: bytearray = field(default_factory=bytearray)
    to_host: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True)
class Drawn:
    """The glasses said that they drew this page; `linked` is when this link was made."""

    link: int
    linked: float
    scene: str
    page: int
    text: str


@dataclass(frozen=True)
class Heard:
    """A sound stream the glasses got at least one chunk of; `start` are its first bytes when it
    was PCM.
    """

    link: int
    form: str
    start: bytes


def links(recording: bytes) -> list[Link]:
    """Cut a recording at every connection made and lost: sequence numbers and handles mean
    something within one only.
    """
    found: list[Link] = []
    current: Link | None = None
    partial = {TO_CONTROLLER: b"", TO_HOST: b""}
    for moment, what, data in _chunks(recording):
        if what not in partial:
            current, partial = None, {TO_CONTROLLER: b"", TO_HOST: b""}
            continue
        packets, partial[what] = _packets(partial[what] + data)
        for packet in packets:
            if what == TO_HOST and _made(packet):
                found.append(current := Link(moment))
            elif what == TO_HOST and packet[0] == EVENT and packet[1] == DISCONNECTED:
                current = None
            elif current is not None:
                (current.to_host if what == TO_HOST else current.to_controller).extend(packet)
    return found


def _chunks(recording: bytes) -> Iterator[tuple[float, int, bytes]]:
    at = 0
    while at + HEAD.size <= len(recording):
        moment, _number, what, size = HEAD.unpack_from(recording, at)
        at += HEAD.size
        yield (
            moment,
            OPENED if what not in (TO_CONTROLLER, TO_HOST) else what,
            recording[at : at + size],
        )
        at += size


def _packets(stream: bytes) -> tuple[list[bytes], bytes]:
    """Whole HCI packets (Core Specification, Vol 4 Part A 2), and the rest."""
    packets, at = [], 0
    while at < len(stream):
        header = {1: 3, 2: 4, 3: 3, 4: 2, 5: 4}[stream[at]]
        head = stream[at + 1 : at + 1 + header]
        if len(head) < header:
            break
        size = int.from_bytes(head[2:4], "little") & 0x3FFF if header == 4 else head[-1]
        end = at + 1 + header + size
        if end > len(stream):
            break
        packets.append(stream[at:end])
        at = end
    return packets, stream[at:]


def _made(packet: bytes) -> bool:
    return (
        packet[0] == EVENT
        and packet[1] == LE_META
        and packet[3] in (CONNECTED, CONNECTED_ENHANCED)
        and packet[4] == 0
    )


def read(recording: Path) -> tuple[list[Drawn], list[Heard]]:
    """Everything drawn and everything heard, in order."""
    drawn: list[Drawn] = []
    heard: list[Heard] = []
    for number, link in enumerate(links(recording.read_bytes() if recording.exists() else b"")):
        try:
            air = read_air(bytes(link.to_controller), bytes(link.to_host))
        except KeyError:
            # it was lost before the characteristics were found: nothing can have been said
            continue
        drawn += _drawn(number, link.began, air)
        heard += _heard(number, air)
    return drawn, heard


def _drawn(number: int, began: float, air: Air) -> Iterator[Drawn]:
    answers = {a["re"]: a for a in air.answers if a.get("t") == "done"}
    for command in air.commands:
        if command["t"] == "show" and answers.get(command["n"], {}).get("drawn"):
            text = " ".join(str(line[1]) for line in command.get("lines", []))
            page = int(command.get("page", 1))
            yield Drawn(number, began, str(command["scene"]), page, text)


def _heard(number: int, air: Air) -> Iterator[Heard]:
    forms: dict[int, str] = {}
    begun: set[int] = set()
    for command in air.commands:
        if command["t"] == "audio_start":
            forms[command["stream"]] = str(command["format"])
            begun.discard(command["stream"])
        elif command["t"] == "audio" and command["stream"] not in begun:
            begun.add(command["stream"])
            first: Any = command["frames"][0]
            yield Heard(number, forms.get(command["stream"], ""), bytes(first)[:16])


# ------------------------------------------------------------------ rules


def drawn_twice(drawn: list[Drawn]) -> Iterator[tuple[str, str]]:
    """(scene, why). One rendering per result: its first page is drawn once on a link, except that
    it comes back from under a question, and on a later link only as a restoration, which is to say
    while no other result was drawn since.
    """
    last = ""
    done: set[str] = set()
    on_link: set[tuple[int, str]] = set()
    asked = False  # a question was drawn since the last page of a result
    for one in drawn:
        if one.scene.endswith(WORDS) or one.scene.startswith("word-"):
            continue
        if one.scene.endswith(QUESTION):
            asked = True
            continue
        if one.page == 1:
            if (one.link, one.scene) in on_link:
                if not (asked and last == one.scene):
                    yield one.scene, f"its first page was drawn again on link {one.link}"
            elif (
                one.scene in done
                and last != one.scene
                and any(link == one.link for link, _ in on_link)
            ):
                yield one.scene, f"it came back on link {one.link} after other results there"
            on_link.add((one.link, one.scene))
        done.add(one.scene)
        last, asked = one.scene, False


def asked_twice(drawn: list[Drawn], over: dict[str, float]) -> Iterator[tuple[str, str]]:
    """(scene, why). A question is put once on a link, and on later links until it is over, whatever
    was drawn before it: glasses that were lost are asked again. `over`: call id → when its question
    was over at the latest. It is over, too, once the call's result was drawn.
    """
    put: set[tuple[int, str]] = set()
    results: set[str] = set()
    for one in drawn:
        if not one.scene.endswith(QUESTION):
            results.add(one.scene)
        elif one.page == 1:
            call_id = one.scene.removesuffix(QUESTION)
            if (one.link, one.scene) in put:
                yield one.scene, f"it was asked again on link {one.link}"
            elif call_id in results or one.linked > over.get(call_id, one.linked):
                yield one.scene, f"it was asked on link {one.link}, after it was over"
            put.add((one.link, one.scene))


def heard_twice(heard: list[Heard]) -> Iterator[tuple[str, str]]:
    """(token, why). Sound that spells a token is heard once, whatever happens to the link under
    it.
    """
    seen: dict[str, int] = {}
    for one in heard:
        if one.form == "pcm16" and one.start.startswith(b"L"):
            token = one.start.rstrip(b".").decode(errors="replace")
            if token in seen:
                yield token, f"heard on link {seen[token]} and again on link {one.link}"
            seen[token] = one.link
